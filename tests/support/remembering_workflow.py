"""A workflow with memory as an application writes it, and its worker as a program to be killed.

python -m tests.support.remembering_workflow ADDRESS FOLDER QUEUE [die]
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import (
    ActivityInboundInterceptor,
    ExecuteActivityInput,
    Interceptor,
    Worker,
)

with workflow.unsafe.imports_passed_through():
    import engram
    from engram import Turn
    from engram.integrations.temporal import EngramPlugin, WorkflowMemory


@workflow.defn
class Remembering:
    """Recalls, keeps what was said, and recalls again."""

    @workflow.run
    async def run(self, user_id: str, text: str) -> list[str]:
        """What was known before, what is known now, and what a prompt would get."""
        memory = WorkflowMemory(user_id)
        before = await memory.recall(text, limit=3)
        await memory.encode([text, Turn(role="assistant", content="Noted.")], session_id="talk")
        after = await memory.recall(text, limit=1, memory_types="episodic")
        return [str(len(before)), after[0].memory.content, await memory.context(text)]


@workflow.defn
class KeepingOnce:
    """Keeps two turns by two calls, through a worker that may die in between."""

    @workflow.run
    async def run(self, user_id: str) -> list[str]:
        """The ids of what was kept."""
        memory = WorkflowMemory(user_id, start_to_close_timeout=timedelta(seconds=3))
        kept = [await memory.encode(text, session_id="talk") for text in ("I ski.", "I ski.")]
        return [one for receipt in kept for one in receipt.episode_ids]


@workflow.defn
class Forgetting:
    """Concludes, and forgets."""

    @workflow.run
    async def run(self, user_id: str, text: str) -> list[int]:
        """How many turns were read, and how many memories went."""
        memory = WorkflowMemory(user_id)
        kept = await memory.encode(text, session_id="talk")
        report = await memory.consolidate()
        receipt = await memory.forget(kept.episode_ids[0])
        assert receipt is not None
        return [report.episodes, sum(receipt.forgotten.values())]


WORKFLOWS = [Remembering, KeepingOnce, Forgetting]


class Dying(Interceptor):
    """Ends the process between what an activity did and anybody's hearing of it."""

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        """See the base class."""

        class Inbound(ActivityInboundInterceptor):
            async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - same
                await super().execute_activity(input)
                os.kill(os.getpid(), signal.SIGKILL)

        return Inbound(next)


async def main(address: str, folder: str, queue: str, *how: str) -> None:
    """Work until killed."""
    client = await Client.connect(address)
    async with (
        engram.open(folder, user_id="worker") as memory,
        Worker(
            client,
            task_queue=queue,
            workflows=WORKFLOWS,
            plugins=[EngramPlugin(memory)],
            interceptors=[Dying()] if how else [],
        ),
    ):
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
