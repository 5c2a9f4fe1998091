"""A Temporal application with memory: a workflow of your own, on the server that Engram runs.

    uv run python examples/temporal_application.py ada "I live in Porto."
    uv run python examples/temporal_application.py ada "Where do I live?"

The workflow decides, activities remember: a workflow is replayed and must not touch anything
outside, so reading and writing memory are activities. They are methods of a class that holds the
open store, because a worker runs for long and opens Engram once.

The embedded Engram brings a Temporal server, and this application uses it too, with a task queue of
its own. It is told the port, to know where that server is. In production both use the Temporal
cluster that you have: `engram.connect` in place of `engram.open`, and the same address for both.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    # Temporal loads workflows in a sandbox; libraries that it shall not load again pass through.
    import engram
    from engram import EngramError

TASK_QUEUE = "concierge"


@dataclass
class Message:
    """What somebody says."""

    user_id: str
    text: str


@dataclass
class Exchange:
    """A message and its answer, to be kept."""

    message: Message
    answer: str


class MemoryActivities:
    """Everything that reads or writes memory.

    Args:
        memory: Open as long as the worker runs; each call takes the memory of its user.
    """

    def __init__(self, memory: engram.MemoryStore) -> None:
        self._memory = memory

    @activity.defn
    async def recall(self, message: Message) -> list[str]:
        """What is remembered about the message, best first."""
        with failures():
            hits = await self._memory.for_user(message.user_id).recall(message.text, limit=3)
        return [hit.memory.content for hit in hits]

    @activity.defn
    async def keep(self, exchange: Exchange) -> None:
        """Keep what was said and answered, once.

        Temporal runs an activity again when it does not hear that it ended. Message ids that are
        the same in every attempt make that harmless: what is stored already is not stored again.
        """
        run = activity.info()
        turns = [
            engram.Turn(content=exchange.message.text, message_id=f"{run.workflow_run_id}:user"),
            engram.Turn(
                role="assistant",
                content=exchange.answer,
                message_id=f"{run.workflow_run_id}:assistant",
            ),
        ]
        with failures():
            memory = self._memory.for_user(exchange.message.user_id)
            await memory.encode(turns, session_id=TASK_QUEUE)


@contextmanager
def failures() -> Iterator[None]:
    """Temporal tries again after an outage; what is refused for good fails the workflow at once."""
    try:
        yield
    except EngramError as error:
        raise ApplicationError(
            str(error), type=error.code, non_retryable=not error.retryable
        ) from error


@workflow.defn
class Concierge:
    """Answers one message, and survives the death of any process while it does."""

    @workflow.run
    async def run(self, message: Message) -> str:
        """Recall, answer, keep."""
        remembered = await workflow.execute_activity_method(
            MemoryActivities.recall, message, start_to_close_timeout=timedelta(seconds=30)
        )
        # Here the application thinks; asking a language model would be an activity as well.
        answer = f"I remember: {remembered[0]}" if remembered else "That is new to me."
        await workflow.execute_activity_method(
            MemoryActivities.keep,
            Exchange(message, answer),
            start_to_close_timeout=timedelta(minutes=5),
        )
        return answer


async def main(message: Message) -> None:
    """Run Engram, a worker beside it, and one workflow."""
    settings = engram.Settings.load()
    port = settings.temporal_port or 7233
    settings = settings.model_copy(update={"temporal_port": port})
    async with engram.open(user_id="concierge", settings=settings) as memory:
        client = await Client.connect(f"127.0.0.1:{port}", namespace=settings.temporal_namespace)
        activities = MemoryActivities(memory)
        async with Worker(
            client,
            task_queue=TASK_QUEUE,
            workflows=[Concierge],
            activities=[activities.recall, activities.keep],
        ):
            answer = await client.execute_workflow(
                Concierge.run, message, id=f"{TASK_QUEUE}-{uuid4()}", task_queue=TASK_QUEUE
            )
        print(answer)


if __name__ == "__main__":
    asyncio.run(main(Message(user_id=sys.argv[1], text=sys.argv[2])))
