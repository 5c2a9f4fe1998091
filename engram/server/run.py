"""Serving the application inside an event loop: HTTP on a Unix socket or TCP, and MCP."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Final, Literal

import h11
import structlog
import uvicorn
from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope
from uvicorn.protocols.http.h11_impl import H11Protocol

from engram.client.engine import MemoryEngine
from engram.client.memory import MemoryStore
from engram.domain.access import Access
from engram.domain.deeds import Actor, Door
from engram.errors import AccessDenied, InvalidSettings, NoSuchAddress, PortInUse
from engram.ports import Clock
from engram.server.app import create_app
from engram.server.keys import KeyFile, KeyRing
from engram.server.listening import asked_before, listening_at, public_listener, url_of
from engram.server.mcp_tools import McpCaller, announce
from engram.server.middleware import USER_HEADER, ByKey, OwnerOnly, caller_of, tell_of_leaving
from engram.server.routes import ReadinessCheck, note_refused
from engram.settings import Settings
from engram.system import new_id, system_clock

# --- MCP beside the API, with the same keys

_log = structlog.get_logger("engram.server")
MCP_PATH: Final = "/mcp"
MCP_ACTION: Final = "mcp"
"""In the audit trail, of what was refused before anybody knew which operation was meant."""


@asynccontextmanager
async def mcp_mounted(
    app: FastAPI, engine: MemoryEngine, settings: Settings, clock: Clock = system_clock
) -> AsyncIterator[str | None]:
    """Let ``app`` answer MCP clients too; where, or None without the extra ``mcp``.

    Whose memory a request is about, its key says, or the header ``Engram-User``
    where the key opens many.
    """
    missing = next((name for name in ("mcp", "mcp_types") if find_spec(name) is None), None)
    if missing is not None:
        _log.info("MCP is not served", missing=missing, extra="mcp")
        yield None
        return

    def visitor_of(scope: AsgiScope) -> McpCaller:
        caller = caller_of(scope)
        asked_user = Headers(scope=scope).get(USER_HEADER)
        actor = Actor(door=Door.MCP, key_id=caller.key_id)
        refused = partial(note_refused, engine, actor, namespace=caller.namespace or "")
        try:
            caller.require(Access.READ)
            whose = caller.scope(asked_user)
        except (AccessDenied, NoSuchAddress) as error:
            # Before anything read which operation was asked for.
            refused(MCP_ACTION, error, user_id=asked_user or caller.user_id or "")
            raise
        memory = MemoryStore(engine, whose, settings, clock, new_id)
        # The same in every process, and after a restart: a call that is made again is known there.
        session_id = f"mcp-{caller.key_id}-{clock():%Y-%m-%d}"
        noting = partial(refused, user_id=whose.user_id)
        return McpCaller(memory, caller.access or Access.READ, session_id, actor, noting)

    door = _McpDoor(visitor_of)
    serving = asyncio.create_task(door.serve())
    # No session is kept, so a stream that a GET opened would carry nothing.
    route = Route(MCP_PATH, endpoint=door, methods=["POST"])
    app.router.routes.append(route)
    try:
        yield MCP_PATH
    finally:
        app.router.routes.remove(route)
        door.leaving.set()
        await serving


class _McpDoor:
    """Finds out who calls, and loads what answers with the first that is let in.

    Most never speak MCP, and it is a tenth of what a process holds that nobody has asked yet.

    Args:
        visitor_of: Who sends a request; raises a typed error where that is not known.
    """

    def __init__(self, visitor_of: Callable[[AsgiScope], McpCaller]) -> None:
        self._visitor_of = visitor_of
        self._asked = asyncio.Event()
        self._answering: asyncio.Future[ASGIApp] = asyncio.get_running_loop().create_future()
        self.leaving = asyncio.Event()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        announce(scope, self._visitor_of(scope))
        self._asked.set()
        answering = await asyncio.shield(self._answering)
        await answering(scope, receive, send)

    async def serve(self) -> None:
        """Answer until :attr:`leaving` is set."""
        if not await asked_before(self._asked, self.leaving):
            return
        try:
            mcp_server = await asyncio.to_thread(import_module, "engram.server.mcp_server")
            async with mcp_server.answering() as answering:
                self._answering.set_result(answering)
                await self.leaving.wait()
        except Exception as error:
            _log.exception("MCP is not served")
            if self._answering.done():
                raise
            self._answering.set_exception(error)


# --- serving the application inside a running event loop, on a Unix socket or over TCP

_POLL_SECONDS = 0.005
_GRACE_SECONDS = 5
_KEEP_ALIVE_SECONDS = 75
_HEAD_SECONDS = 10
_REST_SECONDS = 30


class _TimedHeads(H11Protocol):
    """Ends a connection on which no whole head, or rest of an answered request, comes in time.

    uvicorn bounds only the time between an answer and the next request. Whoever connects and
    says nothing, or a letter now and then, would keep an open file of the process for ever.
    """

    _deadline: asyncio.TimerHandle | None = None
    _gets_rest = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """See the base class."""
        super().connection_made(transport)
        self._expect(_HEAD_SECONDS)

    def data_received(self, data: bytes) -> None:
        """See the base class."""
        super().data_received(data)
        is_asked = self.conn.our_state in (h11.SEND_RESPONSE, h11.SEND_BODY)
        # The rest of a body that was refused may be long, and whoever sends it then reads why.
        gets_rest = self.conn.their_state is h11.SEND_BODY and not is_asked
        if is_asked or gets_rest is not self._gets_rest:
            self._expect_nothing()
        self._gets_rest = gets_rest
        if not is_asked:
            self._expect(_REST_SECONDS if gets_rest else _HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """See the base class."""
        self._expect_nothing()
        super().connection_lost(exc)

    def _expect(self, seconds: float) -> None:
        """From the first letter on: a further one does not put it off."""
        if self._deadline is None:
            self._deadline = self.loop.call_later(seconds, self.timeout_keep_alive_handler)

    def _expect_nothing(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class _Server(uvicorn.Server):
    """A server that leaves signals to the program it is part of."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serve_owner(
    engine: MemoryEngine, listener: socket.socket, *, settings: Settings | None = None
) -> AsyncIterator[None]:
    """Answer other processes of this user while the block runs.

    Requests that still run at the end get a few seconds.

    Args:
        engine: What answers.
        listener: A socket that only this user can connect to.
        settings: Limits on what is accepted; from the environment when absent.
    """
    # In a thread: the caller's loop has a memory to run meanwhile.
    app = await asyncio.to_thread(
        create_app, lambda: engine, admission=OwnerOnly(), settings=settings
    )
    # Only this user asks: that its reader bounds no head is nobody else's to use.
    async with _answering(app, listener, http="httptools"):
        yield


