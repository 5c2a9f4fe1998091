"""Activities of the workflows that erase a user or forget one memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from functools import reduce
from typing import Any

from pydantic import ValidationError
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
    FenceOutput,
    ForgetPlan,
    LookAgainInput,
    PlanForgettingInput,
    StoreRound,
    WorkflowRound,
)
from engram.domain.kept import let_go
from engram.domain.memories import STORED_TYPES, MemoryType
from engram.domain.scope import Scope
from engram.errors import UserErased
from engram.ports import KeyStore, MemoryRepository
from engram.storage.trail import AuditTrail
from engram.temporal.gateway import began_behind, list_workflows, remove

# --- activities of the erasing workflow and of the one behind it

# So many runs are removed side by side.
_REMOVED_AT_ONCE = 20
# Once when the last memory was gone, and once when the erasure was over.
_RAISED_BEHIND_THE_FENCE = 2


class ErasureActivitiesImpl(ErasureActivities):
    """Stops a user's workflows, deletes their histories and the memories.

    Args:
        client: Of the Temporal service.
        repository: Where memories are kept.
        keys: What the user's payloads are encrypted with; None where they are not.
        new_secret: Makes a fresh value that nobody can guess.
        trail: Names the user; None where none is kept.
    """

    def __init__(
        self,
        client: Client,
        repository: MemoryRepository,
        new_secret: Callable[[], str],
        keys: KeyStore | None = None,
        trail: AuditTrail | None = None,
    ) -> None:
        self._client = client
        self._repository = repository
        self._new_secret = new_secret
        self._keys = keys
        self._trail = trail

    @activity.defn(name=names.RAISE_FENCE_ACTIVITY)
    async def raise_fence(self, asked: ErasureInput) -> FenceOutput:
        """Raise the user's epoch, once an erasure, and count before anything is deleted.

        Raises:
            UserErased: a run of this erasure that is over was reset.
        """
        async with heartbeating():
            if self._keys is not None:
                # First: whoever comes from now on has a key of their own.
                await self._keys.retire(names.key_owner(_store(), asked.scope.tenant))
            epoch = await self._raise_epoch(asked.scope, _operation(asked))
            await self._check_goes_on(asked.scope, epoch)
            counts = {
                str(kind): await self._repository.count(asked.scope, kind) for kind in STORED_TYPES
            }
        return FenceOutput(epoch=epoch, memories=counts)

    @activity.defn(name=names.ERASE_WORKFLOWS_ACTIVITY)
    async def erase_workflows(self, asked: ErasureInput) -> WorkflowRound:
        """Terminate what runs for the user, and delete the histories of what ran.

        What an attempt before this one deleted is counted as well.

        Raises:
            UserErased: a run of this erasure that is over was reset.
        """
        if asked.epoch is not None and _was_reset(asked):
            await self._check_goes_on(asked.scope, asked.epoch)
        done = _done_before(activity.info().heartbeat_details)
        async with heartbeating(lambda: done.model_dump(mode="json")):
            part: list[WorkflowExecution] = []
            async for execution in list_workflows(self._client, asked.scope, _store()):
                if _is_passed_over(execution, asked):
                    continue
                part.append(execution)
                if len(part) == _REMOVED_AT_ONCE:
                    done, part = await self._without(part, done, asked.before), []
                    if len(done.deleted) >= asked.most_runs:
                        break
            return await self._without(part, done, asked.before)

    async def _without(
        self, part: Sequence[WorkflowExecution], done: WorkflowRound, before: datetime | None
    ) -> WorkflowRound:
        removed = await asyncio.gather(*(self._removed(one, before) for one in part))
        return reduce(WorkflowRound.plus, removed, done)

    async def _removed(
        self, execution: WorkflowExecution, before: datetime | None
    ) -> WorkflowRound:
        """Remove a run, unless it belongs to what the user has since the fence."""
        if before is not None and await began_behind(self._client, execution, before):
            return WorkflowRound()
        return await remove(self._client, execution)

    @activity.defn(name=names.ERASE_MEMORIES_ACTIVITY)
    async def erase_memories(self, asked: ErasureInput) -> StoreRound:
        """Delete from every collection, then count what is left."""
        async with heartbeating():
            try:
                deleted, left = await self._erase(asked)
            except UserErased:
                # Another attempt did it all while this one was held up; what is there was
                # said behind its receipt.
                return StoreRound()
            await self._repository.flush()
            if not left:
                if self._keys is not None:
                    # Until nothing is left, a history says what there was. What Temporal
                    # keeps of the user is noise from here on.
                    await self._keys.shred(names.key_owner(_store(), asked.scope.tenant))
                if self._trail is not None:
                    await asyncio.to_thread(self._trail.forget_user, asked.scope)
                # Last: an attempt that goes on from here, however late, does nothing any more.
                await self._raise_epoch(asked.scope, f"{_operation(asked)} done")
        let_go()
        return StoreRound(
            deleted={str(kind): count for kind, count in deleted.items() if count}, left=left
        )

    async def _erase(self, asked: ErasureInput) -> tuple[Counter[MemoryType], int]:
        until = None if asked.epoch is None else asked.epoch + _RAISED_BEHIND_THE_FENCE
        deleted = Counter(await self._repository.erase(asked.scope, until=until))
        left = await self._left(asked.scope)
        if not left:
            # Behind the fence, turns could be read until the last of them was gone. What was
            # drawn from them and is still on its way is refused from here on, or goes here.
            await self._raise_epoch(asked.scope, f"{_operation(asked)} deleted")
            deleted += Counter(await self._repository.erase(asked.scope, until=until))
            left = await self._left(asked.scope)
        return deleted, left

    async def _check_goes_on(self, scope: Scope, epoch: int) -> None:
        """Refuse what would take what the user said since an erasure was over."""
        if await self._repository.epoch(scope) >= epoch + _RAISED_BEHIND_THE_FENCE:
            raise UserErased(
                "This erasure is over: reset, it would delete what the user said since.",
                hint="To delete that as well, ask for another erasure.",
            )

    async def _raise_epoch(self, scope: Scope, operation: str) -> int:
        key = f"{self._new_secret()}{self._new_secret()}"
        return await self._repository.raise_epoch(scope, operation, key=key)

    async def _left(self, scope: Scope) -> int:
        return sum([await self._repository.count(scope, kind) for kind in STORED_TYPES])


def _operation(asked: ErasureInput) -> str:
    """What names an erasure; runs of before named it after the run that it was."""
    info = activity.info()
    return asked.first_run_id or info.workflow_run_id or info.activity_id


def _was_reset(asked: ErasureInput) -> bool:
    """Whether this is another run than the one that the erasure began with."""
    return asked.first_run_id not in {None, activity.info().workflow_run_id}


def _store() -> str:
    """The collection prefix of the store that the workflow works for."""
    return names.store_of(activity.info().workflow_id or "")


def _done_before(details: Sequence[Any]) -> WorkflowRound:
    """What an attempt before this one did; nothing if it left something else behind."""
    try:
        return WorkflowRound.model_validate(details[0]) if details else WorkflowRound()
    except ValidationError:
        return WorkflowRound()


def _is_passed_over(execution: WorkflowExecution, asked: ErasureInput) -> bool:
    """Whether a run erases, or has ended where only those that run are meant."""
    erasure = names.in_store(_store(), names.erasure_workflow_id(asked.scope))
    if execution.id in {erasure, names.history_erasure_workflow_id(erasure)}:
        return True
    return asked.only_running and execution.status is not WorkflowExecutionStatus.RUNNING


# --- activities of the forgetting workflow


class ForgettingActivitiesImpl(ForgettingActivities):
    """Settles what forgetting takes, and does it.

    Args:
        client: Reaches a session that still holds the turn in mind.
        forgetter: Plans and deletes.
        reviews_changed: Has reviews look whether there is anything left to wait for.
    """

    def __init__(
        self,
        client: Client,
        forgetter: Forgetter,
        reviews_changed: Callable[[Scope, Iterable[tuple[str, ...]]], Awaitable[None]],
    ) -> None:
        self._client = client
        self._forgetter = forgetter
        self._reviews_changed = reviews_changed

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
            await self._reviews_changed(asked.scope, asked.plan.disputes)
        let_go()
        return Message()

    @activity.defn(name=names.LOOK_AGAIN_ACTIVITY)
    async def look_again(self, asked: LookAgainInput) -> ForgetPlan:
        """What was written of the forgotten meanwhile."""
        async with heartbeating():
            return await self._forgetter.look_again(asked.scope, asked.plan)

    async def _let_session_forget(self, scope: Scope, plan: ForgetPlan) -> None:
        if plan.session_id is None or not plan.episodes:
            return
        session = names.in_store(_store(), names.session_workflow_id(scope, plan.session_id))
        handle = self._client.get_workflow_handle(session)
        try:
            await handle.signal(names.FORGET_TURNS_SIGNAL, plan.episodes)
        except RPCError as error:
            # A session that does not run holds nothing in mind.
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise
