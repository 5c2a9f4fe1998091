"""Activities of the erasing workflow."""

from __future__ import annotations

from temporalio import activity
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus

from activities.heartbeats import beating
from engram.client.erasing import delete_history, list_workflows, stop
from engram.contracts import names
from engram.contracts.erasure import ErasureInput, StoreRound, WorkflowRound
from engram.domain.memories import STORED_TYPES
from engram.ports import MemoryRepository

# What one round takes on: a result of some kilobytes.
_RUNS_A_ROUND = 1000


class ErasureActivities:
    """Stops a user's workflows, deletes their histories and the memories.

    Args:
        client: Of the Temporal service.
        repository: Where memories are kept.
    """

    def __init__(self, client: Client, repository: MemoryRepository) -> None:
        self._client = client
        self._repository = repository

    @activity.defn(name=names.ERASE_WORKFLOWS_ACTIVITY)
    async def erase_workflows(self, asked: ErasureInput) -> WorkflowRound:
        """Terminate what runs for the user, and delete the histories of what ran."""
        stopped = kept = 0
        deleted: list[str] = []
        async with beating():
            async for execution in list_workflows(self._client, asked.scope):
                if _is_this_one(execution):
                    continue
                if execution.status is WorkflowExecutionStatus.RUNNING:
                    stopped += await stop(self._client, execution)
                if await delete_history(self._client, execution):
                    deleted.append(execution.run_id)
                else:
                    kept += 1
                if len(deleted) >= _RUNS_A_ROUND:
                    break
        return WorkflowRound(stopped=stopped, deleted=tuple(deleted), kept=kept)

    @activity.defn(name=names.ERASE_MEMORIES_ACTIVITY)
    async def erase_memories(self, asked: ErasureInput) -> StoreRound:
        """Delete from every collection, then count what is left."""
        async with beating():
            deleted = await self._repository.erase(asked.scope)
            left = [await self._repository.count(asked.scope, kind) for kind in STORED_TYPES]
            await self._repository.flush()
        return StoreRound(
            deleted={str(kind): count for kind, count in deleted.items() if count}, left=sum(left)
        )


def _is_this_one(execution: WorkflowExecution) -> bool:
    return execution.id == activity.info().workflow_id
