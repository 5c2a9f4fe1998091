"""The rules on labelled turns that they were written with."""

from __future__ import annotations

from tests.support.statement_labels import Measure, measure, ordinary


def test_seen_statements_are_found() -> None:
    """What the rules were written for, they do: nothing wrong, nothing missed."""
    measured = measure("statements.seen.jsonl")
    assert (measured.wrong, measured.missed) == ([], [])
    assert measured.found >= 60


def test_ordinary_talk_states_next_to_nothing() -> None:
    """Small talk, questions and hearsay yield no memories beyond plain preferences."""
    stated = ordinary("ordinary.seen.jsonl")
    assert {predicate for predicate, _ in stated} <= {"likes", "dislikes", "prefers"}
    assert len(stated) <= 5


def test_the_measure_counts_both_ways() -> None:
    """Precision and recall come from what is wrong and what is missed."""
    assert (Measure(3, ["x"], []).precision, Measure(3, [], ["y"]).recall) == (0.75, 0.75)
