"""The engine of a process that works through another one, over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import quote, urlencode

import h11
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from engram.domain.access import Access
from engram.domain.scope import Scope
from engram.errors import (
    EngramError,
    InvalidInput,
    MemoryClosed,
    MemoryNotFound,
    OwnerUnavailable,
    ReviewNotFound,
    UnknownFailure,
    error_from_dict,
)
from engram.logging import get_logger
from engram.operations.audit import DOOR_HEADER, who_acts
from engram.operations.registry import Answer, Asked, Operation

# --- asking another process over HTTP, and turning its problems back into typed errors


class HttpAnswer(NamedTuple):
    """What came back for a request."""

    status: int
    content: bytes


class Broken(Exception):
    """No connection, or one that broke off; ``str()`` names how, and nothing that was sent."""


class Wire(Protocol):
    """Sends requests to one place, many at once."""

    async def send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> HttpAnswer:
        """Send one request and wait for its answer, however long it takes.

        Args:
            method: GET or POST.
            target: Path and query, in ASCII.
            headers: Besides those that the connection and the body need.
            body: None: there is none.

        Raises:
            Broken: no answer came.
        """
        ...

    async def close(self) -> None:
        """Let go of the connections."""
        ...


_TRIES = 2
_ENDED_HINT = "It may have ended; opening the memory again starts it anew."
_GONE = (MemoryNotFound, ReviewNotFound)
# What proxies say when nobody behind them answers.
_NOBODY_BEHIND = frozenset({502, 503, 504})


class HttpTransport:
    """Sends requests and reads typed answers.

    Requests that meet a broken connection are sent once more: ids are settled
    before they are sent, so that what arrives twice takes effect once. What was removed or
    settled is not found the second time, which says nothing of the first.

    Args:
        wire: Leads to the application; closed with the transport.
        silence: What to do when nobody answers.
    """

    def __init__(self, wire: Wire, silence: str = _ENDED_HINT) -> None:
        self._wire = wire
        self._silence = silence
        self._closed = False

    async def ask(
        self,
        method: str,
        target: str,
        answer: TypeAdapter[Answer],
        *,
        body: str | None = None,
        changes: bool = False,
    ) -> Answer:
        """Send one request and wait for its answer, however long it takes.

        Who asks goes along: the process that has the memory notes it in its trail.

        Args:
            method: GET or POST.
            target: Path and query, in ASCII.
            answer: Reads the answer.
            body: None: there is none.
            changes: Whether it is more than a question.

        Raises:
            OwnerUnavailable: nobody answers, or the answer broke off twice.
            EngramError: whatever the other side raised.
            UnknownFailure: the answer is not one that this version knows; or it broke off, and
                nothing was there to be changed when it was asked for again.
        """
        encoded = None if body is None else body.encode()
        reply, broken = await self._send(method, target, encoded)
        if not 200 <= reply.status < 300:  # noqa: PLR2004 - success, in HTTP's words
            problem = _problem(reply)
            if changes and broken is not None and isinstance(problem, _GONE):
                raise UnknownFailure(
                    f"It may have been done: the answer broke off ({broken}), and what it is "
                    "about was not found when it was asked for again.",
                    hint="Look for it: what was forgotten or settled is no longer there.",
                ) from problem
            raise problem
        try:
            return answer.validate_json(reply.content)
        except ValidationError as error:
            raise UnknownFailure(
                f"The answer to {method} has an unknown form ({error.error_count()} differences).",
                hint="Use the same version of Engram in all processes.",
            ) from None  # its text would repeat what the answer holds

    async def _send(
        self, method: str, target: str, body: bytes | None
    ) -> tuple[HttpAnswer, Broken | None]:
        """The answer, and how the attempt before it broke off, if there was one."""
        headers = {DOOR_HEADER: who_acts().door.value}
        if body is not None:
            headers["content-type"] = "application/json"
        broken: Broken | None = None
        for _ in range(_TRIES):
            if self._closed:
                raise MemoryClosed("This memory store is closed.")
            try:
                return await self._wire.send(method, target, headers, body), broken
            except Broken as error:
                broken = error
        raise OwnerUnavailable(
            f"The process that has the memory does not answer ({broken}).", hint=self._silence
        ) from broken

    async def close(self) -> None:
        """Let go of the connections."""
        self._closed = True
        await self._wire.close()


def _problem(reply: HttpAnswer) -> EngramError:
    try:
        found: Any = json.loads(reply.content)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict) and isinstance(found.get("code"), str):
        return error_from_dict(found)
    if reply.status in _NOBODY_BEHIND:
        return OwnerUnavailable(
            f"What stands before the memory answered with status {reply.status}."
        )
    return UnknownFailure(
        f"The other side answered with status {reply.status}.",
        hint="Use the same version of Engram in all processes.",
    )


# --- a Unix socket, in the little of HTTP that a process needs that asks another one

_AT_ONCE: Final = 100
"""Requests on their way: each has a connection, which is an open file on both sides."""
_CONNECT_SECONDS: Final = 5.0
_BLOCK: Final = 65_536
_FULL_SECONDS: Final = 0.01
"""Until it is tried again to connect where as many wait as may."""


class SocketWire:
    """A :class:`Wire` to whoever listens at a path, a connection a request.

    Loading a client for the network, with TLS, HTTP/2 and proxies, took longer than asking.

    Args:
        path: Of the socket.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turnstile = asyncio.Semaphore(_AT_ONCE)

    async def send(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes | None
    ) -> HttpAnswer:
        """See :meth:`Wire.send`."""
        own = [
            ("host", "engram"),
            ("connection", "close"),
            ("content-length", str(len(body or b""))),
        ]
        request = h11.Request(method=method, target=target, headers=[*own, *headers.items()])
        async with self._turnstile:
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    connected = await _connected(self._path)
                return await _exchanged(connected, request, body or b"")
            except (OSError, h11.RemoteProtocolError) as error:
                raise Broken(type(error).__name__) from error

    async def close(self) -> None:
        """See :meth:`Wire.close`; each request closes its own."""


