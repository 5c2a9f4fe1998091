"""What is concluded goes no further than what was said: no promise, ending or value beyond it."""

from __future__ import annotations

import pytest

from tests.support.slot_labels import a_turn_a_day, answered, told


def _told(said: str) -> list[str]:
    return [one.content for one in answered({"text": said})]


def _known(*said: str) -> set[str]:
    known = told(a_turn_a_day(*said)).known.values()
    return {one.content for one in known if one.superseded_by is None}


@pytest.mark.parametrize(
    ("said", "content"),
    [
        (
            'Correction: the flag is "--lf", not "--ff"',
            'The user corrected: the flag is "--lf", not "--ff".',
        ),
        (
            "Correction: the flag is '--lf', not '--ff'",
            "The user corrected: the flag is '--lf', not '--ff'.",
        ),
        (
            'Sorry I meant the "beta" channel not the "stable" channel',
            'The user corrected: the user meant the "beta" channel not the "stable" channel.',
        ),
        (
            "That's wrong, my lead said 'don't use uv', not poetry",
            "The user corrected: that's wrong, the user's lead said 'don't use uv', not poetry.",
        ),
        (
            '"Many nuts" was a slip of the tongue, "few"',
            'The user corrected: "Many nuts" was a slip of the tongue, "few".',
        ),
        (
            'I was wrong about it. "Few" is what it was, and Bob had "many"',
            'The user corrected: the user was wrong about it. "Few" is what it was, '
            'and Bob had "many".',
        ),
        (
            "Correction: it's “Blue”, not „Red“",
            "The user corrected: it's “Blue”, not „Red“.",
        ),
    ],
)
def test_a_correction_has_the_words_that_it_quotes(said: str, content: str) -> None:
    """What is blank while rules look for what is said stands in what they conclude."""
    assert _told(said) == [content]


@pytest.mark.parametrize(
    "said",
    [
        "I got the wrong size.",
        "I got the wrong end of the stick lol",
        "I had the wrong shoes on.",
        "I put the wrong fuel in the car.",
        "I got the name of the wrong street.",
        "I said the wrong thing to her.",
    ],
)
def test_who_got_the_wrong_thing_corrects_nothing(said: str) -> None:
    """Nothing that was said before is wrong."""
    assert _told(said) == []


@pytest.mark.parametrize(
    "said",
    [
        "I got the date wrong, it's the 5th.",
        "I got the wrong date, it's 5 May.",
        "I wrote the wrong name there, it's Anna.",
        "I spelled her name wrong, it's Anna.",
        "I got my age wrong.",
        "I got it totally wrong.",
        "I've got the days the wrong way round.",
    ],
)
def test_who_got_something_wrong_corrects_it(said: str) -> None:
    """So does who says what is right instead of "the wrong date"."""
    assert [one.category for one in answered({"text": said})] == ["correction"]
