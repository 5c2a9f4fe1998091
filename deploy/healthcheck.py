"""Whether this container's worker serves both task queues: exit status 0, or 1 and why.

Asks Temporal who polls. A worker that lost its connection disappears from the
answer after about five minutes. Run it beside the worker, with the same settings.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys

from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client
from temporalio.service import RPCError

from engram.errors import EngramError
from engram.settings import Settings
from engram.temporal.connection import connect_temporal

WORKFLOW = TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW
ACTIVITY = TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY


async def polls(client: Client, queue: str, kind: TaskQueueType.ValueType) -> bool:
    """Whether a process of this machine polls the queue."""
    answer = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace, task_queue=TaskQueue(name=queue), task_queue_type=kind
        )
    )
    # The SDK names a worker <process id>@<host name>.
    here = f"@{socket.gethostname()}"
    return any(poller.identity.endswith(here) for poller in answer.pollers)


async def unserved() -> list[str]:
    """The queues that this container's worker should poll and does not."""
    settings = Settings.load()
    client = await connect_temporal(settings)
    wanted = [
        (settings.store_queue, WORKFLOW),
        (settings.store_queue, ACTIVITY),
        (settings.model_queue, ACTIVITY),
    ]
    return [queue for queue, kind in wanted if not await polls(client, queue, kind)]


def main() -> int:
    """Run the check."""
    try:
        missing = asyncio.run(unserved())
    except (EngramError, RPCError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    if missing:
        sys.stderr.write(f"not polled from here: {', '.join(dict.fromkeys(missing))}\n")
    return 1 if missing else 0


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    # The Temporal SDK's threads now and then abort an interpreter that shuts down in
    # order, which would make a healthy container look sick.
    os._exit(status)
