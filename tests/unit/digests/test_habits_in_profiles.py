"""The behavioural profile knows habits, whatever became of the knowledge they came from."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from engram.domain.memories import AnyMemory, MemoryStatus, ProceduralMemory, SemanticMemory
from engram.domain.rules import LifecycleRules
from engram.lifecycle.promotion import promoted
from engram.operations.digests import AboutSomebody, Profile
from engram.storage.updates import update_memories
from tests.support.digest_memories import ADA, CHESS, known, minute
from tests.support.digested_memory import DigestedMemory
from tests.support.edge_stores import borrowed_store

HOME = known("The user lives in Lisbon.", 1, slot=("user", "lives in", "Lisbon"))
# Nothing in its words tells that it is a habit: somebody promoted it by hand.
BY_HAND = known("Deploys go out after lunch.", 2, slot=("deploys", "go out", "after lunch"))
TEA = known("The user always drinks tea at night.", 3, slot=("user", "drinks", "tea"))


@pytest.fixture
async def kept() -> AsyncIterator[DigestedMemory]:
    """An empty memory."""
    async with borrowed_store() as repository:
        yield DigestedMemory(repository)


def habit_of(source: SemanticMemory) -> ProceduralMemory:
    """What promotion makes of it."""
    return promoted(source, minute(50), LifecycleRules()).habit


async def profile(kept: DigestedMemory) -> Profile:
    """The user's own."""
    return await kept.asked.profile(ADA, AboutSomebody())


async def becomes(kept: DigestedMemory, memory: AnyMemory, status: MemoryStatus) -> None:
    """Let a memory have this status."""
    await update_memories(
        kept.store.inner,
        ADA,
        [memory.id],
        lambda one: one.model_copy(update={"status": status}),
        new_write_id=lambda: f"{memory.id}-{status}",
    )


async def test_a_habit_enters_with_the_next_consolidation(kept: DigestedMemory) -> None:
    """Whatever that touches; a habit and the knowledge it came from are one line of both."""
    await kept.keep(HOME, TEA, BY_HAND)
    await kept.digest(HOME, TEA, BY_HAND)
    assert [line.text for line in (await profile(kept)).lines] == [HOME.content, TEA.content]
    tea, by_hand = habit_of(TEA), habit_of(BY_HAND)
    await kept.keep(tea, by_hand)
    other = known("Sam plays chess.", 4, slot=("Sam", "plays", "chess"), entities=("Sam",))
    await kept.keep(other)
    await kept.digest(other)
    lines = {line.text: set(line.memory_ids) for line in (await profile(kept)).lines}
    assert lines == {
        HOME.content: {HOME.id},
        TEA.content: {TEA.id, tea.id},
        BY_HAND.content: {by_hand.id},
    }


async def test_a_habit_outlives_its_source_in_the_profile_and_ends_with_itself(
    kept: DigestedMemory,
) -> None:
    """Archived knowledge leaves the profile and its habit stays; an ended habit leaves."""
    tea = habit_of(TEA)
    await kept.keep(HOME, TEA, tea)
    await kept.digest(HOME, TEA)
    await becomes(kept, TEA, MemoryStatus.ARCHIVED)
    await kept.digest(TEA)
    lines = {line.text: line.memory_ids for line in (await profile(kept)).lines}
    assert lines[TEA.content] == (tea.id,)
    await becomes(kept, tea, MemoryStatus.SUPERSEDED)
    await kept.keep(*CHESS[:1])
    await kept.digest(*CHESS[:1])
    assert TEA.content not in {line.text for line in (await profile(kept)).lines}


async def test_a_profile_of_habits_alone_and_none_of_test_ones(kept: DigestedMemory) -> None:
    """Habits are enough for a profile; test habits make none; unchanged, nothing is written."""
    await kept.keep(habit_of(TEA).model_copy(update={"is_test": True}))
    await kept.digest()
    assert (await profile(kept)).memory_id is None
    by_hand = habit_of(BY_HAND)
    await kept.keep(by_hand)
    await kept.digest()
    assert [line.memory_ids for line in (await profile(kept)).lines] == [(by_hand.id,)]
    before, writes = await kept.picture(), kept.store.writes
    await kept.digest()
    assert (await kept.picture(), kept.store.writes) == (before, writes)
