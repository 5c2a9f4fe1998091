"""Activities of the workflows that erase a user or forget one memory."""

from __future__ import annotations

from temporalio import activity
from temporalio.client import Client, WorkflowExecution, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from engram.activities.runtime import heartbeating
from engram.consolidation.forgetting import Forgetter
from engram.contracts import names
from engram.contracts.activities import ErasureActivities, ForgettingActivities
from engram.contracts.messages import Message
from engram.contracts.removal import (
    ApplyForgettingInput,
    ErasureInput,
    ForgetPlan,
    LookAgainInput,
    PlanForgettingInput,
    StoreRound,
    WorkflowRound,
)
from engram.domain.memories import STORED_TYPES
from engram.domain.scope import Scope
from engram.ports import MemoryRepository
from engram.temporal.gateway import delete_history, list_workflows, stop

# --- activities of the erasing workflow

# What one round takes on: a result of some kilobytes.
_RUNS_A_ROUND = 1000


class ErasureActivitiesImpl(ErasureActivities):
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
        async with heartbeating():
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
        async with heartbeating():
            deleted = await self._repository.erase(asked.scope)
            left = [await self._repository.count(asked.scope, kind) for kind in STORED_TYPES]
            await self._repository.flush()
        return StoreRound(
            deleted={str(kind): count for kind, count in deleted.items() if count}, left=sum(left)
        )


def _is_this_one(execution: WorkflowExecution) -> bool:
    return execution.id == activity.info().workflow_id


# --- activities of the forgetting workflow


class ForgettingActivitiesImpl(ForgettingActivities):
    """Settles what forgetting takes, and does it.

    Args:
        client: Reaches a session that still holds the turn in mind.
        forgetter: Plans and deletes.
    """

    def __init__(self, client: Client, forgetter: Forgetter) -> None:
        self._client = client
        self._forgetter = forgetter

    @activity.defn(name=names.PLAN_FORGETTING_ACTIVITY)
    async def plan_forgetting(self, asked: PlanForgettingInput) -> ForgetPlan:
        """What goes, what stays without it, and what is composed again."""
        async with heartbeating():
            return await self._forgetter.plan(asked.scope, asked.memory_id)

    @activity.defn(name=names.APPLY_FORGETTING_ACTIVITY)
    async def apply_forgetting(self, asked: ApplyForgettingInput) -> Message:
        """Let the session forget as well, mend what stays, delete what goes."""
        async with heartbeating():
            await self._let_session_forget(asked.scope, asked.plan)
            await self._forgetter.apply(asked.scope, asked.plan)
        return Message()

    @activity.defn(name=names.LOOK_AGAIN_ACTIVITY)
    async def look_again(self, asked: LookAgainInput) -> ForgetPlan:
        """What was written of the forgotten meanwhile."""
        async with heartbeating():
            return await self._forgetter.look_again(asked.scope, asked.plan)

    async def _let_session_forget(self, scope: Scope, plan: ForgetPlan) -> None:
        if plan.session_id is None or not plan.episodes:
            return
        session = names.session_workflow_id(scope, plan.session_id)
        handle = self._client.get_workflow_handle(session)
        try:
            await handle.signal(names.FORGET_TURNS_SIGNAL, plan.episodes)
        except RPCError as error:
            # A session that does not run holds nothing in mind.
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
