"""The two formulas by hand, what the defaults mean, and what they explain."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from engram.domain.memories import AnyMemory, MemoryStatus, Term, Tier
from engram.domain.rules import EnergyRules, LifecycleRules, LifecycleSettings, RetentionRules
from engram.lifecycle.decisions import fingerprint, review_at, rulebook, settle
from engram.lifecycle.policies import (
    DecayPolicy,
    Energy,
    Retention,
    days_between,
    decay_score,
    heat,
    later,
    placement_value,
    policy_for,
    quality,
    stale_at,
    term_of,
    tier_of,
    trust,
)
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

RETENTION = Retention(RetentionRules())


@pytest.mark.parametrize(
    ("memory", "days", "score"),
    [
        (episode(), 0, 0.5),
        (episode(importance=1.0), 30, math.exp(-1)),
        (semantic(importance=1.0), 180, math.exp(-1)),
        (fact(importance=1.0), 90, math.exp(-0.5)),
        (negation(), 180, 0.5 * math.exp(-1)),
        (habit(), 730, 0.5 * math.exp(-1)),
        (recalled(episode(importance=1.0), day(10), 3), 40, 1.3 * math.exp(-1)),
    ],
)
def test_retention_is_the_formula(memory: AnyMemory, days: float, score: float) -> None:
    """Base x exp(-days since use / constant) x (1 + 0.1 x accesses) x importance, by hand."""
    assert RETENTION.value(memory, day(days)) == pytest.approx(score)


@pytest.mark.parametrize(
    ("memory", "days"),
    [
        (episode(), 69),
        (episode(importance=1.0), 89),
        (semantic(), 414),
        (fact(), 414),
        (negation(), 414),
        (habit(), 1680),
    ],
)
def test_when_an_unused_memory_leaves(memory: AnyMemory, days: int) -> None:
    """An ordinary turn after about ten weeks, knowledge after about fourteen months."""
    leaves = RETENTION.leaves_at(memory)
    assert leaves is not None
    assert day(days) < leaves < day(days + 1)
    stays, goes = settle(memory, day(days), RULES), settle(memory, day(days + 1), RULES)
    assert stays.memory is not None
    assert stays.memory.status is MemoryStatus.ACTIVE
    assert goes.memory is not None
    assert goes.memory.status is MemoryStatus.ARCHIVED
    assert goes.memory.archived_at == day(days + 1)


@pytest.mark.parametrize("make", [episode, fact, semantic, negation, habit])
@pytest.mark.parametrize("importance", [0.2, 0.5, 1.0])
def test_what_a_silent_month_still_recalls(make: type, importance: float) -> None:
    """After 30 days without a word, everything of importance 0.2 or more still answers."""
    after = settle(make(importance=importance), day(30), RULES).memory
    assert after is not None
    assert after.status is MemoryStatus.ACTIVE


def test_what_a_silent_month_takes() -> None:
    """A turn that hardly matters is gone after a month of silence; knowledge is not."""
    turn = settle(episode(importance=0.1), day(30), RULES).memory
    known = settle(semantic(importance=0.1), day(30), RULES).memory
    assert turn is not None
    assert known is not None
    assert (turn.status, known.status) == (MemoryStatus.ARCHIVED, MemoryStatus.ACTIVE)


def test_recalls_and_confirmations_start_the_clock_anew() -> None:
    """Being recalled refreshes the clock as being told again does."""
    assert RETENTION.falls_from(recalled(episode(), day(20))) == day(20)
    told = semantic(confidence={"last_confirmed": day(40)})
    assert RETENTION.falls_from(told) == day(40)
    imported = episode(known_at=T0 - timedelta(days=900), timestamp=T0 - timedelta(days=900))
    assert RETENTION.falls_from(imported) == T0


def test_energy_is_the_formula() -> None:
    """E <- E x e^(-decay x hours) + 1 with each access; the decay is that of the tier."""
    energy = Energy(EnergyRules())
    hour = timedelta(hours=1)
    turn = episode()
    assert energy.value(turn, T0 + 2 * hour) == pytest.approx(math.exp(-1))
    once = recalled(turn, T0 + 2 * hour, under=ENERGY)
    assert once.vitals is not None
    assert once.vitals.energy == pytest.approx(math.exp(-1) + 1)
    assert once.vitals.peak_energy == once.vitals.energy
    assert energy.value(once, T0 + 3 * hour) == pytest.approx((math.exp(-1) + 1) * math.exp(-0.5))
    assert energy.value(semantic(), T0 + 1000 * hour) == pytest.approx(math.exp(-1))
    told = semantic(confidence={"last_confirmed": T0 + 10 * hour})
    assert energy.value(told, T0 + 10 * hour) == pytest.approx(math.exp(-0.01) + 1)


def test_one_access_makes_nothing_immortal() -> None:
    """Read literally, an access would add 1 for ever; it fades like the rest."""
    once = recalled(episode(), T0 + timedelta(hours=1), under=ENERGY)
    after = settle(once, day(1), ENERGY).memory
    assert after is not None
    assert after.status is MemoryStatus.EXPIRED
    assert after.expired_at == day(1)


def test_tiers_and_terms() -> None:
    """Turns begin in the working tier and are short-term, conclusions long-term."""
    assert (tier_of(episode(), ENERGY), term_of(episode(), ENERGY)) == (Tier.WORKING, Term.SHORT)
    assert (tier_of(fact(), ENERGY), term_of(fact(), ENERGY)) == (Tier.LONG_TERM, Term.LONG)
    early = rules(energy={"conclusion_tier": "short_term", "episode_tier": "long_term"})
    assert tier_of(semantic(), early) is Tier.SHORT_TERM
    assert term_of(episode(), early) is Term.LONG


def test_the_policy_is_chosen_by_namespace() -> None:
    """Retention unless the setting, or the namespace, says energy."""
    mixed = LifecycleSettings(energy_namespaces=("games",))
    assert policy_for(mixed, "games").name == "energy"
    assert policy_for(mixed, "default").name == "retention"
    other = LifecycleSettings(decay_policy="energy", retention_namespaces=("legal",))
    assert policy_for(other, "legal").name == "retention"
    assert policy_for(other, "default").ends_as is MemoryStatus.EXPIRED
    with pytest.raises(ValidationError, match="two decay policies for one namespace: x"):
        LifecycleSettings(energy_namespaces=("x",), retention_namespaces=("x",))


def test_explanations_have_every_part() -> None:
    """Each policy says its number in one sentence with what it is made of."""
    assert RETENTION.explain(recalled(episode(), T0), day(30)) == (
        "0.20: 1 base x 0.37 for 30.0 days since the last use (constant 30) x 1.10 for 1 recalls "
        "x 0.5 importance; archived below 0.05"
    )
    said = Energy(EnergyRules()).explain(episode(), T0 + timedelta(hours=3))
    assert said == (
        "0.22: energy 1.00, 3.0 hours ago, falling by 0.5 an hour in the working tier; "
        "expires below 0.1"
    )


def test_heat_and_decay_scores() -> None:
    """Heat falls from a half with time and rises with use; decay goes from 0 to 1."""
    assert heat(semantic(), T0, RULES) == pytest.approx(0.5)
    assert heat(recalled(semantic(), T0, 3), T0, RULES) == pytest.approx(0.8)
    assert heat(semantic(), day(400), RULES) < 0.01
    turn = episode(importance=1.0)
    leaves = RETENTION.leaves_at(turn)
    assert leaves is not None
    assert decay_score(turn, T0, RULES) == 0
    assert decay_score(turn, T0 + (leaves - T0) / 2, RULES) == pytest.approx(0.5)
    assert decay_score(turn, leaves, RULES) == 1
    assert decay_score(turn, leaves, rules(retention={"archive_below": 0})) == 0


def test_nothing_is_due_of_a_memory_that_never_fades() -> None:
    """Without a threshold nothing ever leaves, and there is no moment to look at."""
    forever = rules(retention={"archive_below": 0})
    assert review_at(episode(), forever) is None
    assert rulebook(forever, "default").decide(episode(), day(300_000)) is None


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"retention": {"episodic_days": 31.0}}, False),
        ({"time_to_live": {"episodic_days": 1.0}}, False),
        ({"decay_policy": "energy"}, False),
        ({"weights": {"decay_days": 300.0}}, False),
        ({"energy": {"start": 2.0}}, True),
        ({"energy_namespaces": ("other",)}, True),
        ({"edges": {"floor": 0.2}}, True),
        ({"promotion": {"passes": 3}}, True),
    ],
)
def test_the_fingerprint_follows_what_decides(changes: dict[str, object], same: bool) -> None:
    """It changes with each number that time is judged by in this namespace, and with no other."""
    assert (fingerprint(rules(**changes), "default") == fingerprint(RULES, "default")) is same


def test_time_that_is_still_to_come_counts_as_none() -> None:
    """Clocks differ: a memory written a moment ahead is as good as new."""
    assert days_between(T0, T0) == days_between(day(1), T0) == 0
    assert days_between(T0, day(1.5)) == 1.5
    assert days_between(T0, T0 + timedelta(seconds=0.5)) == 0.5 / 86_400
    assert RETENTION.value(episode(), day(-1)) == RETENTION.value(episode(), T0)
    assert Energy(EnergyRules()).value(episode(), day(-1)) == 1


@given(
    st.sampled_from([episode, fact, semantic, habit, negation]),
    st.floats(0, 1),
    st.floats(-400, 400),
    st.integers(0, 3),
    st.floats(-2, 2),
    st.sampled_from([RULES, ENERGY, rules(retention={"archive_below": 0.0})]),
)
def test_every_value_lies_in_its_range_whenever_it_is_asked_for(
    make: Callable[..., AnyMemory],
    importance: float,
    at: float,
    recalls: int,
    ahead: float,
    under: LifecycleRules,
) -> None:
    """Of whatever importance, used or not, told before or after the moment that is asked about."""
    told = {} if make is episode else {"confidence": {"last_confirmed": day(ahead)}}
    memory = make(importance=importance, created_at=day(ahead), **told)
    memory = recalled(memory, day(ahead), recalls, under) if recalls else memory
    policy, now = policy_for(under, "default"), day(at)
    for value in (decay_score, heat, placement_value, trust):
        assert 0 <= value(memory, now, under) <= 1
    for moment in (now, day(ahead), policy.leaves_at(memory) or now):
        assert 0 <= decay_score(memory, moment, under) <= 1
    assert 0 <= quality(memory, now, under).value <= 1
    assert policy.value(memory, now) >= 0
    assert policy.explain(memory, now)
    stale = stale_at(memory, under.value, policy)
    assert stale is None or stale >= policy.falls_from(memory)


def test_what_falls_from_the_start_and_is_told_ahead_is_not_on_its_way_out_yet() -> None:
    """Importance 0 and a clock that is behind: from the moment it was told it is out."""
    ahead = semantic(importance=0.0, created_at=day(1), confidence={"last_confirmed": day(1)})
    assert [decay_score(ahead, day(at), RULES) for at in (0, 1, 2)] == [0, 1, 1]


def test_the_calendar_ends() -> None:
    """What lies past it, or so far away that nobody looks, is never."""
    assert later(T0, days=999_999) == T0 + timedelta(days=999_999)
    assert later(T0, days=1_000_000) is None
    assert later(T0, days=math.inf) is None
    assert later(datetime(9999, 12, 31, tzinfo=UTC), days=1) is None
    assert Retention(RetentionRules(episodic_days=900_000_000)).leaves_at(episode()) is None


@pytest.mark.parametrize("policy", [RETENTION, Energy(EnergyRules())])
def test_a_memory_leaves_at_the_very_moment_it_falls_below(policy: DecayPolicy) -> None:
    """To the microsecond: until then it is worth its threshold."""
    threshold = 0.05 if policy is RETENTION else 0.1
    tick = timedelta(microseconds=1)
    for memory in (episode(), fact(importance=0.9), recalled(episode(), day(3))):
        leaves = policy.leaves_at(memory)
        assert leaves is not None
        assert policy.value(memory, leaves) < threshold
        assert policy.value(memory, leaves - 2 * tick) >= threshold


def test_what_lies_below_from_the_start_leaves_from_the_start() -> None:
    """Its worth does not rise, so there is no other moment; at the threshold itself it stays."""
    assert RETENTION.leaves_at(episode(importance=0.01)) == T0
    edge = RETENTION.leaves_at(episode(importance=0.05))
    assert edge == T0 + timedelta(microseconds=1)


def test_energy_counts_only_with_its_moment() -> None:
    """Half a record is none: then the energy is that of the beginning."""
    energy = Energy(EnergyRules())
    assert energy.written(episode(vitals={"energy": 5.0})) == (1.0, T0)
    assert energy.written(episode(vitals={"energy_at": day(1)})) == (1.0, T0)
    assert energy.written(episode(vitals={"energy": 5.0, "energy_at": day(1)})) == (5.0, day(1))


def test_the_default_rules_keep_their_fingerprint() -> None:
    """It is stored with every memory: another one, and a pass looks at each of them again.

    If that is meant, because a default or RULES_VERSION changed, write the new ones here.
    """
    assert fingerprint(RULES, "default") == "015c6e36df0c"
    assert fingerprint(ENERGY, "default") == "30a24cf16a95"
