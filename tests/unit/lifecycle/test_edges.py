"""Links weaken when they are read, and grow when they are found again."""

from __future__ import annotations

from typing import Any

import pytest

from engram.domain.memories import Link, LinkKind
from engram.domain.rules import EdgeRules
from engram.domain.slots import slot_of
from engram.lifecycle.links import Observed, edge_confidence, linked, reinforced, reinforces
from tests.support.lifecycle_memories import T0, day, semantic


def link(confidence: float = 0.5, kind: LinkKind = LinkKind.RELATED) -> Link:
    """An edge that was found at the start."""
    return Link(target_id="x", kind=kind, confidence=confidence, first_seen=T0, last_seen=T0)


@pytest.mark.parametrize(
    ("days", "confidence"),
    [(0, 0.5), (30, 0.5), (59.9, 0.5), (60, 0.45), (119, 0.4), (120, 0.35), (9000, 0.1)],
)
def test_a_link_loses_a_step_each_window(days: float, confidence: float) -> None:
    """Linear per window after the grace period, never below the floor."""
    assert edge_confidence(link(), day(days)) == pytest.approx(confidence)


def test_a_link_weaker_than_the_floor_stays_as_weak() -> None:
    """The floor lifts nothing."""
    assert edge_confidence(link(0.05), day(9000)) == 0.05


@pytest.mark.parametrize("kind", LinkKind)
def test_links_of_origin_last(kind: LinkKind) -> None:
    """How a memory came about, and where it belongs, stays so; other links weaken."""
    lasting = {LinkKind.PROMOTED_TO, LinkKind.CRYSTALLIZED_INTO, LinkKind.BELONGS_TO}
    assert (edge_confidence(link(1.0, kind), day(900)) == 1.0) is (kind in lasting)


def test_legacy_links_count_as_sure() -> None:
    """An edge without a confidence reads as 1.0."""
    stored = {"target_id": "x", "first_seen": T0, "last_seen": T0}
    assert Link.model_validate(stored).confidence == 1.0


def test_finding_a_link_again_reinforces_it_once() -> None:
    """From what is left of it, capped at 1, stamped; the same moment counts once."""
    again = reinforced(link(), day(60))
    assert again.confidence == pytest.approx(0.55)
    assert again.last_seen == day(60)
    assert reinforced(again, day(60)) is again
    assert reinforced(link(0.95), day(1)).confidence == 1.0
    assert reinforced(link(), day(1), EdgeRules(reinforcement=0.2)).confidence == 0.7


def test_links_of_memories_grow_when_found_again() -> None:
    """The edge of a memory is reinforced where a pass finds it once more, not by a repeat."""
    once = linked(semantic(), "x", LinkKind.ENTITY, 0.5, Observed.at(T0))
    assert once is not None
    assert linked(once, "x", LinkKind.ENTITY, 0.5, Observed.at(T0)) is None
    twice = linked(once, "x", LinkKind.ENTITY, 0.2, Observed.at(day(1)))
    assert twice is not None
    assert twice.links[0].confidence == pytest.approx(0.6)


def test_what_is_alike_reinforces() -> None:
    """From the setting's similarity on; the opposite, another's, and what is gone never does."""
    tea = semantic("The user likes tea.", slot=slot_of("user", "likes", "tea"))
    green = semantic("The user likes green tea.", slot=slot_of("user", "likes", "green tea"))
    rules = EdgeRules()
    assert reinforces(tea, green, 0.7, rules)
    assert not reinforces(tea, green, 0.69, rules)
    others: list[dict[str, Any]] = [
        {"slot": slot_of("user", "dislikes", "tea")},
        {"slot": slot_of("ada", "likes", "green tea")},
        {"slot": slot_of("user", "likes", "green tea", holds=False)},
        {"slot": None, "content": "The user does not like green tea."},
        {"status": "superseded"},
        {"disputed_with": ("x",)},
        {"is_test": True},
    ]
    for changes in others:
        other = semantic("The user likes green tea.", **{"slot": green.slot, **changes})
        assert not reinforces(tea, other, 0.99, rules), changes
    assert reinforces(tea, semantic("The user likes green tea."), 0.9, rules)
