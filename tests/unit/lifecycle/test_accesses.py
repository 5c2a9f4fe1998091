"""Recalls are counted in batches, each once, by any number of processes."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from engram.domain.memories import AnyMemory, DerivedMemory, Fact, LinkKind, Together
from engram.domain.scope import Scope
from engram.errors import StorageUnavailable, UnforeseenFailure
from engram.giving_way import awaited
from engram.lifecycle import accesses
from engram.lifecycle.accesses import (
    MOST_TOGETHER,
    MOST_TRIES,
    NOTED_AT_ONCE,
    AccessLog,
    Recalls,
    accessed,
)
from engram.lifecycle.decisions import fingerprint, review_at
from engram.lifecycle.due import review_stamp
from engram.ports import MemoryRepository, Replacement, Stamp
from engram.storage.updates import update_memories
from tests.support.conclusions import keep
from tests.support.edge_stores import borrowed_store
from tests.support.lifecycle_memories import (
    ENERGY,
    RULES,
    T0,
    _id,
    day,
    episode,
    fact,
    habit,
    recalled,
    semantic,
)

ADA = Scope.of("default", "ada")
_counter = itertools.count()


def fresh() -> str:
    """A value that no other write has."""
    return f"w{next(_counter)}"


@pytest.fixture(scope="module")
def edge() -> Iterator[MemoryRepository]:
    """One real store for all tests here; opening one takes longer than they do."""
    with asyncio.Runner() as runner:
        opening = borrowed_store(review_stamp(RULES))
        yield runner.run(opening.__aenter__())
        runner.run(opening.__aexit__(None, None, None))


@pytest.fixture
async def repository(edge: MemoryRepository) -> MemoryRepository:
    """The store, empty, stamping what is written."""
    await edge.erase(ADA)
    return edge


async def stored(repository: MemoryRepository, memory: AnyMemory) -> AnyMemory:
    """What is stored of a memory now."""
    return (await repository.get(ADA, [memory.id]))[memory.id]


def log_of(repository: MemoryRepository, instance: str = "one", **more: Any) -> AccessLog:
    """A log that flushes only when asked."""
    values = {"interval": timedelta(hours=1), "most": 10_000, **more}
    return AccessLog(repository, RULES, instance_id=instance, new_write_id=fresh, **values)


class Failing:
    """Writes, and then says that it could not, so often."""

    def __init__(self, inner: MemoryRepository, failures: int) -> None:
        self._inner = inner
        self.failures = failures
        self.written = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def replace(
        self, scope: Scope, replacements: Iterable[Replacement], *, stamp: Stamp | None = None
    ) -> frozenset[str]:
        won = await self._inner.replace(scope, replacements, stamp=stamp)
        if self.failures:
            self.failures -= 1
            raise StorageUnavailable("The answer was lost.")
        self.written.set()
        return won


async def test_recalls_are_counted_and_stamped(repository: MemoryRepository) -> None:
    """Count, last access, energy and process are on the memory after a flush, and its review."""
    turn, known = episode(), fact()
    await keep(repository, [turn, known])
    log = log_of(repository)
    for minute in range(3):
        log.note(ADA, [turn, known], T0 + timedelta(minutes=minute))
    assert (await stored(repository, turn)).access_count == 0
    await log.flush()
    after = await stored(repository, turn)
    last = T0 + timedelta(minutes=2)
    assert (after.access_count, after.last_accessed_at) == (3, last)
    assert after.vitals is not None
    assert (after.vitals.instance_id, after.vitals.energy_at) == (None, last)
    assert after.vitals.energy == pytest.approx(4, abs=0.05)
    assert after.review_at == review_at(after, RULES)
    assert after.revision == 1
    assert (await stored(repository, known)).access_count == 3
    await log.flush()
    assert (await stored(repository, turn)).revision == 1


async def test_a_batch_that_is_written_twice_counts_once(repository: MemoryRepository) -> None:
    """The answer to a write was lost: the batch is written again, and what came since as well."""
    turn = episode()
    await keep(repository, [turn])
    log = log_of(Failing(repository, 1))
    log.note(ADA, [turn], T0)
    with pytest.raises(StorageUnavailable):
        await log.flush()
    log.note(ADA, [turn], day(1))
    await log.flush()
    after = await stored(repository, turn)
    assert (after.access_count, after.last_accessed_at) == (2, day(1))


async def test_a_recall_that_can_never_be_noted_holds_up_no_other(
    repository: MemoryRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others of its batch are noted at once, once; it is dropped after a few tries."""
    good, poison = episode(), fact()
    await keep(repository, [good, poison])
    replace = type(repository).replace

    async def refusing(
        self: MemoryRepository, scope: Scope, items: Iterable[Replacement], **more: Any
    ) -> frozenset[str]:
        found = list(items)
        if any(item.memory.id == poison.id for item in found):
            raise ValueError("nobody foresaw this")
        return await replace(self, scope, found, **more)

    monkeypatch.setattr(type(repository), "replace", refusing)
    log = log_of(repository)
    log.note(ADA, [good, poison], T0)
    for _ in range(MOST_TRIES - 1):
        with pytest.raises(UnforeseenFailure):
            await log.flush()
        assert (await stored(repository, good)).access_count == 1
    await log.flush()
    assert not log.pending
    log.note(ADA, [good], day(1))
    await log.flush()
    assert (await stored(repository, good)).access_count == 2


