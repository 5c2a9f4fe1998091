"""What is told again and again: the latest value leads, what was told by then, the next day."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from engram.domain.scope import Scope
from engram.language.tellings import asked_for
from engram.recall.results import RecallHit
from engram.storage.edge import EdgeRepository
from tests.support.in_process_memory import InProcessMemory
from tests.support.recall_memories import NOW, day

DATA = Path(__file__).parents[2] / "data"
_SEVERAL = 5


def stories(file: str) -> Iterator[dict[str, Any]]:
    """The stories of a file of ``tests/data``."""
    yield from map(json.loads, (DATA / file).read_text("utf-8").splitlines())


async def answers(
    repository: EdgeRepository, turns: list[tuple[float, str]], ask: str, now: float, **more: Any
) -> list[str]:
    """The answers at a day, best first, after turns that were said on theirs."""
    memory, scope = InProcessMemory(repository), Scope.of("current", uuid4().hex)
    for number, (at, words) in enumerate(turns):
        ids = await memory.hear(scope, [words], number, at=day(at), session=f"s{number}")
        await memory.conclude(scope, ids, day(at))
    hits: list[RecallHit] = list(await memory.recall(scope, ask, day(now), **more))
    return [hit.memory.content for hit in hits]


def is_right(story: dict[str, Any], found: list[str]) -> bool:
    """Whether what is right stands before all that is wrong; of several, all among the first."""
    if story.get("all"):
        return all(any(one in words for words in found[:_SEVERAL]) for one in story["right"])
    for words in found:
        if any(one in words for one in story["right"]):
            return True
        if any(one in words for one in story["wrong"]):
            return False
    return False


@pytest.mark.parametrize(
    ("file", "floor"), [("measures.seen.jsonl", 40), ("measures.held.jsonl", 34)]
)
async def test_the_value_that_is_asked_for_stands_before_all_others(
    repository: EdgeRepository, file: str, floor: int
) -> None:
    """Measures, doses, appointments and decisions over months of ordinary talk."""
    wrong = []
    for story in stories(file):
        more = {"as_of": day(story["as_of"])} if "as_of" in story else {}
        turns = [(at, words) for at, words in story["turns"]]
        found = await answers(repository, turns, story["ask"], story["now"], **more)
        if not is_right(story, found):
            wrong.append(story["id"])
    assert len(list(stories(file))) - len(wrong) >= floor, wrong


async def test_what_is_asked_about_a_time_that_is_over_is_what_was_told_by_its_end(
    repository: EdgeRepository,
) -> None:
    """A turn whose value was replaced only afterwards is not outdated for that time."""
    said = [(1.0, "I weigh 88 kg."), (65.0, "I weigh 85 kg."), (125.0, "I weigh 82 kg.")]
    march = await answers(repository, said, "What did I weigh in March?", 200)
    assert march[0] == "I weigh 85 kg."
    now = await answers(repository, said, "How much do I weigh?", 200)
    assert now[0] in {"The user weighs 82 kg.", "I weigh 82 kg."}


async def test_the_last_appointment_is_the_latest_that_is_over(repository: EdgeRepository) -> None:
    """Of three told months before, the one before today for "last", the first ahead for "next"."""
    said = [(10.0, "Ultrasound on March 5."), (30.0, "Ultrasound on April 9.")]
    said.append((31.0, "Ultrasound on May 14."))
    for ask, first in (("last", said[0]), ("next", said[1])):
        found = await answers(repository, said, f"When is the {ask} ultrasound?", 70)
        assert found[0] == first[1]


async def test_a_day_that_was_moved_is_no_longer_the_next(repository: EdgeRepository) -> None:
    """The later day leads though the day before its move comes sooner."""
    said = [(10.0, "Dentist on June 3."), (20.0, "They moved the dentist to June 10.")]
    found = await answers(repository, said, "When is my next dentist appointment?", 60)
    assert "June 10" in found[0]


SAME = [
    ("How much do I weigh?", "I weigh 81 kg.", "This morning I weighed 80.2 kg."),
    ("How many cats do I have?", "I have two cats.", "I have three cats now."),
    ("What's our runway?", "Runway is 14 months.", "Runway is 9 months after the hires."),
    ("What's my credit score?", "My credit score is 690.", "Credit score went up to 710."),
    ("How old is Leo?", "Leo is 4 years old.", "Leo is 5 years old."),
]
NOT_THE_SAME = [
    # Of something else.
    ("How much is my rent?", "My rent is 800.", "My rent deposit was 1600."),
    ("How much is my rent?", "My rent is 800.", "The rent increase is 75."),
    ("How much is the car?", "The car is 9,000 euros.", "The car insurance is 640 euros."),
    ("How much is the car?", "The car is 9,000 euros.", "Fixing the car cost 300 euros."),
    ("How much do I weigh?", "I weigh 81 kg.", "My suitcase weighs 23 kg."),
    ("How much do I weigh?", "I weigh 81 kg.", "I weighed the parcel, 2.3 kg."),
    ("How much do I weigh?", "I weigh 81 kg.", "I weigh the flour first, 500 g."),
    ("What's my heart rate?", "My resting heart rate is 61.", "Heart rate hit 171 on the hill."),
    ("How many cats do I have?", "I have 2 cats.", "There are 3 cats in the yard."),
    (
        "How long to the office?",
        "The drive to the office is 40 minutes.",
        "The train to the office is 25 minutes.",
    ),
    ("What's my bank balance?", "My bank balance is 1,200 euros.", "The bank charged me 15 euros."),
    ("How many pages is my thesis?", "My thesis is 80 pages.", "Wrote 5 pages of my thesis."),
    # Of somebody else.
    ("How much do I earn?", "I earn 3,100 euros.", "Ben earns 5,000 euros."),
    ("How tall am I?", "I'm 178 cm tall.", "My brother is 190 cm tall."),
    # In something else, or by another measure.
    ("What's the sofa?", "The sofa is 900 euros.", "The sofa is 210 cm wide."),
    ("How much do I earn?", "I earn 3,100 euros a month.", "I earn 40 euros an hour on the side."),
    ("Which bus do I take?", "I take bus 12 to work.", "Bus 40 was late again."),
    ("Which is my order?", "Order no. 9534, socks.", "Order no. 1177, socks."),
    # Wished, supposed, denied, aimed at, past, or beside it.
    ("How much do I weigh?", "I weigh 81 kg.", "I want to weigh 75 kg."),
    ("How much do I weigh?", "I weigh 81 kg.", "If I weighed 75 kg I could run."),
    ("How much do I weigh?", "I weigh 81 kg.", "I don't weigh 79 kg yet."),
    ("How much do I weigh?", "I weigh 81 kg.", "Back in 2019 I weighed 70 kg."),
    ("What's my salary?", "My salary is 52,000.", "My old salary was 48,000."),
    ("How much ramipril?", "I take ramipril 5 mg.", "I also take ramipril 2.5 mg."),
    ("How much ramipril?", "Ramipril 5 mg in the morning.", "Ramipril 2.5 mg in the evening."),
]


@pytest.mark.parametrize(("query", "old", "new"), SAME)
def test_a_value_told_anew_is_one_of_the_same(query: str, old: str, new: str) -> None:
    """In other words, with what was done beside it, or counted again."""
    assert renews(query, old, new)


@pytest.mark.parametrize(("query", "old", "new"), NOT_THE_SAME)
def test_what_is_told_of_something_else_renews_no_value(query: str, old: str, new: str) -> None:
    """A part, a person, a unit, a wish: none of them takes the place of what is."""
    assert not renews(query, old, new)


def renews(query: str, old: str, new: str) -> bool:
    """Whether a sentence tells anew what another told of what is asked for."""
    asked = asked_for(query)
    assert asked is not None
    return any(
        asked.measures_the_same(later, earlier)
        for later in asked.told_by(new)
        for earlier in asked.told_by(old)
    )


async def test_who_gives_no_value_moves_nothing(repository: EdgeRepository) -> None:
    """A wish told later stays behind what is, however near it comes to the question."""
    said = [(1.0, "My rent is 800 euros."), (9.0, "I'd love to pay a rent of 600 euros.")]
    found = await answers(repository, said, "How much is my rent?", (NOW - day(0)).days)
    assert "800" in found[0]
