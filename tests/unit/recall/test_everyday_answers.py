"""What a user would call wrong: answers to everyday questions after everyday talk."""

from __future__ import annotations

from uuid import uuid4

import pytest

from engram.domain.scope import Scope
from engram.storage.edge import EdgeRepository
from tests.support.in_process_memory import InProcessMemory
from tests.support.recall_memories import NOW, day


async def answers(
    repository: EdgeRepository, said: list[str], question: str, *, as_of: int | None = None
) -> list[str]:
    """The answers, best first, after turns that were said ten days apart."""
    memory, scope = InProcessMemory(repository), Scope.of("everyday", uuid4().hex)
    for number, words in enumerate(said):
        at = day(1 + 10 * number)
        ids = await memory.hear(scope, [words], number, at=at, session=f"s{number}")
        await memory.conclude(scope, ids, at)
    then = {} if as_of is None else {"as_of": day(as_of)}
    return [hit.memory.content for hit in await memory.recall(scope, question, NOW, **then)]


@pytest.mark.parametrize(
    ("said", "question", "first", "behind"),
    [
        (
            [
                "Hi! I'm Nora, I live in Ghent with my husband Tom and our two kids.",
                "We've just moved to Antwerp, the kids love the new place.",
            ],
            "Where do I live?",
            "The user lives in Antwerp.",
            "Hi! I'm Nora, I live in Ghent with my husband Tom and our two kids.",
        ),
        (
            ["I don't use Mongo any more.", "I use Mongo again."],
            "Do I use Mongo?",
            "The user uses Mongo.",
            "I don't use Mongo any more.",
        ),
        (
            ["I quit smoking three weeks ago.", "I started smoking again."],
            "Do I smoke?",
            "The user started smoking again.",
            "I quit smoking three weeks ago.",
        ),
        (
            ["I work at Google.", "I left Google and joined a startup called Nimbus."],
            "Where do I work?",
            "The user works at Nimbus.",
            "The user no longer works at Google.",
        ),
    ],
)
async def test_what_holds_now_stands_before_what_is_over(
    repository: EdgeRepository, said: list[str], question: str, first: str, behind: str
) -> None:
    """A turn that says more than the old value, a denial that was taken back, a job that ended."""
    found = await answers(repository, said, question)
    assert found.index(first) < found.index(behind)


_TOOLS = ["I use Helix.", "We use uv.", "I ditched Helix."]
_HELIX_IS_OVER = "The user no longer uses Helix."


@pytest.mark.parametrize("question", ["Which linter do I use?", "What do I use?"])
async def test_what_is_over_comes_behind_what_holds_where_nobody_asks_for_it(
    repository: EdgeRepository, question: str
) -> None:
    """Which of the tools ended is no answer to who asks for those in use."""
    found = await answers(repository, _TOOLS, question)
    assert found.index("The user uses uv.") < found.index(_HELIX_IS_OVER)


@pytest.mark.parametrize(
    "question", ["Do I use Helix?", "What do I no longer use?", "Which tool did I stop using?"]
)
async def test_what_is_over_stays_first_where_it_is_asked_for(
    repository: EdgeRepository, question: str
) -> None:
    """By its name, or because it is over."""
    found = await answers(repository, _TOOLS, question)
    assert found.index(_HELIX_IS_OVER) < found.index("The user uses uv.")


async def test_a_turn_stays_first_for_what_it_says_and_still_holds(
    repository: EdgeRepository,
) -> None:
    """Only the question about the old value lowers it; as of before the move nothing does."""
    said = ["My name is Nora and I live in Ghent.", "I moved to Antwerp."]
    named = await answers(repository, said, "What is my name?")
    assert named.index(said[0]) < named.index("The user lives in Antwerp.")
    then = await answers(repository, said, "Where do I live?", as_of=5)
    assert "The user lives in Ghent." in then
    assert "The user lives in Antwerp." not in then


async def test_who_quits_again_is_denied_again(repository: EdgeRepository) -> None:
    """The same denial, told once more, speaks against what was said between its two tellings."""
    said = ["I don't use Mongo.", "I use Mongo again.", "I don't use Mongo."]
    found = await answers(repository, said, "Do I use Mongo?")
    assert "The user uses Mongo." not in found
    assert found.index("The user does not use Mongo.") < found.index("I use Mongo again.")


async def test_who_introduces_themselves_is_asked_about_by_that_name(
    repository: EdgeRepository,
) -> None:
    """As customers do, without "my name is": what is known of the user answers first."""
    said = ["I'm Maria Keller.", "I live in Potsdam."]
    found = await answers(repository, said, "Where does Maria live?")
    assert set(found[:2]) == {"The user lives in Potsdam.", "I live in Potsdam."}


async def test_a_medicine_that_is_no_longer_taken_is_no_answer(repository: EdgeRepository) -> None:
    """How often it was taken does not keep it among what holds."""
    said = ["I take metformin twice a day.", "I stopped taking metformin because of nausea."]
    found = await answers(repository, said, "What medication do I take?")
    assert "The user takes metformin twice a day." not in found


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("Where does the user live?", "The user lives in Lisbon."),
        ("Do I use Mongo?", "The user does not use Mongo."),
        ("Which city is my home?", "The user lives in Lisbon."),
    ],
)
async def test_what_replaced_the_value_asked_for_answers(
    repository: EdgeRepository, question: str, first: str
) -> None:
    """A turn of several values that are all replaced brings up what replaced the one asked for."""
    told = "I live in Porto and I use Mongo."
    changed = "I moved to Lisbon. I don't use Mongo any more."
    found = await answers(repository, [told, changed], question)
    assert found[0] == first
