"""Decisions that are called off, in the same turn, right after it, or by their name."""

from __future__ import annotations

import pytest

from tests.support.slot_labels import a_turn_a_day, told

_KAFKA = "We're going with Kafka."
_CALLED_OFF = [
    ("we'll go with arq ... wait no we don't have redis.",),
    ("We decided on Kafka. Scratch that, Hanneke vetoed it.",),
    (_KAFKA, "scratch that, we're going with RabbitMQ"),
    (_KAFKA, "scratch that ... RabbitMQ"),
    (_KAFKA, "ok forget it, too much work"),
    (_KAFKA, "Hanneke vetoed that."),
    (_KAFKA, "It got vetoed."),
    (_KAFKA, "We've changed our minds."),
    (_KAFKA, "Change of plan, we use RabbitMQ."),
    (_KAFKA, "The Kafka decision was reversed."),
    (_KAFKA, "A: Noted.", "forget kafka, we're doing postgres"),
    (_KAFKA, "A: Noted.", "We changed our minds about Kafka."),
    ("we decided on uuidv7", "we reverted the uuidv7 decision, serial stays"),
    ("We've decided to use Mongo.", "forget mongo, we're doing postgres"),
    ("We picked the blue tiles.", "Changed our minds about the blue tiles!"),
]
_STANDS = [
    ("We chose Kafka. Actually, it's great.",),
    ("We decided on Kafka, no, not because of the price.",),
    ("We decided on Kafka. No problem so far.",),
    ("We decided on Kafka. Forget the rest.",),
    (_KAFKA, "wait, no milk today"),
    (_KAFKA, "The meeting is off."),
    (_KAFKA, "Forget the meeting."),
    (_KAFKA, "I forgot the keys."),
    (_KAFKA, "Don't forget Kafka in the diagram."),
    (_KAFKA, "I changed my mind about the logo."),
    (_KAFKA, "We dropped Redis."),
    (_KAFKA, "I'm off to the shop."),
    (_KAFKA, "Scratch that itch!"),
    (_KAFKA, "A: Shall I write it up?", "Scratch that, first the tests."),
    (_KAFKA, "A: Shall I write it up?", "No wait, first the tests."),
    (_KAFKA, "Never mind the noise."),
    ("I'm going with Anna to Paris.", "forget Anna"),
    ("We settled on a date.", "It's off."),
    ("We decided on Kafka and Redis.", "forget redis"),
    ("We decided on Kafka, Redis and Postgres.", "forget kafka"),
]


def _ended(said: tuple[str, ...]) -> list[bool]:
    """Of what was decided first, in the order in which it was told, whether it is over."""
    known = sorted(told(a_turn_a_day(*said)).known.values(), key=lambda one: one.known_at)
    decided = [
        one for one in known if one.category.value == "decision" and " no " not in one.content
    ]
    return [one.superseded_by is not None for one in decided][:1]


@pytest.mark.parametrize("said", _CALLED_OFF)
def test_a_decision_that_is_called_off_is_over(said: tuple[str, ...]) -> None:
    """By "scratch that" right behind it or in the next turn, or by its name in a later one."""
    assert _ended(said) == [True]


@pytest.mark.parametrize("said", _STANDS)
def test_a_decision_stands_where_something_else_is_called_off(said: tuple[str, ...]) -> None:
    """What is meant is another thing, what the assistant proposed, or one of several."""
    assert _ended(said) == [False]


def test_what_was_decided_keeps_its_words_and_its_end_names_it() -> None:
    """The note says what was said; its end, that the user no longer goes with it."""
    known = told(a_turn_a_day("We decided on Kafka for the event bus.", "forget kafka")).known
    assert {one.content for one in known.values()} == {
        "The user decided on Kafka for the event bus.",
        "The user no longer goes with Kafka.",
    }


def test_what_is_picked_up_is_no_decision() -> None:
    """It is done, and nobody chose it."""
    (only,) = told(a_turn_a_day("I picked up milk.")).known.values()
    assert only.category.value != "decision"