async def test_two_processes_and_another_writer_lose_nothing(repository: MemoryRepository) -> None:
    """Many flushes of two processes at once, while somebody else writes: every count is there."""
    known = [fact(id=_id(f"fact {n}"), content=f"email: {n}@b.org") for n in range(20)]
    await keep(repository, [*known])
    logs = [log_of(repository, "one"), log_of(repository, "two")]

    async def recall(log: AccessLog) -> None:
        for second in range(6):
            log.note(ADA, known, T0 + timedelta(seconds=second))
            await log.flush()

    def weigh(memory: AnyMemory) -> AnyMemory:
        return memory.model_copy(update={"importance": min(memory.importance + 0.01, 1.0)})

    async def write() -> None:
        ids = [memory.id for memory in known]
        for _ in range(6):
            await update_memories(repository, ADA, ids, weigh, new_write_id=fresh)

    await asyncio.gather(*(recall(log) for log in logs), write())
    for memory in known:
        after = await stored(repository, memory)
        assert after.access_count == 12
        assert after.importance == pytest.approx(0.56)
        assert after.vitals is not None
        assert {flush.partition(":")[0] for flush in after.vitals.flushes} == {"one", "two"}


async def test_a_clean_stop_loses_nothing(repository: MemoryRepository) -> None:
    """Closing notes what waits, of every user."""
    turn = episode()
    await keep(repository, [turn])
    log = log_of(repository)
    log.note(ADA, [turn], T0)
    await log.close()
    await log.close()
    assert (await stored(repository, turn)).access_count == 1


async def test_a_store_that_is_gone_does_not_break_closing(repository: MemoryRepository) -> None:
    """Closing reports what could not be noted, and goes on."""
    turn = episode()
    await keep(repository, [turn])
    log = log_of(Failing(repository, 5))
    log.note(ADA, [turn], T0)
    with capture_logs() as told:
        await log.close()
    assert ("error", "storage_unavailable") in {(one["log_level"], one.get("code")) for one in told}


@pytest.mark.parametrize("more", [{"interval": timedelta(milliseconds=1)}, {"most": 1}])
async def test_batches_go_by_time_and_by_count(
    repository: MemoryRepository, more: dict[str, Any]
) -> None:
    """Without being asked: after the interval, or when so many wait; past a failure too."""
    first, second = episode(), fact()
    await keep(repository, [first, second])
    failing = Failing(repository, 1)
    log = log_of(failing, **{"interval": timedelta(milliseconds=5), **more})
    log.note(ADA, [first], T0)
    # The first write seems to fail, the one that tries again finds nothing left to do.
    async with asyncio.timeout(10):
        while failing.failures or log.pending:  # noqa: ASYNC110 - nothing tells of a failure
            await asyncio.sleep(0.002)
    log.note(ADA, [second], T0)
    await asyncio.wait_for(failing.written.wait(), 10)
    await log.close()
    for memory in (first, second):
        assert (await stored(repository, memory)).access_count == 1


