"""How workflows call activities: retry profiles, failures as data, queues and timeouts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError

from engram.contracts import names
from engram.contracts.consolidation import (
    ConsolidationPolicy,
    DigestInput,
    DigestOutput,
    EpisodeBatch,
    ExtractInput,
    ExtractOutput,
    Failure,
    LearnInput,
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
from engram.contracts.lifecycle import LifecyclePolicy, PassState, WalkInput
from engram.contracts.messages import Message, Population
from engram.domain.plan import ConsolidationPlan
from engram.domain.scope import Scope
from engram.errors import (
    EngramError,
    ModelAnswerUnusable,
    ModelRejected,
    ModelUnavailable,
    SchemaMismatch,
    StorageError,
    StorageUnavailable,
    UnforeseenFailure,
    UnindexedField,
    WrongVectorSize,
)

# --- named retry profiles, every one bounded. Which failures end them at once, errors say
# themselves
#
# A profile bounds attempts, the activity's timeouts bound each attempt.

# Within the latency of an update: one more try, then the regular activity takes over.
LOCAL_STORE = RetryPolicy(
    initial_interval=timedelta(milliseconds=100),
    maximum_interval=timedelta(milliseconds=100),
    maximum_attempts=2,
)

# About a day: work that was accepted survives an outage of the store.
STORE_LONG = RetryPolicy(
    initial_interval=timedelta(milliseconds=200),
    backoff_coefficient=2.0,
    maximum_interval=timedelta(seconds=30),
    maximum_attempts=2900,
)

# About eight minutes between first and last attempt. A provider that names a delay
# is waited for as long as it says, because the failure carries it.
MODEL = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=3.0,
    maximum_interval=timedelta(minutes=2),
    maximum_attempts=9,
)

# Between passes that an outage stopped: from five minutes to four hours, about a day in all.
_FIRST_WAIT = timedelta(minutes=5)
_LONGEST_WAIT = timedelta(hours=4)
_MOST_WAITS = 11


def after_outage(number: int) -> timedelta | None:
    """How long to wait after the ``number``-th outage in a row, from 1; None: no longer."""
    if number > _MOST_WAITS:
        return None
    growth: int = 2 ** (number - 1)
    return min(_FIRST_WAIT * growth, _LONGEST_WAIT)


# --- what a failed activity means, as data that reports and updates can carry

# A marker that runs of before the first release have in their histories; it goes with the next.
_OUTLIVES = "consolidation-outlives-failures"
_MODEL_ACTIVITIES = frozenset({names.EXTRACT_ACTIVITY, names.LINK_ACTIVITY})
_OF_THE_MODEL = frozenset({ModelRejected.code, ModelAnswerUnusable.code})
# What is wrong with the whole store is wrong for every batch.
_OF_THE_STORE = frozenset(
    kind.code for kind in (StorageError, SchemaMismatch, WrongVectorSize, UnindexedField)
)


def failure_of(error: ActivityError) -> Failure:
    """The typed error behind an activity's failure.

    What ran out of time may succeed later; an error that no part of Engram
    raised on purpose keeps its own name as code.
    """
    cause = error.cause
    if not isinstance(cause, ApplicationError):
        kind: type[EngramError] = (
            ModelUnavailable if error.activity_type in _MODEL_ACTIVITIES else StorageUnavailable
        )
        late = kind(f"{error.activity_type} did not end in time.")
        return Failure(code=late.code, message=late.message, error=late.as_dict())
    details = cause.details[0] if cause.details else None
    code = cause.type or "unknown"
    described = details if isinstance(details, dict) else {}
    return Failure(
        code=code,
        message=cause.message,
        error=described or {"code": code, "message": cause.message},
    )


def is_of_the_model(failure: Failure) -> bool:
    """Whether the model turned down what it was asked: asking for less may succeed."""
    return failure.code in _OF_THE_MODEL and is_of_the_batch(failure)


def is_of_the_batch(failure: Failure) -> bool:
    """Whether another batch could fare better: no outage, no refused key, no foreign store."""
    if failure.code in {ModelAnswerUnusable.code, UnforeseenFailure.code}:
        return True
    if failure.code == ModelRejected.code:
        details = failure.error.get("details")
        return isinstance(details, dict) and details.get("refused") == "request"
    return not failure.error.get("retryable") and failure.code not in _OF_THE_STORE


def is_outage(failure: Failure) -> bool:
    """Whether the same pass can succeed later without anybody changing anything."""
    return bool(failure.error.get("retryable")) and failure.code != ModelAnswerUnusable.code


def mark_outlived() -> None:
    """Note in the history that this run does more after a failure than end its pass."""
    workflow.deprecate_patch(_OUTLIVES)


# --- calling consolidation's activities: with what, on which queue, for how long, how often

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


# --- calling the activities of passes, and what both kinds of pass share

P = TypeVar("P", bound=Message)

# A worker that died is noticed after so long, not after the whole time limit.


async def call(
    name: str, work: Message, result: type[P], summary: str, policy: LifecyclePolicy
) -> P:
    """One activity; raises ``ActivityError`` when its retries are used up."""
    limit = policy.store_timeout
    answer: Any = await workflow.execute_activity(
        name,
        work,
        result_type=result,
        start_to_close_timeout=limit,
        heartbeat_timeout=min(limit, _SILENCE),
        retry_policy=STORE_LONG,
        summary=summary[:200],
    )
    return answer  # type: ignore[no-any-return]  # result_type decoded it


def walk_input(state: PassState, batch: int, **more: Any) -> WalkInput:
    """What an activity that walks is given."""
    info = workflow.info()
    return WalkInput(
        scope=state.scope,
        now=state.began_at or workflow.now(),
        rules=state.policy.lifecycle_rules,
        population=state.population,
        dry_run=state.dry_run,
        batch=batch,
        position=state.position,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
        **more,
    )
