"""Stories that the rules were written with: what holds after the last turn."""

from __future__ import annotations

import pytest

from tests.support.slot_labels import Verdict, judged, stories, told
from tests.support.statement_labels import labelled

RIGHT = 0.95


@pytest.mark.parametrize("file", ["slots.seen.jsonl", "slots.more.jsonl"])
def test_seen_stories_end_with_the_right_current_values(file: str) -> None:
    """In 95 of 100 stories every current value is right and nothing false is known."""
    items, wrong = stories(file)
    assert len(wrong) <= (1 - RIGHT) * len(items), [story["turns"] for story in wrong]


@pytest.mark.parametrize("file", ["slots.seen.jsonl", "slots.more.jsonl"])
@pytest.mark.parametrize("at_once", [False, True])
def test_what_held_before_stays_as_history(at_once: bool, file: str) -> None:
    """Turn by turn or all together, past values are known and are not current."""
    items = labelled(file)
    lost = [s for s in items if judged(s, told(s["turns"], at_once=at_once)).lost]
    assert len(lost) <= (1 - RIGHT) * len(items)


def test_a_verdict_is_right_only_if_nothing_is_wrong() -> None:
    """Each kind of mistake counts."""
    value = (("lives in", "oslo"),)
    assert Verdict().right
    for wrong in (Verdict(missing=value), Verdict(superfluous=value), Verdict(lost=value)):
        assert not wrong.right
