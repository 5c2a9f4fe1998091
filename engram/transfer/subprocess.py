"""A second process that prepares turns, so that an import uses two cores.

The engine of the embedded mode holds the interpreter lock, and so do the
patterns and the embedder; threads would gain nothing.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

import structlog

from engram.aside import CallFailed, ProcessAside
from engram.embedding.offline import NAME, OfflineEmbedder
from engram.language.extractor import Extractor
from engram.ports import Embedder
from engram.settings import Settings
from engram.transfer.preparing import HerePreparer, PreparedTurns, Preparer, Work, packed, unpacked

_MOST_FAILURES: Final = 3
_LEAST_CORES: Final = 2
_NICENESS: Final = 10
_ANY_TIME: Final = datetime(2000, 1, 1, tzinfo=UTC)
_WARMING: Final = (Work("Hello.", None, "Hello.", "user", None, _ANY_TIME),)
_log = structlog.get_logger("engram.transfer")


class PreparationSubprocess:
    """Prepares in a second process; in this one where that is not to be had.

    Args:
        embeds: Whether the other process embeds, too, offline; else it only extracts, and
            ``here`` embeds.
        phone_region: As in the settings.
        here: Prepares in this process when the other fails.
    """

    def __init__(self, phone_region: str, here: Preparer, *, embeds: bool) -> None:
        self._made_with = (embeds, phone_region)
        self._here = here
        self._aside = ProcessAside(load=_behind_others)
        self._loading: asyncio.Task[None] | None = None
        self._loaded: int | None = None
        self._failures = 0

    @property
    def ready(self) -> bool:
        """Whether the other process has loaded what it needs, and does the work."""
        return self._loaded is not None and self._loaded == self._aside.pid

    @property
    def pid(self) -> int | None:
        """The other process, while there is one."""
        return self._aside.pid

    async def prepare(self, work: Sequence[Work]) -> PreparedTurns:
        """See :meth:`engram.transfer.preparing.Preparer.prepare`."""
        if self._failures >= _MOST_FAILURES:
            return await self._here.prepare(work)
        # Loading takes a second or two, in which this process can do as much.
        if not self.ready:
            if self._loading is None or self._loading.done():
                self._loading = asyncio.create_task(self._load())
            return await self._here.prepare(work)
        try:
            return await self._ask(work)
        except (OSError, EOFError, CallFailed) as error:
            self._failed(error)
            return await self._here.prepare(work)

    async def _load(self) -> None:
        try:
            await self._ask(_WARMING)
            self._loaded = self._aside.pid
        except (OSError, EOFError, CallFailed) as error:
            self._failed(error)

    async def _ask(self, work: Sequence[Work]) -> PreparedTurns:
        return unpacked(*await self._aside.call(_prepared, *self._made_with, tuple(work)))

    def _failed(self, error: Exception) -> None:
        if self._aside.closed:
            return
        self._failures += 1
        _log.warning(
            "the process beside this one failed; going on in this one",
            reason=type(error).__name__,
        )

    async def close(self) -> None:
        """Let the process go, and wait until it went."""
        await self._aside.close()
        if self._loading is not None:
            await self._loading


def _behind_others() -> None:
    # An import can wait for whoever says or asks something meanwhile.
    os.nice(_NICENESS)


def _cores() -> int:
    # Only Linux knows which of them this process may use.
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


@asynccontextmanager
async def preparing(embedder: Embedder, settings: Settings) -> AsyncIterator[Preparer]:
    """A preparer for imports: beside this process where there is a core for it."""
    extractor = Extractor(settings)
    offline = settings.embedder == NAME and OfflineEmbedder().identity == embedder.identity
    here = HerePreparer(embedder if offline else None, extractor)
    if _cores() < _LEAST_CORES:
        yield here
        return
    aside = PreparationSubprocess(settings.phone_region, here, embeds=offline)
    try:
        yield aside
    finally:
        await aside.close()


# --- in the other process


@cache
def _preparer(embeds: bool, phone_region: str) -> HerePreparer:
    extractor = Extractor(Settings.load(phone_region=phone_region))
    return HerePreparer(OfflineEmbedder() if embeds else None, extractor)


@cache
def _loop() -> asyncio.Runner:
    # For all calls: a loop of its own would start threads for each of them.
    return asyncio.Runner()


def _prepared(embeds: bool, phone_region: str, work: Sequence[Work]) -> tuple[Any, ...]:
    return packed(_loop().run(_preparer(embeds, phone_region).prepare(work)))
