"""Work that nobody waits for rests while somebody waits, and goes on for twice as long."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from engram.giving_way import (
    Rests,
    awaited,
    computed,
    give_way,
    handing_over,
    in_background,
    lull,
    wanted,
)

MILLISECOND = 0.001


@dataclass
class Looking:
    """Rests by a clock made by hand, looked at every millisecond."""

    now: float = 0.0
    rests: Rests = field(init=False)

    def __post_init__(self) -> None:
        self.rests = Rests(lambda: self.now)

    def resting(self, milliseconds: int) -> list[bool]:
        """Whether rest is due, millisecond by millisecond."""
        found: list[bool] = []
        for _ in range(milliseconds):
            self.now += MILLISECOND
            found.append(self.rests.is_due())
        return found


def test_work_goes_on_where_nobody_waits() -> None:
    """Without an awaited call there is no rest, before one and after it."""
    looking = Looking()
    assert not any(looking.resting(500))
    with looking.rests.awaited():
        assert all(looking.resting(20))
    assert not any(looking.resting(500))


def test_a_call_now_and_then_has_the_process_to_itself() -> None:
    """Twenty milliseconds every quarter of a second: all of each is rest."""
    looking = Looking()
    for _ in range(20):
        with looking.rests.awaited():
            assert all(looking.resting(20))
        assert not any(looking.resting(230))


def test_work_has_two_thirds_of_the_time_whoever_waits() -> None:
    """Under calls without end rests are long, and a third of the time at most."""
    looking = Looking()
    with looking.rests.awaited():
        found = looking.resting(10_000)
    assert 0.3 < sum(found) / len(found) <= 0.35
    begun = [n for n in range(1, len(found)) if found[n] and not found[n - 1]]
    assert all(later - earlier > 250 for earlier, later in pairwise(begun))


@pytest.mark.parametrize("callers", [4, 40])
def test_the_more_wait_the_longer_it_rests(callers: int) -> None:
    """Under many calls without end a third of the time is left to the work, and never less."""
    looking = Looking()
    with contextlib.ExitStack() as calls:
        for _ in range(callers):
            calls.enter_context(looking.rests.awaited())
        found = looking.resting(10_000)
    assert 0.6 < sum(found) / len(found) <= 0.68


def test_two_calls_at_once_are_both_waited_for() -> None:
    """The end of one ends no rest that another one has."""
    looking = Looking()
    with looking.rests.awaited():
        with looking.rests.awaited():
            assert looking.resting(5)[-1]
        assert looking.resting(5)[-1]
    assert not looking.resting(5)[0]


def test_a_rest_that_nobody_looked_at_costs_none() -> None:
    """A call that ended while no work was under way leaves rest for the next one."""
    looking = Looking()
    with looking.rests.awaited():
        looking.resting(10)
    looking.now += 60
    looking.resting(1)
    with looking.rests.awaited():
        assert all(looking.resting(60))


@pytest.mark.parametrize("background", [True, False])
async def test_only_work_in_the_background_rests(background: bool) -> None:
    """An answer's own steps let others have one turn of the event loop and go on."""
    steps: list[str] = []

    async def work() -> None:
        await give_way()
        steps.append("went on")

    async def answer() -> None:
        with awaited():
            task = asyncio.create_task(in_context(work))
            for _ in range(5):
                await asyncio.sleep(0)
            steps.append("answered")
        await task

    async def in_context(work_of: object) -> None:
        assert work_of is work
        if background:
            with in_background():
                await work()
        else:
            await work()

    await answer()
    assert steps == (["answered", "went on"] if background else ["went on", "answered"])


async def test_threads_that_work_in_the_background_hands_work_to_rest_too() -> None:
    """Rules that compute in a thread stand still until the answer is there."""
    looked, went_on = threading.Event(), threading.Event()

    def compute() -> None:
        looked.set()
        for _ in handing_over("a"):
            went_on.set()

    with in_background(), awaited():
        thread = asyncio.create_task(asyncio.to_thread(compute))
        await asyncio.to_thread(looked.wait, 10)
        assert not went_on.is_set()
    await thread
    assert went_on.is_set()


