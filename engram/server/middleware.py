"""What every request passes: request log, errors as problems, limits, authentication."""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

import structlog
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from engram.contracts.refusals import refused
from engram.domain.access import Access
from engram.domain.deeds import Actor, Door
from engram.domain.scope import Scope
from engram.errors import (
    AccessDenied,
    ConflictingMessage,
    EngramError,
    HostRefused,
    ImportOutOfStep,
    InvalidInput,
    InvalidScope,
    KeyRefused,
    MemoryNotFound,
    NoSuchAddress,
    OwnerUnavailable,
    ReviewNotFound,
    SessionBusy,
    TooManyRequests,
    UnknownFailure,
    UserErased,
)
from engram.logging import where
from engram.operations.audit import DOOR_HEADER
from engram.operations.rates import RateLimit
from engram.server.keys import ApiKey, KeyRing
from engram.server.listening import is_loopback
from engram.settings import Settings

# --- who asks, and what they may reach

_CALLER_PLACE: Final = "engram.caller"
USER_HEADER: Final = "Engram-User"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks.

    Attributes:
        name: What the log calls them.
        access: What they may do; None for nothing that has to do with memories.
        namespace: The only one they reach; None for every one.
        user_id: The only user they reach; None for every one of the namespace.
        key_id: Of their key, when they have one.
    """

    name: str
    access: Access | None
    namespace: str | None = None
    user_id: str | None = None
    key_id: str | None = None

    @classmethod
    def of(cls, key: ApiKey) -> Caller:
        """Who holds this key."""
        return cls(key.name, key.access, key.namespace, key.user_id, key.id)

    def require(self, needed: Access) -> None:
        """Check what they may do.

        Raises:
            AccessDenied: not this.
        """
        if self.access is None or not self.access.includes(needed):
            raise AccessDenied(
                f"The API key does not allow to {_DOING[needed]}.",
                allowed=f"a key with access {needed}",
                details={"needed": needed.value},
            )

    def require_operator(self) -> None:
        """Check that they may act on what is everybody's.

        Raises:
            AccessDenied: they reach some of the memories only.
        """
        if self.namespace is not None:
            raise AccessDenied(
                "This acts on the memories of everybody, and no API key allows it.",
                allowed="the user who owns the data folder",
                hint="Run the command on the machine where the data folder lies.",
                details={"needed": "operator"},
            )

    def reach(self, namespace: str, user_id: str) -> None:
        """Check whose memory they reach; what they do not reach is as if it did not exist.

        Raises:
            NoSuchAddress: not this.
        """
        if self.namespace not in (None, namespace) or self.user_id not in (None, user_id):
            raise no_such_address()

    def scope(self, asked_user: str | None) -> Scope:
        """Whose memory is meant where the address does not say it.

        Raises:
            InvalidScope: the key opens many users and the request names none.
            NoSuchAddress: the request names a user that the key does not open.
        """
        user_id = asked_user or self.user_id
        if user_id is None or self.namespace is None:
            raise InvalidScope(
                "The request does not say whose memory is meant.",
                allowed=f"a header `{USER_HEADER}`, or a key of one user",
            )
        self.reach(self.namespace, user_id)
        return Scope.of(self.namespace, user_id)


# Of the Unix socket, which only the user who owns the data folder can open.
OWNER: Final = Caller("owner", Access.ADMIN)
# Without a key, at the few addresses that are open.
ANYBODY: Final = Caller("anybody", None)

_DOING: Final = {
    Access.READ: "read memories",
    Access.WRITE: "write memories",
    Access.ADMIN: "operate on memories as a whole",
}


def no_such_address() -> NoSuchAddress:
    """The error for what does not exist, and for what a key does not reach."""
    return NoSuchAddress(
        "There is no such address.",
        hint="An API key reaches only the namespace and the user that it was made for.",
    )


def introduce(scope: AsgiScope, caller: Caller) -> None:
    """Note on a request who asks."""
    scope[_CALLER_PLACE] = caller


def caller_of(scope: AsgiScope) -> Caller:
    """Who asks.

    Raises:
        KeyRefused: nobody has found out; then nobody gets in.
    """
    caller = known_caller(scope)
    if caller is None:
        raise KeyRefused("The request has not been admitted.")
    return caller


def known_caller(scope: AsgiScope) -> Caller | None:
    """Who asks, if they got in."""
    caller = scope.get(_CALLER_PLACE)
    return caller if isinstance(caller, Caller) else None


def actor_of(scope: AsgiScope) -> Actor:
    """Who asks, as the audit trail calls them: a key, or a way by which the owner came."""
    caller = caller_of(scope)
    if caller.key_id is not None:
        return Actor(door=Door.HTTP, key_id=caller.key_id)
    try:
        return Actor(door=Door(Headers(scope=scope).get(DOOR_HEADER, "")))
    except ValueError:
        return Actor()


# --- every request has an id, and leaves one line in the log

HEADER: Final = "X-Request-ID"
_WELL_FORMED: Final = re.compile(r"[A-Za-z0-9._-]{1,128}\Z")
# Addresses that are no routes of the API.
_PATHS_BESIDE_ROUTES: Final = frozenset({"/mcp", "/openapi.json"})
_log = structlog.get_logger("engram.server")


class RequestLogMiddleware:
    """ASGI middleware: names each request, in its answer and in every line of the log.

    The line at the end says the method, the address as it is documented, the
    status, the time taken and the name of the key: whose memory it was, what was
    asked and what was answered stay out.

    Args:
        app: The application.
        new_id: Makes an id where a request brings none that can be used.
        quietly: Whether the line is for debugging only.
    """

    def __init__(self, app: ASGIApp, new_id: Callable[[], str], quietly: bool) -> None:
        self._app = app
        self._new_id = new_id
        self._quietly = quietly

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        name = given if _WELL_FORMED.match(given) else self._new_id()
        began = time.monotonic()
        status = 0

        async def named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                MutableHeaders(scope=message)[HEADER] = name
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=name):
            try:
                await self._app(scope, receive, named)
            finally:
                self._tell(scope, status, time.monotonic() - began)

    def _tell(self, scope: AsgiScope, status: int, seconds: float) -> None:
        caller: Caller | None = known_caller(scope)
        # Looked up with every line: a program may set its logging up later than this.
        say = _log.debug if self._quietly else _log.info
        say(
            "answered",
            method=scope["method"],
            route=_route(scope),
            status=status,
            ms=round(seconds * 1000, 1),
            key=caller.name if caller is not None else None,
        )


def request_id() -> str | None:
    """The id of the request that is being served."""
    found: Any = structlog.contextvars.get_contextvars().get("request_id")
    return found if isinstance(found, str) else None


def _route(scope: AsgiScope) -> str | None:
    """The address as documented: with places for names and ids, never with them."""
    if scope["path"] in _PATHS_BESIDE_ROUTES:
        return str(scope["path"])
    return getattr(scope.get("route"), "path", None)


# --- typed errors as HTTP answers (RFC 9457)

MEDIA_TYPE = "application/problem+json"

_STATUS: Sequence[tuple[type[EngramError], int]] = (
    (InvalidInput, 422),
    (KeyRefused, 401),
    (AccessDenied, 403),
    (MemoryNotFound, 404),
    (ReviewNotFound, 404),
    (NoSuchAddress, 404),
    (ConflictingMessage, 409),
    (ImportOutOfStep, 409),
    (UserErased, 409),
    (HostRefused, 421),
    (SessionBusy, 429),
    (TooManyRequests, 429),
)
_BAD_REQUEST = 400
_NO_SUCH_PLACE = 404
_METHOD_NOT_ALLOWED = 405
_UNSUPPORTED = 415
_UNAVAILABLE = 503


def status_of(error: EngramError) -> int:
    """The HTTP status of a typed error: what trying again helps with is 503."""
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return status
    return _UNAVAILABLE if error.retryable else 500


def problem(error: EngramError, status: int | None = None) -> Response:
    """The answer that carries a typed error whole."""
    chosen = status or status_of(error)
    body = {
        "type": f"urn:engram:error:{error.code}",
        "title": (type(error).__doc__ or "").strip().splitlines()[0],
        "status": chosen,
        "detail": str(error),
        "request_id": request_id(),
        **error.as_dict(),
    }
    # What details hold is plain by contract; a slip must not hide the error itself.
    return Response(
        json.dumps(body, default=str),
        status_code=chosen,
        headers=_headers(error),
        media_type=MEDIA_TYPE,
    )


def _headers(error: EngramError) -> dict[str, str]:
    if isinstance(error, KeyRefused):
        return {"WWW-Authenticate": "Bearer"}
    wait = error.retry_after
    return {"Retry-After": str(math.ceil(wait))} if wait is not None else {}


async def on_engram_error(_: Request, error: Exception) -> Response:
    """Answer a typed error."""
    assert isinstance(error, EngramError)  # noqa: S101 - registered for this class only
    return problem(error)


async def on_invalid_request(_: Request, error: Exception) -> Response:
    """Answer a request that does not have the right form, without repeating what it held."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class only
    if isinstance(error.body, bytes):
        # FastAPI reads a body that is said to be JSON, and leaves any other as it came.
        return problem(no_json())
    return problem(refused(error.errors(), "The request"))


