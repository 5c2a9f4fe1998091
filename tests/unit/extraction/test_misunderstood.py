"""What an assistant took for true, and the user says is wrong in the next turn."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from engram.domain.buffer import Signal
from engram.language.extractor import Extractor
from engram.language.found import FoundNegation
from engram.settings import Settings

NOW = datetime(2025, 1, 1, 12, tzinfo=UTC)
MONGO = "You use MongoDB, so let's go with that."

FOUND = [
    (MONGO, "No, that's wrong. I use Postgres.", "use mongodb"),
    (MONGO, "That's not right, I use Postgres.", "use mongodb"),
    (MONGO, "You're mistaken. I use Postgres.", "use mongodb"),
    (MONGO, "No, that's not true.", "use mongodb"),
    (MONGO, "I never said that.", "use mongodb"),
    ("You mentioned you work at Google.", "That's wrong.", "work google"),
    ("Since you live in Lisbon, take line 28.", "That's wrong, I live in Porto.", "live lisbon"),
    (
        "Since you use MongoDB and live in Lisbon, try Atlas.",
        "No, that's wrong. I use Postgres.",
        "use mongodb",
    ),
    (
        "You are allergic to penicillin, I take it.",
        "That is incorrect.",
        "be allergic to penicillin",
    ),
]

# Nothing was claimed, nothing is said to be wrong, or nobody can tell what is.
NOTHING = [
    ("Postgres is a database.", "No, that's wrong. I use Postgres."),
    (MONGO, "Thanks, that's right."),
    (MONGO, "Great. What is wrong with Mongo?"),
    (MONGO, "I use Postgres."),
    (MONGO, "Is that wrong?"),
    ("Since you live in Lisbon, the train takes three hours.", "That's wrong."),
    ("You live in Lisbon. The train to Porto takes one hour.", "No, that's wrong."),
    ("You live in Lisbon, I think.", "That's wrong. It takes three hours from there."),
    ("Since you use MongoDB and live in Lisbon, try Atlas.", "No, that's wrong."),
    ("You use MongoDB. You use Redis, too.", "No, that's wrong. I use Postgres."),
    ("Do you use MongoDB?", "No, that's wrong. I use Postgres."),
    # It may be what follows from the claim that is wrong, or what is said of it.
    ("You live in Lisbon, so it is 8 pm for you now.", "That's wrong."),
    ("You use Python, so you can use async let.", "That's not correct."),
    ("You use MongoDB and it is written in Rust.", "That's not true."),
    ("You live in Lisbon, which is the capital of Spain.", "No, that's wrong."),
    ("You have two kids, so the family ticket costs 80 euros.", "No, that's wrong."),
    ("My friend says: you use MongoDB.", "That's wrong."),
    (
        "Since you use MongoDB, the default port is 3306.",
        "That's wrong. I use Compass to connect and it says 27017.",
    ),
    (
        "Because you live in Lisbon, your time zone is CET.",
        "That's wrong. I live in a small town near it.",
    ),
]


def found(before: str | None, text: str, role: str = "user") -> list[FoundNegation]:
    """The denials of a turn, right after that one."""
    extraction = Extractor(Settings()).extract(text, role, None, NOW, before)
    return list(extraction.negations)


@pytest.mark.parametrize(("before", "text", "pattern"), FOUND)
def test_what_is_said_to_be_wrong_is_denied(before: str, text: str, pattern: str) -> None:
    """Worded by the turn before, with the words of the turn itself as evidence."""
    (one,) = found(before, text)
    assert (one.negates_pattern, one.subject, one.of_turn_before) == (pattern, "user", True)
    assert one.evidence in text
    assert found(None, text) == []
    assert found(before, text, "assistant") == []


@pytest.mark.parametrize(("before", "text"), NOTHING)
def test_nothing_is_denied_where_nobody_can_tell_what_is_wrong(before: str, text: str) -> None:
    """A false denial would hide what holds."""
    assert found(before, text) == []


def test_a_denial_that_names_what_it_denies_is_found_once() -> None:
    """By its own words, whatever the turn before says."""
    (one,) = found(MONGO, "That's wrong, I don't use MongoDB.")
    assert (one.negates_pattern, one.of_turn_before) == ("use mongodb", False)


def test_whose_name_is_known_is_denied_by_name() -> None:
    """As their other denials are; and a correction is urgent."""
    extraction = Extractor(Settings()).extract("That's wrong.", "user", "Ada", NOW, MONGO)
    (one,) = extraction.negations
    assert (one.subject, one.content) == ("ada", "Ada does not use MongoDB.")
    assert extraction.signal is Signal.HIGH


def test_what_was_masked_is_not_denied() -> None:
    """A token in the assistant's turn is no news, neither that it is so nor that it is not."""
    assert found("You work at [e-mail].", "That's wrong.") == []
