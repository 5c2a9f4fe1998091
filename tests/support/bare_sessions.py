"""The floor of what Engram asks Temporal for: a bare update whose local activity does nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client, WorkflowHandle
from temporalio.worker import UnsandboxedWorkflowRunner, Worker


@activity.defn
async def nothing(number: int) -> int:
    """What a storing activity costs that stores nothing."""
    return number


@workflow.defn
class BareSession:
    """A workflow that is there to be updated."""

    @workflow.run
    async def run(self) -> None:
        """Stay open."""
        await workflow.wait_condition(lambda: False)

    @workflow.update
    async def encode(self, number: int) -> int:
        """One local activity, as an encode has."""
        return await workflow.execute_local_activity(
            nothing, number, start_to_close_timeout=timedelta(seconds=5)
        )


@asynccontextmanager
async def bare_sessions(
    address: str, count: int
) -> AsyncIterator[list[WorkflowHandle[BareSession, None]]]:
    """That many open workflows, on the memory's own server."""
    client = await Client.connect(address)
    async with Worker(
        client,
        task_queue="bare",
        workflows=[BareSession],
        activities=[nothing],
        workflow_runner=UnsandboxedWorkflowRunner(),
    ):
        handles = [
            await client.start_workflow(BareSession.run, id=f"bare-{n}", task_queue="bare")
            for n in range(count)
        ]
        yield handles
        for handle in handles:
            await handle.terminate()