def no_json() -> InvalidInput:
    """The error where a body is not said to be JSON."""
    return InvalidInput(
        "The request does not say that its body is JSON.",
        allowed="application/json",
        hint="Send the header Content-Type: application/json.",
    )


async def on_http_exception(request: Request, error: Exception) -> Response:
    """Answer for addresses and methods that do not exist, and for bodies that cannot be read."""
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for this class only
    if isinstance(error, TooLarge):
        return error.problem()
    if error.status_code == _NO_SUCH_PLACE:
        return problem(no_such_address(), error.status_code)
    if error.status_code == _METHOD_NOT_ALLOWED:
        allowed = _methods_at(request)
        answer = problem(
            NoSuchAddress("This address does not take that method.", allowed=allowed),
            error.status_code,
        )
        answer.headers["Allow"] = allowed
        return answer
    return problem(InvalidInput("The request cannot be read."), error.status_code)


def _methods_at(request: Request) -> str:
    """All that the address takes: whoever refuses a method knows one of its routes only."""
    routes = (one for one in request.app.routes if isinstance(one, Route))
    taking = [one for one in routes if one.matches(request.scope)[0] is not Match.NONE]
    return ", ".join(sorted({method for one in taking for method in one.methods or ()}))


class TooLarge(HTTPException):
    """More was sent than is accepted.

    Args:
        limit: Bytes that are accepted.
    """

    def __init__(self, limit: int) -> None:
        # FastAPI lets this class through where it reads a body, and no other.
        super().__init__(413)
        self.limit = limit

    def problem(self) -> Response:
        """The answer."""
        error = InvalidInput(
            "The request is too large, or does not say how large it is.",
            allowed=f"up to {self.limit} bytes",
            hint="Send fewer turns at once.",
            details={"limit": self.limit},
        )
        return problem(error, 413)


