"""Words that say something elsewhere say nothing here: "I left Tesco at six with the shopping".

Hostile readers and writers who had seen no rule wrote the turns; half of what the writers wrote is
kept from whoever writes rules. ``uv run pytest tests/unit/agents/test_not_said.py``
"""

from __future__ import annotations

import pytest

from tests.support.not_said import concluded, lines, names, states

# Of the kept half .06 are concluded, and .12 were before there were doubts.
CONCLUDED = 0.07
# Of what is said, .15 to .16 are missed; .14 were before.
MISSED = 0.17


def test_nothing_is_concluded_that_is_not_said() -> None:
    """Of some eight hundred turns that the rules' writers know, nothing."""
    assert _concluded("not_said.seen.txt") == []


def test_of_what_rule_writers_did_not_see_little_is_concluded_that_is_not_said() -> None:
    """Of the kept half, at most seven of a hundred."""
    wrong = _concluded("not_said.held.txt")
    assert len(wrong) <= CONCLUDED * len(list(lines("not_said.held.txt"))), len(wrong)


@pytest.mark.parametrize("half", ["seen", "held"])
def test_what_is_said_in_like_words_is_still_concluded(half: str) -> None:
    """Doubts take little with them of what people do say."""
    asked = list(lines(f"said.{half}.txt"))
    missed = [
        said
        for said, predicate, value in asked
        if not any(states(one, predicate) and names(one, value) for one in concluded(said))
    ]
    assert len(missed) <= MISSED * len(asked), len(missed)


def _concluded(name: str) -> list[str]:
    return [
        said
        for said, predicate in lines(name)
        if any(states(one, predicate) for one in concluded(said))
    ]
