"""Replaying a history that a server keeps against the code as it is now."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from temporalio.worker import Replayer

from engram.errors import InvalidQuery
from engram.temporal.encryption import for_replays
from engram.temporal.retry import typed
from engram.workflows.worker import WORKFLOWS, sandbox_runner


class Replayed(BaseModel):
    """What came of a replay.

    Attributes:
        workflow_id: The workflow.
        run_id: The run whose history was fetched.
        workflow_type: Its name.
        events: How many events its history has.
        fits: Whether the present code makes the same commands in the same order.
        failure: Where they part; None if they do not.
    """

    model_config = ConfigDict(frozen=True)

    workflow_id: str
    run_id: str
    workflow_type: str
    events: int
    fits: bool
    failure: str | None = None


async def replay(client: Client, workflow_id: str, run_id: str | None = None) -> Replayed:
    """Fetch a history and run the present code against it; changes nothing.

    Args:
        client: Connected to the server that keeps it, with the keys it is encrypted with.
        workflow_id: As the Temporal UI shows it.
        run_id: One of its runs; the latest when absent.

    Raises:
        InvalidQuery: the server keeps no such history.
        TemporalUnavailable: the server cannot be reached.
    """
    handle = client.get_workflow_handle(workflow_id, run_id=run_id)
    try:
        described = await handle.describe()
        history = await handle.fetch_history()
    except RPCError as error:
        if error.status in {RPCStatusCode.NOT_FOUND, RPCStatusCode.INVALID_ARGUMENT}:
            raise InvalidQuery(
                "Temporal keeps no history of this workflow.",
                hint="Ids are those of the Temporal UI, such as session/default/ada/s1.",
            ) from error
        raise typed(error) from error
    replayer = Replayer(
        workflows=list(WORKFLOWS),
        data_converter=for_replays(client.data_converter),
        workflow_runner=sandbox_runner(),
    )
    result = await replayer.replay_workflow(history, raise_on_replay_failure=False)
    failure = result.replay_failure
    return Replayed(
        workflow_id=workflow_id,
        run_id=described.run_id or "",
        workflow_type=described.workflow_type,
        events=len(history.events),
        fits=failure is None,
        failure=None if failure is None else str(failure),
    )