def unforeseen(error: Exception) -> Response:
    """The answer where something failed that has no type; the log says where."""
    _log.error("a request failed unforeseen", kind=type(error).__name__, where=where(error))
    return problem(UnknownFailure(f"The request failed: {type(error).__name__}."))


# --- a server that ends, while requests still run

_LEAVING_PLACE: Final = "engram.leaving"
# Seconds in which the next one has started, or a proxy found another.
_BACK_AGAIN: Final = 5


def tell_of_leaving(scope: AsgiScope, leaving: Callable[[], bool]) -> None:
    """Note on a request how to learn whether the server that answers it is ending."""
    scope[_LEAVING_PLACE] = leaving


def _is_cut_short(scope: AsgiScope) -> bool:
    leaving = scope.get(_LEAVING_PLACE)
    return leaving is not None and bool(leaving())


def cut_short() -> Response:
    """The answer where the server ended before the request did."""
    return problem(
        OwnerUnavailable(
            "The server ends, and the request took longer than it may then.",
            hint=f"Ask again in {_BACK_AGAIN} s; what had begun may have been done.",
            details={"retry_after": _BACK_AGAIN},
        )
    )


# --- bounds on requests: how large one may be, how long in coming, and how many there may be


class BodyLimitMiddleware:
    """ASGI middleware: refuses large bodies, and answers what nobody foresaw, or what is cut short.

    Args:
        app: The application.
        max_bytes: Largest body accepted.
        patience: Seconds in which the next part of a body has to come.
        whole: Seconds in which a body has to come; 16 KiB of it give one more.
    """

    def __init__(
        self, app: ASGIApp, max_bytes: int, patience: float = 30.0, whole: float = 60.0
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._patience = patience
        self._whole = whole

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if _COMPRESSED.search(headers.get(b"content-encoding", b"")):
            await _encoded()(scope, receive, send)
            return
        announced = headers.get(b"content-length", b"0")
        if not announced.isdigit() or int(announced) > self._max_bytes:
            await TooLarge(self._max_bytes).problem()(scope, receive, send)
            return
        bounded = _BoundedBody(receive, self._max_bytes, self._patience, self._whole)
        started = False

        async def noticed(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, bounded, noticed)
        except asyncio.CancelledError:
            # Whoever cancels a request for another reason waits for no answer.
            if started or not _is_cut_short(scope):
                raise
            await cut_short()(scope, receive, send)
        except Exception as error:
            if started:
                raise
            await unforeseen(error)(scope, receive, send)


# Other words, such as utf-8, are sent by mistake, and change nothing.
_COMPRESSED: Final = re.compile(rb"\b(?:x-)?(?:gzip|deflate|br|zstd|compress)\b", re.I)


def _encoded() -> Response:
    error = InvalidInput(
        "The body of the request is compressed.",
        allowed="a body as it is",
        hint="Leave the header Content-Encoding out.",
    )
    return problem(error, _UNSUPPORTED)


# Slower than any line that is in use; who sends a letter now and then gains nothing by it.
_LEAST_BYTES_PER_SECOND: Final = 16 * 1024


class _BoundedBody:
    """Receives one request, whose body has bounds.

    Args:
        receive: Where it comes from.
        max_bytes: Largest body accepted.
        patience: Seconds in which the next part has to come.
        whole: Seconds in which all of it has to, beside those that its bytes give.
    """

    def __init__(self, receive: Receive, max_bytes: int, patience: float, whole: float) -> None:
        self._receive = receive
        self._max_bytes = max_bytes
        self._patience = patience
        self._whole = whole
        self._read = 0
        self._begun: float | None = None
        self._is_whole = False

    async def __call__(self) -> Message:
        try:
            async with asyncio.timeout_at(self._deadline()):
                message = await self._receive()
        except TimeoutError:
            # Who is gone without a word would keep a place for ever.
            raise HTTPException(_BAD_REQUEST) from None
        self._is_whole = not message.get("more_body", False)
        self._read += len(message.get("body", b""))
        if self._read > self._max_bytes:
            raise TooLarge(self._max_bytes)
        return message

    def _deadline(self) -> float | None:
        if self._is_whole:
            # What comes behind the body is only that the client is gone, whenever that is.
            return None
        now = asyncio.get_running_loop().time()
        self._begun = now if self._begun is None else self._begun
        last = self._begun + self._whole + self._read / _LEAST_BYTES_PER_SECOND
        return min(now + self._patience, last)


class AtOnceMiddleware:
    """ASGI middleware: bounds how many requests are answered at the same time.

    It stands behind authentication, and what is open to everybody is not counted: whoever has
    no key takes nobody's place. No key takes all of them: a quarter is left to others.

    Args:
        app: The application.
        most: So many requests.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most
        self._most_of_a_key = most - most // 4
        self._running = Counter[str | None]()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        if self._running.total() >= self._most:
            # Not 429, which blames who asks: a proxy can send the request to another process.
            await problem(self._full(), _UNAVAILABLE)(scope, receive, send)
            return
        key_id = caller_of(scope).key_id
        if self._running[key_id] >= self._most_of_a_key:
            await problem(self._full_of_a_key())(scope, receive, send)
            return
        self._running[key_id] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._running[key_id] -= 1
            # Keys come and go for as long as the process lives.
            if not self._running[key_id]:
                del self._running[key_id]

    def _full_of_a_key(self) -> TooManyRequests:
        return TooManyRequests(
            "The API key has as many requests under way as it may.",
            allowed=f"{self._most_of_a_key} at the same time, in each process",
            hint="Ask again in 1 s; it is three quarters of ENGRAM_HTTP_CONNECTIONS.",
            details={"retry_after": 1, "limit": self._most_of_a_key},
        )

    def _full(self) -> TooManyRequests:
        return TooManyRequests(
            "The server answers as many requests as it may.",
            allowed=f"{self._most} at the same time, in each process",
            hint="Ask again in 1 s; ENGRAM_HTTP_CONNECTIONS is the bound.",
            details={"retry_after": 1, "limit": self._most},
        )


# --- who gets in: by key over TCP, by the file's permissions over the Unix socket

# No key is needed here; what they tell without one is no secret.
OPEN_PATHS: Final = frozenset({"/v1/health", "/v1/ready", "/openapi.json"})
_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})


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
        self._limit = RateLimit(settings.http_requests_per_second, "The API key asks")
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


class AuthMiddleware:
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
