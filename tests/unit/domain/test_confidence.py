"""Rows C1 to C6: the score, its parts, and the sentence that explains it."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from engram.domain.confidence import (
    SEED_IMPORTED,
    Confidence,
    ConfidenceWeights,
    ExtractionMethod,
    Verification,
)
from tests.support.clock import NOW


def confidence(**fields: object) -> Confidence:
    """An extracted, unchecked, fresh confidence with these fields changed."""
    base: dict[str, object] = {
        "method": ExtractionMethod.EXTRACTED,
        "extraction": 0.9,
        "last_confirmed": NOW,
    }
    return Confidence.model_validate({**base, **fields})


@pytest.mark.parametrize(
    ("fields", "days", "score"),
    [
        ({}, 0, 0.5 * 0.9 + 0.25 * 0.4 + 0.15 + 0.05),
        ({"verification": "evidence_found"}, 0, 0.45 + 0.1 + 0.15 + 0.1),
        ({"method": "verbatim", "verification": "disputed"}, 0, 0.5 + 0.1 + 0.15),
        ({"method": "inferred"}, 365, 0.3 + 0.1 + 0.15 * math.exp(-1) + 0.05),
        ({"supporting_episodes": 3}, 0, 0.45 + 0.25 * (1 - 0.6 * 0.81) + 0.15 + 0.05),
        ({"contradictions": 1}, 0, 0.45 + 0.25 * 0.2 + 0.15 + 0.05),
        ({"seed": SEED_IMPORTED}, 0, 0.45 + 0.25 * 0.25 + 0.15 + 0.05),
    ],
)
def test_the_score_is_the_weighted_sum(fields: dict[str, object], days: int, score: float) -> None:
    """Each part enters with its weight, worked out by hand here."""
    assert confidence(**fields).score(NOW + timedelta(days=days)) == pytest.approx(score)


def test_a_year_without_confirmation_leaves_368_per_mille() -> None:
    """Row C4, decision: the constant is 365 days, so exp(-1) remains, not 63 %."""
    assert confidence().recency(NOW + timedelta(days=365), 365) == pytest.approx(0.3679, abs=1e-4)


def test_the_explanation_names_every_part() -> None:
    """The sentence gives score, method, base, episodes, last confirmation, contradictions."""
    asked = NOW + timedelta(days=65)
    said = confidence(supporting_episodes=3).explain(asked)
    assert said == (
        "0.75: extracted (0.90 base), 3 supporting episodes, "
        "last confirmed 2 months ago, no contradictions"
    )
    assert "1 supporting episode, last confirmed today, 2 contradictions" in confidence(
        contradictions=2
    ).explain(NOW)


@given(
    st.sampled_from(ExtractionMethod),
    st.sampled_from(Verification),
    st.integers(1, 50),
    st.integers(0, 5),
    st.integers(0, 4000),
)
def test_the_score_stays_in_range_and_moves_the_right_way(
    method: ExtractionMethod, verification: Verification, episodes: int, against: int, days: int
) -> None:
    """Never outside 0..1; more support raises it, contradictions and time lower it."""
    given_ = confidence(
        method=method,
        verification=verification,
        supporting_episodes=episodes,
        contradictions=against,
    )
    asked = NOW + timedelta(days=days)
    score = given_.score(asked)
    assert 0 <= score <= 1
    more = given_.model_copy(update={"supporting_episodes": episodes + 1})
    doubted = given_.model_copy(update={"contradictions": against + 1})
    assert more.score(asked) > score > doubted.score(asked)
    assert given_.score(asked + timedelta(days=30)) < score


def test_weights_must_sum_to_one() -> None:
    """Weights that do not add up are refused with their sum."""
    with pytest.raises(ValidationError, match=r"sum to 1, not 1\.1"):
        ConfidenceWeights(extraction=0.6)
    assert ConfidenceWeights(extraction=0.6, corroboration=0.15).extraction == 0.6
