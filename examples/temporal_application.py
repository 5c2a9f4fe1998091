"""A Temporal application with memory: a workflow of your own, on the server that Engram runs.

    uv run python examples/temporal_application.py ada "I live in Porto."
    uv run python examples/temporal_application.py ada "Where do I live?"

The workflow asks `WorkflowMemory`, and a plugin lets its worker carry that out: as activities,
because a workflow is replayed and must not touch anything outside. They are tried again after an
outage, and what they keep is kept once, whoever is killed in between.

The embedded Engram brings a Temporal server, and this application uses it too, with a task queue of
its own. It is told the port, to know where that server is. In production both use the Temporal
cluster that you have: `engram.connect` in place of `engram.open`, and the same address for both.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from uuid import uuid4

from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    # Temporal loads workflows in a sandbox; libraries that it shall not load again pass through.
    import engram
    from engram import Turn
    from engram.integrations.temporal import EngramPlugin, WorkflowMemory

TASK_QUEUE = "concierge"


@dataclass
class Message:
    """What somebody says."""

    user_id: str
    text: str


@workflow.defn
class Concierge:
    """Answers one message, and survives the death of any process while it does."""

    @workflow.run
    async def run(self, message: Message) -> str:
        """Recall, answer, keep."""
        memory = WorkflowMemory(message.user_id)
        hits = await memory.recall(message.text, limit=3)
        # Here the application thinks; asking a language model would be an activity as well.
        answer = f"I remember: {hits[0].memory.content}" if hits else "That is new to me."
        said = [Turn(content=message.text), Turn(role="assistant", content=answer)]
        await memory.encode(said, session_id=TASK_QUEUE)
        return answer


async def main(message: Message) -> None:
    """Run Engram, a worker beside it, and one workflow."""
    settings = engram.Settings.load()
    port = settings.temporal_port or 7233
    settings = settings.model_copy(update={"temporal_port": port})
    async with engram.open(user_id="concierge", settings=settings) as memory:
        client = await Client.connect(f"127.0.0.1:{port}", namespace=settings.temporal_namespace)
        async with Worker(
            client,
            task_queue=TASK_QUEUE,
            workflows=[Concierge],
            plugins=[EngramPlugin(memory)],
        ):
            answer = await client.execute_workflow(
                Concierge.run, message, id=f"{TASK_QUEUE}-{uuid4()}", task_queue=TASK_QUEUE
            )
        print(answer)


if __name__ == "__main__":
    asyncio.run(main(Message(user_id=sys.argv[1], text=sys.argv[2])))
