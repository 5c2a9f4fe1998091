"""Who gets in: by key over TCP, by the file's permissions over the Unix socket."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final, Protocol
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

from engram.errors import AccessDenied, EngramError, HostRefused
from engram.http.callers import ANYBODY, OWNER, Caller, introduce
from engram.http.key_file import KeyRing
from engram.http.limits import RateLimit
from engram.http.problems import problem
from engram.settings import Settings

# No key is needed here; what they tell without one is no secret.
OPEN_PATHS: Final = frozenset({"/v1/health", "/v1/ready", "/openapi.json"})
_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    """Whether a name or address to listen on is reached from this machine only."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Admission(Protocol):
    """Decides about requests before anything reads them."""

    async def admit(self, scope: AsgiScope) -> Caller:
        """Who asks; raises a typed error when they do not get in."""
        ...


class OwnerOnly:
    """Everybody who comes this way is the user who owns the data folder."""

    async def admit(self, _: AsgiScope) -> Caller:
        """The owner."""
        return OWNER


class ByKey:
    """Nobody gets in without a key, from loopback neither.

    Other users of the machine reach loopback, and so do web pages in a browser:
    the names that a request may carry are checked too.

    Args:
        keys: Those that are valid now.
        settings: Where is listened, which hosts are served, how often may be asked.
    """

    def __init__(self, keys: KeyRing, settings: Settings) -> None:
        self._keys = keys
        self._limit = RateLimit(settings.http_requests_per_second)
        hosts = {host.lower() for host in settings.http_allowed_hosts}
        self._any_host = not hosts and not is_loopback(settings.http_host)
        self._hosts = hosts | _LOOPBACK_NAMES | {settings.http_host.lower()}

    async def admit(self, scope: AsgiScope) -> Caller:
        """Who asks.

        Raises:
            HostRefused: the request names a host that is not served here.
            AccessDenied: a page of another site asks.
            KeyRefused: no key, or none that is valid.
            KeysUnusable: the keys cannot be read.
            TooManyRequests: the key asked too often.
        """
        headers = Headers(scope=scope)
        given = headers.get("authorization")
        is_open = scope["path"] in OPEN_PATHS
        if not is_open:
            self._check_names(headers)
        if is_open and given is None:
            return ANYBODY
        caller = Caller.of(self._keys.holder(_bearer(given)))
        # Before the limit, so that the log says whose request was one too many.
        introduce(scope, caller)
        await self._limit.check(caller.key_id or "")
        return caller

    def _check_names(self, headers: Headers) -> None:
        host = _name(f"//{headers.get('host', '')}")
        if not self._any_host and host not in self._hosts:
            raise HostRefused(
                "This host is not served here.",
                hint="ENGRAM_HTTP_ALLOWED_HOSTS names further ones.",
            )
        origin = headers.get("origin")
        if origin is None:
            return
        asking = _name(origin)
        if asking is None or (asking != host if self._any_host else asking not in self._hosts):
            raise AccessDenied("Pages of other sites may not ask here.")


def _bearer(given: str | None) -> str | None:
    scheme, _, token = (given or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _name(url: str) -> str | None:
    """The host of an address, without its port; None when there is none."""
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


class Door:
    """ASGI middleware: lets in whom the admission lets in.

    Args:
        app: The application.
        admission: Decides.
    """

    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        self._app = app
        self._admission = admission

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            caller = await self._admission.admit(scope)
        except EngramError as error:
            await problem(error)(scope, receive, send)
            return
        introduce(scope, caller)
        await self._app(scope, receive, send)
