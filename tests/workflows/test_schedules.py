"""Schedules on a real Temporal server, and replaying what they ran."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from structlog.testing import capture_logs
from temporalio.client import (
    Client,
    ScheduleDescription,
    ScheduleHandle,
    ScheduleOverlapPolicy,
)
from temporalio.service import RPCError, RPCStatusCode

from engram.contracts import names
from engram.contracts.lifecycle import PassKind
from engram.errors import EngramError, InvalidQuery, TemporalNotSetUp, TemporalUnavailable
from engram.settings import Settings
from engram.temporal.schedules import ScheduleInfo, Schedules, keeping_schedules
from engram.workflows import replaying
from tests.replay.changed import OtherOrder
from tests.support.edge_stores import borrowed_store
from tests.support.lifecycle_workers import LifecycleUser, lifecycle_workers, turn
from tests.support.stores import worker_settings


@pytest.fixture
def settings() -> Settings:
    """Schedules of the test's own, that do not fire by themselves."""
    return worker_settings(
        collection_prefix=f"test-{uuid4().hex[:8]}",
        decay_interval=timedelta(days=1000),
        promotion_interval=timedelta(days=1000),
        consolidation_interval=timedelta(days=1000),
    )


@pytest.fixture
async def schedules(temporal_client: Client, settings: Settings) -> AsyncIterator[Schedules]:
    """The operator's hand on them; nothing is left behind."""
    made = Schedules(temporal_client, settings)
    yield made
    for kind in PassKind:
        await made.delete(kind)


@pytest.fixture
async def lives(temporal_client: Client, settings: Settings) -> AsyncIterator[LifecycleUser]:
    """A user, and a worker for the passes."""
    async with (
        borrowed_store() as store,
        lifecycle_workers(temporal_client, store, settings) as opened,
    ):
        yield opened


def _pass_over(lives: LifecycleUser) -> str:
    """The id of the decay pass over the user's memories."""
    pass_over = names.decay_workflow_id(lives.scope)
    return names.in_store(lives.settings.collection_prefix, pass_over)


async def _by_kind(schedules: Schedules) -> dict[PassKind, ScheduleInfo]:
    return {info.kind: info for info in await schedules.list()}


async def test_schedules_are_made_once_and_brought_up_to_date(
    temporal_client: Client, settings: Settings, schedules: Schedules
) -> None:
    """Any number of workers make the same three; changed settings change them."""
    assert not any(info.exists for info in await schedules.list())
    await asyncio.gather(*(schedules.ensure() for _ in range(3)))
    assert all(info.exists and not info.paused for info in await schedules.list())
    changed = settings.model_copy(update={"decay_interval": timedelta(hours=5)})
    await Schedules(temporal_client, changed).ensure()
    found = await _by_kind(schedules)
    assert found[PassKind.DECAY].every == timedelta(hours=5)
    assert found[PassKind.PROMOTION].every == timedelta(days=1000)


async def test_a_schedule_skips_overlaps_and_makes_up_for_missed_times(
    temporal_client: Client, settings: Settings, schedules: Schedules
) -> None:
    """Jitter, overlap and catch-up are what the settings say."""
    await schedules.ensure()
    handle = temporal_client.get_schedule_handle(schedules.id_of(PassKind.DECAY))
    schedule = (await handle.describe()).schedule
    assert schedule.policy.overlap is ScheduleOverlapPolicy.SKIP
    assert schedule.policy.catchup_window == settings.schedule_catchup
    assert schedule.spec.jitter == settings.schedule_jitter


async def test_what_an_operator_paused_stays_paused(schedules: Schedules) -> None:
    """A worker that starts later brings the schedule up to date and leaves it paused."""
    await schedules.ensure()
    await schedules.pause(PassKind.DECAY, note="looking into it")
    await schedules.ensure()
    info = (await _by_kind(schedules))[PassKind.DECAY]
    assert (info.paused, info.note, info.next_at) == (True, "looking into it", None)
    await schedules.resume(PassKind.DECAY)
    assert not (await schedules.describe(PassKind.DECAY)).paused


async def test_schedules_can_be_switched_off(
    temporal_client: Client, settings: Settings, schedules: Schedules
) -> None:
    """With the setting off, a start removes them."""
    await schedules.ensure()
    off = settings.model_copy(update={"schedules": False})
    async with keeping_schedules(temporal_client, off):
        await _until(lambda: _none_exist(schedules))
    assert not any(info.exists for info in await schedules.list())


_LEFT_OPEN = [RPCStatusCode.DEADLINE_EXCEEDED, RPCStatusCode.CANCELLED]


@pytest.mark.parametrize("status", _LEFT_OPEN)
async def test_a_question_that_the_server_leaves_open_is_asked_again(
    schedules: Schedules, monkeypatch: pytest.MonkeyPatch, status: RPCStatusCode
) -> None:
    """One that meets the schedule's removal is answered by nobody, however long it waits."""
    left_open = [RPCError("It took too long.", status, b"")]
    describe = ScheduleHandle.describe

    async def open_first(self: ScheduleHandle, **told: Any) -> ScheduleDescription:
        assert told["rpc_timeout"] <= timedelta(seconds=5)
        if left_open:
            raise left_open.pop()
        return await describe(self, **told)

    monkeypatch.setattr(ScheduleHandle, "describe", open_first)
    assert not (await schedules.describe(PassKind.DECAY)).exists
    assert not left_open


