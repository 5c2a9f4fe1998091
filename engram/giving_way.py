"""Who goes on when: what somebody waits for, and work that nobody waits for.

Both share one interpreter, and an answer takes a dozen turns of the event loop with the server's
part in between: whoever has to let the work have a step of its own before each of them waits a
dozen times over. Hence work in the background rests while an answer is awaited, for a tenth of a
second at a time, in which several answers come as if they were alone; then it has two tenths,
whoever waits, or less where more wait.

What it is begun with costs as much for ten turns as for forty. Hence it is begun in a lull, when
nobody has waited for a moment, and where no lull comes, a little later with what came in between,
one after the other.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
P = ParamSpec("P")

# Seconds. Whoever encodes or recalls meanwhile waits so long a few times over.
_LONGEST_STEP: Final = 0.002
# Seconds of rest that work may owe, and how much of the time that it goes on counts as owed, for
# each who waits: a third of the time is rest at most for one, two thirds for four and more. Much
# shorter rests help nobody, as no answer fits into them.
_LONGEST_REST: Final = 0.1
_OWED_SHARE: Final = 0.5
_MOST_SHARE: Final = 2.0
# Seconds until it is looked again whether somebody still waits.
_NAP: Final = 0.002
# Of the time since somebody looked, no more than this was rest: perhaps nothing was under way.
_LONGEST_NAP: Final = 0.02
LONGEST_DELAY: Final = 20.0
"""Seconds for which work is put off where no lull comes."""
# Of it, the end in which what is put off begins, one after the other: what was put off by the same
# calls would begin at once else, and whoever calls then waits for all of it.
_BEGINNING: Final = 0.25
# Seconds without anybody who waits that make a lull: where a dozen talk without a pause there are
# gaps between their calls all the time, each of a few milliseconds.
_LULL: Final = 0.25
# Seconds between two looks for one.
_GLANCE: Final = 0.05
# Seconds. A sleep of nothing is over before whoever waits is awake.
_A_MOMENT: Final = 1e-5


class Rests:
    """When work in the background rests: while somebody waits, and rest is owed.

    Args:
        clock: Seconds that only go on.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._awaited = 0
        # When the last one who waited had his answer.
        self._left = -math.inf
        self._wanted = 0
        self._put_off = 0
        # When work began without a lull.
        self._begun = -math.inf
        self._owed = _LONGEST_REST
        self._all_taken = False
        self._resting = False
        self._looked = clock()
        # Rules that compute in threads look, too.
        self._lock = threading.Lock()

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Within it somebody waits for an answer."""
        with self._lock:
            self._awaited += 1
        try:
            yield
        finally:
            with self._lock:
                self._awaited -= 1
                self._left = self._clock()

    @contextmanager
    def wanted(self) -> Iterator[None]:
        """Within it somebody waits for what work in the background comes to."""
        with self._lock:
            self._wanted += 1
        try:
            yield
        finally:
            with self._lock:
                self._wanted -= 1

    async def lull(self, longest: float = LONGEST_DELAY) -> None:
        """Wait until nobody has waited for an answer for a moment, or somebody waits for the work.

        Args:
            longest: Seconds after which it goes on anyway; in the last quarter of them one after
                the other does.
        """
        end = self._clock() + longest
        self._put_off += 1
        try:
            while not self._is_lull() and not self._wanted and not self._has_turn(end, longest):  # noqa: ASYNC110 - time ends it, too
                await asyncio.sleep(_GLANCE)
        finally:
            self._put_off -= 1

    def _has_turn(self, end: float, longest: float) -> bool:
        """Whether work begins now among what is put off as well, at ``end`` at the latest."""
        now = self._clock()
        remaining = end - now
        if remaining > longest * _BEGINNING or now - self._begun < remaining / self._put_off:
            return False
        self._begun = now
        return True

    def _is_lull(self) -> bool:
        return not self._awaited and self._clock() - self._left >= _LULL

    def is_due(self) -> bool:
        """Whether work rests now; looked at again and again, from any thread."""
        with self._lock:
            now = self._clock()
            since, self._looked = now - self._looked, now
            if self._resting:
                self._owed -= min(since, _LONGEST_NAP)
                self._all_taken |= self._owed <= 0
            else:
                share = min(_OWED_SHARE * max(self._awaited, 1), _MOST_SHARE)
                self._owed = min(_LONGEST_REST, self._owed + since * share)
                self._all_taken &= self._owed < _LONGEST_REST
            self._resting = self._awaited > 0 and not self._all_taken
            return self._resting


_RESTS: Final = Rests()
_IN_BACKGROUND: ContextVar[bool] = ContextVar("in_background", default=False)
# Whose turn it is to compute in a thread, for each event loop.
_TURNS: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]] = WeakKeyDictionary()


awaited: Final = _RESTS.awaited
wanted: Final = _RESTS.wanted
lull: Final = _RESTS.lull


@contextmanager
def in_background() -> Iterator[None]:
    """Within it nobody waits for an answer; threads that it hands work to included."""
    before = _IN_BACKGROUND.set(True)
    try:
        yield
    finally:
        _IN_BACKGROUND.reset(before)


async def give_way() -> None:
    """Let others have the event loop: for one turn; in the background, as long as rest is due."""
    await asyncio.sleep(0)
    while _IN_BACKGROUND.get() and _RESTS.is_due():  # noqa: ASYNC110 - time ends a rest, too, and threads look
        await asyncio.sleep(_NAP)


async def computed(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What a thread computes; of what computes in the background one after the other.

    Threads share one interpreter: six are done no sooner than one, whoever else needs it has a
    seventh of it in place of half, and what they make for all, each makes for itself.
    """
    if not _IN_BACKGROUND.get():
        return await asyncio.to_thread(call, *args, **kwargs)
    turns = _TURNS.setdefault(asyncio.get_running_loop(), asyncio.Lock())
    async with turns:
        return await asyncio.to_thread(call, *args, **kwargs)


def handing_over(items: Iterable[T]) -> Iterator[T]:
    """The items, handing Python over before each, in a thread that computes for long.

    Whoever waits for it, the event loop above all, gets it after 5 ms else, each time it wakes up.
    """
    for item in items:
        time.sleep(_A_MOMENT)
        while _IN_BACKGROUND.get() and _RESTS.is_due():
            time.sleep(_NAP)
        yield item


async def yielding_to_event_loop(items: Iterable[T]) -> AsyncIterator[T]:
    """The items, letting others have the event loop whenever they took it for a while."""
    since = time.perf_counter()
    for item in items:
        if time.perf_counter() - since > _LONGEST_STEP:
            await give_way()
            since = time.perf_counter()
        yield item
