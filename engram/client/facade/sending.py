"""Sending what is imported, batch by batch."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Final

from engram.client.operations import transfer as operations
from engram.client.operations.operation import Operation
from engram.contracts.importing import ImportBatch, ImportedTurn, ImportProgress

_IN_FLIGHT: Final = 2
"""Batches that are on their way at once: the next one waits where it will be stored."""

Perform = Callable[[Operation[Any, ImportProgress], Any], Awaitable[ImportProgress]]
OnProgress = Callable[[ImportProgress], None]


class Counted:
    """The turns, counted as they go by."""

    def __init__(self, turns: Iterable[ImportedTurn]) -> None:
        self._turns = turns
        self.count = 0

    def __iter__(self) -> Iterator[ImportedTurn]:
        for turn in self._turns:
            self.count += 1
            yield turn

    def exhaust(self) -> None:
        """Go through all of them."""
        deque(self, maxlen=0)


class Sending:
    """Sends batches, a few at a time."""

    def __init__(
        self,
        perform: Perform,
        stages: operations.ImportStages,
        import_id: str,
        on_progress: OnProgress | None,
    ) -> None:
        self._perform = perform
        self._stages = stages
        self._import_id = import_id
        self._on_progress = on_progress

    async def begin(self, *, consolidate: bool) -> ImportProgress:
        """Begin, or find where it stopped."""
        asked = operations.Begin(import_id=self._import_id, consolidate=consolidate)
        return self._told(await self._perform(self._stages.begin, asked))

    async def send(self, batches: Iterator[ImportBatch]) -> None:
        """Send all; when one fails, those on their way are waited for, and no more are sent."""
        waiting: deque[asyncio.Task[ImportProgress]] = deque()
        try:
            # Reading takes its time, and the event loop has other things to do.
            while (batch := await asyncio.to_thread(next, batches, None)) is not None:
                if len(waiting) >= _IN_FLIGHT:
                    self._told(await waiting.popleft())
                waiting.append(asyncio.create_task(self._send(batch)))
            while waiting:
                self._told(await waiting.popleft())
        except BaseException:
            await asyncio.gather(*waiting, return_exceptions=True)
            raise

    async def finish(self, total: int, consolidate: bool | None) -> ImportProgress:
        """Say that all is there."""
        asked = operations.Finish(import_id=self._import_id, total=total, consolidate=consolidate)
        return self._told(await self._perform(self._stages.finish, asked))

    async def _send(self, batch: ImportBatch) -> ImportProgress:
        asked = operations.Send(import_id=self._import_id, batch=batch)
        return await self._perform(self._stages.send, asked)

    def _told(self, progress: ImportProgress) -> ImportProgress:
        if self._on_progress is not None:
            self._on_progress(progress)
        return progress
