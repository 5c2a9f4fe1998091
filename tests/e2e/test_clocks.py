"""Time through the public API: the conversation's, a clock's of one's own, one that is behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio.testing import ActivityEnvironment
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput

import engram
from engram import Turn
from engram.activities.runtime import ClockInterceptor
from engram.client.memory import MemoryStore
from engram.contracts.lifecycle import WalkInput
from engram.domain.memories import DerivedMemory, MemoryStatus, SemanticMemory
from engram.domain.rules import LifecycleRules
from engram.domain.scope import Scope
from engram.errors import InvalidQuery, InvalidSettings
from engram.recall.request import RecallAtArguments

# One Engram for all tests here, each with a user of its own.
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("clocks")]

BEGINNING = datetime(2021, 3, 1, 10, tzinfo=UTC)


class SetClock:
    """A clock that says what it is set to."""

    def __init__(self) -> None:
        self.now = BEGINNING

    def __call__(self) -> datetime:
        """The moment that it is set to."""
        return self.now


@pytest.fixture(scope="module")
def clock() -> SetClock:
    """The one that Engram goes by here; each test sets it."""
    return SetClock()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where Engram keeps its data."""
    return tmp_path_factory.mktemp("clocks") / "data"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(folder: Path, clock: SetClock) -> AsyncIterator[MemoryStore]:
    """An embedded Engram that goes by the clock."""
    async with engram.open(folder, user_id="nobody", clock=clock) as store:
        yield store


@pytest.fixture
def memory(running: MemoryStore, clock: SetClock) -> MemoryStore:
    """The memory of a user who has said nothing yet, at the beginning."""
    clock.now = BEGINNING
    return running.for_user(f"user-{uuid4().hex[:8]}")


def years(number: int) -> datetime:
    """So many years after the beginning."""
    return BEGINNING.replace(year=BEGINNING.year + number)


async def test_an_answer_as_of_then_is_as_sure_as_one_was_then(
    memory: MemoryStore, clock: SetClock
) -> None:
    """Told in 2021, five times in 2025, and confirmed: as of 2022 it has one source."""
    clock.now = years(5)
    told = [BEGINNING, *(years(4) + timedelta(days=n) for n in range(5))]
    for number, at in enumerate(told):
        turn = Turn(content="I like green tea.", timestamp=at)
        await memory.encode(turn, session_id=f"s{number}")
    await memory.consolidate()
    asked = "What does the user like?"
    (now,) = await memory.recall(asked, memory_types=["semantic"])
    await memory.confirm(now.memory.id)
    (then,) = await memory.recall_at(asked, as_of=years(1), memory_types=["semantic"], explain=True)
    assert isinstance(now.memory, DerivedMemory)
    assert isinstance(then.memory, DerivedMemory)
    assert now.memory.confidence.supporting_episodes == 6
    sure = then.memory.confidence
    assert (sure.supporting_episodes, sure.last_confirmed) == (1, BEGINNING)
    assert sure.verification == "evidence_found"
    assert then.explanation is not None
    assert "1 supporting episode, last confirmed 1 year ago" in (then.explanation.confidence or "")
    assert then.confidence == pytest.approx(sure.score(years(1)))
    assert then.confidence is not None
    assert now.confidence is not None
    surer: RecallAtArguments = {
        "min_confidence": then.confidence + 0.01,
        "memory_types": ["semantic"],
    }
    assert await memory.recall_at(asked, as_of=years(1), **surer) == []


async def test_repeats_within_one_conversation_make_nothing_surer(
    memory: MemoryStore, clock: SetClock
) -> None:
    """Eight times within a second is one voice with eight sources; another day is a second one."""
    clock.now = years(1)
    for n in range(8):
        turn = Turn(content="I like green tea.", timestamp=BEGINNING + timedelta(milliseconds=n))
        await memory.encode(turn, session_id="s1")
    await memory.consolidate()
    (once,) = await memory.recall("What does the user like?", memory_types=["semantic"])
    again = Turn(content="I like green tea.", timestamp=BEGINNING + timedelta(days=1))
    await memory.encode(again, session_id="s1")
    await memory.consolidate()
    (twice,) = await memory.recall("What does the user like?", memory_types=["semantic"])
    assert isinstance(once.memory, DerivedMemory)
    assert isinstance(twice.memory, DerivedMemory)
    assert (len(once.memory.source_episode_ids), len(twice.memory.source_episode_ids)) == (8, 9)
    assert once.memory.confidence.supporting_episodes == 1
    assert twice.memory.confidence.supporting_episodes == 2
    assert once.confidence is not None
    assert twice.confidence is not None
    assert once.confidence < twice.confidence


async def test_links_of_an_old_conversation_are_followed_as_of_then(
    memory: MemoryStore, clock: SetClock
) -> None:
    """What was said in 2021 and read in years later leads to one another as of 2021."""
    clock.now = years(5)
    for number, words in enumerate(("I use PostgreSQL for my project.", "I like PostgreSQL.")):
        at = BEGINNING + timedelta(days=number)
        await memory.encode(Turn(content=words, timestamp=at), session_id="s1")
    await memory.consolidate()
    page = await memory.list(memory_types=["semantic"])
    linked = [m for m in page.memories if isinstance(m, SemanticMemory) and m.links]
    assert linked
    for one in linked:
        for link in one.links:
            assert BEGINNING <= link.first_seen <= link.last_seen <= at
    hits = await memory.recall_at(
        "What does the user use?",
        as_of=at + timedelta(days=30),
        follow_links=True,
        explain=True,
        memory_types=["semantic"],
    )
    assert any(hit.explanation and hit.explanation.links for hit in hits)


