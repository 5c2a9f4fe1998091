"""The rules on labelled turns that nobody who wrote them has read."""

from __future__ import annotations

from tests.support.statement_labels import measure, ordinary

# Precision before recall: a false memory is worse than a missed one.
PRECISION = 0.9
RECALL = 0.6


def test_held_statements_are_found_precisely() -> None:
    """At least nine of ten statements found are right; most are found."""
    measured = measure("statements.held.jsonl")
    assert measured.precision >= PRECISION, f"{len(measured.wrong)} wrong of {measured.found}"
    assert measured.recall >= RECALL, f"{len(measured.missed)} missed"


def test_held_ordinary_talk_states_next_to_nothing() -> None:
    """Of 210 ordinary turns at most two in a hundred yield anything but a preference."""
    stated = ordinary("ordinary.held.jsonl")
    assert len([p for p, _ in stated if p not in {"likes", "dislikes", "prefers"}]) <= 4
