"""Serving applications inside a running event loop, on a Unix socket or on loopback."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

from engram.client.engine import MemoryEngine
from engram.errors import PortInUse
from engram.http.app import create_app
from engram.settings import Settings

_POLL_SECONDS = 0.005
_GRACE_SECONDS = 3
_KEEP_ALIVE_SECONDS = 75


class _Server(uvicorn.Server):
    """A server that leaves signals to the program it is part of."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serve_on_socket(
    engine: MemoryEngine, path: Path, *, settings: Settings | None = None
) -> AsyncIterator[None]:
    """Answer other processes of this user while the block runs.

    The caller owns the data folder, so a socket that lies there is a dead one's.
    Requests that still run at the end get a few seconds.

    Args:
        engine: What answers.
        path: The socket, mode 0600.
        settings: Limits on what is accepted; from the environment when absent.

    Raises:
        OSError: the socket cannot be made.
    """
    app = create_app(lambda: engine, settings=settings)
    with _bound(path) as listener:
        async with _answering(app, listener):
            yield


@asynccontextmanager
async def serve_on_loopback(app: ASGIApp, port: int) -> AsyncIterator[None]:
    """Answer programs of this machine, and of no other, while the block runs.

    Args:
        app: What answers.
        port: Of 127.0.0.1.

    Raises:
        PortInUse: another program has the port.
    """
    with _listening(port) as listener:
        async with _answering(app, listener):
            yield


@asynccontextmanager
async def _answering(app: ASGIApp, listener: socket.socket) -> AsyncIterator[None]:
    server = _Server(
        uvicorn.Config(
            app,
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
    )
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        while not server.started:
            if serving.done():
                await serving
            await asyncio.sleep(_POLL_SECONDS)
        yield
    finally:
        server.should_exit = True
        await serving


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            raise PortInUse(
                f"Port {port} of 127.0.0.1 is taken by another program.",
                allowed="a port that is free",
                details={"port": port},
            ) from error
        listener.setblocking(False)
        yield listener


@contextmanager
def _bound(path: Path) -> Iterator[socket.socket]:
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        try:
            # Before anybody listens: until then a connection is refused.
            path.chmod(0o600)
            listener.setblocking(False)
            yield listener
        finally:
            path.unlink(missing_ok=True)
