"""Extraction measured on labelled turns that were kept from whoever wrote its rules."""

from __future__ import annotations

import pytest

from engram.domain.memories import FactCategory
from tests.support.extraction_labels import (
    fact_scores,
    found_in_ordinary_talk,
    negation_score,
    words_wrongly_negated,
)


@pytest.mark.parametrize("category", list(FactCategory))
def test_pattern_facts_hold_up_on_unseen_turns(category: FactCategory) -> None:
    """Each category of fact stays precise, and is mostly found, on unseen wording."""
    score = fact_scores("held")[category]
    assert score.hits > 0
    assert score.precision >= 0.9, score.false
    assert score.recall >= 0.7, score.missed


def test_negations_hold_up_on_unseen_turns() -> None:
    """Negations keep precision at .9 on unseen wording, and most are found."""
    score = negation_score("held")
    assert score.precision >= 0.9, score.false
    assert score.recall >= 0.6, score.missed


def test_what_an_unseen_turn_affirms_is_not_negated() -> None:
    """The scope of a negation holds on unseen wording."""
    assert words_wrongly_negated("held") == []


def test_unseen_ordinary_talk_yields_nothing() -> None:
    """No false find in ordinary talk that the rules were not written against."""
    assert found_in_ordinary_talk("held") == []
