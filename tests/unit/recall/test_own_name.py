"""Asked by the user's own name, the answer is what is known of the user."""

import pytest

from engram.domain.memories import AnyMemory, SemanticMemory, Slot
from engram.language.query import in_the_users_place
from engram.recall.stages import asked_of_the_user
from tests.support.recall_memories import Memories, contents, episode, semantic


def known(text: str, subject: str, predicate: str, value: str) -> SemanticMemory:
    """A piece of knowledge with its slot."""
    return semantic(text, 1, slot=Slot(subject=subject, predicate=predicate, object=value))


NAME = known("The user is called Kate.", "user", "is called", "kate")
HOME = known("The user lives in Porto.", "user", "lives in", "porto")


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ("Where does Kate live?", "Where does the user live?"),
        ("What is Kate's address?", "What is the user's address?"),
        ("Where do Kate and Tom live?", "Where do the user and Tom live?"),
        ("Where does Kate Miller live?", "Where does the user live?"),
        ("where does kate live?", "where does the user live?"),
        ("kate's address", "the user's address"),
        ("what is kate miller's address", "what is the user's address"),
        ("is kate vegetarian", "is the user vegetarian"),
    ],
)
def test_the_name_in_a_question_means_the_user(query: str, asked: str) -> None:
    """By the first name and by the whole one; in lower case where everything is written so."""
    assert in_the_users_place(query, "kate miller") == asked


@pytest.mark.parametrize(
    "query",
    [
        "Who is Kate?",
        "What is Kate's name?",
        "Kate",
        "Where does Kate Smith live?",
        "Who is kate@example.org writing to?",
        "What do I call Kate?",
        "Where does Katherine live?",
        "where is the kate of the ship?",
        "which kate is best?",
        "Where does kate live?",
    ],
)
def test_no_other_question_is_about_the_user(query: str) -> None:
    """The name itself, somebody else, an address, oneself beside it, another word."""
    assert in_the_users_place(query, "kate miller") is None


@pytest.mark.parametrize(
    "other",
    [
        known("Kate is the user's sister.", "kate", "is the user's", "sister"),
        episode("I live in Lyon.", 1, speaker="Kate"),
    ],
)
def test_of_two_who_are_called_so_none_is_meant(other: AnyMemory) -> None:
    """A sister of that name, or somebody who speaks: the question stays as it is."""
    asked = "Where does Kate live?"
    assert asked_of_the_user(asked, [HOME, NAME]) == "Where does the user live?"
    assert asked_of_the_user(asked, [HOME, NAME, other]) is None
    assert asked_of_the_user(asked, [HOME]) is None


async def test_asked_by_the_own_name_the_answer_is_first(memories: Memories) -> None:
    """As when asked of "the user"; what holds the name alone stands behind. Who that is, is it."""
    turns = (
        episode("Hi, I'm Kate and I live in Porto.", 1),
        episode("I use Redis.", 2),
        episode("My e-mail is kate@example.org.", 3),
    )
    await memories.keep(NAME, HOME, *turns)
    by_name = await memories.ask("Where does Kate live?")
    assert by_name == await memories.ask("Where does the user live?")
    assert "Porto" in by_name[0].memory.content
    assert "Porto" in by_name[1].memory.content
    assert contents(await memories.ask("Who is Kate?"))[0] == "The user is called Kate."
