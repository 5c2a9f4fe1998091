"""The score, its parts, and the sentence that explains it."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from engram.domain.confidence import (
    PATTERN_EXTRACTION,
    SEED_IMPORTED,
    Confidence,
    ConfidenceWeights,
    ExtractionMethod,
    Verification,
    effective_confidence,
    is_speculative,
)
from engram.domain.described import texts_at_fields
from engram.settings import Settings
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
    """The constant is 365 days, so exp(-1) remains, not 63 %."""
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


@pytest.mark.parametrize(
    ("setting", "value", "fields", "score"),
    [
        ("base_verbatim", 0.8, {"method": "verbatim"}, 0.4 + 0.1 + 0.15 + 0.05),
        ("base_extracted", 0.8, {}, 0.4 + 0.1 + 0.15 + 0.05),
        ("base_inferred", 0.8, {"method": "inferred"}, 0.4 + 0.1 + 0.15 + 0.05),
        ("seed_fresh", 0.6, {}, 0.45 + 0.25 * 0.6 + 0.15 + 0.05),
        ("seed_imported", 0.1, {"seed": SEED_IMPORTED}, 0.45 + 0.25 * 0.1 + 0.15 + 0.05),
        ("gap_closed", 0.5, {"supporting_episodes": 2}, 0.45 + 0.25 * 0.7 + 0.15 + 0.05),
    ],
)
def test_each_base_seed_and_step_can_be_set(
    setting: str, value: float, fields: dict[str, object], score: float
) -> None:
    """Environment variables move the score of what is stored, worked out by hand, and no other."""
    weights = Settings.load(confidence_weights={setting: value}).confidence_weights
    told = confidence(**fields)
    assert told.score(NOW, weights) == pytest.approx(score)
    assert told.score(NOW) != pytest.approx(score)
    assert told.explain(NOW, weights).startswith(f"{score:.2f}: ")
    others = confidence(method="verbatim" if setting != "base_verbatim" else "inferred", seed=0.5)
    assert others.score(NOW, weights) == others.score(NOW)


def test_close_weights_are_accepted() -> None:
    """Rounding in a settings file is no reason to refuse; a visible difference is."""
    assert ConfidenceWeights(extraction=0.5 + 5e-7).recency == 0.15
    with pytest.raises(ValidationError, match="sum to 1"):
        ConfidenceWeights(extraction=0.5 + 5e-6)
    only = ConfidenceWeights(extraction=1, corroboration=0, recency=0, verification=0)
    assert confidence().score(NOW, only) == 0.9


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((name, value) for name in ConfidenceWeights.model_fields for value in (-0.1,)),
        *((name, 1.1) for name in ConfidenceWeights.model_fields if name != "decay_days"),
        ("decay_days", 0.0),
        ("decay_days", 1e9),
        ("surprise", 0.1),
    ],
)
def test_a_weight_out_of_range_is_refused_by_name(field: str, value: float) -> None:
    """Each weight lies in 0 to 1, the time constant above 0; the error says which it was."""
    with pytest.raises(ValidationError) as refused:
        ConfidenceWeights.model_validate({field: value})
    assert [error["loc"] for error in refused.value.errors()] == [(field,)]


def test_half_a_day_can_be_the_time_constant() -> None:
    """Everything above 0 days is allowed."""
    assert confidence().recency(NOW + timedelta(hours=12), 0.5) == pytest.approx(math.exp(-1))
    assert ConfidenceWeights(decay_days=0.5).decay_days == 0.5


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("extraction", -0.1),
        ("extraction", 1.1),
        ("supporting_episodes", 0),
        ("contradictions", -1),
        ("seed", -0.1),
        ("seed", 1.1),
    ],
)
def test_a_confidence_out_of_range_is_refused_by_name(field: str, value: float) -> None:
    """No part can lie outside what the score is made for; the error says which it was."""
    with pytest.raises(ValidationError) as refused:
        confidence(**{field: value})
    assert [error["loc"] for error in refused.value.errors()] == [(field,)]


def test_the_ends_of_the_ranges_are_allowed() -> None:
    """Nothing at all and full certainty can both be said."""
    nothing = confidence(extraction=0, seed=0)
    usual = ConfidenceWeights()
    assert (nothing.extraction, nothing.seed, nothing.corroboration(usual)) == (0, 0, 0)
    sure = confidence(extraction=1, seed=1)
    assert (sure.extraction, sure.seed, sure.corroboration(usual)) == (1, 1, 1)


def test_neither_weights_nor_confidences_change_in_place() -> None:
    """What was written stays as it was: a change is another value."""
    with pytest.raises(ValidationError, match="frozen"):
        confidence().extraction = 1.0  # type: ignore[misc]  # that is the point
    with pytest.raises(ValidationError, match="frozen"):
        ConfidenceWeights().recency = 1.0  # type: ignore[misc]  # same


def test_what_is_stored_has_its_names() -> None:
    """Methods and verifications are written by name, and read by other versions."""
    assert {method.value for method in ExtractionMethod} == {"verbatim", "extracted", "inferred"}
    assert {found.value for found in Verification} == {
        *("evidence_found", "unchecked", "user_confirmed", "disputed"),
    }


def test_a_confirmation_in_the_future_is_fresh() -> None:
    """Clocks differ: never more than fresh, and told as of today."""
    early = NOW - timedelta(days=3)
    assert confidence().recency(early, 365) == 1
    assert "last confirmed today" in confidence().explain(early)
    assert confidence().score(early) == confidence().score(NOW)


def test_a_memory_without_confidence_is_trusted() -> None:
    """A turn was said: its effective confidence is 1, and it is not speculative."""
    assert effective_confidence(None, NOW) == 1
    assert not is_speculative(None)


def test_a_recall_refreshes_recency_as_a_confirmation_does() -> None:
    """Counted from the later of the two; the other parts stay as they are."""
    asked = NOW + timedelta(days=365)
    weights = ConfidenceWeights(extraction=0.4, recency=0.25)
    fresh = confidence().score(NOW, weights)
    faded = confidence().score(asked, weights)
    assert faded == pytest.approx(fresh - 0.25 * (1 - math.exp(-1)))

    def effective(recalled: int | None) -> float:
        at = None if recalled is None else NOW + timedelta(days=recalled)
        return effective_confidence(confidence(), asked, weights, recalled_at=at)

    assert effective(None) == effective(-100) == faded
    assert effective(365) == fresh
    assert confidence().refreshed(asked) == asked


def test_speculative_is_what_the_extraction_was_not_sure_of() -> None:
    """Below 0.40 by default, however much speaks for it; another limit can be asked for."""
    assert is_speculative(confidence(extraction=0.39, supporting_episodes=9))
    assert not is_speculative(confidence(extraction=0.40, method="inferred"))
    assert is_speculative(confidence(extraction=0.5), below=0.6)


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (0.9, "today"),
        (1, "1 day ago"),
        (6.9, "6 days ago"),
        (7, "1 week ago"),
        (29, "4 weeks ago"),
        (30, "1 month ago"),
        (364, "12 months ago"),
        (365, "1 year ago"),
        (800, "2 years ago"),
    ],
)
def test_the_explanation_says_how_long_ago(days: float, said: str) -> None:
    """In the largest unit that is full, with a plural where there is one."""
    assert f"last confirmed {said}, " in confidence().explain(NOW + timedelta(days=days))


def test_the_explanation_goes_by_the_weights_that_count() -> None:
    """The score in the sentence is the score under the same weights; one of it is singular."""
    weights = ConfidenceWeights(extraction=1, corroboration=0, recency=0, verification=0)
    assert confidence(contradictions=1).explain(NOW, weights) == (
        "0.90: extracted (0.90 base), 1 supporting episode, last confirmed today, 1 contradiction"
    )


def test_the_explanation_says_that_a_recall_keeps_it_fresh() -> None:
    """Only a recall after the last confirmation is told, with how long ago it was."""
    told = NOW + timedelta(days=30)
    score = confidence(last_confirmed=NOW + timedelta(days=28)).score(told)
    sentence = confidence().explain(told, recalled_at=NOW + timedelta(days=28))
    assert sentence == (
        f"{score:.2f}: extracted (0.90 base), 1 supporting episode, "
        "last confirmed 1 month ago, recalled 2 days ago, no contradictions"
    )
    assert "recalled" not in confidence().explain(told, recalled_at=NOW)


def test_a_pattern_is_sure_of_what_it_matched() -> None:
    """The documented 0.9: surer than any extraction by inference, not quite verbatim."""
    assert PATTERN_EXTRACTION == 0.9
    assert not is_speculative(confidence(extraction=PATTERN_EXTRACTION))


def test_each_weight_says_what_it_means() -> None:
    """The page of the settings reads what a weight means at its field, and so does the schema."""
    meanings = texts_at_fields(ConfidenceWeights)
    described = ConfidenceWeights.model_json_schema()["properties"]
    assert {name: one["description"] for name, one in described.items()} == meanings
    assert meanings.keys() == ConfidenceWeights.model_fields.keys()
    assert len(set(meanings.values())) == len(meanings) == 11
