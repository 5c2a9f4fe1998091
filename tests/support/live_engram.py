"""A whole Engram with all its doors, in this process, for tests that are not of its loop."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import structlog

from engram.client.engine import MemoryEngine
from engram.domain.access import Access
from engram.embedded.open import run
from engram.server.keys import KeyFile, new_key
from engram.server.run import mcp_mounted, public_app, serve_publicly
from engram.settings import Settings
from tests.support.ports import free_port

_NUMBERS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}


@dataclass
class LiveEngram:
    """What runs.

    Attributes:
        url: Of the HTTP door.
        folder: Its data; whoever opens it attaches through the socket.
        engine: In this process; belongs to ``loop``.
        document: Of OpenAPI.
        log: Every line at info or above, as text.
    """

    url: str
    folder: Path
    engine: MemoryEngine
    settings: Settings
    loop: asyncio.AbstractEventLoop
    document: dict[str, Any]
    log: list[str] = field(default_factory=list)

    def key(
        self,
        name: str,
        access: Access,
        *,
        namespace: str = "default",
        user: str | None = None,
    ) -> str:
        """The token of a new key."""
        now = datetime.now(UTC)
        token, key = new_key(
            os.urandom(32), name=name, access=access, namespace=namespace, user_id=user, now=now
        )
        KeyFile(self.settings.keys_path).add(key, now)
        return token


class _Lines(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__(logging.INFO)
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(logging.Formatter().format(record))


@contextmanager
def _all_lines() -> Iterator[list[str]]:
    """What is logged at info or above, with its exceptions; what is below may hold memories."""
    lines: list[str] = []

    def keep(
        _: object, method: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        if _NUMBERS.get(method, 40) >= logging.INFO:
            lines.append(f"{method}: {dict(event)!r}")
        raise structlog.DropEvent

    before = structlog.get_config()
    handler = _Lines(lines)
    root = logging.getLogger()
    root.addHandler(handler)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.format_exc_info,
            keep,
        ],
        # Tests beside it may look for what is below.
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
        cache_logger_on_first_use=False,
    )
    try:
        yield lines
    finally:
        structlog.configure(**before)
        root.removeHandler(handler)


@contextmanager
def live_engram(folder: Path, **changes: Any) -> Iterator[LiveEngram]:
    """Everything that `engram up` starts, in a thread with a loop of its own."""
    settings = Settings.load(
        data_dir=folder,
        keys_file=folder / "keys.json",
        http_port=free_port(),
        temporal_ui=False,
        **changes,
    )
    started: Future[tuple[LiveEngram, asyncio.Event]] = Future()
    with _all_lines() as lines:
        thread = threading.Thread(
            target=lambda: asyncio.run(_serve(settings, started, lines)), name="live engram"
        )
        thread.start()
        here, stop = started.result(60)
        try:
            yield here
        finally:
            here.loop.call_soon_threadsafe(stop.set)
            thread.join(60)
            assert not thread.is_alive()


async def _serve(
    settings: Settings, started: Future[tuple[LiveEngram, asyncio.Event]], lines: list[str]
) -> None:
    stop = asyncio.Event()
    try:
        async with run(settings) as running:
            app = public_app(running.engine, settings)
            async with (
                mcp_mounted(app, running.engine, settings),
                serve_publicly(app, settings) as url,
            ):
                started.set_result(
                    (
                        LiveEngram(
                            url,
                            running.folder,
                            running.engine,
                            settings,
                            asyncio.get_running_loop(),
                            app.openapi(),
                            lines,
                        ),
                        stop,
                    )
                )
                await stop.wait()
    except BaseException as error:
        if started.done():
            raise
        started.set_exception(error)
