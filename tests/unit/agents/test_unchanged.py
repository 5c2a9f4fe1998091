"""Ordinary words that end and replace nothing, though rules could take them for an end."""

from __future__ import annotations

import pytest

from engram.domain.slots import is_functional
from tests.support.reconciliation import ReconciledKnowledge
from tests.support.slot_labels import a_turn_a_day, held, told
from tests.support.statement_labels import DATA

LINES = [
    line
    for line in (DATA / "unchanged.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]


def _of_one_value(knowledge: ReconciledKnowledge) -> set[tuple[str, str]]:
    """Those of which only one holds at a time."""
    return {
        (one.slot.predicate, one.slot.object)
        for one in knowledge.known.values()
        if one.slot and one.slot.subject == "user" and is_functional(one.slot)
    }


@pytest.mark.parametrize("line", LINES)
def test_what_was_told_still_holds(line: str) -> None:
    """All of the first turn is current after the last, and no other value is told in its place."""
    turns = a_turn_a_day(*line.split(" || "))
    before, after = told(turns[:1]), told(turns)
    assert held(before)
    assert held(before) <= held(after)
    assert _of_one_value(after) <= _of_one_value(before)
