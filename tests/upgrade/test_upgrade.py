"""What an earlier version left half done, the present one opens and finishes."""

from __future__ import annotations

import asyncio
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client

import engram
from engram import MemoryStore, Settings
from engram.contracts import names
from engram.contracts.consolidation import ConsolidationReport
from engram.domain.memories import Episode
from tests.support.durability_checks import episodes
from tests.support.temporal_server import client_of
from tests.upgrade.make import BATCH, turns

LEFT_BEHIND = Path(__file__).parents[1] / "data" / "upgrade"
# Far more than it takes: a machine may be busy.
PATIENCE = 60.0

pytestmark = pytest.mark.slow


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[tuple[MemoryStore, Client]]:
    """The memory in a folder, and a client of the server that runs on it."""
    settings = Settings.load(data_dir=folder, temporal_ui=False)
    async with engram.open(user_id="talking", settings=settings) as memory:
        yield memory, await client_of(folder)


async def in_order(memory: MemoryStore) -> list[Episode]:
    """Every turn that is kept, as they were said."""
    return sorted(await episodes(memory), key=lambda one: one.sequence)


async def assert_no_failed_task(client: Client) -> None:
    """No workflow met a history that its code does not fit."""
    async for run in client.list_workflows():
        history = await client.get_workflow_handle(run.id, run_id=run.run_id).fetch_history()
        kinds = {event.event_type for event in history.events}
        assert EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED not in kinds, run.id


@pytest.mark.parametrize("version", ["c57d23c"])
async def test_an_earlier_version_s_work_goes_on(version: str, tmp_path: Path) -> None:
    """A session takes turns, a pass reads its next batch, an import goes on where it stopped."""
    with tarfile.open(LEFT_BEHIND / f"{version}.tar.xz") as left:
        left.extractall(tmp_path / "data", filter="data")
    async with opened(tmp_path / "data") as (memory, client):
        consolidating, importing = map(memory.for_user, ("consolidating", "importing"))
        before = {run.id: run.run_id async for run in client.list_workflows()}

        remembered = await memory.working_memory("running")
        assert [turn.content for turn in remembered] == [
            turn.content for turn in turns("running", BATCH)
        ]
        await memory.encode(turns("running", BATCH + 1)[-1], session_id="running")
        ended = await memory.end_session("running")
        assert ended is not None
        assert ended.turns_accepted == BATCH + 1
        await memory.consolidate()
        session = names.session_workflow_id(memory.scope, "running")
        assert (await client.get_workflow_handle(session).describe()).run_id == before[session]

        # The batch that was done, and the one in which the model did not answer any more.
        half_done = names.consolidation_workflow_id(consolidating.scope)
        handle = client.get_workflow_handle(
            half_done, run_id=before[half_done], result_type=ConsolidationReport
        )
        # Linking waits for years of quiet, see make.py; a pass that is asked for links at once.
        await consolidating.consolidate()
        report = await asyncio.wait_for(handle.result(), PATIENCE)
        assert (report.extractions, report.episodes) == (2, 2 * BATCH)
        assert report.failures == ()

        brought = [("brought", turn) for turn in turns("brought", 5 * BATCH)]
        summary = await importing.import_turns(brought)
        assert summary.resumed_at == 2 * BATCH
        assert summary.tally.stored == summary.total == 5 * BATCH
        await importing.consolidate()

        for user, said in (
            (memory, turns("running", BATCH + 1)),
            (consolidating, turns("due", 2 * BATCH)),
            (importing, turns("brought", 5 * BATCH)),
        ):
            kept = await in_order(user)
            assert [(one.message_id, one.content, one.sequence) for one in kept] == [
                (turn.message_id, turn.content, number) for number, turn in enumerate(said)
            ]
            assert (await user.stats()).waiting == 0
            hits = await user.recall("Where do I live?")
            assert any("Paris" in hit.memory.content for hit in hits)
        await assert_no_failed_task(client)
