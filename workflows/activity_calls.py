"""Calling consolidation's activities: with what, on which queue, for how long, how often."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy

from engram.contracts import names
from engram.contracts.common import Message, Population
from engram.contracts.consolidation import (
    ConsolidationPolicy,
    EpisodeBatch,
    ExtractInput,
    ExtractOutput,
    LinkInput,
    LinkOutput,
    MarkConsolidatedInput,
    MarkConsolidatedOutput,
    ModelUse,
    PlanInput,
    PlanOutput,
    ReconcileInput,
    SelectDueInput,
    SelectDueOutput,
)
from engram.contracts.digests import DigestInput, DigestOutput, LearnInput
from engram.domain.plan import ConsolidationPlan
from engram.domain.scope import Scope
from workflows.retries import MODEL, STORE_LONG

M = TypeVar("M", bound=Message | ConsolidationPlan)

# A worker that died is noticed after so long, not after the whole time limit.
_SILENCE = timedelta(seconds=15)


@dataclass(frozen=True)
class ActivityCalls:
    """Calls activities; each raises ``ActivityError`` when its retries are used up.

    Args:
        scope: Whose memory is consolidated.
        policy: Time limits, sizes, and the queue of the model.
        population: Whether test turns are read, or all others.
    """

    scope: Scope
    policy: ConsolidationPolicy
    population: Population = Population.REAL

    async def select_due(self, skip: tuple[str, ...], reason: str) -> SelectDueOutput:
        """Which episodes are due, without those to skip."""
        return await self._store(
            names.SELECT_DUE_ACTIVITY,
            SelectDueInput(
                scope=self.scope,
                now=workflow.now(),
                policy=self.policy,
                population=self.population,
                skip=skip,
            ),
            SelectDueOutput,
            f"which turns are due ({reason})",
        )

    async def extract(self, batch: EpisodeBatch) -> ExtractOutput:
        """What a batch states."""
        return await self._model(
            names.EXTRACT_ACTIVITY,
            ExtractInput(scope=self.scope, now=workflow.now(), episode_ids=batch.episode_ids),
            ExtractOutput,
            f"read {len(batch.episode_ids)} turns of session {batch.session_id}",
        )

    async def reconcile(self, extracted: ExtractOutput, use: ModelUse) -> ConsolidationPlan:
        """What the statements mean for what is known."""
        info = workflow.info()
        return await self._store(
            names.RECONCILE_ACTIVITY,
            ReconcileInput(
                scope=self.scope,
                now=workflow.now(),
                statements=extracted.statements,
                verbatim=extracted.verbatim,
                use=use,
                workflow_id=info.workflow_id,
                run_id=info.run_id,
            ),
            ConsolidationPlan,
            f"compare {len(extracted.statements)} statements with what is known",
        )

    async def write(self, plan: ConsolidationPlan) -> PlanOutput:
        """Write what a plan adds, when it adds anything."""
        new, changed = len(plan.new_memories()), len(tuple(plan.amendments()))
        links = len(plan.links())
        if not (new or changed or links):
            return PlanOutput()
        return await self._store(
            names.WRITE_PLAN_ACTIVITY,
            PlanInput(scope=self.scope, now=workflow.now(), plan=plan),
            PlanOutput,
            f"store {new} new, update {changed}, link {links}",
        )

    async def retire(self, plan: ConsolidationPlan) -> PlanOutput:
        """Retire what a plan replaces, when it replaces anything."""
        retirements = plan.retirements()
        if not retirements:
            return PlanOutput()
        return await self._store(
            names.RETIRE_ACTIVITY,
            PlanInput(
                scope=self.scope,
                now=workflow.now(),
                plan=ConsolidationPlan(actions=retirements),
            ),
            PlanOutput,
            f"retire {len(retirements)} replaced memories",
        )

    async def mark_consolidated(self, batch: EpisodeBatch) -> MarkConsolidatedOutput:
        """Note that a batch is consolidated."""
        return await self._store(
            names.MARK_CONSOLIDATED_ACTIVITY,
            MarkConsolidatedInput(
                scope=self.scope, now=workflow.now(), episode_ids=batch.episode_ids
            ),
            MarkConsolidatedOutput,
            f"{len(batch.episode_ids)} turns are consolidated",
        )

    async def link(
        self, ids: tuple[str, ...], fresh_ids: tuple[str, ...], operation: str
    ) -> LinkOutput:
        """What links these memories with each other and with what resembles them."""
        return await self._model(
            names.LINK_ACTIVITY,
            LinkInput(
                scope=self.scope,
                now=workflow.now(),
                memory_ids=ids,
                fresh_ids=fresh_ids,
                candidates_per_memory=self.policy.candidates_per_memory,
                operation=operation,
                population=self.population,
            ),
            LinkOutput,
            f"link {len(ids)} memories",
        )

    async def digest(
        self,
        name: str,
        work: DigestInput | LearnInput,
        summary: str,
        *,
        retries: RetryPolicy = STORE_LONG,
    ) -> DigestOutput:
        """Rebuild some of what is composed from memories."""
        limit = self.policy.store_timeout
        return await _execute(name, work, DigestOutput, summary, limit, retries, None)

    async def _store(self, name: str, work: Message, result: type[M], summary: str) -> M:
        limit = self.policy.store_timeout
        return await _execute(name, work, result, summary, limit, STORE_LONG, None)

    async def _model(self, name: str, work: Message, result: type[M], summary: str) -> M:
        policy = self.policy
        return await _execute(
            name, work, result, summary, policy.model_timeout, MODEL, policy.model_queue
        )


async def _execute(
    name: str,
    work: Message,
    result: type[M],
    summary: str,
    limit: timedelta,
    retries: RetryPolicy,
    queue: str | None,
) -> M:
    answer: Any = await workflow.execute_activity(
        name,
        work,
        result_type=result,
        task_queue=queue,
        start_to_close_timeout=limit,
        heartbeat_timeout=min(limit, _SILENCE),
        retry_policy=retries,
        summary=summary[:200],
    )
    return answer  # type: ignore[no-any-return]  # result_type decoded it
