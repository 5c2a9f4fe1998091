"""Effective confidence, quality, what is speculative, placement value."""

from __future__ import annotations

import math

import pytest
from pydantic import ValidationError

from engram.domain.confidence import effective_confidence, is_speculative
from engram.domain.memories import PolicyClass, VerificationState
from engram.lifecycle import decisions
from engram.lifecycle.policies import (
    is_correction,
    placement_value,
    policy_class,
    quality,
    trust,
    verification_of,
)
from tests.support.lifecycle_memories import (
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


def test_effective_confidence_is_computed_when_it_is_read() -> None:
    """It falls with time though nothing is written, and a recall refreshes it."""
    known = semantic()
    at_first, later = (trust(known, day(n), RULES) for n in (0, 365))
    assert at_first - later == pytest.approx(0.15 * (1 - math.exp(-1)))
    assert trust(recalled(known, day(365)), day(365), RULES) == pytest.approx(at_first)


def test_what_has_no_confidence_is_fully_trusted() -> None:
    """None counts as 1, so that nothing is punished for being older than the field."""
    assert effective_confidence(None, day(10_000)) == 1.0
    assert trust(episode(), day(10_000), RULES) == 1.0
    assert not is_speculative(None)


def test_speculative_is_what_the_extraction_was_unsure_of() -> None:
    """Below 0.40 of what the extraction gave; the composite does not matter."""
    assert is_speculative(semantic(confidence={"extraction": 0.39}).confidence)
    assert not is_speculative(semantic(confidence={"extraction": 0.40}).confidence)
    assert semantic(confidence={"extraction": 0.1}).confidence.score(T0) > 0.40


def test_quality_is_a_product() -> None:
    """Salience x confidence x access x recency, each by hand."""
    turn = quality(episode(importance=1.0), day(30), RULES)
    assert (turn.salience, turn.confidence, turn.access) == (0.6, 1.0, 0.5)
    assert turn.recency == pytest.approx(0.5)
    assert turn.value == pytest.approx(0.6 * 0.5 * 0.5)
    assert turn.explain() == (
        "0.15: 0.60 salience x 1.00 confidence x 0.50 access x 0.50 recency; 0.30 without recency"
    )
    assert quality(semantic(importance=0.0), T0, RULES).salience == pytest.approx(0.45)
    assert quality(recalled(episode(), T0, 2), T0, RULES).access == pytest.approx(1 - 0.5 * 0.81)


@pytest.mark.parametrize(
    ("memory", "weight"),
    [(episode, 0.6), (fact, 0.8), (semantic, 0.9), (habit, 1.0), (negation, 0.8)],
)
def test_salience_is_the_weight_of_the_type(memory: type, weight: float) -> None:
    """All of it at importance 1."""
    assert quality(memory(importance=1.0), T0, RULES).salience == weight


def test_the_durable_score_forgets_no_core_fact() -> None:
    """Unrecalled for long, it hardly sinks, while quality does: it ranks the briefing."""
    core = recalled(semantic(importance=1.0), T0, 5)
    trivia = episode(importance=0.2, created_at=day(90), timestamp=day(90))
    of_core, of_trivia = quality(core, day(90), RULES), quality(trivia, day(90), RULES)
    assert of_core.durable > of_trivia.durable
    assert of_core.value < of_trivia.value


def test_placement_value_hears_the_user() -> None:
    """Disputed lowers it, being a correction or confirmed raises it."""
    plain = semantic()
    value = placement_value(plain, T0, RULES)
    disputed = decisions.dispute(plain, T0, RULES).memory
    confirmed = decisions.confirm(plain, T0, RULES).memory
    correction = semantic(category="correction")
    assert placement_value(disputed, T0, RULES) < value / 1.9
    assert placement_value(confirmed, T0, RULES) > value + 0.1
    assert placement_value(correction, T0, RULES) == pytest.approx(value + 0.1)
    assert is_correction(negation())
    assert not is_correction(fact())


def test_verification_has_four_values() -> None:
    """Unverified, confirmed by the user, found in a source by Engram, disputed."""
    assert verification_of(episode()) is VerificationState.UNVERIFIED
    assert verification_of(semantic()) is VerificationState.UNVERIFIED
    found = fact(confidence={"verification": "evidence_found"})
    assert verification_of(found) is VerificationState.SYSTEM_INFERRED
    confirmed = decisions.confirm(fact(), T0, RULES).memory
    assert verification_of(confirmed) is VerificationState.USER_CONFIRMED
    disputed = decisions.dispute(fact(), T0, RULES).memory
    assert verification_of(disputed) is VerificationState.DISPUTED
    assert verification_of(semantic(disputed_with=("x",))) is VerificationState.DISPUTED


def test_policy_classes() -> None:
    """Ephemeral where an end is set, durable else, protected by the user."""
    assert policy_class(episode(), RULES) is PolicyClass.DURABLE
    assert policy_class(episode(expires_at=day(9)), RULES) is PolicyClass.EPHEMERAL
    brief = rules(time_to_live={"episodic_days": 1.0})
    assert policy_class(episode(), brief) is PolicyClass.EPHEMERAL
    kept = decisions.protect(episode(), T0, RULES).memory
    assert policy_class(kept, brief) is PolicyClass.PROTECTED


def test_placement_thresholds_must_lie_apart() -> None:
    """Equal thresholds would move a memory to and fro; they are refused."""
    with pytest.raises(ValidationError, match="hot_at must lie above cold_at"):
        rules(placement={"hot_at": 0.1})
