"""Erasing everything of one user, and forgetting one memory."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

from temporalio import workflow

from engram.contracts import names
from engram.contracts.activities import (
    DigestActivities,
    ErasureActivities,
    ForgettingActivities,
)
from engram.contracts.consolidation import DigestInput, DigestOutput
from engram.contracts.removal import (
    ApplyForgettingInput,
    ErasureInput,
    ErasureReceipt,
    ForgetInput,
    ForgetPlan,
    ForgetReceipt,
    LookAgainInput,
    PlanForgettingInput,
)
from engram.domain.buffer import portions
from engram.workflows.support import execute

# --- erasing everything of one user: workflows first, then memories, until nothing is left

# A server lists what it runs a moment late, and an activity of a workflow that was
# terminated hears of it with its next heartbeat, every four seconds. So one looks until
# two looks in a row, so far apart, found nothing to do.
_BETWEEN_ROUNDS = timedelta(seconds=5)
_QUIET_ROUNDS = 2
# Somebody who goes on writing meanwhile must not keep the erasure from ending.
_MOST_ROUNDS = 30


@workflow.defn(name=names.ERASURE_WORKFLOW)
class ErasureWorkflow:
    """Ends with a receipt once the user's collections count zero and no workflow is left."""

    @workflow.run
    async def run(self, asked: ErasureInput) -> ErasureReceipt:
        """Erase, and say what was erased."""
        stopped = kept = quiet = 0
        deleted: set[str] = set()
        memories: Counter[str] = Counter()
        for number in range(_MOST_ROUNDS):
            if number:
                await workflow.sleep(_BETWEEN_ROUNDS, summary="look again for late listings")
            about, limit = f"erase {asked.scope.tenant}", asked.store_timeout
            workflows = await execute(ErasureActivities.erase_workflows, asked, about, limit)
            stored = await execute(ErasureActivities.erase_memories, asked, about, limit)
            stopped += workflows.stopped
            deleted.update(workflows.deleted)
            kept = max(kept, workflows.kept)
            memories.update(stored.deleted)
            clean = workflows.quiet and not stored.left and not sum(stored.deleted.values())
            quiet = quiet + 1 if clean else 0
            workflow.set_current_details(
                f"Round {number + 1}: {stopped} workflows stopped, {len(deleted)} histories "
                f"deleted, {memories.total()} memories deleted."
            )
            if quiet >= _QUIET_ROUNDS:
                break
        return ErasureReceipt(
            namespace=asked.scope.namespace,
            user_id=asked.scope.user_id,
            complete=quiet >= _QUIET_ROUNDS,
            erased_at=workflow.now(),
            memories=dict(memories),
            workflows_stopped=stopped,
            histories_deleted=len(deleted),
            histories_kept=kept,
            workflow_id=workflow.info().workflow_id,
        )


# --- forgetting one memory: settle what that takes, delete it, compose again what named it

# Settling reads every version of every profile of the user: seconds, with many of them.
_LIMIT = timedelta(minutes=10)
# What one activity composes again.
_CHUNK = 200
# Runs of before deleted once, whatever was written of the forgotten meanwhile.
_LOOKS_AGAIN = "forgetting-looks-again"
# What was noted as forgotten is not written again, so one look finds the last of it.
_MOST_LOOKS = 20


@workflow.defn(name=names.FORGETTING_WORKFLOW)
class ForgettingWorkflow:
    """Its history holds ids and numbers only."""

    @workflow.run
    async def run(self, asked: ForgetInput) -> ForgetReceipt:
        """Forget, and say how much went."""
        about = f"forget {asked.memory_id}"
        plan = await execute(
            ForgettingActivities.plan_forgetting,
            PlanForgettingInput(scope=asked.scope, memory_id=asked.memory_id),
            about,
            _LIMIT,
        )
        await self._apply(asked, plan)
        if workflow.patched(_LOOKS_AGAIN):
            plan = await self._until_nothing_is_found(asked, plan)
        return ForgetReceipt(
            memory_id=asked.memory_id,
            forgotten={kind: len(ids) for kind, ids in plan.gone.items()},
            amended=len(plan.amended),
            recomposed=await self._compose(asked, plan),
            workflow_id=workflow.info().workflow_id,
        )

    async def _apply(self, asked: ForgetInput, plan: ForgetPlan) -> None:
        await execute(
            ForgettingActivities.apply_forgetting,
            ApplyForgettingInput(scope=asked.scope, now=workflow.now(), plan=plan),
            f"forget {asked.memory_id}",
            _LIMIT,
        )

    async def _until_nothing_is_found(self, asked: ForgetInput, plan: ForgetPlan) -> ForgetPlan:
        """Look for what was written between looking and deleting; all that went in the end."""
        for number in range(_MOST_LOOKS):
            further = await execute(
                ForgettingActivities.look_again,
                LookAgainInput(scope=asked.scope, plan=plan),
                f"look again for {asked.memory_id}",
                _LIMIT,
            )
            if not further.ids:
                break
            workflow.logger.info("%d written meanwhile; round %d", len(further.ids), number + 1)
            await self._apply(asked, further)
            plan = plan.plus(further)
        return plan

    async def _compose(self, asked: ForgetInput, plan: ForgetPlan) -> int:
        """Profiles, topics and boxes that named what is gone, from what is left."""
        info = workflow.info()
        base = DigestInput(
            scope=asked.scope,
            now=workflow.now(),
            policy=asked.digests,
            workflow_id=info.workflow_id,
            run_id=info.run_id,
        )
        done, about = DigestOutput(), f"forget {asked.memory_id}"
        if not asked.digests.enabled:
            return 0
        for part in portions(plan.composed, _CHUNK):
            # Some of these ids are turns, the others memories; each reader takes its own.
            work = base.model_copy(update={"memory_ids": part, "episode_ids": part})
            done = done.plus(await execute(DigestActivities.digest_knowledge, work, about, _LIMIT))
        if plan.boxed:
            work = base.model_copy(update={"episode_ids": plan.boxed, "ended": plan.ended})
            done = done.plus(await execute(DigestActivities.digest_sessions, work, about, _LIMIT))
        return done.profiles + done.topics + done.boxes
