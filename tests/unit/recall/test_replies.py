"""A turn and the reply to it: which of the two answers."""

from __future__ import annotations

from typing import Any

import pytest

from engram.language.query import analyse
from engram.recall.replies import replies_in_place
from engram.recall.results import Part, Ranked
from tests.support.recall_memories import NOW, day, episode

MINUTE = 1 / (24 * 60)


def turn(text: str, place: int, role: str = "user", *, on: float = 0, **more: Any) -> Any:
    """A turn of one conversation of that day, at that place in it; a minute for each."""
    return episode(text, on + place * MINUTE, role=role, sequence=place, **more)


def order(query: str, *found: Ranked) -> list[str]:
    """What is said in the turns, as they are ordered for a question."""
    placed = replies_in_place(found, query, analyse(query, NOW))
    return [one.memory.content for one in placed]


@pytest.mark.parametrize(
    ("query", "said", "replied"),
    [
        ("What did you suggest against the cough?", "I have a cough, what helps?", "Ginger tea."),
        ("Where do the keys hang?", "Any idea where the keys hang?", "Behind the door."),
        ("When does the ferry leave?", "When does our ferry leave?", "It leaves on Friday."),
        ("How much is the ferry?", "How much is our ferry?", "It takes 40 euros."),
    ],
)
def test_an_answer_stands_before_the_question_it_answers(
    query: str, said: str, replied: str
) -> None:
    """What repeats the words of the question gives its place to what the assistant said to it."""
    found = Ranked(turn(said, 1), 0.8), Ranked(turn(replied, 2, "assistant"), 0.2)
    assert order(query, *found) == [replied, said]


@pytest.mark.parametrize(
    ("query", "said", "replied", "more"),
    [
        ("What is my wok made of?", "What do I cook with my iron wok?", "Fried rice.", {}),
        ("Where do the keys hang?", "Where do the keys hang?", "Did you look?", {}),
        ("What could I cook in the wok?", "What cooks in a wok?", "Fried rice.", {}),
        ("Where do the keys hang?", "Any idea where the keys hang?", "No.", {"place": 3}),
        ("Where do the keys hang?", "Any idea where the keys hang?", "No.", {"session_id": "s2"}),
    ],
)
def test_a_question_keeps_its_place_where_the_reply_is_no_answer(
    query: str, said: str, replied: str, more: dict[str, Any]
) -> None:
    """It tells of who asks, a question is no answer, advice is wanted, or it is no reply to it."""
    reply = turn(replied, more.pop("place", 2), "assistant", **more)
    found = Ranked(turn(said, 1), 0.8), Ranked(reply, 0.2)
    assert order(query, *found) == [said, replied]


@pytest.mark.parametrize(
    ("replied", "speaker", "first"),
    [("On 3 June.", "Bo", True), ("No idea.", "Bo", False), ("On 3 June.", "Ada", False)],
)
def test_people_answer_each_other_with_what_is_asked_for(
    replied: str, speaker: str, *, first: bool
) -> None:
    """A time for a when, from somebody else: people ask much that nobody answers."""
    asked = turn("When is the boat painted?", 1, speaker="Ada")
    found = Ranked(asked, 0.8), Ranked(turn(replied, 2, speaker=speaker), 0.2)
    assert (order("When is the boat painted?", *found)[0] == replied) is first


def test_an_answer_has_what_its_question_matched_without_what_asking_cost() -> None:
    """Both tell why they moved, and their parts sum up to their scores still."""
    parts = (Part("sparse", 1.0, 0.8), Part("asking", 1.0, -0.3))
    asked = Ranked(turn("Where do the keys hang?", 1), 0.5, parts, asking=-0.3)
    answer = Ranked(turn("Behind the door.", 2, "assistant"), 0.2, (Part("sparse", 1.0, 0.2),))
    query = "Where do the keys hang?"
    first, second = replies_in_place([asked, answer], query, analyse(query, NOW))
    assert [one.memory for one in (first, second)] == [answer.memory, asked.memory]
    assert [one.score for one in (first, second)] == pytest.approx([0.8, 0.5])
    assert first.parts[-1].name == "answers"
    for one in (first, second):
        assert sum(part.contribution for part in one.parts) == pytest.approx(one.score)


