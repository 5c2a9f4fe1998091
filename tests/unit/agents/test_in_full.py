"""What leaves something out that was just said, and what is said while somebody plays a part."""

from __future__ import annotations

import pytest

from tests.support.slot_labels import told

FULL = [
    ("Tom moved to Oslo and Ana to Rome.", "Tom lives in Oslo. / Ana lives in Rome."),
    ("Ana works at Shell and Tom at BP.", "Ana works at Shell. / Tom works at BP."),
    (
        "Ana lives in Rome, Tom in Oslo and Mia in Bonn.",
        "Ana lives in Rome. / Tom lives in Oslo. / Mia lives in Bonn.",
    ),
    (
        "The printer is in room 4 and the scanner in room 6.",
        "The printer is in room 4. / The scanner is in room 6.",
    ),
    ("Standup is at 10 now and retro at 3.", "Standup is at 10. / Retro is at 3."),
    (
        "The review is on Monday and the demo on Friday.",
        "The review is on Monday. / The demo is on Friday.",
    ),
    (
        "The demo was moved to Monday and the review to Friday.",
        "The demo moved to Monday. / The review moved to Friday.",
    ),
    (
        "Staging runs on Postgres and production on MySQL.",
        "Staging runs on Postgres. / Production runs on MySQL.",
    ),
    (
        "My dog is called Rex and my cat Luna.",
        "The user's dog is called Rex. / The user's cat is called Luna.",
    ),
    (
        "My rent is 900 euros and my deposit 1800.",
        "The user's rent is 900 euros. / The user's deposit is 1800.",
    ),
    ("I work at Shell and Ana at BP.", "The user works at Shell. / Ana works at BP."),
    (
        "I live in Rome and my sister Ana in Oslo.",
        "The user lives in Rome. / Ana is the user's sister. / Ana lives in Oslo.",
    ),
    ("Ana lives in Rome but Tom lives in Oslo.", "Ana lives in Rome. / Tom lives in Oslo."),
    ("Tom lives in Oslo and works at Shell.", "Tom lives in Oslo. / Tom works at Shell."),
    ("Tom moved to Oslo and loves it.", "Tom lives in Oslo."),
    ("As for the printer, it's in room 4 now.", "The printer is in room 4."),
    ("About the deploy key: it lives in Vault.", "The deploy key lives in Vault."),
    ("Speaking of Tom, he lives in Oslo now.", "Tom lives in Oslo."),
    ("Regarding the standup, it's at 10 now.", "The standup is at 10."),
    ("The printer? Room 4.", "The printer is in room 4."),
    ("The printer? It's in room 4 now.", "The printer is in room 4."),
    ("We got a dog. He's called Bruno.", "The user has a dog. / The user's dog is called Bruno."),
    ("I have a dog. His name is Rex.", "The user has a dog. / The user's dog's name is Rex."),
    ("I have a brother. He's called Tom.", "The user has a brother. / Tom is the user's brother."),
    ("Ana has a new job. It's at Shell.", "Ana's new job is at Shell."),
    ("I have a new job. It's at Shell.", "The user works at Shell."),
    ("I got a new car. It's a Skoda.", "The user drives a Skoda."),
    ("We moved! The new place is in Berchem.", "The user lives in Berchem."),
    (
        "I live with my husband Tom.",
        "The user lives with their husband Tom. / The user is married to Tom.",
    ),
    (
        "Our two kids, Lotte and Finn, are 7.",
        "Lotte is the user's child. / Finn is the user's child.",
    ),
    ("I have a son, Finn.", "The user has a son. / Finn is the user's son."),
]
NOTHING_MORE = [
    # Two of whom it can be, or nobody.
    ("We got a dog and a cat. He's called Bruno.", "lives|dog is called|cat is called"),
    ("Ana has a dog. She's called Luna.", "dog is called|Ana is called"),
    ("The next day, she lives in Oslo.", "next day"),
    # What is spoken of is living there, and nobody who does.
    ("Living in Rome is hell, says my aunt.", "lives in Rome"),
    ("Working at Shell is fun and pays well.", "works at Shell"),
    # No second part of the same kind.
    ("Tom moved to Oslo and Bergen to work.", "Bergen lives"),
    ("Ana works at Shell and volunteers at Oxfam.", "olunteers works"),
    ("The review is on Monday and Tuesday on Zoom.", "Tuesday is"),
    ("We bought a house. It's in Ghent.", "user lives in Ghent"),
    ("My wife Ana's birthday is soon.", "married to Ana's"),
    ("I have a son, Monday and Tuesday he's with me.", "Monday is"),
    ("I have two kids, Monday and Tuesday they're here.", "Monday is|Tuesday is"),
]


