"""Independent episodes corroborate, the same one never twice."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from engram.consolidation.amendments import FIRST_KEPT, LATEST_KEPT, corroborated
from engram.domain.memories import Episode, Fact
from engram.domain.occasions import FOLDED, occasions_of, without_occasions
from tests.support.example_memories import episode, fact


def turn(session: str, day: int, number: int) -> Episode:
    """The turn of that number, in that conversation, on that day."""
    said = episode(f"{session}-{day}-{number}", at=timedelta(days=day, seconds=number))
    return said.model_copy(update={"session_id": session})


@given(st.lists(st.integers(-30, 30), min_size=1, max_size=12))
def test_any_order_of_sources_ends_the_same(days: list[int]) -> None:
    """Sources are a set: order and repetition change nothing of what is counted."""
    episodes = [episode(str(d), at=timedelta(days=d)) for d in days]

    def fold(order: list[int]) -> Fact:
        memory = fact(source="0", at=timedelta(0))
        for index in order:
            memory = corroborated(memory, [episodes[index]]) or memory
        return memory

    forward = fold(list(range(len(days))))
    backward = fold(list(reversed(range(len(days)))) * 2)
    assert set(forward.source_episode_ids) == set(backward.source_episode_ids)
    assert forward.confidence == backward.confidence
    assert forward.known_at == backward.known_at
    assert forward.occasions == backward.occasions
    assert forward.confidence.supporting_episodes == len(set(forward.source_episode_ids))


@given(
    st.permutations([(s, d, n) for s in ("mon", "tue") for d in (0, 40) for n in range(3)]),
    st.integers(0, 12),
)
def test_repeats_of_one_conversation_and_day_count_once_in_any_order(
    told: list[tuple[str, int, int]], forgotten: int
) -> None:
    """Twelve turns on four occasions are four, however they arrive; forgetting counts the same."""
    turns = [turn(*one) for one in told]
    memory = fact(source=turns[0].id, occasions=occasions_of(turns[:1]))
    for one in turns[1:]:
        memory = corroborated(memory, [one]) or memory
    assert set(memory.source_episode_ids) == {one.id for one in turns}
    assert memory.confidence.supporting_episodes == 4
    gone = {one.id for one in turns[:forgotten]}
    left = turns[forgotten:]
    less = without_occasions(memory, gone)
    assert less["occasions"] == occasions_of(left)
    assert less["supporting_episodes"] == max(len(occasions_of(left)), 1)


def test_repeats_past_the_bound_of_kept_sources_still_count_once() -> None:
    """Three conversations of a hundred turns each are three, also once most turns are folded."""
    turns = [turn(name, 0, number) for name in "abc" for number in range(100)]
    memory = fact(source=turns[0].id, occasions=occasions_of(turns[:1]))
    for one in (*turns[1:], turn("b", 0, 101)):
        memory = corroborated(memory, [one]) or memory
    assert memory.confidence.supporting_episodes == 3
    assert len(memory.source_episode_ids) == FIRST_KEPT + LATEST_KEPT
    kept = {source for group in memory.occasions.values() for source in group} - {FOLDED}
    assert kept == set(memory.source_episode_ids)


def test_what_was_stored_without_occasions_keeps_its_count() -> None:
    """A memory of before: its sources count as they did, and further ones by occasion."""
    memory = fact(source="e1")
    memory = memory.model_copy(
        update={
            "source_episode_ids": ("e1", "e2"),
            "confidence": memory.confidence.model_copy(update={"supporting_episodes": 2}),
        }
    )
    more = corroborated(memory, [turn("mon", 0, n) for n in range(5)])
    assert more is not None
    assert more.confidence.supporting_episodes == 3
    assert without_occasions(more, {"e1"})["supporting_episodes"] == 2


def test_the_same_episode_changes_nothing() -> None:
    """Re-reading a source gives nothing to write."""
    memory = fact(source="e1")
    assert corroborated(memory, [episode("e1")]) is None


def test_a_later_source_does_not_make_it_known_later() -> None:
    """What was known in March stays known in March when May repeats it."""
    memory = fact(source="e1")
    later = corroborated(memory, [episode("e2", at=timedelta(days=60))])
    assert later is not None
    assert later.known_at == memory.known_at
    assert later.confidence.last_confirmed == memory.known_at + timedelta(days=60)
