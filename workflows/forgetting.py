"""Forgetting one memory: settle what that takes, delete it, compose again what named it."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeVar

from temporalio import workflow

from engram.contracts import names
from engram.contracts.common import Message
from engram.contracts.digests import DigestInput, DigestOutput
from engram.contracts.forgetting import (
    ApplyForgettingInput,
    ForgetInput,
    ForgetPlan,
    ForgetReceipt,
    PlanForgettingInput,
)
from engram.domain.batches import portions
from workflows.retries import STORE_LONG

M = TypeVar("M", bound=Message)

# Settling reads every version of every profile of the user: seconds, with many of them.
_LIMIT = timedelta(minutes=10)
_SILENCE = timedelta(seconds=30)
# What one activity composes again.
_CHUNK = 200


@workflow.defn(name=names.FORGETTING_WORKFLOW)
class ForgettingWorkflow:
    """Its history holds ids and numbers only."""

    @workflow.run
    async def run(self, asked: ForgetInput) -> ForgetReceipt:
        """Forget, and say how much went."""
        plan = await self._do(
            asked,
            names.PLAN_FORGETTING_ACTIVITY,
            PlanForgettingInput(scope=asked.scope, memory_id=asked.memory_id),
            ForgetPlan,
        )
        await self._do(
            asked,
            names.APPLY_FORGETTING_ACTIVITY,
            ApplyForgettingInput(scope=asked.scope, now=workflow.now(), plan=plan),
            Message,
        )
        return ForgetReceipt(
            memory_id=asked.memory_id,
            forgotten={kind: len(ids) for kind, ids in plan.gone.items()},
            amended=len(plan.amended),
            recomposed=await self._compose(asked, plan),
            workflow_id=workflow.info().workflow_id,
        )

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
        done = DigestOutput()
        if not asked.digests.enabled:
            return 0
        for part in portions(plan.composed, _CHUNK):
            # Some of these ids are turns, the others memories; each reader takes its own.
            work = base.model_copy(update={"memory_ids": part, "episode_ids": part})
            done = done.plus(
                await self._do(asked, names.DIGEST_KNOWLEDGE_ACTIVITY, work, DigestOutput)
            )
        if plan.boxed:
            work = base.model_copy(update={"episode_ids": plan.boxed, "ended": plan.ended})
            done = done.plus(
                await self._do(asked, names.DIGEST_SESSIONS_ACTIVITY, work, DigestOutput)
            )
        return done.profiles + done.topics + done.boxes

    async def _do(self, asked: ForgetInput, activity: str, work: Message, answer: type[M]) -> M:
        done: M = await workflow.execute_activity(
            activity,
            work,
            result_type=answer,
            start_to_close_timeout=_LIMIT,
            heartbeat_timeout=_SILENCE,
            retry_policy=STORE_LONG,
            summary=f"forget {asked.memory_id}",
        )
        return done
