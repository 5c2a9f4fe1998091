"""Row D3: knowledge becomes a habit; row D18: memories from elsewhere."""

from __future__ import annotations

from datetime import timedelta

import pytest

from engram.domain.lifecycle.decisions import settle
from engram.domain.lifecycle.migration import migrated
from engram.domain.lifecycle.policies import Energy
from engram.domain.lifecycle.promotion import (
    following,
    is_habit,
    promotable,
    promoted,
    trigger_context,
)
from engram.domain.lifecycle.states import LifecycleState, Tier
from engram.domain.memories import LinkKind, MemoryStatus, SemanticMemory, Slot
from tests.support.lifecycle_memories import ENERGY, RULES, T0, day, episode, rules, semantic

READY = {"selectivity": 0.5, "consolidation_passes": 2}


def ready(content: str = "The user always drinks tea in the morning.") -> SemanticMemory:
    """Knowledge that has earned it."""
    return semantic(content, **READY)


@pytest.mark.parametrize(
    ("changes", "missing"),
    [
        ({"selectivity": 0.4}, "selectivity 0.5 (is 0.4)"),
        ({"consolidation_passes": 1}, "2 passes (has 1)"),
        ({"content": "The user lives in Lisbon."}, "a behavioural pattern"),
        ({"status": "archived"}, "active (is archived)"),
        ({"form": "summary"}, "a statement (is a summary)"),
        ({"disputed_with": ("x",)}, "not disputed"),
        ({"expires_at": day(9)}, "not ephemeral"),
        ({"category": "commitment"}, "no commitment"),
    ],
)
def test_promotion_needs_all_its_conditions(changes: dict[str, object], missing: str) -> None:
    """One condition that fails is named, and stands in the way."""
    assert promotable(ready(), T0, RULES)
    lacking = SemanticMemory.model_validate({**dict(ready()), **changes})
    assert promotable(lacking, T0, RULES).missing == (missing,)


def test_promotion_needs_confidence_at_that_time() -> None:
    """0.7 of the composite, which falls when nothing confirms (D3, C4)."""
    inferred = semantic(ready().content, confidence={"method": "inferred"}, **READY)
    assert promotable(inferred, T0, RULES).missing == ("confidence 0.7 (is 0.60)",)
    assert promotable(ready(), day(500), RULES).missing == ("confidence 0.7 (is 0.64)",)
    assert promotable(inferred, T0, rules(promotion={"confidence": 0.6}))
    assert promotable(inferred, T0, RULES, forced=True)


@pytest.mark.parametrize(
    ("content", "habit"),
    [
        ("The user prefers tea to coffee.", True),
        ("The user always walks to work.", True),
        ("The user tends to answer late.", True),
        ("The user goes running every Sunday.", True),
        ("The user moved to Lisbon.", False),
        ("The user has a dog called Rex.", False),
    ],
)
def test_behavioural_patterns(content: str, habit: bool) -> None:
    """Prefers, always, tends to, every Sunday: a pattern; what is or was: none."""
    assert is_habit(content) is habit


def test_a_promotion_links_both_and_makes_no_duplicates() -> None:
    """The habit names its source, when it applies, and is the same however often it is made."""
    first, again = (promoted(ready(), day(n), RULES) for n in (10, 20))
    assert first.habit.id == again.habit.id
    assert first.habit.trigger_context == "in the morning"
    assert first.habit.lifecycle is LifecycleState.VALIDATED
    assert first.habit.vitals is not None
    assert first.habit.vitals.promoted_from == first.source.id
    (to,), (back,) = first.source.links, first.habit.links
    assert (to.target_id, to.kind) == (first.habit.id, LinkKind.PROMOTED_TO)
    assert (back.target_id, back.kind) == (first.source.id, LinkKind.PROMOTED_TO)
    assert first.source.vitals is not None
    assert (first.source.vitals.last_promotion, first.source.vitals.promotion_attempts) == (
        day(10),
        1,
    )
    assert promotable(first.source, day(11), RULES).missing == ("not promoted already",)


def test_from_the_short_term_tier_it_crystallises() -> None:
    """The link says which of the two it was (D13)."""
    early = rules(energy={"conclusion_tier": "short_term"})
    assert promoted(ready(), T0, early).source.links[0].kind is LinkKind.CRYSTALLIZED_INTO


def test_the_trigger_falls_back_to_what_it_is_about() -> None:
    """Without a clause of its own: the slot's object, the entities, the words themselves."""
    slot = Slot(subject="user", predicate="prefers", object="tea")
    plain = semantic("The user prefers tea.")
    assert trigger_context(plain.model_copy(update={"slot": slot})) == "tea"
    assert trigger_context(plain.model_copy(update={"entities": ("Ada", "Rex")})) == "Ada, Rex"
    assert trigger_context(plain) == "The user prefers tea."
    assert trigger_context(semantic("Whenever it rains, the user reads.")) == "Whenever it rains"


def test_a_habit_follows_its_source() -> None:
    """It ends when what it came from is replaced, and comes back with it."""
    made = promoted(ready(), day(1), RULES)
    assert following(made.habit, made.source) is None
    over = made.source.model_copy(
        update={"status": MemoryStatus.SUPERSEDED, "superseded_by": "x", "valid_to": day(5)}
    )
    ended = following(made.habit, over)
    assert ended is not None
    assert (ended.status, ended.superseded_by) == (MemoryStatus.SUPERSEDED, "x")
    assert following(ended, over) is None
    back = following(ended, made.source)
    assert back is not None
    assert (back.status, back.valid_to) == (MemoryStatus.ACTIVE, None)
    assert following(made.habit, semantic("something else")) is None


def test_migrated_memories_had_a_life_before() -> None:
    """Long-term, energy 10, one access, last accessed when known if unknown (D18)."""
    old = episode(known_at=T0 - timedelta(days=700), timestamp=T0 - timedelta(days=700))
    moved = migrated(old, T0, instance_id="elsewhere")
    assert moved.vitals is not None
    assert (moved.vitals.tier, moved.vitals.energy) == (Tier.LONG_TERM, 10.0)
    assert moved.vitals.instance_id == "elsewhere"
    assert (moved.access_count, moved.last_accessed_at) == (1, old.known_at)
    assert migrated(old, T0, last_accessed_at=day(-3)).last_accessed_at == day(-3)
    assert Energy(ENERGY.energy).value(moved, T0) == 10
    assert migrated(semantic(), T0).confidence.seed == 0.25
    for under in (RULES, ENERGY):
        kept = settle(moved, day(60), under).memory
        assert kept is not None
        assert kept.status is MemoryStatus.ACTIVE
