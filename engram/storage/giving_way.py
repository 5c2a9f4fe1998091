"""Who has the event loop when: the in-process engine answers without a pause."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, TypeVar

T = TypeVar("T")

# Seconds. Whoever encodes or recalls meanwhile waits so long a few times over.
_LONGEST_STEP: Final = 0.002

# Whoever works for long gives way by himself. An answer takes a dozen turns of the loop with the
# server's part in between: to give way for one turn is to let it wait for a step of the work a
# dozen times over. Hence work that nobody waits for pauses while a call is awaited, for a share
# of the time that it takes.
_PAUSED_SHARE: Final = 0.33
# Of a step that waited for something, no more than this was work.
_MOST_WORKED: Final = 0.01
_AWAITED: set[object] = set()


@dataclass(slots=True)
class _Background:
    """Seconds since the last pause; when the loop was had last."""

    worked: float
    since: float


_BACKGROUND: ContextVar[_Background | None] = ContextVar("background", default=None)


@contextmanager
def awaited() -> Iterator[None]:
    """Within it somebody waits for an answer."""
    call = object()
    _AWAITED.add(call)
    try:
        yield
    finally:
        _AWAITED.discard(call)


@contextmanager
def in_background() -> Iterator[None]:
    """Within it nobody waits for an answer."""
    before = _BACKGROUND.set(_Background(0.0, time.perf_counter()))
    try:
        yield
    finally:
        _BACKGROUND.reset(before)


async def give_way() -> None:
    """Let others have the event loop: for one turn; in the background, where one waits, longer."""
    work = _BACKGROUND.get()
    if work is None:
        await asyncio.sleep(0)
        return
    work.worked += min(time.perf_counter() - work.since, _MOST_WORKED)
    if not _AWAITED:
        work.worked = 0.0
    pause = work.worked >= _LONGEST_STEP
    await asyncio.sleep(work.worked * _PAUSED_SHARE if pause else 0)
    if pause:
        work.worked = 0.0
    work.since = time.perf_counter()


async def yielding_to_event_loop(items: Iterable[T]) -> AsyncIterator[T]:
    """The items, letting others have the event loop whenever they took it for a while."""
    since = time.perf_counter()
    for item in items:
        if time.perf_counter() - since > _LONGEST_STEP:
            await give_way()
            since = time.perf_counter()
        yield item
