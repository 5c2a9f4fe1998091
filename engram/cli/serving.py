"""What the commands that stay run: everything at once, one worker, the HTTP API, MCP."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
)
from datetime import timedelta
from socket import socket
from typing import TypeVar

import stamina

from engram.cli.output import console
from engram.client.engine import MemoryEngine
from engram.client.memory import MemoryStore
from engram.errors import EngramError, StorageUnavailable, TemporalUnavailable, needs_extra
from engram.settings import Settings
from engram.system import new_id, system_clock

# --- commands that stay: everything on this machine, or one worker of many

Server = TypeVar("Server")
_OUTAGE_PATIENCE = timedelta(minutes=5)


@asynccontextmanager
async def _until_asked_to_stop() -> AsyncIterator[asyncio.Event]:
    """An event that SIGTERM sets; Ctrl-C is left to asyncio, which cancels."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    try:
        yield stop
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def serve_embedded(settings: Settings) -> None:
    """Own the data folder and serve others until SIGTERM or Ctrl-C."""
    from engram.embedded.folder import DataFolder  # noqa: PLC0415 - only what is used loads
    from engram.embedded.open import run  # noqa: PLC0415 - same

    async with _until_asked_to_stop() as stop, AsyncExitStack() as stack:
        listener = None
        # What cannot be listened on is said before anything starts. Where Engram runs on
        # the folder already, it is that one that listens.
        if settings.http_enabled and not DataFolder(settings.data_dir).has_owner():
            listener = stack.enter_context(_listener(settings))
        running = await stack.enter_async_context(run(settings))
        if running.attached:
            console.print(f"Engram already runs on {running.folder}; nothing to do.")
            return
        url = None
        if settings.http_enabled:
            door = _public_door(running.engine, settings, listener)
            url = await stack.enter_async_context(door)
        console.print(f"Engram is up. Data: {running.folder}")
        console.print(f"Temporal: {running.address}   UI: {running.ui_url or 'off'}")
        console.print(f"HTTP: {url or 'off'}")
        if url is not None and not _has_key(settings):
            console.print("No API key opens it yet: engram keys create NAME --access write")
        console.print("Other programs attach by opening the same folder. Ctrl-C stops.")
        await stop.wait()
        console.print("Stopping.")


def _has_key(settings: Settings) -> bool:
    from engram.server.keys import KeyFile  # noqa: PLC0415 - only what is used loads

    now = system_clock()
    return any(key.state(now) == "valid" for key in KeyFile(settings.keys_path).read())


def _listener(settings: Settings) -> AbstractContextManager[socket]:
    with needs_extra("embedded"):
        from engram.server.run import public_listener  # noqa: PLC0415 - an optional part

    return public_listener(settings)


@asynccontextmanager
async def _public_door(
    engine: MemoryEngine, settings: Settings, listener: socket | None = None
) -> AsyncIterator[str]:
    """Answer over TCP, by key; the address is yielded."""
    with needs_extra("serve"):
        from engram.server.run import mcp_mounted, public_app, serve_publicly  # noqa: PLC0415 - an optional part

    app = public_app(engine, settings)
    async with mcp_mounted(app, engine, settings), serve_publicly(app, settings, listener) as url:
        yield url


async def serve_api(settings: Settings) -> None:
    """Answer for a Temporal cluster and a Qdrant server until SIGTERM or Ctrl-C; do no work."""
    from engram.client.connect import connected_engine  # noqa: PLC0415 - only what is used loads

    async with AsyncExitStack() as stack:
        stop = await stack.enter_async_context(_until_asked_to_stop())

        async def connect() -> MemoryEngine:
            return await connected_engine(stack, settings)

        engine = await _waited_for("Temporal and Qdrant", connect)
        url = await stack.enter_async_context(_public_door(engine, settings))
        console.print(
            f"API on {url}, Temporal {settings.temporal_address}, store {settings.qdrant_url}. "
            "Ctrl-C stops."
        )
        await stop.wait()
        console.print("Finishing what runs.")


async def _waited_for(what: str, connect: Callable[[], Awaitable[Server]]) -> Server:
    """The server once it answers: machines start in any order."""
    async for attempt in stamina.retry_context(
        on=(TemporalUnavailable, StorageUnavailable), attempts=None, timeout=_OUTAGE_PATIENCE
    ):
        with attempt:
            try:
                return await connect()
            except EngramError as error:
                if error.retryable:
                    console.print(f"Waiting for {what}: {error.message}")
                raise
    raise AssertionError("retrying ends with an answer or an error")


async def serve_worker(settings: Settings) -> None:
    """Work for a Temporal cluster and a Qdrant server until SIGTERM or Ctrl-C."""
    from engram.agents.models import make_model  # noqa: PLC0415 - only what is used loads
    from engram.client.connect import open_server_repository  # noqa: PLC0415 - same
    from engram.embedding.embedder import make_embedder  # noqa: PLC0415 - same
    from engram.storage.trail import keeping_trail  # noqa: PLC0415 - same
    from engram.system import new_id, new_secret  # noqa: PLC0415 - same
    from engram.temporal.connection import connect_temporal, key_store  # noqa: PLC0415 - same
    from engram.temporal.schedules import keeping_schedules  # noqa: PLC0415 - same

    with needs_extra("worker"):
        from engram.workflows.worker import running_workers  # noqa: PLC0415 - same

    embedder = make_embedder(settings.embedder)
    model = make_model(settings.model)
    keys = key_store(settings)
    client = await _waited_for("Temporal", lambda: connect_temporal(settings, keys))
    repository = await _waited_for("Qdrant", lambda: open_server_repository(settings, embedder))
    try:
        async with (
            _until_asked_to_stop() as stop,
            keeping_trail(settings.audit_folder, keys, settings, system_clock, new_secret) as trail,
            running_workers(
                client,
                repository,
                embedder,
                model,
                settings,
                new_write_id=new_id,
                keys=keys,
                trail=trail,
            ),
            keeping_schedules(client, settings),
        ):
            console.print(
                f"Worker on {settings.temporal_address} ({settings.store_queue}, "
                f"{settings.model_queue}), store {settings.qdrant_url}. Ctrl-C stops."
            )
            await stop.wait()
            console.print("Finishing what runs.")
    finally:
        await repository.close()


# --- `engram mcp`: memory for an MCP client that starts this program and talks to it by pipe


async def serve_stdio(opener: Callable[[], AbstractAsyncContextManager[MemoryStore]]) -> None:
    """Answer the client until it closes the pipe, SIGTERM or Ctrl-C.

    Standard output belongs to the protocol; all that Engram says goes to standard error.

    Args:
        opener: Opens the memory; called again when the process that had it went away.
    """
    with needs_extra("mcp"):
        from engram.server.mcp_server import create_server  # noqa: PLC0415 - same
        from engram.server.mcp_tools import MemoryAccess  # noqa: PLC0415 - an optional part

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with MemoryAccess(opener) as access:
        # A session for each start: a client starts the program once per conversation or window.
        server = create_server(access, session_id=f"mcp-{new_id()}")
        serving = asyncio.create_task(server.run_stdio_async())
        asked = asyncio.create_task(stop.wait())
        await asyncio.wait((serving, asked), return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
    if not serving.done():
        # Everything is closed; but the thread that reads standard input cannot be interrupted.
        os._exit(0)
    await serving
