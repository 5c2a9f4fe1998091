"""Independent episodes corroborate, the same one never twice."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from engram.consolidation.amendments import corroborated
from engram.domain.memories import Fact
from tests.support.example_memories import episode, fact


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
    assert forward.confidence.supporting_episodes == len(set(forward.source_episode_ids))


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