async def _connected(path: Path) -> socket.socket:
    connecting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connecting.setblocking(False)
        while True:
            try:
                connecting.connect(str(path))
            except BlockingIOError:
                # As many as may wait do; asyncio would take this for a connection.
                await asyncio.sleep(_FULL_SECONDS)
            else:
                return connecting
    except BaseException:
        connecting.close()
        raise


async def _exchanged(connected: socket.socket, request: h11.Request, body: bytes) -> HttpAnswer:
    exchange = _Exchange(connected)
    said, loop = exchange.said, asyncio.get_running_loop()
    try:
        transport, _ = await loop.create_unix_connection(lambda: exchange, sock=connected)
        try:
            # At once: between two writes whoever refuses the body could answer and be gone.
            parts = (request, h11.Data(body), h11.EndOfMessage())
            transport.write(b"".join(said.send(one) or b"" for one in parts))
            return await exchange.answer
        finally:
            transport.abort()
    finally:
        # Whoever was cancelled before there was a connection waits for nothing any more.
        exchange.answer.cancel()


class _Exchange(asyncio.Protocol):
    """Reads one answer, also while the request is still being sent.

    Whoever refuses a body without reading all of it has answered, too; asyncio's streams drop
    what was read when they can send no more.

    Args:
        connected: What it is read from.
    """

    def __init__(self, connected: socket.socket) -> None:
        self._connected = connected
        self.said = h11.Connection(h11.CLIENT)
        self.answer: asyncio.Future[HttpAnswer] = asyncio.get_running_loop().create_future()
        self._status = 0
        self._parts: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        """See the base class; no bytes are the end."""
        if self.answer.done():
            return
        try:
            self.said.receive_data(data)
            while (event := self.said.next_event()) is not h11.NEED_DATA:
                if isinstance(event, h11.Response):
                    self._status = event.status_code
                elif isinstance(event, h11.Data):
                    self._parts.append(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    self.answer.set_result(HttpAnswer(self._status, b"".join(self._parts)))
                    return
        except h11.RemoteProtocolError as error:
            self.answer.set_exception(error)

    def eof_received(self) -> None:
        """See the base class."""
        self.data_received(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        """See the base class."""
        # Who answered and left before a further part was sent: what they said still lies there.
        with suppress(OSError):
            while exc is not None and not self.answer.done():
                self.data_received(self._connected.recv(_BLOCK))
        if not self.answer.done():
            self.answer.set_exception(exc or ConnectionResetError())


# --- the engine of a process that works through another one, over HTTP

_log = get_logger("engram.client")

_MEMORY_ID = re.compile(r"[A-Za-z0-9-]{1,128}\Z")
_LONGEST_TARGET: Final = 65_536
"""Characters: what no server reads as one address."""

_HEALTH: TypeAdapter[Mapping[str, Any]] = TypeAdapter(Mapping[str, Any])


class Watch:
    """Gives up waiting for a process that is there, and answers nothing: one that was stopped.

    Args:
        patience: Seconds without an answer until it is looked whether it answers anything.
        is_there: Whether it does.
    """

    def __init__(self, patience: float, is_there: Callable[[], Awaitable[bool]]) -> None:
        self._patience = patience
        self._is_there = is_there
        self._looking: asyncio.Future[bool] | None = None

    async def over(self, asking: Coroutine[Any, Any, Answer]) -> Answer:
        """The answer, however long it takes, while the other side answers at all.

        Raises:
            OwnerUnavailable: it does not.
        """
        asked = asyncio.create_task(asking)
        try:
            while not (await asyncio.wait((asked,), timeout=self._patience))[0]:
                if not await self._answers() and not asked.done():
                    raise OwnerUnavailable(
                        "The process that has the memory is there, and does not answer.",
                        hint="It may have been stopped, or be very busy.",
                    )
            return asked.result()
        finally:
            if asked.cancel():
                await asyncio.wait((asked,))

    async def _answers(self) -> bool:
        """Whether it does, by one look for all who wait."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.ensure_future(self._is_there())
        return await asyncio.shield(self._looking)


class AttachedEngine:
    """A :class:`engram.client.engine.MemoryEngine` behind HTTP.

    Args:
        wire: Leads to the application; closed with the engine.
        silence: What to do when nobody answers.
        watch: Tells whether the other side still answers; None: it is waited for however long.
    """

    def __init__(self, wire: Wire, silence: str = _ENDED_HINT, watch: Watch | None = None) -> None:
        self._wire = HttpTransport(wire, silence)
        self._watch = watch
        self._health: Mapping[str, Any] = {}

    @classmethod
    def over_socket(cls, path: Path, patience: float | None = None) -> AttachedEngine:
        """Through a Unix socket.

        Args:
            path: Of the socket.
            patience: Seconds without an answer until it is asked whether anybody is there, and
                until that counts as no. None: answers are waited for however long.
        """
        if patience is None:
            return cls(SocketWire(path))

        async def is_there() -> bool:
            # By a wire of its own: whoever waits may have all the connections of the other.
            other = cls.over_socket(path)
            there = await other.answers_within(patience)
            await other.close()
            return there

        return cls(SocketWire(path), watch=Watch(patience, is_there))

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
    def collection_prefix(self) -> str | None:
        """The name of the store that the process that answers works on."""
        return self._health.get("collection_prefix")

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
            OwnerUnavailable: nobody answers; of what only reads, nor to anything else.
        """
        body = None
        try:
            if operation.has_body:
                body = request.model_dump_json(include=set(operation.sent))
            target = _target(scope, operation, request)
        except (PydanticSerializationError, UnicodeEncodeError):
            # Not from it: its text would repeat what was given.
            raise InvalidInput(
                "Something in the request holds a lone surrogate, so it is not valid Unicode.",
                allowed="text that can be encoded as UTF-8",
            ) from None
        if len(target) > _LONGEST_TARGET:
            raise InvalidInput(
                "Something that goes into the address of the request is too long.",
                hint="Cursors and ids go as they came.",
            )
        changes = operation.access is not Access.READ
        asking = self._wire.ask(
            operation.http.method, target, operation.reader, body=body, changes=changes
        )
        # What writes may have arrived, and is done when whoever has it goes on: it is waited for.
        return await asking if self._watch is None or changes else await self._watch.over(asking)

    def refused(self, scope: Scope, action: str, error: EngramError) -> None:
        """See :meth:`engram.client.engine.MemoryEngine.refused`; no door stands before it."""

    def run_url(self, workflow_id: str, run_id: str | None = None) -> str | None:
        """See :meth:`engram.client.engine.MemoryEngine.run_url`."""
        template = self._health.get("run_url" if run_id else "workflow_url")
        if not template:
            return None
        filled = str(template).replace("WORKFLOW-ID", quote(workflow_id, safe=""))
        return filled.replace("RUN-ID", quote(run_id or "", safe=""))

    async def check(self, *, store_only: bool = False) -> None:
        """See :meth:`engram.client.engine.MemoryEngine.check`."""
        await self._wire.ask("GET", "/v1/ready" + "?only=store" * store_only, _HEALTH)

    async def close(self) -> None:
        """Let go of the connections."""
        await self._wire.close()


def _target(scope: Scope, operation: Operation[Any, Any], request: BaseModel) -> str:
    places = {name: _placed(name, getattr(request, name)) for name in operation.placed}
    user = f"/v1/namespaces/{_part(scope.namespace)}/users/{_part(scope.user_id)}"
    queried = request.model_dump(mode="json", include=set(operation.queried), exclude_none=True)
    query = urlencode({name: _in_query(value) for name, value in queried.items()}, doseq=True)
    return f"{user}/{operation.path.format(**places)}" + (f"?{query}" if query else "")


def _in_query(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _placed(name: str, value: str) -> str:
    if name == "memory_id" and not _MEMORY_ID.match(value):
        # No id looks like this, and some of it could not stand in an address.
        raise MemoryNotFound(
            "No memory with this id belongs to this user.",
            hint="Ids come from receipts, recall and listings.",
        )
    return _part(value)


def _part(name: str) -> str:
    return quote(name, safe="")
