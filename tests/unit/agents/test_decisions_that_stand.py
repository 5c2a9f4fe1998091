"""Decisions stand, whatever is dropped, forgotten or vetoed after them."""

from __future__ import annotations

import pytest

from tests.support.slot_labels import a_turn_a_day, told

_KAFKA = "We're going with Kafka."
_STANDS = [
    (_KAFKA, "Nobody vetoed that."),
    (_KAFKA, "Never mind that noise outside."),
    (_KAFKA, "I reverted that commit."),
    (_KAFKA, "Forget it, he won't sleep tonight."),
    (_KAFKA, "Forget it?"),
    (_KAFKA, "wait, no milk today"),
    (_KAFKA, "The meeting is off."),
    (_KAFKA, "Forget the meeting."),
    (_KAFKA, "Don't forget Kafka in the diagram."),
    (_KAFKA, "I changed my mind about the logo."),
    (_KAFKA, "We dropped Redis."),
    (_KAFKA, "Scratch that itch!"),
    (_KAFKA, "Never mind the noise."),
    ("I plan to sell my phone.", "I dropped my phone."),
    ("We chose Kafka for the queue.", "We chose Kafka for the logs."),
    ("We decided on Kafka and Redis.", "I forgot the keys."),
]


@pytest.mark.parametrize("said", _STANDS)
def test_a_decision_stands_where_something_else_is_dropped(said: tuple[str, ...]) -> None:
    """Nothing of what was chosen or planned is over."""
    known = told(a_turn_a_day(*said)).known.values()
    assert known
    assert [one.content for one in known if one.superseded_by is not None] == []


def test_one_thing_may_be_chosen_for_two_purposes() -> None:
    """Each is a decision of its own."""
    known = told(
        a_turn_a_day("We chose Kafka for the queue.", "We chose Kafka for the logs.")
    ).known
    assert {one.content for one in known.values()} == {
        "The user chose Kafka for the queue.",
        "The user chose Kafka for the logs.",
    }


def test_a_plan_that_is_stressed_is_one() -> None:
    """Whoever says that they do plan it plans it, as with "I plan to"."""
    (only,) = told(a_turn_a_day("I do plan to learn Dutch.")).known.values()
    assert only.content == "The user plans to learn Dutch."
