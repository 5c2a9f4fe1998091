"""Finding, stopping and deleting a user's workflows on the Temporal service."""

from __future__ import annotations

from collections.abc import AsyncIterator

import structlog
from temporalio.api.common.v1 import WorkflowExecution as ExecutionId
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client, WorkflowExecution
from temporalio.service import RPCError, RPCStatusCode

from engram.contracts import names
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
