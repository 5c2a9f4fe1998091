"""Asked by the user's own name, the answer is what is known of the user."""

import pytest

from engram.domain.memories import AnyMemory, SemanticMemory, Slot
from engram.language.query import in_the_users_place
from engram.recall.stages import asked_of_the_user
from tests.support.recall_memories import NOW, Memories, contents, episode, semantic


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
    assert in_the_users_place(query, "kate miller", NOW) == asked


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
    assert in_the_users_place(query, "kate miller", NOW) is None


@pytest.mark.parametrize(
    ("name", "query", "asked"),
    [
        ("may", "What happened in May?", None),
        ("june", "What did June do last June?", "What did the user do last June?"),
        ("april", "What was said since April?", None),
        ("august", "Who came on August 3?", None),
        ("summer", "Where were the children last Summer?", None),
        ("may", "What is May's address?", "What is the user's address?"),
        ("may", "Does May like tea?", "Does the user like tea?"),
        ("austin", "What is the weather in Austin like?", None),
        ("austin", "What is in Austin's bag?", "What is in the user's bag?"),
        ("chase", "What is the Chase login?", None),
        ("rose", "How much is a Rose bush?", None),
        ("will", "Will the roof be fixed?", None),
        ("will", "when will the roof be fixed?", None),
        ("will", "where does will live?", "where does the user live?"),
    ],
)
def test_a_name_that_is_another_word_too_stays_that_word(
    name: str, query: str, asked: str | None
) -> None:
    """A month, a season, a town, a bank, a plant or a verb is asked about as by anybody else."""
    assert in_the_users_place(query, name, NOW) == asked


async def test_who_is_called_like_a_month_can_ask_about_that_month(memories: Memories) -> None:
    """The turn of that time gains by it, and the explanation names what was looked at, no more."""
    name = known("The user is called May.", "user", "is called", "may")
    there = episode("We rented a cabin by the lake and it rained.", 140)
    await memories.keep(name, there, episode("Which trips were sold at the bank?", 240))
    hits = await memories.ask("Which trips were there in May?", explain=True)
    told = {hit.memory.id: hit.explanation for hit in hits if hit.explanation}
    assert "period" in {part.name for part in told[there.id].parts}
    assert {str(one.period) for one in told.values()} == {"2024-05-01 to 2024-05-31"}


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
    assert asked_of_the_user(asked, [HOME, NAME], NOW) == "Where does the user live?"
    assert asked_of_the_user(asked, [HOME, NAME, other], NOW) is None
    assert asked_of_the_user(asked, [HOME], NOW) is None


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
