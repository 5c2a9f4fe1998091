"""What is said to hold until a day, or for some weeks, holds that long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from engram.domain.memories import MemoryType, SemanticMemory
from engram.domain.scope import Scope
from engram.language.periods import end_told
from engram.recall.context import block_of
from engram.storage.edge import EdgeRepository
from engram.storage.updates import every_page
from tests.support.in_process_memory import InProcessMemory

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "of", "end"),
    [
        ("I live in Oslo until May.", "Oslo", (6, 1)),
        ("I live in Oslo with Ann till May 1st 2026.", "Oslo", (5, 2)),
        ("I live in Oslo and work at Globex until the end of March.", "Globex", (4, 1)),
        ("I use Jira until Friday, then Linear.", "Jira", (3, 7)),
        ("I'm using a rental car this week.", "rental car", (3, 9)),
        ("I live in Bern for three weeks.", "Bern", (3, 24)),
        # Of something else, or going on.
        ("I live in Oslo and work at Globex until the end of March.", "Oslo", None),
        ("I use Jira until Friday, then Linear.", "Linear", None),
        ("I have lived in Bern for three weeks.", "Bern", None),
        ("I live in Bern for three weeks now.", "Bern", None),
        ("I moved to Bern this month.", "Bern", None),
        # Of what it is like there, or of what begins.
        ("I work at Globex on probation until May.", "Globex", None),
        ("I'm a teacher on maternity leave until May.", "teacher", None),
        ("I live in Bergen in temporary housing until May.", "Bergen", None),
        ("I'm working at Acme starting this month.", "Acme", None),
        ("I'm using Linear as of this week.", "Linear", None),
        ("I'm joining Acme this month.", "Acme", None),
        ("I'm not leaving Oslo until May.", "Oslo", None),
        ("I don't start at Acme until May.", "Acme", None),
        ("I own a boat for three weeks in summer.", "boat", None),
        ("I rent the flat in Oslo for 6 months at a time.", "Oslo", None),
        # No day of a calendar, over already, or again and again.
        ("I live in Oslo until I find a flat in May.", "Oslo", None),
        ("I live in Oslo until the lease ends in May.", "Oslo", None),
        ("I worked at Acme until May.", "Acme", None),
        ("I live in Oslo till 2020.", "Oslo", None),
        ("I work at Acme until Friday every week.", "Acme", None),
        ("I work at Acme from Monday until Friday.", "Acme", None),
        ("I work at Acme for two days a week.", "Acme", None),
    ],
)
def test_an_end_is_read_where_it_is_said_of_that_thing(
    said: str, of: str, end: tuple[int, int] | None
) -> None:
    """As late as the words leave open; not that of something else, nor what comes again."""
    assert end_told(said, of, MONDAY) == (end and datetime(2026, *end, tzinfo=UTC))


async def told(repository: EdgeRepository, *said: tuple[int, str]) -> tuple[InProcessMemory, Scope]:
    """A user who said that, so many days after the Monday, and taken up in the order given."""
    memory, scope = InProcessMemory(repository), Scope.of("ends", uuid4().hex)
    for number, (day, words) in enumerate(said):
        at = MONDAY + timedelta(days=day)
        ids = await memory.hear(scope, [words], number, at=at, session=f"s{number}")
        await memory.conclude(scope, ids, at)
    return memory, scope


async def homes(memory: InProcessMemory, scope: Scope, day: int) -> set[str]:
    """Where the user lives, asked so many days later."""
    at = MONDAY + timedelta(days=day)
    kinds = {"memory_types": MemoryType.SEMANTIC}
    hits = await memory.recall(scope, "Where does the user live?", at, **kinds)
    return {hit.memory.content.split()[-1].rstrip(".") for hit in hits}


async def test_what_holds_for_some_weeks_takes_nothings_place(repository: EdgeRepository) -> None:
    """Both answer meanwhile, and what held before holds after; what was said stays readable."""
    memory, scope = await told(
        repository, (0, "I live in Porto."), (1, "I live in Oslo until the end of April.")
    )
    assert await homes(memory, scope, 2) == {"Porto", "Oslo"}
    assert await homes(memory, scope, 90) == {"Porto"}
    page = [m async for p in every_page(repository, scope, MemoryType.SEMANTIC) for m in p]
    ends = {m.content: m.expires_at for m in page if isinstance(m, SemanticMemory)}
    assert ends["The user lives in Oslo."] == datetime(2026, 5, 1, tzinfo=UTC)
    assert ends["The user lives in Porto."] is None


async def test_a_prompt_is_told_until_when_it_holds(repository: EdgeRepository) -> None:
    """The line of what has an end names it, beside since when it holds."""
    memory, scope = await told(repository, (0, "I live in Oslo until the end of April."))
    hits = await memory.recall(scope, "Where does the user live?", MONDAY + timedelta(days=1))
    block = block_of(hits, tokens=200)
    assert "- The user lives in Oslo. (since 2026-03-02; until 2026-05-01; " in block


@pytest.mark.parametrize("in_order", [True, False])
async def test_the_latest_telling_says_whether_there_is_an_end(
    repository: EdgeRepository, *, in_order: bool
) -> None:
    """An end that is told of what is known counts, and one that is told away no more."""
    plain, ending = "I live in Oslo.", "I live in Oslo until the end of April."
    for first, then, stays in ((plain, ending, False), (ending, plain, True)):
        said = [(0, first), (3, then)]
        memory, scope = await told(repository, *(said if in_order else said[::-1]))
        assert await homes(memory, scope, 4) == {"Oslo"}
        assert await homes(memory, scope, 90) == ({"Oslo"} if stays else set())
