"""Commands that stay: everything on this machine, or one worker of many."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from datetime import timedelta
from socket import socket
from typing import TypeVar

import stamina

from engram.cli.output import console
from engram.client.engine import MemoryEngine
from engram.client.system import system_clock
from engram.errors import EngramError, StorageUnavailable, TemporalUnavailable
from engram.extras import needs_extra
from engram.settings import Settings

Server = TypeVar("Server")
_PATIENCE = timedelta(minutes=5)


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
    from engram.http.key_file import KeyFile  # noqa: PLC0415 - only what is used loads

    now = system_clock()
    return any(key.state(now) == "valid" for key in KeyFile(settings.keys_path).read())


def _listener(settings: Settings) -> AbstractContextManager[socket]:
    with needs_extra("embedded"):
        from engram.http.serve import public_listener  # noqa: PLC0415 - an optional part

    return public_listener(settings)


@asynccontextmanager
async def _public_door(
    engine: MemoryEngine, settings: Settings, listener: socket | None = None
) -> AsyncIterator[str]:
    """Answer over TCP, by key; the address is yielded."""
    with needs_extra("serve"):
        from engram.http.mcp_door import mcp_mounted  # noqa: PLC0415 - an optional part
        from engram.http.serve import public_app, serve_publicly  # noqa: PLC0415 - same

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
        on=(TemporalUnavailable, StorageUnavailable), attempts=None, timeout=_PATIENCE
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
    from engram.client.schedules import keeping_schedules  # noqa: PLC0415 - same
    from engram.client.server_store import open_server_repository  # noqa: PLC0415 - same
    from engram.client.system import new_id  # noqa: PLC0415 - same
    from engram.client.temporal_connection import connect_temporal  # noqa: PLC0415 - same
    from engram.embedding.embedder import make_embedder  # noqa: PLC0415 - same

    with needs_extra("worker"):
        from workflows.worker import running_workers  # noqa: PLC0415 - same

    embedder = make_embedder(settings.embedder)
    model = make_model(settings.model)
    client = await _waited_for("Temporal", lambda: connect_temporal(settings))
    repository = await _waited_for("Qdrant", lambda: open_server_repository(settings, embedder))
    try:
        async with (
            _until_asked_to_stop() as stop,
            running_workers(client, repository, embedder, model, settings, new_write_id=new_id),
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
