"""What answers can be narrowed to: role, metadata, absent tags, staleness, a least score."""

from __future__ import annotations

from typing import Any

import pytest

from engram.domain.memories import LifecycleState, Link
from engram.errors import InvalidQuery
from engram.recall.request import RecallRequest
from tests.support.recall_memories import SETTINGS, Memories, contents, day, episode, semantic

USER = episode("I drink tea in the morning.", 1, tags=("home",), metadata={"app": "diary", "n": 1})
AGENT = episode("You drink tea a lot.", 2, role="assistant", metadata={"app": "chat", "n": 1.0})
KNOWN = semantic("The user drinks tea.", 3, metadata={"app": "diary"}, tags=("drinks",))
STALE = semantic("The user drank tea with Ann.", 4, lifecycle=LifecycleState.STALE)
ALL = (USER, AGENT, KNOWN, STALE)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, ALL),
        ({"roles": "user"}, (USER, KNOWN, STALE)),
        ({"roles": ["assistant"], "memory_types": "episodic"}, (AGENT,)),
        ({"without_tags": ["home"]}, (AGENT, KNOWN, STALE)),
        ({"without_tags": ["home", "drinks"]}, (AGENT, STALE)),
        ({"metadata": {"app": "diary"}}, (USER, KNOWN)),
        ({"metadata": {"app": "diary", "n": 1}}, (USER,)),
        ({"metadata": {"n": True}}, ()),
        ({"metadata": {"n": "1"}}, ()),
        ({"include_stale": False}, (USER, AGENT, KNOWN)),
    ],
    ids=str,
)
async def test_answers_are_narrowed_to_what_is_asked(
    memories: Memories, asked: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    """Each filter leaves exactly what it names; a type without the field is not narrowed by it."""
    await memories.keep(*ALL)
    found = await memories.ask("Who drinks tea?", explain=True, **asked)
    assert {hit.memory.id for hit in found} == {one.id for one in expected}


async def test_what_links_lead_to_passes_the_same_filters(memories: Memories) -> None:
    """A memory that no search brought up is narrowed alike."""
    link = Link(target_id=STALE.id, first_seen=day(1), last_seen=day(1))
    other = semantic("Ann sails.", 5, tags=("sea",), metadata={"app": "log"})
    known = KNOWN.model_copy(
        update={"links": (link, link.model_copy(update={"target_id": other.id}))}
    )
    await memories.keep(known, other, STALE)

    async def led_to(**asked: Any) -> set[str]:
        hits = await memories.ask("drinks", follow_links=True, **asked)
        return {hit.memory.id for hit in hits} - {known.id}

    assert other.id in await led_to()
    assert other.id not in await led_to(without_tags=["sea"])
    assert await led_to(metadata={"app": "diary"}) == set()
    assert STALE.id not in await led_to(include_stale=False)


async def test_nothing_below_the_least_score_comes_back(memories: Memories) -> None:
    """Answers with a lower score are left out, the others stay as they were."""
    await memories.keep(*ALL, episode("My bicycle is red.", 6))
    hits = await memories.ask("Who drinks tea?")
    bound = hits[1].score
    kept = await memories.ask("Who drinks tea?", min_score=bound)
    assert contents(kept) == contents(hit for hit in hits if hit.score >= bound)
    assert len(kept) < len(hits)
    assert await memories.ask("Who drinks tea?", min_score=1.0) == []


async def test_a_filter_finds_the_few_among_many(memories: Memories) -> None:
    """Metadata is looked up by the store: what it names is found behind any number of others."""
    crowd = [episode(f"Tea number {n} is good tea.", n, metadata={"n": n}) for n in range(300)]
    await memories.keep(*crowd)
    found = await memories.ask("good tea", limit=3, metadata={"n": 287})
    assert contents(found) == ["Tea number 287 is good tea."]


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_score": 1.5},
        {"roles": ["boss"]},
        {"roles": []},
        {"without_tags": []},
        {"metadata": {}},
        {"metadata": {"": 1}},
        {"metadata": {"a": [1]}},
        {"metadata": {"a": "x" * 200}},
        {"metadata": {f"k{n}": n for n in range(20)}},
        {"forms": ["poem"]},
        {"include_stale": "no"},
    ],
    ids=str,
)
def test_a_filter_that_no_memory_could_pass_is_refused(wrong: dict[str, Any]) -> None:
    """Out of range, unknown, empty or too much is a typed error, before anything is searched."""
    with pytest.raises(InvalidQuery):
        RecallRequest.of("tea", settings=SETTINGS, **wrong)
