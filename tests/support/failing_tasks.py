"""A worker that asks for work, and fails each task of a workflow."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from temporalio import workflow
from temporalio.client import Client
from temporalio.common import RawValue
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from engram.settings import Settings


@workflow.defn(dynamic=True)
class _Failing:
    @workflow.run
    async def run(self, brought: Sequence[RawValue]) -> None:
        """As code does that has changed its commands."""
        raise RuntimeError("this task cannot be done")


def failing_tasks(client: Client, settings: Settings) -> AbstractAsyncContextManager[Worker]:
    """Works on the store's queue, whatever workflow it is."""
    return Worker(
        client,
        task_queue=settings.store_queue,
        workflows=[_Failing],
        workflow_runner=UnsandboxedWorkflowRunner(),
    )