async def test_a_clock_moves_what_workflows_decide(memory: MemoryStore, clock: SetClock) -> None:
    """What consolidation and decay write carries the clock's moments; a year on, it has faded."""
    await memory.encode("I like green tea. The meeting is at noon today.", session_id="s1")
    report = await memory.consolidate()
    assert report.stored
    page = await memory.list(limit=100)
    assert {m.created_at for m in page.memories} == {BEGINNING}
    clock.now = years(3)
    assert (await memory.decay(dry_run=True)).changed
    await memory.decay()
    gone = [m for m in (await memory.list(status=None, limit=100)).memories if m.archived_at]
    left = gone or (await memory.list(status=MemoryStatus.ARCHIVED, limit=100)).memories
    assert {m.archived_at for m in left} == {years(3)}


async def test_who_looks_ahead_looks_from_the_clocks_present() -> None:
    """The moment that is asked for stays; what it is looked at from is the clock's."""

    class Inside(ActivityInboundInterceptor):
        async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - Temporal's name
            return input.args[0]

    asked = WalkInput(
        scope=Scope.of("default", "ada"),
        now=years(9),
        rules=LifecycleRules(),
        batch=1,
        at_asked=True,
        present=years(2),
    )
    given = ExecuteActivityInput(fn=print, args=[asked], executor=None, headers={})
    clocked = ClockInterceptor(lambda: BEGINNING).intercept_activity(Inside(None))  # type: ignore[arg-type]  # nothing follows
    seen = await ActivityEnvironment().run(clocked.execute_activity, given)
    assert (seen.now, seen.present) == (years(9), BEGINNING)


async def test_what_is_said_later_counts_though_the_clock_was_set_back(
    memory: MemoryStore, clock: SetClock
) -> None:
    """An hour back in the middle of a session: what was said last is so, and comes last."""
    await memory.encode("I live in Porto.", session_id="s1")
    await memory.consolidate()
    clock.now -= timedelta(hours=1)
    await memory.encode("I moved to Lisbon.", session_id="s1")
    await memory.consolidate()
    hits = await memory.recall("Where does the user live?", memory_types=["semantic"])
    assert ["Lisbon" in hit.memory.content for hit in hits] == [True]
    turns = (await memory.list(memory_types=["episodic"])).memories
    assert [one.content for one in sorted(turns, key=lambda one: one.known_at)] == [
        "I live in Porto.",
        "I moved to Lisbon.",
    ]


async def test_a_clock_that_is_behind_loses_nothing_that_is_said(
    memory: MemoryStore, clock: SetClock
) -> None:
    """Disputed, confirmed and demoted half a minute before it was written: each in its turn."""
    await memory.encode("I like green tea.", session_id="s1")
    await memory.consolidate()
    page = await memory.list(memory_types=["semantic"])
    one = next(m for m in page.memories if isinstance(m, SemanticMemory) and m.slot)
    clock.now = BEGINNING - timedelta(seconds=30)
    disputed = await memory.dispute(one.id)
    assert "disputed" in [change.target for change in disputed.changes]
    confirmed = await memory.confirm(one.id)
    assert "validated" in [change.target for change in confirmed.changes]
    demoted = await memory.demote(one.id)
    assert demoted.memory.status is MemoryStatus.ARCHIVED
    assert demoted.memory.archived_at == BEGINNING


async def test_a_clock_that_could_move_nothing_is_refused(
    running: MemoryStore, folder: Path, clock: SetClock
) -> None:
    """Where others decide, by attaching or over a network, a clock is a typed error."""
    with pytest.raises(InvalidSettings) as attached:
        async with engram.open(folder, user_id="ada", clock=clock):
            pass
    with pytest.raises(InvalidSettings) as connected:
        async with engram.connect("http://127.0.0.1:9", user_id="ada", clock=clock):
            pass
    assert "its own clock" in str(attached.value)
    assert "its own clock" in str(connected.value)


async def test_yesterday_is_that_of_where_the_user_is(memory: MemoryStore, clock: SetClock) -> None:
    """At eight in the morning in Tokyo, what was done there the day before, and that day's date."""
    clock.now = datetime(2026, 7, 1, 23, tzinfo=UTC)
    for place, at in (
        ("the aquarium", datetime(2026, 6, 30, 10, tzinfo=UTC)),
        ("the planetarium", datetime(2026, 7, 1, 14, tzinfo=UTC)),
    ):
        turn = Turn(content=f"I went to {place} with Ken.", timestamp=at)
        await memory.encode(turn, session_id="s1")
    await memory.consolidate()
    asked = "Where did I go yesterday?"
    there = await memory.recall(asked, timezone="Asia/Tokyo", limit=1, explain=True)
    elsewhere = await memory.recall(asked, limit=1, explain=True)
    assert "planetarium" in there[0].memory.content
    assert "aquarium" in elsewhere[0].memory.content
    assert "asked about 2026-07-01 to 2026-07-01" in str(there[0].explanation)
    assert "asked about 2026-06-30 to 2026-06-30" in str(elsewhere[0].explanation)
    clock.now += timedelta(hours=2)
    turn = Turn(content="I had soup.", timestamp=datetime(2026, 7, 1, 23, 30, tzinfo=UTC))
    await memory.encode(turn, session_id="s2")
    block = await memory.context("What soup?", timezone="Asia/Tokyo")
    assert "- I had soup. (user, 2026-07-02; session s2)" in block
    assert "(user, 2026-07-01; session s2)" in await memory.context("What soup?")
    with pytest.raises(InvalidQuery, match=r"The zone is unknown\."):
        await memory.recall(asked, timezone="Tokyo")