def _contents(*turns: str) -> list[str]:
    return [memory.content for memory in told([{"text": one} for one in turns]).known.values()]


@pytest.mark.parametrize(("turn", "known"), FULL)
def test_what_is_left_out_is_put_back(turn: str, known: str) -> None:
    """Verbs said once, topics that stand first, and what was brought up just before."""
    assert sorted(_contents(turn)) == sorted(known.split(" / "))


def test_a_pronoun_may_lean_on_the_turn_before() -> None:
    """Only on the turn right before, and on the one thing that it brought up."""
    assert "Tom's new job is at Shell." in _contents("Tom has a new job.", "It's at Shell.")
    assert "The user works at Shell." not in _contents("I have a new job.", "Ok.", "It's at Shell.")


@pytest.mark.parametrize(("turn", "wrong"), NOTHING_MORE)
def test_where_several_can_be_meant_nothing_is_put_back(turn: str, wrong: str) -> None:
    """Silence before a false memory."""
    said = " ".join(_contents(turn))
    assert not [one for one in wrong.split("|") if one in said]


def test_what_replaces_is_known_as_such() -> None:
    """Each part ends what was known of its subject."""
    turns = ["Tom lives in Bonn.", "Ana lives in Graz.", "Tom moved to Oslo and Ana to Rome."]
    known = told([{"text": one} for one in turns]).known.values()
    now = {memory.content for memory in known if memory.superseded_by is None}
    assert now == {"Tom lives in Oslo.", "Ana lives in Rome."}


PLAYED = [
    ["Let's role-play: I'm a pirate named Jack.", "I live on a ship.", "My wife is Anne."],
    ["Can we role-play an interview?", "I'm a nurse and I live in Paris."],
    ["Pretend I'm a doctor. I work at St Mary's.", "I live in Paris."],
    ["In my story the main character lives in Rome."],
    ["Imagine I live in Tokyo. Where would I eat?"],
]
ENDINGS = ["OK stop. ", "End of role-play. ", "Out of character: ", "Back to reality. "]


@pytest.mark.parametrize("turns", PLAYED)
def test_what_is_said_in_a_part_is_not_known_of_the_user(turns: list[str]) -> None:
    """Nothing, in the turn that announces it and in those after it."""
    assert not _contents(*turns)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_part_is_laid_down_again(ending: str) -> None:
    """What follows the end is known, in the same turn and after it."""
    played = [*PLAYED[0], f"{ending}I live in Ghent.", "I work at Shell."]
    assert _contents(*played) == ["The user lives in Ghent.", "The user works at Shell."]


@pytest.mark.parametrize(
    "turn",
    [
        *(
            "My girlfriend does role-play with dice.",
            "Let's play chess.",
            "Imagine I live in Oslo.",
        ),
        "Can we talk about the role-play group I joined?",
        "I want to role-play as a pirate on Saturday.",
        "I'm going to start a role-playing game club.",
        "Roleplay is my favourite hobby.",
        "Let's pretend I never said that.",
    ],
)
def test_who_speaks_of_playing_plays_no_part(turn: str) -> None:
    """What is said after it is known as ever."""
    assert "The user lives in Rome." in _contents(turn, "I live in Rome.")
