"""Ordinary words that end and replace nothing, though rules could take them for an end."""

from __future__ import annotations

from typing import Any

import pytest

from engram.domain.slots import is_functional
from tests.support.reconciliation import ReconciledKnowledge
from tests.support.slot_labels import held, told
from tests.support.statement_labels import DATA

LINES = [
    line
    for line in (DATA / "unchanged.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]


def _turns(line: str) -> list[dict[str, Any]]:
    """The turns of a line, a day apart."""
    return [
        {
            "text": said.removeprefix("A: "),
            "role": "assistant" if said.startswith("A: ") else "user",
            "timestamp": f"2025-03-{day:02}T10:00:00+00:00",
        }
        for day, said in enumerate(line.split(" || "), start=1)
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
    turns = _turns(line)
    before, after = told(turns[:1]), told(turns)
    assert held(before)
    assert held(before) <= held(after)
    assert _of_one_value(after) <= _of_one_value(before)