async def test_what_waits_for_a_store_that_takes_no_writes_is_bounded(
    repository: MemoryRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more memories than are held, the others are dropped and counted; those held are noted."""
    monkeypatch.setattr(accesses, "MOST_HELD", 5)
    turns = [episode(f"turn {number}") for number in range(9)]
    await keep(repository, [*turns])
    asked = 0

    class Refusing(Failing):
        async def replace(
            self, scope: Scope, replacements: Iterable[Replacement], *, stamp: Stamp | None = None
        ) -> frozenset[str]:
            nonlocal asked
            asked += 1
            if self.failures:
                raise StorageUnavailable("The store takes no writes.")
            return await super().replace(scope, replacements, stamp=stamp)

    store = Refusing(repository, 1)
    log = log_of(store, most=1, interval=timedelta(milliseconds=20))
    with capture_logs() as told:
        for number in range(60):
            log.note(ADA, [turns[number % 9]], day(number))
            await asyncio.sleep(0)
        # What is refused is tried again by the clock, not with each recall.
        assert asked < 10
        store.failures = 0
        async with asyncio.timeout(10):
            while log.pending:  # noqa: ASYNC110 - nothing tells that all is noted
                await asyncio.sleep(0.002)
    dropped = sum(one["recalls"] for one in told if "recalls" in one)
    counts = [(await stored(repository, turn)).access_count for turn in turns]
    assert [bool(count) for count in counts] == [True] * 5 + [False] * 4
    assert sum(counts) + dropped == 60
    await log.close()


async def test_who_asks_on_and_on_is_noted_in_one_batch(repository: MemoryRepository) -> None:
    """While answers are awaited recalls are collected on; a clean stop does not wait for a lull."""
    turn = episode()
    await keep(repository, [turn])
    log = log_of(repository, interval=timedelta(0))
    with awaited():
        for number in range(3):
            log.note(ADA, [turn], day(number))
            await asyncio.sleep(0.01)
        assert (await stored(repository, turn)).access_count == 0
        await asyncio.wait_for(log.close(), 10)
    noted = await stored(repository, turn)
    assert noted.access_count == 3
    assert noted.vitals is not None
    assert noted.vitals.flushes == ("one:1",)


async def test_many_are_noted_in_portions(repository: MemoryRepository) -> None:
    """Between two of them others have the loop: whoever recalls waits for one, not for all."""
    turns = [episode(f"turn {number}") for number in range(2 * NOTED_AT_ONCE + 1)]
    await keep(repository, [*turns])
    sizes: list[int] = []

    class Watched(Failing):
        async def replace(
            self, scope: Scope, replacements: Iterable[Replacement], *, stamp: Stamp | None = None
        ) -> frozenset[str]:
            given = list(replacements)
            sizes.append(len(given))
            return await super().replace(scope, given, stamp=stamp)

    log = log_of(Watched(repository, 0))
    log.note(ADA, turns, T0)
    await log.flush()
    assert sizes == [NOTED_AT_ONCE, NOTED_AT_ONCE, 1]
    assert {(await stored(repository, turn)).access_count for turn in turns} == {1}


async def test_what_is_forgotten_stays_forgotten(repository: MemoryRepository) -> None:
    """A recall of something deleted meanwhile brings nothing back."""
    turn = episode()
    await keep(repository, [turn])
    log = log_of(repository)
    log.note(ADA, [turn], T0)
    await repository.delete(ADA, turn.type, [turn.id])
    await log.flush()
    assert await repository.get(ADA, [turn.id]) == {}


async def test_what_is_recalled_together_three_times_is_linked(
    repository: MemoryRepository,
) -> None:
    """Counts from three on become a link, both ways; turns and tests take no part."""
    one, other = semantic("tea"), habit()
    test = semantic("test tea", is_test=True)
    turn = episode()
    await keep(repository, [one, other, test, turn])
    log = log_of(repository)
    for n in range(3):
        before = await stored(repository, one)
        assert isinstance(before, type(one))
        assert before.links == ()
        log.note(ADA, [one, turn, other, test], day(n))
        await log.flush()
    for memory, target in ((one, other), (other, one)):
        after = await stored(repository, memory)
        assert isinstance(after, DerivedMemory)
        assert [(link.kind, link.target_id) for link in after.links] == [
            (LinkKind.COACTIVATED, target.id)
        ]
        assert after.vitals is not None
        assert after.vitals.together == (Together(memory_id=target.id, count=3),)
    apart = (await stored(repository, test)).vitals
    assert apart is not None
    assert apart.together == ()


def test_recalled_together_is_bounded() -> None:
    """The most frequent are kept, and of equals the latest."""
    memory: AnyMemory = semantic()
    for n in range(MOST_TOGETHER + 5):
        recalls = Recalls(
            count=1,
            at=T0,
            instance_id="one",
            batch=n,
            together=(Together(memory_id="often", count=1), Together(memory_id=f"m{n}", count=1)),
        )
        memory = accessed(memory, recalls, RULES) or memory
    assert memory.vitals is not None
    kept = [one.memory_id for one in memory.vitals.together]
    assert len(kept) == MOST_TOGETHER
    assert kept[0] == "often"
    assert f"m{MOST_TOGETHER + 4}" in kept
    assert "m0" not in kept


@settings(deadline=None)
@given(st.permutations(range(5)), st.lists(st.integers(1, 3), min_size=5, max_size=5))
def test_the_order_of_batches_does_not_matter(order: list[int], counts: list[int]) -> None:
    """Batches of several processes give the same energy in whichever order they arrive."""

    def after(numbers: Iterable[int]) -> AnyMemory:
        memory: AnyMemory = episode()
        for n in numbers:
            at = T0 + timedelta(minutes=10 * (n + 1))
            memory = recalled(memory, at, counts[n], ENERGY, batch=1, instance_id=f"p{n}")
            again = Recalls(count=counts[n], at=at, instance_id=f"p{n}", batch=1)
            assert accessed(memory, again, ENERGY) is None
        return memory

    first, other = after(range(5)), after(order)
    assert first.vitals is not None
    assert other.vitals is not None
    assert first.vitals.energy == pytest.approx(other.vitals.energy)
    assert (first.access_count, first.last_accessed_at) == (
        other.access_count,
        other.last_accessed_at,
    )


async def test_every_write_is_stamped(repository: MemoryRepository) -> None:
    """Insert and replace both say when to look next and by which rules; changes pass through."""
    known = fact()
    await keep(repository, [known])
    first = await stored(repository, known)
    assert first.review_at == review_at(known, RULES)
    assert first.policy_fingerprint == fingerprint(RULES, "default")
    await update_memories(
        repository,
        ADA,
        [known.id],
        lambda memory: memory.model_copy(update={"importance": 1.0, "review_at": None}),
        new_write_id=fresh,
    )
    after = await stored(repository, known)
    assert isinstance(after, Fact)
    assert after.review_at is not None
    assert first.review_at is not None
    assert after.review_at > first.review_at