@pytest.mark.parametrize(
    ("query", "said", "replied"),
    [
        ("What's Ida's number?", "Ida has a new number, 030 5512.", "Thanks, Ida's number is in."),
        ("Who plays in the quartet?", "My quartet is Bo, Ida and me.", "A quartet, lovely!"),
    ],
)
def test_an_echo_stands_behind_what_it_echoes(query: str, said: str, replied: str) -> None:
    """An assistant that only repeats the words asked for has them from the turn before."""
    echo = Ranked(turn(replied, 2, "assistant"), 0.8)
    told = Ranked(turn(said, 1), 0.6)
    assert order(query, echo, told) == [said, replied]
    found = replies_in_place([echo, told], query, analyse(query, NOW))
    assert found[0] == told
    assert found[1].parts[-1].name == "echo"


@pytest.mark.parametrize(
    ("query", "said", "replied", "role"),
    [
        ("When is the quartet on?", "I asked about the quartet.", "The quartet is on 3 June.", ""),
        ("What did you say of the quartet?", "My quartet is nice.", "A quartet, lovely!", ""),
        ("Does the quartet pay?", "My quartet is nice.", "Each quartet has to pay.", ""),
        ("Who plays in the quartet?", "My quartet is nice.", "A quartet, lovely!", "user"),
    ],
)
def test_what_says_more_than_the_turn_before_is_no_echo(
    query: str, said: str, replied: str, role: str
) -> None:
    """The time asked for, what the assistant is asked for, another word asked for, or a person."""
    found = Ranked(turn(replied, 2, role or "assistant"), 0.8), Ranked(turn(said, 1), 0.6)
    assert order(query, *found) == [replied, said]


ASKED, ANSWERED = "Any idea where the keys hang?", "Behind the door."


@pytest.mark.parametrize(("asked", "said"), [(0, 60), (60, 0)], ids=["said later", "said before"])
def test_the_numbers_of_a_session_that_was_taken_up_again_tell_of_no_reply(
    asked: float, said: float
) -> None:
    """They begin anew each time: what was said months apart is no turn and its reply."""
    other = turn("Done, for eight.", 1, "assistant", on=said)
    found = Ranked(turn(ASKED, 0, on=asked), 0.8), Ranked(other, 0.2)
    assert order("Where do the keys hang?", *found)[0] == ASKED


def test_each_life_of_a_session_has_its_own_replies() -> None:
    """Two turns of one number are two turns, within one hour, too."""
    again = 20 * MINUTE
    found = (
        Ranked(turn(ASKED, 0), 0.8),
        Ranked(turn("Where do the coats hang?", 0, on=again), 0.7),
        Ranked(turn("In the hall.", 1, "assistant", on=again), 0.2),
        Ranked(turn(ANSWERED, 1, "assistant"), 0.1),
    )
    assert order("Where do the keys hang?", *found) == [
        *(ANSWERED, ASKED, "In the hall.", "Where do the coats hang?")
    ]


def test_what_was_stored_before_a_turn_is_no_reply_to_it() -> None:
    """A session that was ended and taken up again at once: the assistant spoke before."""
    found = (
        Ranked(turn(ASKED, 0, on=20 * MINUTE), 0.8),
        Ranked(turn("Done, for eight.", 1, "assistant"), 0.2),
    )
    assert order("Where do the keys hang?", *found)[0] == ASKED


def test_a_reply_may_be_dated_by_another_clock() -> None:
    """Stored after the turn, it answers it, though its time is that of a clock that is behind."""
    answer = turn(ANSWERED, 1, "assistant")
    behind = answer.model_copy(update={"timestamp": day(-0.001)})
    found = Ranked(turn(ASKED, 0), 0.8), Ranked(behind, 0.2)
    assert order("Where do the keys hang?", *found) == [ANSWERED, ASKED]
