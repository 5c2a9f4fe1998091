"""Work that nobody takes up, and work that many wait for: who asked hears of it."""

from __future__ import annotations

import asyncio
from asyncio import Event
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from temporalio import activity
from temporalio.client import (
    Client,
    Interceptor,
    OutboundInterceptor,
    StartWorkflowUpdateWithStartInput,
    WorkflowUpdateHandle,
)

from engram.contracts import names
from engram.contracts.session import ConsolidationRequest
from engram.domain.scope import Scope
from engram.errors import TemporalUnavailable
from engram.settings import Settings
from engram.temporal.gateway import WorkflowGateway
from engram.temporal.passes import PassRunner
from tests.support.consolidation_workers import Faults, Memory, consolidating, day
from tests.support.edge_stores import borrowed_store
from tests.support.failing_tasks import failing_tasks
from tests.support.stores import worker_settings

ASKED = ConsolidationRequest(reason="asked for")
SCOPE = Scope.of("default", f"u-{uuid4().hex[:8]}")
WORK: dict[str, Callable[[Client, Settings], Awaitable[object]]] = {
    "consolidate": lambda client, given: WorkflowGateway(client, given).consolidate(SCOPE, ASKED),
    "forget": lambda client, given: WorkflowGateway(client, given).forget(SCOPE, str(uuid4())),
    "erase": lambda client, given: WorkflowGateway(client, given).erase(SCOPE),
    "decay": lambda client, given: PassRunner(client, given).decay(SCOPE),
}


@pytest.mark.parametrize("work", WORK)
async def test_work_that_no_worker_takes_up_is_given_up(work: str, temporal_client: Client) -> None:
    """When `ENGRAM_ENCODE_TIMEOUT` is over the caller hears what `encode` would have told it."""
    settings = worker_settings(
        collection_prefix=f"lost-{uuid4().hex[:8]}", encode_timeout=timedelta(seconds=1)
    )
    async with asyncio.timeout(30):
        with pytest.raises(TemporalUnavailable, match="ENGRAM_COLLECTION_PREFIX"):
            await WORK[work](temporal_client, settings)


@pytest.mark.long
async def test_work_whose_task_fails_again_and_again_is_given_up(temporal_client: Client) -> None:
    """A worker is there all the time, and asks for more: who waits hears that it cannot do it."""
    settings = worker_settings(encode_timeout=timedelta(seconds=1))

    async def heard(work: str) -> None:
        with pytest.raises(TemporalUnavailable, match=r"fails again and again.*engram replay"):
            await WORK[work](temporal_client, settings)

    async with failing_tasks(temporal_client, settings), asyncio.timeout(60):
        await asyncio.gather(*map(heard, WORK))


async def test_a_worker_that_went_is_missed(temporal_client: Client) -> None:
    """A run that waits for the next request waits for a worker, too, when it comes."""
    settings = worker_settings(encode_timeout=timedelta(seconds=1))
    gateway = WorkflowGateway(temporal_client, settings)
    async with borrowed_store() as store, consolidating(temporal_client, store, settings) as memory:
        await memory.say(("I live in Porto.", day(1)))
        await gateway.consolidate(memory.scope, ASKED)
    async with asyncio.timeout(30):
        with pytest.raises(TemporalUnavailable, match="worker"):
            await gateway.consolidate(memory.scope, ASKED)


class Waiting(Interceptor, OutboundInterceptor):
    """Counts the updates with which a client waits.

    Attributes:
        most: How many ever did at once.
        eight: Set once it is so many.
    """

    def __init__(self) -> None:
        self._now = self.most = 0
        self.eight = Event()

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        """See the base class."""
        OutboundInterceptor.__init__(self, next)
        return self

    async def start_update_with_start_workflow(
        self,
        input: StartWorkflowUpdateWithStartInput,  # noqa: A002 - same
    ) -> WorkflowUpdateHandle[Any]:
        """See the base class."""
        self._now += 1
        self.most = max(self.most, self._now)
        if self._now == 8:
            self.eight.set()
        try:
            return await super().start_update_with_start_workflow(input)
        finally:
            self._now -= 1


@asynccontextmanager
async def long_pass(client: Client, settings: Settings) -> AsyncIterator[tuple[Memory, Event]]:
    """A user whose pass takes until the event is set."""
    enough = Event()

    async def read() -> None:
        while not enough.is_set():
            activity.heartbeat()
            await asyncio.sleep(0.1)

    faults = Faults(during={names.EXTRACT_ACTIVITY: read})
    async with (
        borrowed_store() as store,
        consolidating(client, store, settings, faults=faults) as memory,
    ):
        await memory.say(("I live in Porto.", day(1)))
        yield memory, enough


async def test_one_process_does_not_take_all_room_for_updates(temporal_client: Client) -> None:
    """Of twelve callers eight wait with an update, which leaves two of ten for other processes."""
    settings, waiting = worker_settings(), Waiting()
    counted = Client(
        temporal_client.service_client,
        namespace=temporal_client.namespace,
        data_converter=temporal_client.data_converter,
        interceptors=[waiting],
    )
    gateway = WorkflowGateway(counted, settings)
    async with long_pass(temporal_client, settings) as (memory, enough):
        asked = [asyncio.create_task(gateway.consolidate(memory.scope, ASKED)) for _ in range(12)]
        await waiting.eight.wait()
        enough.set()
        reports = await asyncio.gather(*asked)
    assert sum(report.episodes for report in reports) >= 1
    assert waiting.most == 8


@pytest.mark.long
async def test_more_callers_than_temporal_lets_wait_are_all_answered(
    temporal_client: Client,
) -> None:
    """Twelve processes wait for one user's long pass: those whom Temporal puts off, too."""
    settings = worker_settings(encode_timeout=timedelta(seconds=2))
    async with long_pass(temporal_client, settings) as (memory, enough):
        gateways = [WorkflowGateway(temporal_client, settings) for _ in range(12)]
        asked = [asyncio.create_task(one.consolidate(memory.scope, ASKED)) for one in gateways]
        # Temporal's client tries for ten seconds by itself, and an outage may last two.
        refused, _ = await asyncio.wait(asked, timeout=15, return_when=asyncio.FIRST_EXCEPTION)
        enough.set()
        assert not refused
        # Whoever was put off asks anew, and may be answered by a later pass than the long one.
        await asyncio.gather(*asked)
        assert [known.content for known in await memory.semantic()] == ["The user lives in Porto."]