async def test_work_begins_at_once_where_nobody_waits() -> None:
    """In quiet there is a lull already: nothing is put off, not even for a turn of the loop."""
    waiting = asyncio.ensure_future(Looking().rests.lull(60.0))
    await asyncio.sleep(0)
    assert waiting.done()


async def test_gaps_between_calls_are_no_lull() -> None:
    """Where calls follow one another nothing begins in between, by a clock made by hand."""
    looking = Looking()
    with looking.rests.awaited():
        waiting = asyncio.ensure_future(looking.rests.lull(60.0))
    for _ in range(3):
        looking.now += 0.2
        await asyncio.sleep(0.1)
        assert not waiting.done()
        with looking.rests.awaited():
            looking.now += 0.02
    looking.now += 0.3
    await asyncio.wait_for(waiting, 10)


async def test_work_begins_when_nobody_waits_any_more() -> None:
    """It is put off as long as an answer is awaited, and goes on after the last one."""
    with awaited():
        with awaited():
            waiting = asyncio.ensure_future(lull(60.0))
            await asyncio.sleep(0)
            assert not waiting.done()
        assert not waiting.done()
    await asyncio.wait_for(waiting, 10)


async def test_work_that_somebody_waits_for_is_not_put_off() -> None:
    """Whoever wants what it comes to has it begin, also where it was put off before."""
    with awaited():
        waiting = asyncio.ensure_future(lull(60.0))
        await asyncio.sleep(0)
        assert not waiting.done()
        with wanted():
            await asyncio.wait_for(waiting, 10)
            await asyncio.wait_for(lull(60.0), 10)


async def test_work_is_put_off_for_a_while_at_most() -> None:
    """Under calls without end it begins when its time is over, by a clock made by hand."""
    looking = Looking()
    with looking.rests.awaited():
        waiting = asyncio.ensure_future(looking.rests.lull(20.0))
        await asyncio.sleep(0)
        looking.now += 14.9
        await asyncio.sleep(0.1)
        assert not waiting.done()
        looking.now += 0.2
        await asyncio.wait_for(waiting, 10)


async def test_what_was_put_off_together_begins_one_after_the_other() -> None:
    """Five that were put off at one moment begin in five different seconds."""
    looking = Looking()
    begun: asyncio.Queue[float] = asyncio.Queue()

    async def begin() -> None:
        await looking.rests.lull(20.0)
        begun.put_nowait(looking.now)

    with looking.rests.awaited():
        waiting = [asyncio.ensure_future(begin()) for _ in range(5)]
        await asyncio.sleep(0)
        for moment in (15.0, 16.0, 17.0, 18.0, 19.0):
            looking.now = moment - 0.1
            await asyncio.sleep(0.1)
            assert begun.empty()
            looking.now = moment
            assert await asyncio.wait_for(begun.get(), 10) == moment
    assert all(one.done() for one in waiting)


@dataclass
class Computing:
    """Calls in threads, and how many of them computed at once at most."""

    now: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    met: threading.Event = field(default_factory=threading.Event)

    def alone(self, number: int) -> int:
        """Compute for as long as another one could begin, if none waits for its turn."""
        with self._counted():
            self.met.wait(0.02)
        return number

    def together(self) -> None:
        """Compute until a second one does."""
        with self._counted():
            assert self.met.wait(10)

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.now > 1:
                self.met.set()
        yield
        with self.lock:
            self.now -= 1


def test_what_computes_in_the_background_does_so_one_after_the_other() -> None:
    """Of several threads each would have a share of the interpreter; in any event loop."""

    async def all_of_them() -> list[int]:
        with in_background():
            return await asyncio.gather(*(computed(computing.alone, n) for n in range(4)))

    for _ in range(2):
        computing = Computing()
        assert asyncio.run(all_of_them()) == [0, 1, 2, 3]
        assert computing.most == 1


async def test_what_somebody_waits_for_is_not_behind_what_nobody_waits_for() -> None:
    """It computes at once, whatever does so in the background."""
    computing = Computing()
    with in_background():
        behind = asyncio.create_task(computed(computing.together))
    await computed(computing.together)
    await behind


async def test_what_fails_while_it_computes_holds_up_nothing() -> None:
    """The next one has its turn."""
    with in_background():
        with pytest.raises(ZeroDivisionError):
            await computed(divmod, 1, 0)
        assert await computed(divmod, 7, 2) == (3, 1)
