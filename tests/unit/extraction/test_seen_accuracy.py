"""Extraction measured on the labelled turns its rules were written against."""

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
def test_pattern_facts_are_precise_and_found(category: FactCategory) -> None:
    """Each category of fact keeps precision at .97 and recall at .85."""
    score = fact_scores("seen")[category]
    assert score.hits >= 8
    assert score.precision >= 0.97, score.false
    assert score.recall >= 0.85, score.missed


def test_negations_are_precise_and_found() -> None:
    """Negations keep precision at .97 and recall at .85."""
    score = negation_score("seen")
    assert score.hits >= 35
    assert score.precision >= 0.97, score.false
    assert score.recall >= 0.85, score.missed


def test_what_a_turn_affirms_is_not_negated() -> None:
    """The scope of a negation ends before what the turn says is true."""
    assert words_wrongly_negated("seen") == []


def test_ordinary_talk_yields_nothing() -> None:
    """No false date, name, negation, phone, money, email or url in ordinary talk."""
    assert found_in_ordinary_talk("seen") == []
