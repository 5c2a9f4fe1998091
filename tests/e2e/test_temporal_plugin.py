"""Somebody's own Temporal worker, with memory by a plugin, beside a running Engram."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from pydantic_ai.durable_exec.temporal import PydanticAIPlugin
from temporalio import activity
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import ActivityError, ApplicationError
from temporalio.worker import Replayer, Worker

import engram
from engram.integrations.temporal import EngramPlugin, worker_memory
from tests.support.durable_agent import Concierge, held
from tests.support.remembering_workflow import WORKFLOWS, Forgetting, KeepingOnce, Remembering
from tests.support.running_up import Up

pytestmark = pytest.mark.xdist_group("up")
# What raises in a workflow is tried again for ever; a test shall fail.
LIMIT = timedelta(seconds=60)


@dataclass
class Application:
    """A program of somebody's own: its Temporal client, and its memory."""

    client: Client
    memory: engram.MemoryStore
    address: str


@pytest.fixture
async def application(up: Up) -> AsyncIterator[Application]:
    """It knows nothing of how Engram talks to Temporal: its client has no keys."""
    address = f"127.0.0.1:{json.loads((up.folder / 'server.json').read_text())['port']}"
    client = await Client.connect(address)
    async with engram.open(up.folder, user_id="worker") as memory:
        yield Application(client, memory, address)


async def test_a_workflow_remembers_and_its_history_replays_without_engram(
    application: Application, user: str
) -> None:
    """What a workflow keeps it recalls; with no Engram running and no plugin, it replays."""
    async with Worker(
        application.client,
        task_queue=user,
        workflows=WORKFLOWS,
        plugins=[EngramPlugin(application.memory)],
    ):
        handle = await application.client.start_workflow(
            Remembering.run,
            args=[user, "I drink tea."],
            id=user,
            task_queue=user,
            execution_timeout=LIMIT,
        )
        before, found, block = await handle.result()
    assert (before, found) == ("0", "I drink tea.")
    assert "I drink tea." in block
    kept = (await application.memory.for_user(user).list(memory_types=["episodic"])).memories
    assert [turn.content for turn in kept] == ["I drink tea.", "Noted."]
    history = await handle.fetch_history()
    asked = [
        event
        for event in history.events
        if event.HasField("activity_task_scheduled_event_attributes")
    ]
    summaries = [json.loads(event.user_metadata.summary.data) for event in asked]
    assert summaries == ["recall", "encode 2 turns", "recall", "recall up to 1000 tokens"]
    # A worker that died is missed within half a minute, whatever the call was.
    for event in asked:
        limits = event.activity_task_scheduled_event_attributes
        noticed = (
            limits.heartbeat_timeout.ToTimedelta() or limits.start_to_close_timeout.ToTimedelta()
        )
        assert noticed == timedelta(seconds=30)
    await Replayer(workflows=[Remembering]).replay_workflow(history)
    await Replayer(workflows=[Remembering], plugins=[EngramPlugin()]).replay_workflow(history)


async def test_a_workflow_consolidates_and_forgets(application: Application, user: str) -> None:
    """What waits for long is an activity as well, and what is forgotten is gone."""
    async with Worker(
        application.client,
        task_queue=user,
        workflows=WORKFLOWS,
        plugins=[EngramPlugin(application.memory)],
    ):
        read, gone = await application.client.execute_workflow(
            Forgetting.run,
            args=[user, "I live in Porto."],
            id=user,
            task_queue=user,
            execution_timeout=LIMIT,
        )
    assert read == 1
    assert gone >= 1
    assert not (await application.memory.for_user(user).list(memory_types=["episodic"])).memories


async def test_what_is_refused_fails_a_workflow_at_once_by_its_code(
    application: Application,
) -> None:
    """A user id that cannot be fails the activity without a second attempt, and says why."""
    queue = uuid4().hex
    async with Worker(
        application.client,
        task_queue=queue,
        workflows=WORKFLOWS,
        plugins=[EngramPlugin(application.memory)],
    ):
        with pytest.raises(WorkflowFailureError) as failed:
            await application.client.execute_workflow(
                KeepingOnce.run, "no/body", id=queue, task_queue=queue, execution_timeout=LIMIT
            )
    assert isinstance(failed.value.cause, ActivityError)
    assert isinstance(failed.value.cause.cause, ApplicationError)
    assert failed.value.cause.cause.type == "invalid_scope"


@pytest.mark.slow
async def test_plugin_and_durable_agent_work_in_one_worker(
    application: Application, user: str
) -> None:
    """Beside Pydantic AI's plugin the agent's own activities find the worker's memory."""

    class OfTheWorker:
        def for_user(self, user_id: str) -> engram.MemoryStore:
            assert activity.in_activity()
            return worker_memory().for_user(user_id)

    held["memory"] = OfTheWorker()  # type: ignore[assignment] # all that the agent asks of it
    client = await Client.connect(application.address, plugins=[PydanticAIPlugin()])
    try:
        async with Worker(
            client,
            task_queue=user,
            workflows=[Concierge, Remembering],
            plugins=[EngramPlugin(application.memory)],
        ):
            await client.execute_workflow(
                Concierge.run,
                args=[user, "I drink tea."],
                id=f"a-{user}",
                task_queue=user,
                execution_timeout=LIMIT,
            )
            before, *_ = await client.execute_workflow(
                Remembering.run,
                args=[user, "I drink tea."],
                id=f"b-{user}",
                task_queue=user,
                execution_timeout=LIMIT,
            )
    finally:
        held.clear()
    assert int(before) > 0


@pytest.mark.slow
async def test_a_worker_killed_after_keeping_keeps_nothing_twice(
    application: Application, up: Up, user: str
) -> None:
    """It dies between what was stored and the answer; the next one keeps each turn once."""
    handle = await application.client.start_workflow(
        KeepingOnce.run, user, id=user, task_queue=user, execution_timeout=LIMIT
    )

    def worker(*how: str) -> subprocess.Popen[bytes]:
        module = "tests.support.remembering_workflow"
        command = [sys.executable, "-m", module, application.address, str(up.folder), user, *how]
        return subprocess.Popen(command, cwd=Path(__file__).parents[2])

    for _ in range(2):
        assert worker("die").wait(60) == -9
    kept = (await application.memory.for_user(user).list(memory_types=["episodic"])).memories
    assert len(kept) == 1
    last = worker()
    try:
        ids = await handle.result()
    finally:
        last.terminate()
        last.wait(30)
    kept = (await application.memory.for_user(user).list(memory_types=["episodic"])).memories
    assert sorted(turn.id for turn in kept) == sorted(ids)
    assert len(set(ids)) == 2


def test_memory_is_only_in_activities_of_a_worker_with_the_plugin() -> None:
    """Elsewhere it says what is missing."""
    with pytest.raises(RuntimeError, match=r"EngramPlugin\(memory\)"):
        worker_memory()
