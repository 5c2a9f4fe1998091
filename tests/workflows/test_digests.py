"""The digest stage on a real Temporal server and the real engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from temporalio.client import Client

from engram.contracts import names
from engram.digests import guidelines
from engram.digests.stage import Digests
from engram.domain.memories import MemoryType, SemanticMemory
from engram.errors import SchemaMismatch
from engram.operations.digests import AboutBoxes, AboutSomebody
from engram.operations.registry import Question
from engram.ports import MemoryRepository
from engram.settings import Settings
from tests.support.consolidation_workers import Faults, Memory, consolidating, day
from tests.support.digested_memory import digests_of


@pytest.fixture
def faults() -> Faults:
    """What fails, and what was called."""
    return Faults()


@pytest.fixture
async def memory(
    temporal_client: Client, repository: MemoryRepository, settings: Settings, faults: Faults
) -> AsyncIterator[Memory]:
    """A user with nothing said yet."""
    async with consolidating(temporal_client, repository, settings, faults=faults) as opened:
        yield opened


async def digests(memory: Memory) -> list[SemanticMemory]:
    """Every version of every digest."""
    page = await memory.repository.scroll(memory.scope, MemoryType.SEMANTIC, limit=500)
    return [m for m in page.memories if isinstance(m, SemanticMemory) and m.detail]


async def test_a_pass_leaves_profile_and_boxes(memory: Memory) -> None:
    """What a pass learnt stands in the user's profile; its turns are in boxes."""
    await memory.say(("I live in Porto.", day(1)), ("I like green tea.", day(1, 2)))
    report = await memory.consolidate()
    # The user's profile, and Porto's.
    assert (report.profiles, report.boxes, report.failures) == (2, 1, ())
    asked = digests_of(memory.repository)
    profile = await asked.profile(memory.scope, AboutSomebody())
    assert [line.text for line in profile.lines] == [
        "The user lives in Porto.",
        "The user likes green tea.",
    ]
    known = {m.content: m.id for m in await memory.semantic()}
    assert all(line.memory_ids == (known[line.text],) for line in profile.lines)
    box, still_open = await asked.boxes(memory.scope, AboutBoxes(session_id="s1"))
    assert (box.opened, len(box.episode_ids)) == (day(1), 1)
    assert (still_open.opened, still_open.sealed) == (day(1, 2), None)
    await memory.say(("I moved to Lisbon.", day(1, 6)), session="s2")
    await memory.consolidate()
    named = [profile.name for profile in await asked.profiles(memory.scope, Question())]
    assert named == ["The user", "Lisbon"]
    after = await asked.profile(memory.scope, AboutSomebody())
    assert (after.lines[0].text, after.generation) == ("The user lives in Lisbon.", 1)
    then = await asked.profile(memory.scope, AboutSomebody(as_of=day(1, 4)))
    assert then.lines[0].text == "The user lives in Porto."


async def test_boxes_of_all_sessions_that_end_at_once_are_sealed(
    memory: Memory, faults: Faults
) -> None:
    """However many end while a pass is busy, and whoever else asks: no ending is lost."""
    sessions = [f"s{number}" for number in range(25)]
    for number, session in enumerate(sessions):
        await memory.say((f"I walked to harbour number {number}.", day(1)), session=session)
    begun, all_asked = asyncio.Event(), asyncio.Event()

    async def busy() -> None:
        begun.set()
        await all_asked.wait()

    faults.during[names.EXTRACT_ACTIVITY] = busy
    asking = asyncio.create_task(memory.consolidate())
    await begun.wait()
    # Of a session that goes idle, is taken up again and ended, one ending is enough.
    for session in (*sessions, *sessions):
        await memory.request("session idle", session)
    for _ in range(20):
        handle = await memory.request()
    all_asked.set()
    await asking
    await handle.result()
    asked = digests_of(memory.repository)
    for session in sessions:
        (box,) = await asked.boxes(memory.scope, AboutBoxes(session_id=session))
        assert box.sealed, session


async def test_a_second_pass_writes_no_digest(memory: Memory) -> None:
    """Consolidating again with nothing new runs no digest stage."""
    await memory.say(("I live in Porto.", day(1)), ("I use Trello.", day(2)))
    await memory.consolidate()
    before, calls = await digests(memory), list(memory.faults.calls)
    report = await memory.consolidate()
    assert (report.profiles, report.topics, report.boxes, report.guidelines) == (0, 0, 0, 0)
    assert await digests(memory) == before
    assert names.DIGEST_ACTIVITY not in memory.faults.calls[len(calls) :]


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_activities_that_crash_are_repeated_harmlessly(
    memory: Memory, faults: Faults, moment: str
) -> None:
    """A digest activity that dies before or after its effect leaves each digest once."""
    getattr(faults, moment).add(names.DIGEST_ACTIVITY)
    await memory.say(("I live in Porto.", day(1)), ("I use Trello.", day(2)))
    await memory.consolidate()
    assert faults.calls.count(names.DIGEST_ACTIVITY) == 2
    found = await digests(memory)
    assert len({(m.detail.keys[0], m.generation) for m in found if m.detail}) == len(found)
    (guideline,) = [m for m in found if m.form == "guideline"]
    detail: Any = guideline.detail
    assert sum(tally.stored for tally in detail.tallies) == 2


async def test_guidelines_that_cannot_be_learnt_block_nothing(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Learning fails for good: the pass is whole, and counts the failure."""

    async def broken(*_: object) -> object:
        raise SchemaMismatch("staged")

    monkeypatch.setattr(Digests, "learn", broken)
    await memory.say(("I live in Porto.", day(1)))
    report = await memory.consolidate()
    assert (report.episodes, report.stored, report.profiles) == (1, 1, 2)
    assert (report.guideline_failures, report.failures) == (1, ())
    learnt = await digests_of(memory.repository).guidelines(memory.scope, Question())
    assert learnt.tallies == ()


async def test_guidance_that_cannot_be_read_blocks_nothing(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An extraction goes on without guidance when reading it fails, and says so."""

    def broken(*_: object) -> object:
        raise RuntimeError("staged")

    monkeypatch.setattr(guidelines, "newest", broken)
    await memory.say(("I live in Porto.", day(1)))
    report = await memory.consolidate()
    assert (report.episodes, report.stored) == (1, 1)
    assert report.guideline_failures == 2


async def test_a_digest_that_fails_for_good_takes_nothing_else_along(
    memory: Memory, faults: Faults
) -> None:
    """What was learnt is stored and its turns are marked; the report has the failure."""
    faults.fatal.add(names.DIGEST_ACTIVITY)
    await memory.say(("I live in Porto.", day(1)))
    report = await memory.consolidate()
    assert (report.episodes, report.stored, report.digest_failures) == (1, 1, 1)
    await memory.say(("I like green tea.", day(2)))
    assert (await memory.consolidate()).profiles == 1
    profile = await digests_of(memory.repository).profile(memory.scope, AboutSomebody())
    assert len(profile.lines) == 2
