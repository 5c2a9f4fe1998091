"""How workflows call activities: retry profiles, failures as data, queues and timeouts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from shlex import quote
from typing import TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    FailureError,
    TimeoutError,
    is_cancelled_exception,
)

from engram.contracts import names
from engram.contracts.activities import (
    ConsolidationModelActivities,
    ConsolidationStoreActivities,
    DigestActivities,
    DisputeActivities,
    SessionActivities,
)
from engram.contracts.attributes import USER_SEARCH_KEY
from engram.contracts.consolidation import (
    ConsolidateTurnsInput,
    ConsolidateTurnsOutput,
    ConsolidationPolicy,
    DigestInput,
    DigestStageInput,
    DigestStageOutput,
    EpisodeBatch,
    ExtractInput,
    ExtractOutput,
    LinkInput,
    LinkOutput,
    MarkConsolidatedInput,
    MarkConsolidatedOutput,
    ModelUse,
    PendingDigests,
    PlanInput,
    PlanOutput,
    ReconcileInput,
    SelectDueInput,
    SelectDueOutput,
)
from engram.contracts.lifecycle import PassState, WalkInput
from engram.contracts.messages import Failure, Message, Population
from engram.contracts.reviews import OpenReviewsInput, OpenReviewsOutput
from engram.contracts.session import ConsolidationRequest, RequestConsolidationInput
from engram.domain.buffer import portions
from engram.domain.plan import ConsolidationPlan, Discard
from engram.domain.rules import DigestPolicy, ReviewRules
from engram.domain.scope import Scope
from engram.errors import (
    EngramError,
    InvalidInput,
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

# Within the latency of an update: once, then the regular activity takes over. Of a local activity
# that is tried again, the SDK lets the first attempt's timeout run on: it cuts off the second, and
# panics where the worker is gone by then.
LOCAL_STORE = RetryPolicy(maximum_attempts=1)

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
_FIRST_WAIT_AFTER_OUTAGE = timedelta(minutes=5)
_LONGEST_WAIT = timedelta(hours=4)
_MOST_WAITS = 11


def after_outage(number: int) -> timedelta | None:
    """How long to wait after the ``number``-th outage in a row, from 1; None: no longer."""
    if number > _MOST_WAITS:
        return None
    growth: int = 2 ** (number - 1)
    return min(_FIRST_WAIT_AFTER_OUTAGE * growth, _LONGEST_WAIT)


# --- what a failed activity means, as data that reports and updates can carry

# A marker that runs of before the first release have in their histories; it goes with the next.
_OUTLIVES = "consolidation-outlives-failures"
_ASK_MODELS = frozenset({names.EXTRACT_ACTIVITY, names.LINK_ACTIVITY})
_OF_WHAT_WAS_READ = frozenset(
    {ModelRejected.code, ModelAnswerUnusable.code, UnforeseenFailure.code}
)
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
        kind: type[EngramError] = ModelUnavailable if asks_models(error) else StorageUnavailable
        return Failure.of(kind(f"{error.activity_type} did not end in time."))
    details = cause.details[0] if cause.details else None
    code = cause.type or "unknown"
    described = details if isinstance(details, dict) else {}
    return Failure(
        code=code,
        message=cause.message,
        error=described or {"code": code, "message": cause.message},
    )


def asks_models(error: ActivityError) -> bool:
    """Whether the activity that failed is one that asks language models."""
    return error.activity_type in _ASK_MODELS


def is_of_the_model(failure: Failure) -> bool:
    """Whether what was read is what failed, or turned the model off: less of it may succeed."""
    return failure.code in _OF_WHAT_WAS_READ and is_of_the_batch(failure)


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


def as_update_failure(error: FailureError | Failure) -> ApplicationError:
    """The failure by which an update tells its caller what went wrong; the workflow goes on."""
    if isinstance(error, Failure):
        return ApplicationError(error.message, error.error, type=error.code, non_retryable=True)
    cause = error if isinstance(error, ApplicationError) else error.cause
    if isinstance(cause, ApplicationError):
        return ApplicationError(cause.message, *cause.details, type=cause.type, non_retryable=True)
    return ApplicationError(
        "Storing did not end in time.", type=StorageUnavailable.code, non_retryable=True
    )


def _is_final(error: FailureError) -> bool:
    """Whether storing can never succeed.

    The typed error says it; the failure's own flag is set as well when a local
    activity has merely used up its attempts.
    """
    cause = error.cause if isinstance(error, ActivityError) else error
    if not isinstance(cause, ApplicationError):
        return False
    data = cause.details[0] if cause.details else None
    return not data.get("retryable", False) if isinstance(data, dict) else cause.non_retryable


def mark_outlived() -> None:
    """Note in the history that this run does more after a failure than end its pass."""
    workflow.deprecate_patch(_OUTLIVES)


# --- batches that fail for their own sake: halved, then left out, so that the others go on

# Finding one refused turn among twenty takes five; past this, batches are left out whole.
_MOST_HALVINGS = 16
# A model that turns down turns of so many batches and accepts nothing is the wrong model.
_HOPELESS_BATCHES = 10
# Who answers nothing in the asked form is the wrong model, too, and asked nine times for a turn.
_HOPELESS_TURNS = 3
# Runs of before ask such a model for every turn of ten batches.
_GIVES_UP_EARLY = "stubborn-models-end-passes"
# The ids of what is left out travel in payloads.
_MOST_LEFT_OUT = 2000


@dataclass
class RejectedBatches:
    """Of one pass: how many batches lost turns to refusals, and how often one was halved.

    Attributes:
        unanswered: Turns that were left out because no answer was in the asked form.
    """

    batches: int = 0
    halvings: int = 0
    unanswered: int = 0
    # Which batch a turn was selected in, by its id, and which of them lost turns.
    _selected_in: dict[str, int] = field(default_factory=dict)
    _losers: set[int] = field(default_factory=set)

    def selected(self, batches: Iterable[EpisodeBatch]) -> None:
        """Note the batches as they were selected: halves of one are not batches."""
        for batch in batches:
            number = len(self._selected_in)
            self._selected_in |= dict.fromkeys(batch.episode_ids, number)

    def look_at(self, part: EpisodeBatch | ExtractOutput) -> None:
        """Count the batches that lost turns, but for the one that this is a part of."""
        own = self._selected_in.get(part.episode_ids[0])
        self.batches = len(self._losers - {own})

    def note_loss(self, part: EpisodeBatch, failure: Failure) -> None:
        """Note that turns were left out."""
        if failure.code == ModelAnswerUnusable.code:
            self.unanswered += len(part.episode_ids)
        own = self._selected_in.get(part.episode_ids[0])
        if own is not None:
            self._losers.add(own)

    def halve(self, batch: EpisodeBatch, failure: Failure) -> tuple[EpisodeBatch, ...]:
        """The halves to ask for instead; none when halving is no use."""
        if not is_of_the_model(failure) or self.halvings >= _MOST_HALVINGS:
            return ()
        parts = bisect(batch)
        self.halvings += bool(parts)
        return parts

    def must_end(self, failure: Failure, *, accepted: int, left_out: int) -> bool:
        """Whether going on would only spend money: nothing is accepted, or far too much is not."""
        if left_out >= _MOST_LEFT_OUT or (self.batches >= _HOPELESS_BATCHES and not accepted):
            return True
        stubborn = failure.code == ModelAnswerUnusable.code and not accepted
        hopeless = stubborn and self.unanswered >= _HOPELESS_TURNS
        return hopeless and workflow.patched(_GIVES_UP_EARLY)


def bisect(batch: EpisodeBatch) -> tuple[EpisodeBatch, ...]:
    """Both halves of a batch, in order; none of a single turn."""
    ids = batch.episode_ids
    middle = len(ids) // 2
    if not middle:
        return ()
    return tuple(
        batch.model_copy(update={"episode_ids": part}) for part in (ids[:middle], ids[middle:])
    )


# --- starts: whoever makes one, it is about whom its id says


def check_start(scope: Scope, expected: str, *, empty: bool = True) -> None:
    """Refuse what Engram's client would not send: other applications may start workflows, too.

    The id says whose key a payload is encrypted with, and that one runs at a time. By its search
    attribute an erasure finds the run, and what was said in its history.

    Args:
        scope: Whose memory the start is about.
        expected: The id that goes with what it is about, with or without the mark of its store.
        empty: Whether it brings nothing but that; only a run that goes on from another may.

    Raises:
        ApplicationError: with the typed error: the workflow fails, or the update is rejected.
    """
    info = workflow.info()
    try:
        Scope.of(scope.namespace, scope.user_id)
        marked = names.in_store(names.store_of(info.workflow_id), expected)
        if info.workflow_id not in {expected, marked}:
            raise InvalidInput(
                "The id of the workflow is not that of what it was started for.",
                allowed=expected,
                hint="docs/workflows.md has the id of each workflow.",
            )
        if info.typed_search_attributes.get(USER_SEARCH_KEY) != scope.tenant:
            raise InvalidInput(
                f"The workflow's search attribute {names.USER_ATTRIBUTE} is not whose memory it "
                "is: nobody who looks for the user's runs would find it.",
                allowed=scope.tenant,
                hint="docs/workflows.md has a start of each workflow.",
            )
        if not empty and info.continued_run_id is None:
            raise InvalidInput(
                "A start brings what only a running workflow can know.",
                allowed="whose memory, which session, and the policy",
                hint="Turns are sent by the update, never by the start.",
            )
    except EngramError as error:
        raise refusal(error) from None


def refusal(error: EngramError) -> ApplicationError:
    """A typed error as Temporal carries it: trying again cannot help."""
    return ApplicationError(str(error), error.as_dict(), type=error.code, non_retryable=True)


# --- calling activities: by the methods of their interfaces, so that types are checked

S = TypeVar("S")
W = TypeVar("W", bound=Message)
R = TypeVar("R", bound=Message | ConsolidationPlan)

# A worker that died is noticed after so long, not after the whole time limit.
_HEARTBEAT = timedelta(seconds=15)
# A second or two of work, so that an attempt that is cut short repeats little.
_COMPOSED_AT_ONCE = 200


async def compose(
    scope: Scope,
    touched: tuple[str, ...],
    policy: DigestPolicy,
    limit: timedelta,
    *,
    boxed: tuple[str, ...] = (),
    ended: tuple[str, ...] = (),
) -> None:
    """Let profiles and topics follow what became of memories.

    They do so with the next touch, too: what fails for a day is let be, for nothing is lost
    with it.

    Args:
        scope: Whose.
        touched: Memories, and turns that name somebody.
        policy: The thresholds.
        limit: Longest time for one activity.
        boxed: Turns whose boxes are made again.
        ended: Sessions of theirs that get no further turn.
    """
    if not policy.enabled:
        return
    info = workflow.info()
    base = DigestInput(
        scope=scope,
        now=workflow.now(),
        policy=policy,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
    )
    try:
        for part in portions(touched, _COMPOSED_AT_ONCE):
            # Each reader takes its own of the ids.
            work = base.model_copy(update={"memory_ids": part, "episode_ids": part})
            about = "compose profiles again"
            await execute(DigestActivities.digest_knowledge, work, about, limit)
        if boxed:
            work = base.model_copy(update={"episode_ids": boxed, "ended": ended})
            await execute(DigestActivities.digest_sessions, work, "make boxes again", limit)
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        workflow.logger.warning("profiles do not follow yet: %s", failure_of(error).code)


async def execute(
    activity: Callable[[S, W], Awaitable[R]],
    work: W,
    summary: str,
    limit: timedelta,
    *,
    retries: RetryPolicy = STORE_LONG,
    queue: str | None = None,
) -> R:
    """Run an activity that heartbeats.

    Args:
        activity: Method of an interface in ``engram.contracts.activities``.
        work: Its input.
        summary: What it does, for the Temporal UI.
        limit: Longest time for one attempt.
        retries: How often and how long it is tried.
        queue: Where it runs; None for the queue of the workflow.

    Raises:
        ActivityError: its retries are used up.
    """
    return await workflow.execute_activity_method(
        activity,
        work,
        task_queue=queue,
        start_to_close_timeout=limit,
        heartbeat_timeout=min(limit, _HEARTBEAT),
        retry_policy=retries,
        summary=summary[:200],
    )


async def store(
    activity: Callable[[S, W], Awaitable[R]],
    work: W,
    summary: str,
    *,
    local_limit: timedelta,
    limit: timedelta,
) -> R:
    """Store what an update brought: by a local activity, and after an outage by a regular one.

    Args:
        activity: Method of an interface in ``engram.contracts.activities``.
        work: Its input.
        summary: What it does, for the Temporal UI.
        local_limit: Longest time for the attempt as a local activity.
        limit: The same as a regular activity.

    Raises:
        ApplicationError: the update fails; the workflow goes on.
    """
    try:
        return await workflow.execute_local_activity_method(
            activity,
            work,
            start_to_close_timeout=local_limit,
            retry_policy=LOCAL_STORE,
            summary=summary,
        )
    except (ActivityError, ApplicationError, TimeoutError) as error:
        # A failed local activity raises its own error unwrapped. One that ran out of time comes
        # wrapped, but its marker keeps the bare cause, so that it comes bare when the run is
        # replayed: https://github.com/temporalio/sdk-rust/issues/436.
        if _is_final(error):
            raise as_update_failure(error) from None
        workflow.logger.warning("storing takes longer; going on as a regular activity")
    # An outage delays the acknowledgement, not the workflow.
    try:
        return await workflow.execute_activity_method(
            activity,
            work,
            start_to_close_timeout=limit,
            heartbeat_timeout=min(limit, _HEARTBEAT),
            retry_policy=STORE_LONG,
            summary=f"{summary}, after an outage",
        )
    except ActivityError as error:
        raise as_update_failure(error) from None


async def request_consolidation(
    scope: Scope,
    request: ConsolidationRequest,
    limit: timedelta,
    *,
    retries: RetryPolicy = STORE_LONG,
) -> None:
    """Reach the user's consolidation; raises ``ActivityError`` when the retries are used up."""
    await workflow.execute_activity_method(
        SessionActivities.request_consolidation,
        RequestConsolidationInput(scope=scope, request=request),
        start_to_close_timeout=limit,
        retry_policy=retries,
        summary=request.reason,
    )