@pytest.mark.parametrize("status", _LEFT_OPEN)
async def test_bringing_up_to_date_asks_again_where_the_server_leaves_the_question_open(
    temporal_client: Client,
    settings: Settings,
    schedules: Schedules,
    monkeypatch: pytest.MonkeyPatch,
    status: RPCStatusCode,
) -> None:
    """Temporal's client asks how it stands before it updates; that has a limit, too."""
    await schedules.ensure()
    left_open = [RPCError("It took too long.", status, b"")]
    update = ScheduleHandle.update

    async def open_first(self: ScheduleHandle, updater: Any, **told: Any) -> None:
        assert told["rpc_timeout"] <= timedelta(seconds=5)
        if left_open:
            raise left_open.pop()
        await update(self, updater, **told)

    monkeypatch.setattr(ScheduleHandle, "update", open_first)
    changed = settings.model_copy(update={"decay_interval": timedelta(hours=5)})
    await Schedules(temporal_client, changed).ensure()
    assert not left_open
    assert (await schedules.describe(PassKind.DECAY)).every == timedelta(hours=5)


async def test_a_worker_that_came_before_the_search_attributes_makes_schedules_later(
    temporal_client: Client,
    settings: Settings,
    schedules: Schedules,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What Temporal refuses at first, because it is not set up yet, is tried until it is there."""
    refusals: list[EngramError] = [
        TemporalNotSetUp("Temporal does not know Engram's search attributes."),
        TemporalUnavailable("It starts."),
    ]
    ensure = Schedules.ensure

    async def refused_first(self: Schedules) -> None:
        if refusals:
            raise refusals.pop(0)
        await ensure(self)

    monkeypatch.setattr(Schedules, "ensure", refused_first)
    monkeypatch.setattr("engram.temporal.schedules._FIRST_PAUSE", 0.01)
    with capture_logs() as told:
        async with keeping_schedules(temporal_client, settings):
            await _until(lambda: _all_exist(schedules))
    codes = [one["code"] for one in told if "tried again" in one["event"]]
    assert codes == ["temporal_not_set_up", "temporal_unavailable"]


async def test_a_triggered_schedule_runs_a_pass_that_replays(
    temporal_client: Client, lives: LifecycleUser, schedules: Schedules
) -> None:
    """What a trigger starts says what it is, and its histories replay against the code."""
    old = datetime.now(UTC) - timedelta(days=100)
    await lives.keep(turn(lives.scope, "old", old))
    await schedules.ensure()
    await schedules.trigger(PassKind.DECAY)
    passed = _pass_over(lives)
    handle = temporal_client.get_workflow_handle(passed)
    await _until(lambda: _exists(temporal_client, passed))
    await handle.result()
    (ran,) = (await schedules.describe(PassKind.DECAY)).recent
    assert ran.startswith(f"{lives.settings.collection_prefix}:maintenance/decay-")
    of_all = temporal_client.get_workflow_handle(ran)
    await of_all.result()
    # What people read of it in the Temporal UI is that of the schedule.
    shown = await of_all.describe()
    assert await shown.static_summary() == "decay of all users"
    assert "engram schedules pause decay" in (await shown.static_details() or "")
    for workflow_id in (ran, passed):
        replayed = await _replayed(temporal_client, workflow_id)
        assert (replayed.fits, replayed.failure) == (True, None)
        assert replayed.events > 5


@pytest.mark.usefixtures("lives")
async def test_a_backfill_starts_what_was_missed(schedules: Schedules) -> None:
    """A past stretch is made up for; a stretch that is none is refused."""
    await schedules.ensure()
    end = datetime.now(UTC)
    with pytest.raises(InvalidQuery):
        await schedules.backfill(PassKind.PROMOTION, end, end)
    await schedules.backfill(PassKind.PROMOTION, end - timedelta(days=2000), end)

    async def started() -> bool:
        return bool((await schedules.describe(PassKind.PROMOTION)).recent)

    await _until(started)


async def test_a_schedule_that_is_not_there_is_named(schedules: Schedules) -> None:
    """The error says which one and who makes it."""
    with pytest.raises(InvalidQuery, match="There is no schedule"):
        await schedules.trigger(PassKind.DECAY)
    assert not await schedules.delete(PassKind.DECAY)


async def test_replaying_tells_changed_code_and_unknown_workflows(
    temporal_client: Client, lives: LifecycleUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A workflow that orders its commands otherwise does not fit; an unknown id is refused."""
    await lives.keep(turn(lives.scope, "old", datetime.now(UTC) - timedelta(days=100)))
    await lives.passes.decay(lives.scope)
    workflow_id = _pass_over(lives)
    monkeypatch.setattr(replaying, "WORKFLOWS", (OtherOrder,))
    replayed = await _replayed(temporal_client, workflow_id)
    assert not replayed.fits
    assert replayed.failure
    for unknown in ("decay/default/nobody-at-all", "no-text-\udc80"):
        with pytest.raises(InvalidQuery, match="no history"):
            await _replayed(temporal_client, unknown)


async def _replayed(client: Client, workflow_id: str) -> replaying.Replayed:
    histories = replaying.one_history(client, workflow_id)
    return await replaying.replayed(await anext(histories), client.data_converter)


async def _all_exist(schedules: Schedules) -> bool:
    return all(info.exists for info in await schedules.list())


async def _none_exist(schedules: Schedules) -> bool:
    return not any(info.exists for info in await schedules.list())


async def _exists(client: Client, workflow_id: str) -> bool:
    return [run async for run in client.list_workflows(f'WorkflowId = "{workflow_id}"')] != []


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await holds():  # noqa: ASYNC110 - the server says nothing by itself
            await asyncio.sleep(0.05)
