"""`engram up`: everything on this machine in one process, with nothing that only others need.

It stays, and what it loads stays with it. So it is called without what reads the command line
and without what prints tables, unless somebody asks for more than a folder.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from engram.cli import exits
from engram.domain.deeds import Actor, Door
from engram.domain.sanitize import harmless
from engram.system import absent, full_collections_put_off, shared_heap, short_turns, system_clock

if TYPE_CHECKING:
    from socket import socket

    from engram.client.engine import MemoryEngine
    from engram.settings import Settings

Answer = TypeVar("Answer")

# --- read from the words of a command line


def settings_in(words: Sequence[str]) -> dict[str, Path] | None:
    """What `engram up` is told of its settings, where it is no more than a folder.

    Args:
        words: What follows the program's name.

    Returns:
        Settings by name; None: Typer has to read the words.
    """
    if "_ENGRAM_COMPLETE" in os.environ:
        return None
    match list(words):
        case ["up"]:
            return {}
        case ["up", "-d" | "--data-dir", folder] if folder.strip() and not folder.startswith("-"):
            return {"data_dir": Path(folder)}
    return None


def run_up(told: Mapping[str, Path]) -> None:
    """Run it to its end, as the command line would.

    Args:
        told: Settings by name, in place of those of the environment.
    """
    shared_heap()
    # HTTPX, which comes with Pydantic AI, has a command of its own.
    with exits.ending(), absent("httpx._main"):
        # Structlog would have Rich print tracebacks, which hold what is remembered.
        with absent("rich"):
            import_module("engram.embedded.open")
            from engram.logging import configure_logging  # noqa: PLC0415 - same
            from engram.settings import Settings  # noqa: PLC0415 - same

            settings = Settings.load(**told)
            configure_logging(level=settings.log_level, style=settings.log_format)
        try:
            asyncio.run(_up(settings))
        except KeyboardInterrupt:
            raise SystemExit(exits.INTERRUPTED) from None


async def _up(settings: Settings) -> None:
    from engram.operations.audit import acting  # noqa: PLC0415 - only what is used loads

    with acting(Actor(door=Door.CLI)):
        await serve_embedded(settings)


# --- what all commands share that stay

_LOOKED_AT_MEMORY: Final = timedelta(seconds=1)


@asynccontextmanager
async def until_asked_to_stop() -> AsyncIterator[asyncio.Event]:
    """An event that SIGTERM sets; Ctrl-C is left to asyncio, which cancels."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    try:
        yield stop
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


async def unless_stopped(stop: asyncio.Event, work: Coroutine[Any, Any, Answer]) -> Answer | None:
    """What comes of the work; None where the event comes first, which cancels it."""
    working, asked = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((working, asked), return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else None
    finally:
        asked.cancel()
        working.cancel()
        await asyncio.gather(working, asked, return_exceptions=True)


async def serving_until(stop: asyncio.Event) -> None:
    """Wait for the event, in a process that is Engram's own."""
    with short_turns(), full_collections_put_off() as collect_if_due:
        while not stop.is_set():
            try:
                async with asyncio.timeout(_LOOKED_AT_MEMORY.total_seconds()):
                    await stop.wait()
            except TimeoutError:
                collect_if_due()


# --- everything on this machine


async def serve_embedded(settings: Settings) -> None:
    """Own the data folder and serve others until SIGTERM or Ctrl-C."""
    from engram.embedded.folder import DataFolder  # noqa: PLC0415 - only what is used loads
    from engram.embedded.open import run  # noqa: PLC0415 - same
    from engram.server.listening import public_listener  # noqa: PLC0415 - same

    async with until_asked_to_stop() as stop, AsyncExitStack() as stack:
        listener = None
        # What cannot be listened on is said before anything starts. Where Engram runs on
        # the folder already, it is that one that listens.
        if settings.http_enabled and not DataFolder(settings.data_dir).has_owner():
            listener = stack.enter_context(public_listener(settings))
        running = await stack.enter_async_context(run(settings, own_process=True))
        if running.attached:
            _say(f"Engram already runs on {running.folder}; nothing to do.")
            return
        url = None
        if settings.http_enabled:
            if listener is None:
                listener = stack.enter_context(public_listener(settings))
            url = await stack.enter_async_context(_door(running.engine, settings, listener))
        _say(f"Engram is up. Data: {running.folder}")
        _say(f"Temporal: {running.address}   UI: {running.ui_url or 'off'}")
        _say(f"HTTP: {url or 'off'}")
        if url is not None and not _has_key(settings):
            _say("No API key opens it yet: engram keys create NAME --access write")
        _say("Other programs attach by opening the same folder. Ctrl-C stops.")
        await serving_until(stop)
        _say("Stopping.")


def _say(line: str) -> None:
    # Whoever starts it reads where it can be reached, whatever form its log has.
    sys.stdout.write(f"{harmless(line)}\n")
    sys.stdout.flush()


def _has_key(settings: Settings) -> bool:
    from engram.server.keys import KeyFile  # noqa: PLC0415 - only what is used loads

    now = system_clock()
    return any(key.state(now) == "valid" for key in KeyFile(settings.keys_path).read())


@asynccontextmanager
async def _door(engine: MemoryEngine, settings: Settings, listener: socket) -> AsyncIterator[str]:
    """Answer over TCP, by key, with what the first that connects has loaded; where."""
    from engram.server.listening import answering_when_asked, url_of  # noqa: PLC0415 - same

    async with answering_when_asked(
        listener,
        lambda run: run.public_door(engine, settings, listener),
        extra="serve",
        lost="the HTTP API does not answer",
    ):
        yield url_of(settings)
