"""Finding, stopping and deleting a user's workflows on the Temporal service."""

from __future__ import annotations

from collections.abc import AsyncIterator

import structlog
from temporalio.api.common.v1 import Payloads
from temporalio.api.common.v1 import WorkflowExecution as ExecutionId
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError, RPCStatusCode

from engram.contracts import names
from engram.contracts.erasure import WorkflowRound
from engram.domain.scope import Scope

_log = structlog.get_logger("engram.client")
_NOT_ALLOWED = frozenset({RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED})


async def list_workflows(client: Client, scope: Scope) -> AsyncIterator[WorkflowExecution]:
    """Every workflow of one user that the service still knows, running or not."""
    # Tenants consist of letters that need no quoting; see Scope.
    query = f"{names.USER_ATTRIBUTE} = '{scope.tenant}'"
    async for execution in client.list_workflows(query):
        yield execution


async def stop(client: Client, execution: WorkflowExecution) -> bool:
    """Terminate a run; False if it ended meanwhile."""
    handle = client.get_workflow_handle(execution.id, run_id=execution.run_id)
    try:
        await handle.terminate(reason="everything of this user is erased")
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    return True


async def delete_history(client: Client, execution: WorkflowExecution) -> bool:
    """Delete what the service keeps of a run; False where it does not allow that."""
    request = DeleteWorkflowExecutionRequest(
        namespace=client.namespace,
        workflow_execution=ExecutionId(workflow_id=execution.id, run_id=execution.run_id),
    )
    try:
        await client.workflow_service.delete_workflow_execution(request)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return True
        if error.status in _NOT_ALLOWED:
            _log.warning("a history cannot be deleted", status=error.status.name)
            return False
        raise
    return True


async def erased_runs(client: Client, workflow_id: str) -> set[str]:
    """Runs whose deletion the last erasure under this id asked for; empty if there was none."""
    found: set[str] = set()
    rounds: set[int] = set()
    try:
        async for event in client.get_workflow_handle(workflow_id).fetch_history_events():
            scheduled = event.activity_task_scheduled_event_attributes
            if scheduled.activity_type.name == names.ERASE_WORKFLOWS_ACTIVITY:
                rounds.add(event.event_id)
            completed = event.activity_task_completed_event_attributes
            if completed.scheduled_event_id in rounds:
                found.update((await _round(client, completed.result)).deleted)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
    return found


async def _round(client: Client, result: Payloads) -> WorkflowRound:
    (answer,) = await client.data_converter.decode(result.payloads, [WorkflowRound])
    done: WorkflowRound = answer
    return done
