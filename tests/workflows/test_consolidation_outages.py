"""A consolidation that an outage stopped tries again by itself; on a server that skips time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import pairwise

import pytest
from pydantic_ai.exceptions import ModelHTTPError
from temporalio.testing import WorkflowEnvironment

from engram.contracts import names
from engram.domain.memories import MemoryType
from engram.errors import ModelUnavailable
from engram.settings import Settings
from engram.workflows.support import after_outage
from tests.support.consolidation_workers import Faults, Memory, Picky, consolidating, day
from tests.support.edge_stores import borrowed_store
from tests.support.stores import worker_settings
from tests.support.workers import time_skipping

ATTEMPTS = 9
"""Of one model request, before its pass ends."""


# What runs is started once, in one process.
pytestmark = pytest.mark.xdist_group("consolidation_outages")


@pytest.fixture(scope="module")
def settings() -> Settings:
    """Settings with queues of the test's own."""
    return worker_settings()


@pytest.fixture
async def environment() -> AsyncIterator[WorkflowEnvironment]:
    """A server on which hours pass at once."""
    async with time_skipping([names.USER_ATTRIBUTE, names.STAGE_ATTRIBUTE]) as started:
        yield started


def unavailable(times: int) -> list[Exception]:
    """So many answers of an overloaded provider."""
    return [ModelHTTPError(503, "picky") for _ in range(times)]


async def _timers(memory: Memory, workflow_id: str) -> list[timedelta]:
    history = await memory.client.get_workflow_handle(workflow_id).fetch_history()
    return [
        event.timer_started_event_attributes.start_to_fire_timeout.ToTimedelta()
        for event in history.events
        if event.HasField("timer_started_event_attributes")
    ]


async def test_an_outage_is_outlived_without_anybody_asking(
    environment: WorkflowEnvironment, settings: Settings
) -> None:
    """The last session has ended, the model comes back: its turns are known and linked."""
    model = Picky({}, unavailable(2 * ATTEMPTS))
    async with (
        borrowed_store() as repository,
        consolidating(environment.client, repository, settings, model=model) as memory,
    ):
        await memory.say(("I work at Rise.", day(1)), ("I use Rise to buy flour.", day(2)))
        handle = await memory.request("session ended")
        report = await handle.result()
        assert (report.passes, report.stored, report.links) == (3, 2, 1)
        assert [f.code for f in report.failures] == [ModelUnavailable.code] * 2
        waits = await _timers(memory, handle.id)
        assert waits == [timedelta(minutes=5), timedelta(minutes=10)]


async def test_linking_that_an_outage_stopped_is_tried_again(
    environment: WorkflowEnvironment, settings: Settings
) -> None:
    """What waits for a quiet moment to be linked is not dropped when the model is down then."""
    model = Picky({'"task":"link"': ModelHTTPError(503, "picky")})
    async with (
        borrowed_store() as repository,
        consolidating(environment.client, repository, settings, model=model) as memory,
    ):
        await memory.say(("I work at Rise.", day(1)), ("I use Rise to buy flour.", day(2)))
        handle = await memory.request("ten turns wait")
        with environment.auto_time_skipping_disabled():
            while model.asked < 1:
                await environment.sleep(timedelta(seconds=1))
        while model.asked < 1 + ATTEMPTS:
            await environment.sleep(timedelta(minutes=1))
        model.words.clear()
        report = await handle.result()
        assert (report.linking_passes, report.links) == (1, 1)
        assert len(report.failures) == 1


async def test_an_outage_that_does_not_end_is_given_up_after_a_day(
    environment: WorkflowEnvironment, settings: Settings
) -> None:
    """Waits grow, the run ends, the turns stay due, and whoever asks next is served."""
    model = Picky({"content": ModelHTTPError(503, "picky")})
    async with (
        borrowed_store() as repository,
        consolidating(environment.client, repository, settings, model=model) as memory,
    ):
        await memory.say(("I live in Lisbon.", day(1)))
        handle = await memory.request("session ended")
        report = await handle.result()
        assert (report.passes, report.episodes, report.remaining) == (12, 0, True)
        waits = await _timers(memory, handle.id)
        assert all(shorter <= longer for shorter, longer in pairwise(waits))
        assert timedelta(hours=22) < sum(waits, timedelta()) < timedelta(hours=28)
        model.words.clear()
        again = await memory.request("session ended")
        assert (await again.result()).stored == 1


async def test_what_is_stored_is_composed_though_the_model_stays_away(
    environment: WorkflowEnvironment, settings: Settings
) -> None:
    """A pass gives up after a day; profiles of what it stored before are there all the same."""
    model = Picky({"Bombs": ModelHTTPError(503, "picky")})
    one_by_one = settings.model_copy(update={"extraction_batch_turns": 1})
    async with (
        borrowed_store() as repository,
        consolidating(environment.client, repository, one_by_one, model=model) as memory,
    ):
        await memory.say(("I live in Lisbon.", day(1)), ("I use Bombs.", day(2)))
        report = await (await memory.request("session ended")).result()
        assert (report.passes, report.episodes, report.remaining) == (12, 1, True)
        assert (report.profiles, report.digest_failures) == (2, 0)
        page = await repository.scroll(memory.scope, MemoryType.SEMANTIC)
        told = {m.content for m in page.memories if getattr(m, "form", "") == "profile"}
        assert any("Lisbon" in words for words in told)


async def test_a_repeated_mark_counts_every_turn(
    environment: WorkflowEnvironment, settings: Settings
) -> None:
    """What an attempt marked before it was lost is in the report, and no turn twice."""
    faults = Faults(after={names.CONSOLIDATE_TURNS_ACTIVITY})
    async with (
        borrowed_store() as repository,
        consolidating(environment.client, repository, settings, faults=faults) as memory,
    ):
        await memory.say(("I live in Lisbon.", day(1)), ("I use Trello.", day(2)))
        report = await (await memory.request("session ended")).result()
        assert faults.calls.count(names.CONSOLIDATE_TURNS_ACTIVITY) == 2
        assert report.episodes == 2


def test_waits_are_bounded() -> None:
    """From five minutes to four hours, eleven of them."""
    waits = [after_outage(number) for number in range(1, 13)]
    assert waits[0] == timedelta(minutes=5)
    assert waits[10] == timedelta(hours=4)
    assert waits[11] is None