_TRIES: Final = 5


@contextmanager
def loopback_listeners() -> Iterator[list[socket.socket]]:
    """Listen at one free port of both loopback addresses.

    A name such as `localhost` means either: on the one that is left free, another user of the
    machine could answer in our place.

    Raises:
        PortInUse: each port that was tried was taken on one of them.
    """
    for left in reversed(range(_TRIES)):
        with ExitStack() as stack:
            listeners = [stack.enter_context(listening_at("127.0.0.1", 0))]
            try:
                port = listeners[0].getsockname()[1]
                listeners.append(stack.enter_context(listening_at("::1", port)))
            except (InvalidSettings, OSError):
                # This machine has no IPv6, or no such address: nobody can listen there.
                pass
            except PortInUse:
                if left:
                    continue
                raise
            yield listeners
            return


@asynccontextmanager
async def serve_on_loopback(app: ASGIApp, listeners: list[socket.socket]) -> AsyncIterator[None]:
    """Answer at :func:`loopback_listeners` while the block runs."""
    async with _answering(app, *listeners):
        yield


def public_app(
    engine: MemoryEngine,
    settings: Settings,
    clock: Clock = system_clock,
    readiness: ReadinessCheck | None = None,
) -> FastAPI:
    """The application that takes keys.

    Args:
        engine: What answers.
        settings: Where the keys are, which hosts are served, limits.
        clock: The present, for keys that expire.
        readiness: Asks what is behind, with other times than the usual ones.
    """
    admission = ByKey(_keys(settings, clock), settings)
    return create_app(
        lambda: engine,
        admission=admission,
        settings=settings,
        clock=clock,
        max_body_bytes=settings.http_max_body_bytes,
        readiness=readiness,
    )


def _keys(settings: Settings, clock: Clock) -> KeyRing:
    return KeyRing(KeyFile(settings.keys_path), clock)


@asynccontextmanager
async def serve_publicly(
    app: ASGIApp, settings: Settings, listener: socket.socket | None = None
) -> AsyncIterator[str]:
    """Answer where the settings say; the URL is yielded.

    Requests that still run at the end get a few seconds.

    Args:
        app: What answers.
        settings: Where to listen.
        listener: Of :func:`public_listener`; made, and closed, here when absent.

    Raises:
        InvalidSettings, PortInUse, KeysUnusable: as :func:`public_listener`.
    """
    with ExitStack() as stack:
        if listener is None:
            listener = stack.enter_context(public_listener(settings))
        async with _answering(app, listener):
            yield url_of(settings)


@asynccontextmanager
async def public_door(
    engine: MemoryEngine, settings: Settings, listener: socket.socket | None = None
) -> AsyncIterator[str]:
    """Answer the HTTP API and MCP over TCP, by key; the URL is yielded.

    Raises:
        InvalidSettings, PortInUse, KeysUnusable: as :func:`public_listener`.
    """
    # In a thread: the caller's loop has a memory to run meanwhile.
    app = await asyncio.to_thread(public_app, engine, settings)
    async with mcp_mounted(app, engine, settings), serve_publicly(app, settings, listener) as url:
        yield url


@asynccontextmanager
async def _answering(
    app: ASGIApp,
    *listeners: socket.socket,
    http: Literal["httptools"] | type[asyncio.Protocol] = _TimedHeads,
) -> AsyncIterator[None]:
    async def told(scope: AsgiScope, receive: Receive, send: Send) -> None:
        tell_of_leaving(scope, lambda: server.should_exit)
        await app(scope, receive, send)

    server = _Server(
        uvicorn.Config(
            told,
            lifespan="off",
            http=http,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            # Nothing depends on who a proxy says it asks for.
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
    )
    serving = asyncio.create_task(server.serve(sockets=list(listeners)))
    try:
        while not server.started:
            if serving.done():
                await serving
            await asyncio.sleep(_POLL_SECONDS)
        yield
    finally:
        server.should_exit = True
        await serving
