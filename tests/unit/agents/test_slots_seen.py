"""Stories that the rules were written with: what holds after the last turn."""

from __future__ import annotations

import pytest

from tests.support.slot_labels import Verdict, judged, stories, told
from tests.support.statement_labels import labelled

RIGHT = 0.95
# Of the looser talk of the last file, somewhat less.
FILES = [("slots.seen.jsonl", RIGHT), ("slots.more.jsonl", RIGHT), ("slots.talk.jsonl", 0.85)]


@pytest.mark.parametrize(("file", "right"), FILES)
def test_seen_stories_end_with_the_right_current_values(file: str, right: float) -> None:
    """In so many of the stories every current value is right, and nothing false is known in any."""
    items, wrong = stories(file)
    assert len(wrong) <= (1 - right) * len(items), [story["turns"] for story in wrong]
    false = [one["turns"] for one in items if judged(one, told(one["turns"])).false]
    assert false == []


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
