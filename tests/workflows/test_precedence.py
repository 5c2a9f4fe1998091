"""Whose tasks workers take first, while more wait than they can take."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from temporalio import workflow
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from engram.contracts.attributes import attributes, precedence

_begun: list[str] = []


@workflow.defn(name="begun")
class Begun:
    """Says that it was begun."""

    @workflow.run
    async def run(self, who: str) -> None:
        """Say so."""
        _begun.append(who)


def test_what_somebody_waits_for_goes_before_what_runs_by_itself() -> None:
    """Encodes, then forgetting, consolidation, imports, and passes last."""
    stages = ("session", "forgetting", "consolidation", "import", "decay")
    urgencies = [precedence(attributes(stage, user="ns/ada")).priority_key for stage in stages]
    assert urgencies == [1, 2, 3, 4, 5]


def test_users_take_turns_and_are_not_named() -> None:
    """Each user has a key of the length that Temporal takes, without the user's name."""
    ada, bob = (
        precedence(attributes("session", user=f"ns/{name * 40}")).fairness_key
        for name in ("ada", "bob")
    )
    assert ada
    assert ada != bob
    assert "ada" not in ada
    assert len(ada) <= 64
    assert precedence(attributes("maintenance")).fairness_key is None


async def _all_wait(client: Client, queue: str, tasks: int) -> None:
    """Return when the queue has them: the server puts them there after it answered a start."""
    request = DescribeTaskQueueRequest(
        namespace=client.namespace,
        task_queue=TaskQueue(name=queue),
        task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        report_stats=True,
    )
    async with asyncio.timeout(30):
        while True:
            described = await client.workflow_service.describe_task_queue(request)
            if described.stats.approximate_backlog_count >= tasks:
                return
            await asyncio.sleep(0.05)


async def test_a_flood_waits_for_what_is_urgent_and_for_other_users(
    temporal_client: Client,
) -> None:
    """Of forty that wait, an encode begins first, and another user's import among the first."""
    queue = f"precedence-{uuid4().hex}"

    async def start(stage: str, user: str, number: int) -> None:
        await temporal_client.start_workflow(
            Begun.run,
            f"{stage} of {user}",
            id=f"{queue}-{stage}-{user}-{number}",
            task_queue=queue,
            priority=precedence(attributes(stage, user=user)),
        )

    for number in range(40):
        await start("import", "flood", number)
    await start("import", "ada", 0)
    await start("session", "ada", 0)
    await _all_wait(temporal_client, queue, 42)
    _begun.clear()
    async with Worker(
        temporal_client,
        task_queue=queue,
        workflows=[Begun],
        workflow_runner=UnsandboxedWorkflowRunner(),
        max_concurrent_workflow_tasks=2,
        max_concurrent_workflow_task_polls=2,
    ):
        for number in range(40):
            handle = temporal_client.get_workflow_handle(f"{queue}-import-flood-{number}")
            await handle.result()
    assert "session of ada" in _begun[:6]
    assert "import of ada" in _begun[:12]
