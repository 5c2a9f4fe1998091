"""When each rule acts: its first moment, its last, and whom it never concerns."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from engram.domain.confidence import ConfidenceWeights
from engram.domain.memories import AnyMemory
from engram.domain.rules import LifecycleRules
from engram.lifecycle import windows
from engram.lifecycle.policies import placement_value, policy_for, stale_at, trust
from engram.lifecycle.windows import PolicyContext, Window, WindowOf
from tests.support.lifecycle_memories import (
    ENERGY,
    RULES,
    T0,
    day,
    episode,
    fact,
    habit,
    negation,
    recalled,
    rules,
    semantic,
)

TICK = timedelta(microseconds=1)
# Outside the calendar: so long that a rule never acts.
AGES = 900_000_000.0
CONFIRMED = {"verification": "user_confirmed"}
WEAK = {"method": "inferred", "contradictions": 5, "verification": "disputed"}
DONE: dict[str, Any] = {"category": "commitment", "resolution": "fulfilled", "resolved_at": day(3)}


def asked(when: WindowOf, memory: AnyMemory, under: LifecycleRules = RULES) -> Window | None:
    """When a rule acts on a memory of the namespace ``default``."""
    return when(memory, PolicyContext(under, policy_for(under, "default")))


def start(when: WindowOf, memory: AnyMemory, under: LifecycleRules = RULES) -> datetime | None:
    """The first moment at which it acts; it has no last one."""
    window = asked(when, memory, under)
    assert window is None or window.end is None
    return None if window is None else window.start


def test_a_window_has_its_first_moment_and_not_its_last() -> None:
    """It holds from its start on, and no longer at its end; without an end for ever."""
    window = Window(day(1), day(2))
    assert [window.holds(at) for at in (day(1) - TICK, day(1), day(2) - TICK, day(2))] == [
        *(False, True, True, False),
    ]
    assert Window(day(1)).holds(day(90_000))


def test_speculation_has_its_days() -> None:
    """Counted from when it was last told; turns and what has support have no such end."""
    unsure = {"extraction": 0.2}
    assert start(windows.never_confirmed, semantic(confidence=unsure)) == day(30)
    told = semantic(confidence={**unsure, "last_confirmed": day(5)})
    assert start(windows.never_confirmed, told) == day(35)
    assert start(windows.never_confirmed, semantic(confidence={"extraction": 0.4})) is None
    assert start(windows.never_confirmed, episode()) is None
    assert start(windows.never_confirmed, semantic(confidence={**unsure, **CONFIRMED})) is None
    forever = rules(expiry={"speculative_days": AGES})
    assert start(windows.never_confirmed, semantic(confidence=unsure), forever) is None


def test_only_a_resolved_commitment_is_over() -> None:
    """From when it ended, or was told once more after that; half a resolution is none."""
    over = windows.commitment_over
    assert start(over, semantic(**DONE)) == day(93)
    assert start(over, semantic(**DONE, confidence={"last_confirmed": day(9)})) == day(99)
    assert start(over, semantic(**{**DONE, "resolution": None})) is None
    assert start(over, semantic(**{**DONE, "resolved_at": None})) is None
    assert start(over, semantic(**{**DONE, "category": "preference"})) is None
    assert start(over, fact()) is None


@pytest.mark.parametrize(
    "spared",
    [
        episode(importance=0.2),
        habit(importance=0.2),
        negation(importance=0.2),
        fact(importance=0.3),
        fact(importance=0.2, access_count=3),
        fact(importance=0.2, confidence=CONFIRMED),
        semantic(importance=0.2, category="correction"),
        semantic(importance=0.2, category="preference"),
    ],
    ids=lambda memory: memory.type.value,
)
def test_what_is_never_archived_for_being_old(spared: AnyMemory) -> None:
    """Other types, and whatever matters, is used, confirmed or of a category that stays."""
    assert start(windows.old_and_unused, spared) is None


def test_old_is_older_than_the_days() -> None:
    """Not at the very age, but a moment after; a correction stays whatever is set."""
    old = fact(importance=0.2, access_count=2)
    assert start(windows.old_and_unused, old) == day(90) + TICK
    none = rules(archival={"protected_categories": ()})
    assert start(windows.old_and_unused, semantic(importance=0.2), none) == day(90) + TICK
    fix = semantic(importance=0.2, category="correction")
    assert start(windows.old_and_unused, fix, none) is None
    assert start(windows.old_and_unused, old, rules(archival={"age_days": AGES})) is None


def test_debris_begins_when_trust_falls_below_the_floor() -> None:
    """To the microsecond, if it is old enough by then; else when it is."""
    weak = semantic(confidence=WEAK)
    begins = start(windows.debris, weak)
    assert begins is not None
    assert trust(weak, begins, RULES) < 0.35 <= trust(weak, begins - 2 * TICK, RULES)
    other = rules(
        weights={"extraction": 0.3, "corroboration": 0.2, "recency": 0.4},
        expiry={"demote_below": 0.3},
    )
    begins = start(windows.debris, weak, other)
    assert begins is not None
    assert trust(weak, begins, other) < 0.3 <= trust(weak, begins - 2 * TICK, other)
    strict = rules(expiry={"demote_below": 0.9})
    assert start(windows.debris, weak, strict) == day(90) + TICK
    late = rules(expiry={"demote_days": 1000.0})
    assert start(windows.debris, weak, late) == day(1000) + TICK
    told = semantic(confidence={**WEAK, "last_confirmed": day(4)})
    assert start(windows.debris, told, strict) == day(94) + TICK


@pytest.mark.parametrize(
    ("memory", "under"),
    [
        (episode(), RULES),
        (semantic(), RULES),
        (semantic(confidence=WEAK, access_count=1), RULES),
        (semantic(confidence=WEAK, last_accessed_at=T0), RULES),
        (semantic(confidence=WEAK), rules(expiry={"demote_days": AGES})),
        (semantic(confidence=WEAK), rules(weights={"decay_days": AGES})),
        (
            semantic(),
            LifecycleRules(
                expiry=rules(expiry={"demote_below": 0.0}).expiry,
                weights=ConfidenceWeights(extraction=0, corroboration=0, recency=1, verification=0),
            ),
        ),
    ],
)
def test_what_never_is_debris(memory: AnyMemory, under: LifecycleRules) -> None:
    """Turns, what is trusted, what was recalled once, and where the floor is never reached."""
    assert start(windows.debris, memory, under) is None


def test_how_long_what_left_is_kept() -> None:
    """From when it left, whichever way; by default for ever."""
    erasing = rules(expiry={"erase_after_days": 0.5})
    kept = windows.kept_long_enough
    assert start(kept, fact(archived_at=day(2)), erasing) == day(2.5)
    assert start(kept, fact(expired_at=day(3)), erasing) == day(3.5)
    assert start(kept, fact(), erasing) is None
    assert start(kept, fact(archived_at=day(2))) is None


def test_a_turn_that_was_kept_is_looked_at_again_after_a_day_at_most() -> None:
    """From the look that kept it: one before its time counts for nothing, nor does another type."""
    erasing, kept = rules(expiry={"erase_after_days": 3.0}), windows.kept_long_enough
    looked: dict[str, Any] = {"archived_at": day(2), "vitals": {"last_decay": day(6)}}
    assert start(kept, episode(**looked), erasing) == day(7)
    assert start(kept, episode(**looked), rules(expiry={"erase_after_days": 0.5})) == day(6.5)
    assert start(kept, episode(**{**looked, "vitals": {"last_decay": day(5)}}), erasing) == day(6)
    assert start(kept, episode(**{**looked, "vitals": {"last_decay": day(4)}}), erasing) == day(5)
    assert start(kept, episode(**{**looked, "vitals": {}}), erasing) == day(5)
    assert start(kept, negation(**looked), erasing) == day(7)
    assert start(kept, fact(**looked), erasing) == day(5)
    assert start(kept, episode(vitals={"last_decay": day(6)}), erasing) is None


def test_support_hardens_what_is_not_disputed() -> None:
    """From the beginning on; what has an end set only if the user says so."""
    twice = {"supporting_episodes": 2}
    assert start(windows.supported, semantic(confidence=twice)) == T0
    assert start(windows.supported, semantic()) is None
    assert start(windows.supported, semantic(confidence=twice, disputed_with=("x",))) is None
    assert start(windows.supported, semantic(confidence=twice, expires_at=day(9))) is None
    assert start(windows.supported, semantic(confidence=CONFIRMED, expires_at=day(9))) == T0
    assert start(windows.supported, episode()) is None


def test_use_counts_for_what_is_neither_disputed_nor_ephemeral() -> None:
    """From the beginning on, once it was recalled."""
    assert start(windows.used, recalled(semantic(), day(2))) == T0
    assert start(windows.used, semantic()) is None
    assert start(windows.used, semantic(access_count=1)) is None
    assert start(windows.used, semantic(last_accessed_at=day(1))) is None
    assert start(windows.used, recalled(semantic(disputed_with=("x",)), day(2))) is None
    assert start(windows.used, recalled(semantic(expires_at=day(9)), day(2))) is None


def test_doubt_is_a_dispute() -> None:
    """By another memory or by the user; nothing else is doubt."""
    assert start(windows.doubted, semantic(disputed_with=("x",))) == T0
    assert start(windows.doubted, fact(confidence={"verification": "disputed"})) == T0
    assert start(windows.doubted, fact(confidence={"contradictions": 3})) is None


def test_stale_and_fresh_meet_without_a_gap() -> None:
    """Fresh from the last use until the moment at which it is stale; protected always."""
    turn, policy = episode(), policy_for(RULES, "default")
    stale = stale_at(turn, RULES.value, policy)
    assert asked(windows.fresh_again, turn) == Window(T0, stale)
    assert asked(windows.grown_stale, turn) == Window(stale or T0)
    used = recalled(turn, day(7))
    fresh = asked(windows.fresh_again, used)
    assert fresh is not None
    assert fresh.start == day(7)
    kept = episode(policy_class="protected")
    assert asked(windows.fresh_again, kept) == Window(T0)
    # So unimportant that it lies below the threshold from the first moment on.
    assert asked(windows.fresh_again, episode(importance=0.01)) is None
    forever = rules(retention={"archive_below": 0})
    assert asked(windows.fresh_again, turn, forever) == Window(T0)
    assert asked(windows.grown_stale, turn, forever) is None


def test_cold_begins_when_the_value_has_come_down() -> None:
    """To the millisecond, if it is old enough by then; else when it is."""
    turn, near = episode(), timedelta(milliseconds=2)
    begins = start(windows.not_worth_keeping_hot, turn, rules(placement={"cold_after_days": 1.0}))
    assert begins is not None
    assert placement_value(turn, begins, RULES) <= 0.1 < placement_value(turn, begins - near, RULES)
    late = rules(placement={"cold_after_days": 400.0})
    assert start(windows.not_worth_keeping_hot, turn, late) == day(400)
    never = rules(placement={"cold_after_days": AGES})
    assert start(windows.not_worth_keeping_hot, turn, never) is None
    low = rules(placement={"cold_at": 0.9, "hot_at": 1.0, "cold_after_days": 0.0})
    assert start(windows.not_worth_keeping_hot, turn, low) == T0
    fix = negation(confidence=CONFIRMED)
    assert start(windows.not_worth_keeping_hot, fix) is None


def test_hot_ends_when_the_value_has_come_down() -> None:
    """From the last use until it reaches the upper threshold; protected always."""
    used, near = recalled(semantic(importance=1.0), day(2)), timedelta(milliseconds=2)
    hot = asked(windows.worth_keeping_hot, used)
    assert hot is not None
    assert hot.end is not None
    assert hot.start == day(2)
    value = placement_value(used, hot.end - near, RULES)
    assert placement_value(used, hot.end, RULES) <= 0.2 < value
    kept = recalled(semantic(policy_class="protected"), day(2))
    assert asked(windows.worth_keeping_hot, kept) == Window(T0)
    worth = placement_value(semantic(), T0, RULES)
    at = rules(placement={"hot_at": worth})
    assert asked(windows.worth_keeping_hot, semantic(), at) == Window(T0, T0)
    soon = rules(placement={"hot_at": worth - 0.003})
    brief = asked(windows.worth_keeping_hot, semantic(), soon)
    assert brief is not None
    assert brief.end is not None
    assert T0 < brief.end < day(1)
    assert placement_value(semantic(), brief.end, soon) <= worth - 0.003
    over = rules(placement={"hot_at": worth + 0.001})
    assert asked(windows.worth_keeping_hot, semantic(), over) is None


def test_a_tier_is_reached_by_the_highest_energy() -> None:
    """At the threshold itself, and from when it was written; not without a record."""
    vitals = {"energy": 0.3, "energy_at": day(1), "peak_energy": 2.0}
    assert start(windows.reached_short_term, episode(vitals=vitals), ENERGY) == day(1)
    assert start(windows.reached_long_term, episode(vitals=vitals), ENERGY) is None
    high = {**vitals, "peak_energy": 5.0}
    assert start(windows.reached_long_term, episode(vitals=high), ENERGY) == day(1)
    for missing in ("peak_energy", "energy_at"):
        part = episode(vitals={**vitals, missing: None})
        assert start(windows.reached_short_term, part, ENERGY) is None
    assert start(windows.reached_short_term, episode(), ENERGY) is None


def test_lively_enough_for_a_sessions_end() -> None:
    """Until its energy falls below the threshold; at it, it is still lively."""
    lively = windows.lively_at_session_end
    vitals = {"energy": 3.0, "energy_at": day(1)}
    window = asked(lively, episode(vitals=vitals), ENERGY)
    assert window is not None
    # 3 halves to 1.5 at 0.5 an hour.
    assert window.start == T0
    assert window.end is not None
    assert abs(window.end - (day(1) + timedelta(hours=2 * 0.6931471805599453))) <= 2 * TICK
    at = episode(vitals={**vitals, "energy": 1.5})
    assert asked(lively, at, ENERGY) == Window(T0, day(1) + TICK)
    assert asked(lively, episode(vitals={**vitals, "energy": 1.4}), ENERGY) is None
    slow = rules(decay_policy="energy", energy={"working_decay": 1e-9})
    assert asked(lively, episode(vitals=vitals), slow) == Window(T0)
