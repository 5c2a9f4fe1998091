"""Stories and turns that nobody who wrote the rules has read: slots, notes, promises, commands.

The aims are 95 of 100 stories right, nine of ten notes right, and four of five
promises. Of what was added to the seen sets later the other half was kept as well, by
its writer, who changed the rules after and did not look at what they missed. The floors here
are what the rules reach; docs/benchmarks.md has the figures.
"""

from __future__ import annotations

import pytest

from tests.support.category_labels import believed_injections, categories, commitments
from tests.support.slot_labels import stories

STORIES_RIGHT = 0.92
NOTES_PRECISION = 0.9
NOTES_RECALL = 0.65
PROMISES_RIGHT = 0.79
KEPT = [("more", 0.8, 0.87), ("talk", 0.87, 0.8)]
STRANGERS_STORIES_RIGHT = 0.68


def test_held_stories_mostly_end_with_the_right_current_values() -> None:
    """Every current value is right, nothing superfluous is current, and nothing false is known."""
    found = stories("slots.held.jsonl")
    assert len(found.wrong) <= (1 - STORIES_RIGHT) * found.count, len(found.wrong)
    assert not len(found.false)


def test_held_turns_are_learnt_under_their_category() -> None:
    """Precision before recall, over all ten."""
    counts = categories("categories.held.jsonl")
    assert counts.precision() >= NOTES_PRECISION
    assert counts.recall() >= NOTES_RECALL


@pytest.mark.parametrize(("file", "stories_right", "promises_right"), KEPT)
def test_kept_halves_of_later_turns_are_mostly_understood(
    file: str, stories_right: float, promises_right: float
) -> None:
    """Promises and stories in wordings that the rules were not changed for, and nothing false."""
    count, wrong = commitments(f"commitments.{file}.held.jsonl")
    assert len(wrong) <= (1 - promises_right) * count, len(wrong)
    found = stories(f"slots.{file}.held.jsonl")
    assert len(found.wrong) <= (1 - stories_right) * found.count, len(found.wrong)
    assert not len(found.false)


def test_stories_of_somebody_who_knows_no_rule_are_often_understood() -> None:
    """As people who start with Engram tell what changed; what is not understood is not made up."""
    found = stories("slots.strangers.jsonl")
    assert len(found.wrong) <= (1 - STRANGERS_STORIES_RIGHT) * found.count, len(found.wrong)
    assert not len(found.false)


def test_held_promises_are_partly_understood() -> None:
    """Open, kept or called off, as a later turn says."""
    count, wrong = commitments("commitments.held.jsonl")
    assert len(wrong) <= (1 - PROMISES_RIGHT) * count, len(wrong)


def test_held_commands_to_the_memory_are_no_facts_of_the_user() -> None:
    """Whatever a turn poses as, it states nothing for its user."""
    assert len(believed_injections("injections.held.jsonl")) == 0
