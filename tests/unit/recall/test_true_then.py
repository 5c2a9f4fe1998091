"""What was true at a time, by all that is known since: ``valid_at``."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from uuid import uuid4

import pytest

from engram.domain.memories import MemoryType
from engram.domain.scope import Scope
from engram.storage.edge import EdgeRepository
from tests.support.in_process_memory import InProcessMemory
from tests.support.recall_memories import NOW

MAY, JUNE, JULY, AUGUST = (datetime(2026, month, 10, tzinfo=UTC) for month in (5, 6, 7, 8))
CONCLUDED = (MemoryType.SEMANTIC, MemoryType.NEGATION)


async def true_at_each(
    repository: EdgeRepository, question: str, kinds: tuple[MemoryType, ...], *said: str
) -> list[set[str]]:
    """What answers for ten days after each turn; they were told a month apart, from May on."""
    memory, scope = InProcessMemory(repository), Scope.of("then", uuid4().hex)
    times = (MAY, JUNE, JULY)[: len(said)]
    for number, (words, at) in enumerate(zip(said, times, strict=True)):
        ids = await memory.hear(scope, [words], number, at=at, session=f"s{number}")
        await memory.conclude(scope, ids, at)
    found: list[set[str]] = []
    for at in times:
        then = at.replace(day=20)
        hits = await memory.recall(scope, question, NOW, valid_at=then, memory_types=kinds)
        found.append({hit.memory.content for hit in hits})
    return found


@pytest.mark.parametrize(
    ("first", "then", "so", "over"),
    [
        ("I live in Paris.", "I no longer live in Paris.", "lives in Paris", "lives in Paris"),
        ("I use Vim.", "I don't use Vim any more.", "uses Vim", "uses Vim"),
        ("I'm married to Ann.", "We split up.", "is married to Ann", "married to Ann"),
    ],
)
async def test_what_has_ended_was_true_before(
    repository: EdgeRepository, first: str, then: str, so: str, over: str
) -> None:
    """Its end neither hides it from the time before, nor is told of that time."""
    before, after = await true_at_each(repository, f"The user {so}?", CONCLUDED, first, then)
    assert before == {f"The user {so}."}
    assert f"The user {so}." not in after
    assert any(f"no longer {over}" in one for one in after)


async def test_what_is_no_habit_any_more_was_one_before(repository: EdgeRepository) -> None:
    """Also where nothing took its place: what has no slot is only denied."""
    said = ("I always drink coffee at dawn.", "I don't drink coffee at dawn any more.")
    question = "Does the user drink coffee at dawn?"
    before, after = await true_at_each(repository, question, CONCLUDED, *said)
    assert before == {"The user always drinks coffee at dawn."}
    assert before.isdisjoint(after)


async def test_an_end_of_what_had_ended_says_nothing_of_the_time_before(
    repository: EdgeRepository,
) -> None:
    """Told after the next job was, that the last one is over is known from then on."""
    said = ("I work at Acme.", "I started working at Globex.", "I don't work at Acme any more.")
    first, second, third = await true_at_each(
        repository, "Where does the user work?", CONCLUDED, *said
    )
    assert first == {"The user works at Acme."}
    assert second == {"The user works at Globex."}
    assert {"The user works at Globex.", "The user no longer works at Acme."} <= third


@pytest.mark.parametrize("moved", [(), ("I moved to Lisbon.",)])
async def test_what_never_was_is_not_true_of_any_time(
    repository: EdgeRepository, moved: tuple[str, ...]
) -> None:
    """Who has never lived there did not live there in May, though something took its place."""
    said = ("I live in Paris.", *moved, "I've never lived in Paris.")
    in_may, *_ = await true_at_each(repository, "Where does the user live?", CONCLUDED, *said)
    assert in_may == {"The user has never lived in Paris."}


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (2, 1, 0)])
async def test_each_address_was_in_use_from_when_it_took_the_place_of_another(
    repository: EdgeRepository, order: tuple[int, ...]
) -> None:
    """At each time one answers, in whichever order they came in."""
    memory, scope = InProcessMemory(repository), Scope.of("then", uuid4().hex)
    for number in order:
        at = (MAY, JUNE, JULY)[number]
        words = f"My email is {'abc'[number]}@acme.example."
        await memory.hear(scope, [words], number, at=at, session=f"s{number}")
    for number, (since, until) in enumerate(pairwise((MAY, JUNE, JULY, AUGUST))):
        for then in (since, until.replace(day=9)):
            hits = await memory.recall(
                scope,
                "What is the user's email?",
                NOW,
                valid_at=then,
                memory_types=MemoryType.FACTUAL,
            )
            assert [hit.memory.content for hit in hits] == [
                f"email address: {'abc'[number]}@acme.example"
            ]
