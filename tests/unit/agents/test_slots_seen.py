"""Stories that the rules were written with: what holds after the last turn."""

from __future__ import annotations

import pytest

from tests.support.slot_labels import Verdict, stories

RIGHT = 0.95
FILES = ["slots.seen.jsonl", "slots.more.jsonl"]


@pytest.mark.parametrize("file", FILES)
def test_seen_stories_end_with_the_right_current_values(file: str) -> None:
    """Current values and history are right in so many stories, and nothing is false in any."""
    found = stories(file)
    assert len(found.wrong) <= (1 - RIGHT) * found.count, found.wrong
    assert len(found.lost) <= (1 - RIGHT) * found.count, found.lost
    assert found.false == []


@pytest.mark.parametrize(
    ("file", "wrong"),
    [("slots.talk.jsonl", 0.05), ("slots.later.jsonl", 0.07), ("slots.varied.jsonl", 0.065)],
)
def test_looser_talk_ends_with_mostly_right_current_values(file: str, wrong: float) -> None:
    """In somewhat fewer stories every current value is right, and nothing is false in any."""
    found = stories(file)
    assert len(found.wrong) <= wrong * found.count, found.wrong
    assert found.false == []


@pytest.mark.parametrize("file", FILES)
def test_what_is_told_at_once_keeps_its_history(file: str) -> None:
    """Read all together, past values are known and are not current."""
    found = stories(file, at_once=True)
    assert len(found.lost) <= (1 - RIGHT) * found.count, found.lost


def test_a_verdict_is_right_only_if_nothing_is_wrong() -> None:
    """Each kind of mistake counts."""
    value = (("lives in", "oslo"),)
    assert Verdict().right
    for wrong in (Verdict(missing=value), Verdict(superfluous=value), Verdict(lost=value)):
        assert not wrong.right
