"""The engine of a process that works through another one, over HTTP."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
import structlog
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from engram.client.unix import UnixClient, UnixResponse
from engram.domain.scope import Scope
from engram.errors import (
    EngramError,
    InvalidInput,
    InvalidSettings,
    MemoryClosed,
    MemoryNotFound,
    OwnerUnavailable,
    UnknownFailure,
    error_from_dict,
)
from engram.operations.audit import DOOR_HEADER, who_acts
from engram.operations.registry import Answer, Asked, Operation

# --- asking another process over HTTP, and turning its problems back into typed errors

_TRIES = 2
_ENDED_HINT = "It may have ended; opening the memory again starts it anew."
# What proxies say when nobody behind them answers.
_NOBODY_BEHIND = frozenset({502, 503, 504})


class HttpTransport:
    """Sends requests and reads typed answers.

    Requests that meet a broken connection are sent once more: ids are settled
    before they are sent, so that what arrives twice takes effect once.

    Args:
        client: Its base URL is that of the application; closed with the wire.
        silence: What to do when nobody answers.
    """

    def __init__(self, client: httpx.AsyncClient | UnixClient, silence: str = _ENDED_HINT) -> None:
        self._client = client
        self._silence = silence

    async def ask(
        self,
        method: str,
        path: str,
        answer: TypeAdapter[Answer],
        *,
        query: Mapping[str, Any] | None = None,
        body: str | None = None,
    ) -> Answer:
        """Send one request and wait for its answer, however long it takes.

        Who asks goes along: the process that has the memory notes it in its trail.

        Raises:
            OwnerUnavailable: nobody answers, or the answer broke off twice.
            EngramError: whatever the other side raised.
            UnknownFailure: the answer is not one that this version knows.
        """
        response = await self._send(method, path, query, body)
        if not response.is_success:
            raise _problem(response)
        try:
            return answer.validate_json(response.content)
        except ValidationError as error:
            raise UnknownFailure(
                f"The answer to {method} has an unknown form ({error.error_count()} differences).",
                hint="Use the same version of Engram in all processes.",
            ) from None  # its text would repeat what the answer holds

    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None,
        body: str | None,
    ) -> httpx.Response | UnixResponse:
        if self._client.is_closed:
            raise MemoryClosed("This memory store is closed.")
        headers = {DOOR_HEADER: who_acts().door.value}
        if body is not None:
            headers["content-type"] = "application/json"
        broken: httpx.TransportError | None = None
        for _ in range(_TRIES):
            try:
                return await self._client.request(
                    method, path, params=query, content=body, headers=headers
                )
            except httpx.TransportError as error:
                broken = error
        raise OwnerUnavailable(
            f"The process that has the memory does not answer ({type(broken).__name__}).",
            hint=self._silence,
        ) from broken

    async def close(self) -> None:
        """Let go of the connections."""
        await self._client.aclose()


def _problem(response: httpx.Response | UnixResponse) -> EngramError:
    try:
        found: Any = response.json()
    except ValueError:
        found = None
    if isinstance(found, dict) and isinstance(found.get("code"), str):
        return error_from_dict(found)
    if response.status_code in _NOBODY_BEHIND:
        return OwnerUnavailable(
            f"What stands before the memory answered with status {response.status_code}."
        )
    return UnknownFailure(
        f"The other side answered with status {response.status_code}.",
        hint="Use the same version of Engram in all processes.",
    )


# --- the engine of a process that works through another one, over HTTP

_log = structlog.get_logger("engram.client")

# Answers have no limit of time: an outage behind the owner delays an acknowledgement,
# and consolidation takes what it takes.
_PATIENCE_TO_CONNECT = 5.0
PATIENT = httpx.Timeout(None, connect=_PATIENCE_TO_CONNECT)
_MEMORY_ID = re.compile(r"[A-Za-z0-9-]{1,128}\Z")

_HEALTH: TypeAdapter[Mapping[str, Any]] = TypeAdapter(Mapping[str, Any])


class AttachedEngine:
    """A :class:`engram.client.engine.MemoryEngine` behind HTTP.

    Args:
        client: Its base URL is that of the application; closed with the engine.
        silence: What to do when nobody answers.
    """

    def __init__(self, client: httpx.AsyncClient | UnixClient, silence: str | None = None) -> None:
        self._wire = HttpTransport(client) if silence is None else HttpTransport(client, silence)
        self._health: Mapping[str, Any] = {}

    @classmethod
    def over_socket(cls, path: Path) -> AttachedEngine:
        """Through a Unix socket."""
        return cls(UnixClient(path, _PATIENCE_TO_CONNECT))

    async def answers_within(self, patience: float) -> bool:
        """Whether the other side answers in so many seconds; if not, this engine is closed."""
        try:
            async with asyncio.timeout(patience):
                await self.greet()
        except (EngramError, TimeoutError) as error:
            _log.debug("the owner does not answer yet", reason=type(error).__name__)
            await self.close()
            return False
        except BaseException:
            await self.close()
            raise
        return True

    async def greet(self) -> None:
        """Learn who answers, and where its Temporal UI is.

        Raises:
            OwnerUnavailable: nobody answers.
        """
        self._health = await self._wire.ask("GET", "/v1/health", _HEALTH)

    @property
    def ui_url(self) -> str | None:
        """The Temporal UI of the process that answers, when it has one."""
        template = self._health.get("workflow_url")
        return template.partition("/namespaces/")[0] if template else None

    async def call(
        self, scope: Scope, operation: Operation[Asked, Answer], request: Asked
    ) -> Answer:
        """See :meth:`engram.client.engine.MemoryEngine.call`.

        Raises:
            InvalidInput: something in the request cannot be sent.
        """
        queried = request.model_dump(mode="json", include=set(operation.queried), exclude_none=True)
        body = None
        try:
            if operation.has_body:
                body = request.model_dump_json(include=set(operation.sent))
            return await self._wire.ask(
                operation.http.method,
                _address(scope, operation, request),
                operation.reader,
                query=queried or None,
                body=body,
            )
        except (PydanticSerializationError, UnicodeEncodeError):
            # Not from it: its text would repeat what was given.
            raise InvalidInput(
                "Something in the request holds a lone surrogate, so it is not valid Unicode.",
                allowed="text that can be encoded as UTF-8",
            ) from None
        except httpx.InvalidURL:
            raise InvalidInput(
                "Something that goes into the address of the request is too long, or none that "
                "an address can have.",
                hint="Cursors and ids go as they came.",
            ) from None

    def refused(self, scope: Scope, action: str, error: EngramError) -> None:
        """See :meth:`engram.client.engine.MemoryEngine.refused`; no door stands before it."""

    def run_url(self, workflow_id: str, run_id: str | None = None) -> str | None:
        """See :meth:`engram.client.engine.MemoryEngine.run_url`."""
        template = self._health.get("run_url" if run_id else "workflow_url")
        if not template:
            return None
        filled = str(template).replace("WORKFLOW-ID", quote(workflow_id, safe=""))
        return filled.replace("RUN-ID", quote(run_id or "", safe=""))

    async def check(self) -> None:
        """See :meth:`engram.client.engine.MemoryEngine.check`."""
        await self._wire.ask("GET", "/v1/ready", _HEALTH)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._wire.close()


def _address(scope: Scope, operation: Operation[Any, Any], request: BaseModel) -> str:
    places = {name: _placed(name, getattr(request, name)) for name in operation.placed}
    user = f"/v1/namespaces/{_part(scope.namespace)}/users/{_part(scope.user_id)}"
    return f"{user}/{operation.path.format(**places)}"


def _placed(name: str, value: str) -> str:
    if name == "memory_id" and not _MEMORY_ID.match(value):
        # No id looks like this, and some of it could not stand in an address.
        raise MemoryNotFound(
            "No memory with this id belongs to this user.",
            hint="Ids come from receipts, recall and list.",
        )
    return _part(value)


def _part(name: str) -> str:
    return quote(name, safe="")


# --- reaching a memory over the network, with an API key

_THIS_MACHINE = frozenset({"localhost", "127.0.0.1", "::1"})
_UNREACHABLE_HINT = (
    "Check the address and whether the server runs. Certificates are verified; SSL_CERT_FILE "
    "names a private authority."
)


def remote_engine(url: str, api_key: str) -> AttachedEngine:
    """An engine behind an HTTP API; certificates are verified.

    Authorities are certifi's, or those that SSL_CERT_FILE or SSL_CERT_DIR name.

    Args:
        url: Where the API is.
        api_key: Opens it.

    Raises:
        InvalidSettings: the address or the key has a form that no address or key has.
    """
    if not api_key.isascii() or not api_key.isprintable():
        raise InvalidSettings("The API key is not usable.", allowed="engram_ and what follows")
    client = httpx.AsyncClient(
        base_url=_checked(url),
        transport=httpx.AsyncHTTPTransport(verify=True, trust_env=True),
        timeout=PATIENT,
        # No proxies of the environment, which would see the key where TLS does not hide it.
        trust_env=False,
        headers={"Authorization": f"Bearer {api_key}"},
    )
    return AttachedEngine(client, _UNREACHABLE_HINT)


def _checked(url: str) -> str:
    """The address without a slash at its end."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or parts.username or parts.password:
        # Not repeated: people paste addresses with keys in them.
        raise InvalidSettings(
            "The address of the HTTP API is not usable.",
            allowed="http:// or https://, a host, a port where it is not the usual one, and a path "
            "where a proxy adds one",
        )
    if parts.scheme == "http" and parts.hostname not in _THIS_MACHINE:
        _log.warning("the API key travels unencrypted; use https", host=parts.hostname)
    return url.rstrip("/")