def history_is_full(updates: int, most: int) -> bool:
    """Whether a workflow that takes updates should continue as new.

    Args:
        updates: Updates that this run has taken.
        most: As many as one run takes.
    """
    return updates >= most or workflow.info().is_continue_as_new_suggested()


# --- calling consolidation's activities: with what, on which queue, for how long, how often

# One attempt at many batches may take so many times as long as one at a few points. It
# heartbeats: a worker that died is noticed as soon.
_AT_LENGTH = 20


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

    async def select_due(
        self, skip: tuple[str, ...], reason: str, *, asked: bool
    ) -> SelectDueOutput:
        """Which episodes are due, without those to skip; refused ones too if somebody asks."""
        return await self._store(
            ConsolidationStoreActivities.select_due,
            SelectDueInput(
                scope=self.scope,
                now=workflow.now(),
                policy=self.policy,
                population=self.population,
                skip=skip,
                asked=asked,
            ),
            f"which turns are due ({reason})",
        )

    async def extract(
        self, batch: EpisodeBatch, further: tuple[EpisodeBatch, ...] = ()
    ) -> ExtractOutput:
        """What a batch states, and some of the next ones, where that asks nobody."""
        more = f", and up to {len(further)} batches more" if further else ""
        return await self._model(
            ConsolidationModelActivities.extract,
            ExtractInput(
                scope=self.scope,
                now=workflow.now(),
                episode_ids=batch.episode_ids,
                further=further,
            ),
            f"read {len(batch.episode_ids)} turns of session {batch.session_id}{more}",
        )

    async def consolidate_turns(
        self, parts: tuple[ExtractOutput, ...], now: datetime, *, repeated: bool = False
    ) -> ConsolidateTurnsOutput:
        """Make what turns state known, and mark the turns."""
        info = workflow.info()
        turns = sum(len(part.episode_ids) for part in parts)
        stated = sum(len(part.statements) for part in parts)
        return await execute(
            ConsolidationStoreActivities.consolidate_turns,
            ConsolidateTurnsInput(
                scope=self.scope,
                now=now,
                parts=parts,
                repeated=repeated,
                workflow_id=info.workflow_id,
                run_id=info.run_id,
            ),
            f"take up {stated} statements of {turns} turns",
            _AT_LENGTH * self.policy.store_timeout,
        )

    async def apply_plan(self, plan: ConsolidationPlan) -> PlanOutput:
        """Write a plan, then retire what it replaces, when it does anything."""
        changed, links = len(tuple(plan.amendments())), len(plan.links())
        retired = len(plan.retirements())
        if not (plan.new_memories() or changed or links or retired):
            return PlanOutput()
        # What is decided against does nothing, and stands in what decided it.
        doing = tuple(one for one in plan.actions if not isinstance(one, Discard))
        return await self._store(
            ConsolidationStoreActivities.apply_plan,
            PlanInput(scope=self.scope, now=workflow.now(), plan=ConsolidationPlan(actions=doing)),
            f"link {links}, update {changed}, retire {retired}",
        )

    async def digest(
        self, policy: DigestPolicy, touched: PendingDigests, operation: str
    ) -> DigestStageOutput:
        """Rebuild every digest that rests on what was touched."""
        info = workflow.info()
        return await execute(
            DigestActivities.digest,
            DigestStageInput(
                scope=self.scope,
                now=workflow.now(),
                policy=policy,
                touched=touched,
                operation=operation,
                workflow_id=info.workflow_id,
                run_id=info.run_id,
            ),
            f"digests of {len(touched.memory_ids)} memories, {len(touched.episode_ids)} turns, "
            f"{len(touched.ended)} sessions ended",
            _AT_LENGTH * self.policy.store_timeout,
        )

    async def reconcile(self, extracted: ExtractOutput, use: ModelUse) -> ConsolidationPlan:
        """What the statements mean for what is known."""
        info = workflow.info()
        return await self._store(
            ConsolidationStoreActivities.reconcile,
            ReconcileInput(
                scope=self.scope,
                now=workflow.now(),
                statements=extracted.statements,
                verbatim=extracted.verbatim,
                use=use,
                workflow_id=info.workflow_id,
                run_id=info.run_id,
            ),
            f"compare {len(extracted.statements)} statements with what is known",
        )

    async def write(self, plan: ConsolidationPlan) -> PlanOutput:
        """Write what a plan adds, when it adds anything."""
        new, changed = len(plan.new_memories()), len(tuple(plan.amendments()))
        links = len(plan.links())
        if not (new or changed or links):
            return PlanOutput()
        return await self._store(
            ConsolidationStoreActivities.write_plan,
            PlanInput(scope=self.scope, now=workflow.now(), plan=plan),
            f"store {new} new, update {changed}, link {links}",
        )

    async def retire(self, plan: ConsolidationPlan) -> PlanOutput:
        """Retire what a plan replaces, when it replaces anything."""
        retirements = plan.retirements()
        if not retirements:
            return PlanOutput()
        return await self._store(
            ConsolidationStoreActivities.retire,
            PlanInput(
                scope=self.scope,
                now=workflow.now(),
                plan=ConsolidationPlan(actions=retirements),
            ),
            f"retire {len(retirements)} replaced memories",
        )

    async def open_reviews(
        self, pairs: tuple[tuple[str, str], ...], rules: ReviewRules
    ) -> OpenReviewsOutput:
        """Have a person settle what nothing else does."""
        return await self._store(
            DisputeActivities.open_reviews,
            OpenReviewsInput(scope=self.scope, pairs=pairs, rules=rules),
            f"open reviews of {len(pairs)} disputes",
        )

    async def mark_consolidated(self, batch: EpisodeBatch) -> MarkConsolidatedOutput:
        """Note that a batch is consolidated."""
        return await self._store(
            ConsolidationStoreActivities.mark_consolidated,
            MarkConsolidatedInput(
                scope=self.scope, now=workflow.now(), episode_ids=batch.episode_ids
            ),
            f"{len(batch.episode_ids)} turns are consolidated",
        )

    async def mark_refused(self, batch: EpisodeBatch, because: str) -> MarkConsolidatedOutput:
        """Note that a batch was left out, so that it is not read again with each pass."""
        return await self._store(
            ConsolidationStoreActivities.mark_consolidated,
            MarkConsolidatedInput(
                scope=self.scope,
                now=workflow.now(),
                episode_ids=batch.episode_ids,
                refused=because,
            ),
            f"{len(batch.episode_ids)} turns are left out: {because}",
        )

    async def link(
        self,
        ids: tuple[str, ...],
        fresh_ids: tuple[str, ...],
        operation: str,
        *,
        at_once: int | None = None,
    ) -> LinkOutput:
        """What links these memories with each other and with what resembles them."""
        return await self._model(
            ConsolidationModelActivities.link,
            LinkInput(
                scope=self.scope,
                now=workflow.now(),
                memory_ids=ids,
                at_once=at_once,
                fresh_ids=fresh_ids,
                candidates_per_memory=self.policy.candidates_per_memory,
                operation=operation,
                population=self.population,
            ),
            f"link {len(ids)} memories",
        )

    async def _store(self, activity: Callable[[S, W], Awaitable[R]], work: W, summary: str) -> R:
        return await execute(activity, work, summary, self.policy.store_timeout)

    async def _model(self, activity: Callable[[S, W], Awaitable[R]], work: W, summary: str) -> R:
        policy = self.policy
        return await execute(
            activity,
            work,
            summary,
            policy.model_timeout,
            retries=MODEL,
            queue=policy.model_queue or names.model_queue_of(workflow.info().workflow_id),
        )


# --- what people read in the Temporal UI

# That of the command, where no setting names another.
_NAMESPACE_UNLESS_SAID = "default"


def listing_of_this_run(scope: Scope) -> str:
    """How to list what this run wrote; part of what its details say."""
    elsewhere = scope.namespace != _NAMESPACE_UNLESS_SAID
    where = f"ENGRAM_NAMESPACE={quote(scope.namespace)} " if elsewhere else ""
    run_id = workflow.info().run_id
    return f"What this run wrote: `{where}engram list -u {quote(scope.user_id)} --run-id {run_id}`."


# --- what both kinds of lifecycle pass share


def walk_input(state: PassState, batch: int, *, session_id: str | None = None) -> WalkInput:
    """What an activity that walks is given."""
    info = workflow.info()
    return WalkInput(
        scope=state.scope,
        now=state.began_at or workflow.now(),
        rules=state.policy.lifecycle_rules,
        population=state.population,
        dry_run=state.dry_run,
        at_asked=state.at_asked,
        present=workflow.now() if state.at_asked else None,
        batch=batch,
        position=state.position,
        session_id=session_id,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
    )
