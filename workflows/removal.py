"""Erasing everything of one user, and forgetting one memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy

from engram.contracts import names
from engram.contracts.activities import (
    DigestActivities,
    ErasureActivities,
    ForgettingActivities,
)
from engram.contracts.consolidation import DigestInput, DigestOutput
from engram.contracts.removal import (
    BEING_SCRUBBED,
    HISTORIES_KEPT,
    ApplyForgettingInput,
    ErasureInput,
    ErasureReceipt,
    ForgetInput,
    ForgetPlan,
    ForgetReceipt,
    HistoryErasureInput,
    LookAgainInput,
    PlanForgettingInput,
    WorkflowRound,
)
from engram.domain.buffer import portions
from engram.errors import PayloadRefused
from engram.workflows.support import check_start, execute, refusal

# --- erasing everything of one user: a fence first, then memories; histories behind the receipt

# A server lists what it runs a moment late, and what it deleted for some time more. So one
# looks until two looks in a row, so far apart, found nothing to do.
_BETWEEN_ROUNDS = timedelta(seconds=5)
# Behind the receipt one looks soon, then ever more seldom: each asking is a task of the
# service, which does not do it before the one of the run's end.
_LOOK_SOON = timedelta(seconds=1)
_LOOK_LATE = timedelta(seconds=15)
_QUIET_ROUNDS = 2
# Nothing is inserted behind the fence; what was on its way when it rose, is taken back.
_MOST_ROUNDS = 30
# Runs of before raised no fence, and gave their receipt once histories were deleted.
_FENCED = "erasing-raises-a-fence"
_ASKED_WITHIN = timedelta(hours=1)
_SOON = timedelta(milliseconds=200)
# Of what runs, before the receipt; all else that is known of the user follows behind it.
_STOPPED_AT_ONCE = 100
# A round that took on as many as it may is followed by the next one without a pause.
_RUNS_A_ROUND = 1000


@workflow.defn(name=names.ERASURE_WORKFLOW)
class ErasureWorkflow:
    """Ends with a receipt once the user's collections count zero and nothing can fill them.

    What deletes histories goes on in a workflow of its own.
    """

    @workflow.run
    async def run(self, asked: ErasureInput) -> ErasureReceipt:
        """Erase, and say what was erased."""
        check_start(asked.scope, names.erasure_workflow_id(asked.scope))
        _check_age(asked)
        if not workflow.patched(_FENCED):
            return await self._in_rounds(asked)
        about, limit = f"erase {asked.scope.tenant}", asked.store_timeout
        first_run_id = workflow.info().first_execution_run_id
        asked = asked.model_copy(update={"first_run_id": first_run_id})
        fence = await execute(ErasureActivities.raise_fence, asked, about, limit)
        asked = asked.model_copy(update={"epoch": fence.epoch})
        fenced_at = workflow.now()
        running = asked.model_copy(
            update={
                "before": fenced_at,
                "most_runs": _STOPPED_AT_ONCE,
                "only_running": True,
            }
        )
        stopped, left = await asyncio.gather(
            execute(ErasureActivities.erase_workflows, running, about, limit),
            self._delete_memories(asked, about),
        )
        receipt = ErasureReceipt(
            namespace=asked.scope.namespace,
            user_id=asked.scope.user_id,
            complete=not left,
            erased_at=workflow.now(),
            memories={kind: count for kind, count in fence.memories.items() if count},
            workflows_stopped=stopped.stopped,
            histories_deleted=len(stopped.deleted),
            histories_kept=stopped.kept,
            workflow_id=workflow.info().workflow_id,
            may_remain=BEING_SCRUBBED,
        )
        await self._go_on_behind(asked, receipt, fenced_at, stopped)
        return receipt

    async def _in_rounds(self, asked: ErasureInput) -> ErasureReceipt:
        """Go on as erasures did without a fence: until two looks in a row found nothing."""
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

    async def _delete_memories(self, asked: ErasureInput, about: str) -> int:
        """Delete until nothing is left; how much is, all the same."""
        left = 0
        for number in range(_MOST_ROUNDS):
            if number:
                await workflow.sleep(_SOON, summary="look again for what was on its way")
            stored = await execute(
                ErasureActivities.erase_memories, asked, about, asked.store_timeout
            )
            left = stored.left
            if not left:
                break
        return left

    async def _go_on_behind(
        self,
        asked: ErasureInput,
        receipt: ErasureReceipt,
        fenced_at: datetime,
        stopped: WorkflowRound,
    ) -> None:
        info = workflow.info()
        await workflow.start_child_workflow(
            names.HISTORY_ERASURE_WORKFLOW,
            HistoryErasureInput(
                scope=asked.scope,
                receipt=receipt,
                fenced_at=fenced_at,
                store_timeout=asked.store_timeout,
                recent=stopped.deleted,
            ),
            id=names.history_erasure_workflow_id(info.workflow_id),
            parent_close_policy=workflow.ParentClosePolicy.ABANDON,
            # An erasure that comes while histories of the one before are deleted takes over.
            id_reuse_policy=WorkflowIDReusePolicy.TERMINATE_IF_RUNNING,
            search_attributes=info.typed_search_attributes,
            static_summary=f"histories of {asked.scope.tenant}",
        )


@workflow.defn(name=names.HISTORY_ERASURE_WORKFLOW)
class HistoryErasureWorkflow:
    """Ends when the service lists no run of the user that began before the fence."""

    @workflow.run
    async def run(self, asked: HistoryErasureInput) -> ErasureReceipt:
        """Stop what runs, delete histories, and complete the receipt."""
        store = names.store_of(workflow.info().workflow_id)
        erasure = names.in_store(store, names.erasure_workflow_id(asked.scope))
        check_start(asked.scope, names.history_erasure_workflow_id(erasure))
        receipt, quiet, recent = asked.receipt, asked.quiet, dict.fromkeys(asked.recent)
        work = ErasureInput(
            scope=asked.scope,
            store_timeout=asked.store_timeout,
            before=asked.fenced_at,
            most_runs=_RUNS_A_ROUND,
        )
        wait = _LOOK_SOON
        while quiet < _QUIET_ROUNDS:
            done = await execute(
                ErasureActivities.erase_workflows,
                work,
                f"histories of {asked.scope.tenant}",
                asked.store_timeout,
            )
            fresh = [run for run in done.deleted if run not in recent]
            recent |= dict.fromkeys(fresh)
            receipt = receipt.model_copy(
                update={
                    "workflows_stopped": receipt.workflows_stopped + done.stopped,
                    "histories_deleted": receipt.histories_deleted + len(fresh),
                    "histories_kept": done.kept,
                }
            )
            quiet = quiet + 1 if done.quiet else 0
            workflow.set_current_details(
                f"{receipt.workflows_stopped} workflows stopped, "
                f"{receipt.histories_deleted} histories deleted."
            )
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(
                    asked.model_copy(
                        update={
                            "receipt": receipt,
                            "recent": tuple(recent)[-2 * _RUNS_A_ROUND :],
                            "quiet": quiet,
                        }
                    )
                )
            if quiet < _QUIET_ROUNDS and len(done.deleted) < _RUNS_A_ROUND:
                pause = _BETWEEN_ROUNDS if quiet else wait
                await workflow.sleep(pause, summary="look again for late listings")
                wait = min(2 * wait, _LOOK_LATE)
        kept = receipt.histories_kept
        return receipt.model_copy(
            update={
                "scrubbed": True,
                "complete": receipt.complete and not kept,
                "may_remain": (HISTORIES_KEPT.format(count=kept),) if kept else (),
            }
        )


def _check_age(asked: ErasureInput) -> None:
    """Refuse what was recorded of an earlier erasure and sent again, with its encryption.

    A record of one is kept beyond it, and the user may have come back.
    """
    began = workflow.info().workflow_start_time
    if asked.asked_at is not None and abs(began - asked.asked_at) > _ASKED_WITHIN:
        late = PayloadRefused(
            "This erasure was asked for at another time.",
            hint="Ask again; the clocks of client and server must agree within the hour.",
        )
        raise refusal(late)


# --- forgetting one memory: settle what that takes, delete it, compose again what named it

# Settling reads every version of every profile of the user: seconds, with many of them.
_LIMIT = timedelta(minutes=10)
# What one activity composes again.
_RECOMPOSE_CHUNK = 200
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
        check_start(asked.scope, names.forgetting_workflow_id(asked.scope, asked.memory_id))
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
        for part in portions(plan.composed, _RECOMPOSE_CHUNK):
            # Some of these ids are turns, the others memories; each reader takes its own.
            work = base.model_copy(update={"memory_ids": part, "episode_ids": part})
            done = done.plus(await execute(DigestActivities.digest_knowledge, work, about, _LIMIT))
        if plan.boxed:
            work = base.model_copy(update={"episode_ids": plan.boxed, "ended": plan.ended})
            done = done.plus(await execute(DigestActivities.digest_sessions, work, about, _LIMIT))
        return done.profiles + done.topics + done.boxes
