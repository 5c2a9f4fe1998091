"""What is kept cold comes behind, and is never lost."""

from __future__ import annotations

import pytest

from engram.domain.memories import AnyMemory, Placement
from engram.recall.context import Briefing
from engram.settings import Settings
from tests.support.recall_memories import ADA, NOW, Memories, contents, episode, semantic

SWITCHED_ON = Settings.load(lifecycle={"placement": {"enabled": True}})


@pytest.fixture
def placed(memories: Memories) -> Memories:
    """The same store with placement switched on."""
    return Memories(memories.repository, memories.embedder, SWITCHED_ON)


async def test_cold_comes_behind_hot_that_answers_as_well(
    memories: Memories, placed: Memories
) -> None:
    """Among equals the hot one is first, and the explanation names what moved the other."""
    pair = ("The red bicycle stands in the cellar", "The blue bicycle stands in the cellar")
    for hot, cold in (pair, pair[::-1]):
        await memories.repository.erase(ADA)
        await memories.keep(
            semantic(hot, 1),
            semantic(cold, 1, placement=Placement.COLD),
            # Nearness is told from the least near: without it, two alike would be far apart.
            semantic("The cellar is damp in autumn", 1),
        )
        assert contents(await placed.ask("bicycle in the cellar"))[:2] == [hot, cold]
    hits = await placed.ask("bicycle in the cellar", explain=True)
    parts = [{p.name: p for p in hit.explanation.parts} for hit in hits if hit.explanation]
    assert "cold" not in parts[0]
    assert parts[1]["cold"].raw == 0.9
    assert sum(p.contribution for p in parts[1].values()) == pytest.approx(hits[1].score)


async def test_what_only_a_cold_memory_answers_is_found(placed: Memories) -> None:
    """Any number of hot memories about something else do not hide it, however few are asked for."""
    right = semantic("The spare key lies under the flowerpot", 1, placement=Placement.COLD)
    await placed.keep(right, *(episode(f"Lunch number {n} was fine", n) for n in range(40)))
    assert contents(await placed.ask("Where is the spare key?", limit=1)) == [right.content]


async def test_switched_off_it_does_nothing(memories: Memories, placed: Memories) -> None:
    """A memory that became cold before placement was switched off counts as any other."""
    one = semantic("The spare key lies under the flowerpot", 1, placement=Placement.COLD)
    await memories.keep(one)
    (plain,) = await memories.ask("spare key")
    assert plain.score > (await placed.ask("spare key"))[0].score
    warm = one.model_copy(update={"placement": None})
    await memories.repository.erase(ADA)
    await memories.keep(warm)
    assert (await memories.ask("spare key"))[0].score == plain.score


async def test_a_briefing_takes_cold_memories_last(placed: Memories) -> None:
    """They fill what hot ones leave free, whatever they are worth."""
    kept: list[AnyMemory] = [
        semantic("The user likes tea", 1, importance=1.0, placement=Placement.COLD),
        semantic("The user lives in Lisbon", 2, importance=0.2),
    ]
    await placed.keep(*kept)
    briefing = Briefing(
        placed.repository, SWITCHED_ON.lifecycle_rules, placed.recaller.negations, 100
    )
    told = [one.memory.content for one in await briefing.of(ADA, NOW, 10)]
    assert told == ["The user lives in Lisbon", "The user likes tea"]
    off = Briefing(
        placed.repository, Settings.load().lifecycle_rules, placed.recaller.negations, 100
    )
    assert [one.memory.content for one in await off.of(ADA, NOW, 1)] == ["The user likes tea"]
