"""What activities share: heartbeats, errors as Temporal failures, accounting of model use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import structlog
from pydantic import ValidationError
from temporalio import activity
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from engram.contracts import names
from engram.contracts.consolidation import (
    ConsolidateTurnsOutput,
    DigestOutput,
    ExtractInput,
    ExtractOutput,
    LinkInput,
    LinkOutput,
    PlanEffect,
    PlanInput,
    PlanOutput,
)
from engram.contracts.importing import ImportKind, ImportTally, StoreBatchInput
from engram.contracts.lifecycle import (
    FindDueUsersInput,
    PassReport,
    PromoteOutput,
    PromotionReport,
    ReviewOutput,
    WalkInput,
)
from engram.contracts.messages import (
    SPENT_BY_MODEL,
    Meter,
    ModelSpent,
    TimedMessage,
    by_model,
    in_all,
    metering,
)
from engram.contracts.removal import ApplyForgettingInput
from engram.contracts.session import StoreTurnsOutput
from engram.domain.deeds import Outcome
from engram.domain.identity import operation_id
from engram.errors import (
    ConflictingMessage,
    EngramError,
    InvalidInput,
    MemoryClosed,
    MemoryNotFound,
    ModelUnavailable,
    StorageUnavailable,
    UnforeseenFailure,
)
from engram.giving_way import in_background
from engram.logging import where
from engram.ports import Clock
from engram.storage.trail import AuditTrail, workflow_actor
from engram.temporal.retry import typed

# --- heartbeats for activities that wait for others longer than a dead worker may go unnoticed

_INTERVAL = 4.0
"""Seconds; well under the heartbeat timeout that workflows set."""


@asynccontextmanager
async def heartbeating(tell: Callable[[], Any] | None = None) -> AsyncIterator[None]:
    """Heartbeat until the block ends.

    Args:
        tell: Asked with each heartbeat for what the next attempt shall know of this one.
    """
    if activity.info().is_local:
        # Its worker waits for it, and is the only one to know of it.
        yield
        return
    task = asyncio.create_task(_beat(tell))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _beat(tell: Callable[[], Any] | None) -> None:
    silence = activity.info().heartbeat_timeout
    interval = min(_INTERVAL, silence.total_seconds() / 3) if silence else _INTERVAL
    while True:
        activity.heartbeat(*(() if tell is None else (tell(),)))
        await asyncio.sleep(interval)


# --- a clock in place of the machine's, for tests and replays of old conversations

_MOMENTS = 4096


class ClockInterceptor(Interceptor):
    """Gives activities the moment of another clock as their present.

    Workflows go by the server's clock, and pass it on as the ``now`` of what they ask for;
    whatever is decided by a moment is decided there. How long they wait is not moved.
    Whoever is given one moment twice, as a repeated attempt is, gets the same one twice.

    Args:
        clock: The present.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._moments: dict[tuple[str | None, datetime], datetime] = {}

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        """See the base class."""
        return _Clocked(next, self)

    def moved(self, run_id: str | None, now: datetime) -> datetime:
        """What the clock said when a run first gave this moment."""
        if len(self._moments) >= _MOMENTS:
            del self._moments[next(iter(self._moments))]
        return self._moments.setdefault((run_id, now), self._clock())


class _Clocked(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, clock: ClockInterceptor) -> None:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        super().__init__(next)
        self._clock = clock

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        input.args = [self._moved(one) for one in input.args]
        return await super().execute_activity(input)

    def _moved(self, asked: Any) -> Any:
        if not isinstance(asked, TimedMessage | FindDueUsersInput):
            return asked
        run_id = activity.info().workflow_run_id
        if isinstance(asked, WalkInput) and asked.at_asked:
            present = self._clock.moved(run_id, asked.present or asked.now)
            return asked.model_copy(update={"present": present})
        return asked.model_copy(update={"now": self._clock.moved(run_id, asked.now)})


# --- the one place where Engram's typed errors become Temporal failures

_log = structlog.get_logger("engram.activities")
# What was asked was wrong, not the work on it: no warning with a traceback in a log.
_OF_THE_ASKER = (InvalidInput, MemoryNotFound, ConflictingMessage)


# An input that raises raises again; three times tell that from what passes.
_MOST_UNFORESEEN = 3


def to_application_error(error: EngramError, *, attempt: int = 1) -> ApplicationError:
    """The Temporal failure for a typed error: its code as type, its data as details.

    Args:
        error: What went wrong.
        attempt: The number of the attempt that it ended, from 1; what nobody has foreseen is
            tried three times.
    """
    hopeless = isinstance(error, UnforeseenFailure) and attempt >= _MOST_UNFORESEEN
    # A memory that is closed in one worker is open in the next one.
    may_pass = error.retryable or isinstance(error, MemoryClosed)
    wait = error.retry_after
    benign = isinstance(error, _OF_THE_ASKER)
    return ApplicationError(
        str(error),
        error.as_dict(),
        type=error.code,
        non_retryable=hopeless or not may_pass,
        next_retry_delay=timedelta(seconds=wait) if wait is not None else None,
        category=ApplicationErrorCategory.BENIGN
        if benign
        else ApplicationErrorCategory.UNSPECIFIED,
    )


def unforeseen(error: Exception, doing: str) -> UnforeseenFailure:
    """The typed error for what nobody has typed; where it came from goes to the log."""
    _log.error("an activity failed unforeseen", kind=type(error).__name__, where=where(error))
    return UnforeseenFailure(
        f"{doing} failed with {type(error).__name__}.",
        hint="The worker's log says where.",
    )


class TypedErrorInterceptor(Interceptor):
    """Installed on every worker, so that no activity translates errors itself.

    Args:
        store: The collection prefix of the worker's store: work for another one is left to
            its own workers. None: every store's.
    """

    def __init__(self, store: str | None = None) -> None:
        self._store = store

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        """See the base class."""
        return _TypedErrors(next, self._store)


class _TypedErrors(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, store: str | None) -> None:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        super().__init__(next)
        self._store = store

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        try:
            self._check_store()
            if activity.info().activity_type == names.STORE_TURNS_ACTIVITY:
                return await super().execute_activity(input)
            with in_background():
                return await super().execute_activity(input)
        except EngramError as error:
            # Without its cause: an engine's own message can quote what was stored, and
            # Temporal keeps every message of the chain.
            raise to_application_error(error, attempt=activity.info().attempt) from None
        except ApplicationError:
            raise
        except asyncio.CancelledError:
            if _is_cut_off():
                # Of what nobody waits for any more the SDK would tell as of a failure, with its
                # traceback. The next attempt does it anew, and whoever waits for that says so.
                raise ApplicationError(
                    "The attempt was cut off.", category=ApplicationErrorCategory.BENIGN
                ) from None
            raise
        except RPCError as error:
            # Temporal is away, or has too much to do: that passes, in however many attempts.
            raise to_application_error(typed(error)) from None
        except Exception as error:  # noqa: BLE001 - translated, logged and raised again
            info = activity.info()
            failure = unforeseen(error, info.activity_type)
            raise to_application_error(failure, attempt=info.attempt) from None

    def _check_store(self) -> None:
        wanted = names.store_of(activity.info().workflow_id or "")
        if self._store not in (None, wanted):
            # Not for good: the next attempt may reach one of its own workers.
            raise StorageUnavailable(
                f"This worker serves the store {self._store!r}, the work is for {wanted!r}.",
                allowed="one ENGRAM_COLLECTION_PREFIX for all workers of a task queue",
                hint="Leave ENGRAM_STORE_QUEUE and ENGRAM_MODEL_QUEUE unset: they follow from "
                "the prefix.",
            )


def _is_cut_off() -> bool:
    """Whether this attempt ended for Temporal before its work did: for time, or with its run."""
    why = activity.cancellation_details()
    return why is not None and (why.timed_out or why.not_found)


# --- what workflows did, for the audit trail


class Affected(NamedTuple):
    """What an activity read or changed.

    Attributes:
        action: The operation that its workflow serves.
        memory_ids: Of which memories.
        others: How many more there are, of which no id is known here.
        of_new_user: Whether a user whose name the trail does not have yet may begin with it.
    """

    action: str
    memory_ids: Sequence[str] = ()
    others: int = 0
    of_new_user: bool = False


# By name, with input and output. What a repeated attempt answers may be less than what was done
# in all: where the input says what is done, it is asked.
def _stored(_: Any, done: StoreTurnsOutput) -> Affected:
    turns = [turn for outcome in done.outcomes for turn in outcome.turns]
    ids = [one for t in turns for one in (t.episode_id, *t.fact_ids, *t.negation_ids)]
    return Affected("encode", ids, sum(turn.ids_left_out for turn in turns), of_new_user=True)


def _imported(asked: StoreBatchInput, done: ImportTally) -> Affected:
    action = "restore-memories" if asked.kind is ImportKind.MEMORIES else "import-turns"
    stored = done.stored + done.known + done.facts + done.negations
    return Affected(action, (), stored, of_new_user=True)


def _extracted(asked: ExtractInput, done: ExtractOutput) -> Affected:
    further = (
        e for batch, _ in zip(asked.further, done.further, strict=False) for e in batch.episode_ids
    )
    return Affected("consolidate", [*asked.episode_ids, *further])


def _planned(asked: PlanInput, _: Any) -> Affected:
    new = (memory.id for memory in asked.plan.new_memories())
    return Affected("consolidate", [*new, *(note.memory_id for note in asked.plan.amendments())])


def _applied(asked: PlanInput, done: PlanOutput) -> Affected:
    return Affected(
        "consolidate", [*_planned(asked, done).memory_ids, *_retired(asked, done).memory_ids]
    )


def _linked(asked: LinkInput, done: LinkOutput) -> Affected:
    by = PlanEffect() if done.applied is None else done.applied.effect
    looked_at = asked.memory_ids[: done.looked_at]
    return Affected("consolidate", list(dict.fromkeys((*looked_at, *_by_plans(by)))))


def _taken_up(_: Any, done: ConsolidateTurnsOutput) -> Affected:
    return Affected("consolidate", _by_plans(done.effect))


def _by_plans(effect: PlanEffect) -> list[str]:
    changed = (*effect.stored, *effect.confirmed, *effect.changed, *effect.retired)
    return list(dict.fromkeys(changed))


def _retired(asked: PlanInput, _: Any) -> Affected:
    return Affected("consolidate", [note.memory_id for note in asked.plan.retirements()])


def _digested(_: Any, done: DigestOutput) -> Affected:
    return Affected("consolidate", (), sum(getattr(done, f) for f in DigestOutput.model_fields))


def _reviewed(asked: WalkInput, done: ReviewOutput) -> Affected:
    return _passed("decay", asked, done.report)


def _promoted(asked: WalkInput, done: PromoteOutput | PromotionReport) -> Affected:
    report = done.report if isinstance(done, PromoteOutput) else done
    return _passed("promote", asked, report, report.promoted)


def _passed(
    action: str, asked: WalkInput, report: PassReport, made: Sequence[str] = ()
) -> Affected:
    if asked.dry_run:
        return Affected(action)
    changed = dict.fromkeys((*made, *(change.memory_id for change in report.changes)))
    more = report.changed + report.erased + len(made) - len(changed)
    return Affected(action, list(changed), max(0, more))


def _forgotten(asked: ApplyForgettingInput, _: Any) -> Affected:
    return Affected("forget", [*sorted(asked.plan.ids), *asked.plan.amended])


_TOUCHED: Final[Mapping[str, Callable[[Any, Any], Affected]]] = {
    names.STORE_TURNS_ACTIVITY: _stored,
    names.STORE_BATCH_ACTIVITY: _imported,
    names.EXTRACT_ACTIVITY: _extracted,
    names.LINK_ACTIVITY: _linked,
    names.WRITE_PLAN_ACTIVITY: _planned,
    names.RETIRE_ACTIVITY: _retired,
    names.APPLY_PLAN_ACTIVITY: _applied,
    names.CONSOLIDATE_TURNS_ACTIVITY: _taken_up,
    names.DIGEST_KNOWLEDGE_ACTIVITY: _digested,
    names.DIGEST_SESSIONS_ACTIVITY: _digested,
    names.DIGEST_ACTIVITY: _digested,
    names.LEARN_GUIDELINES_ACTIVITY: _digested,
    names.REVIEW_ACTIVITY: _reviewed,
    names.PROMOTE_ACTIVITY: _promoted,
    names.PROMOTE_SESSION_ACTIVITY: _promoted,
    names.APPLY_FORGETTING_ACTIVITY: _forgotten,
    names.ERASE_MEMORIES_ACTIVITY: lambda _, done: Affected(
        "erase", (), sum(done.deleted.values())
    ),
    names.ERASE_WORKFLOWS_ACTIVITY: lambda _, done: Affected("erase", (), len(done.deleted)),
}


class AuditInterceptor(Interceptor):
    """Notes in the audit trail what activities did, under the same id with every attempt.

    Args:
        trail: Where it is noted; None: it is not.
    """

    def __init__(self, trail: AuditTrail | None) -> None:
        self._trail = trail

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        """See the base class."""
        return next if self._trail is None else _Audited(next, self._trail)


class _Audited(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, trail: AuditTrail) -> None:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        super().__init__(next)
        self._trail = trail

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the parameter's name belongs to Temporal's interface
        done = await super().execute_activity(input)
        info = activity.info()
        look = _TOUCHED.get(info.activity_type)
        if look is None:
            return done
        touched = look(input.args[0], done)
        if touched.memory_ids or touched.others:
            run = info.workflow_run_id or ""
            self._trail.record(
                operation_id("audit", run, info.activity_id, info.activity_type),
                workflow_actor(info.workflow_id, run),
                touched.action,
                input.args[0].scope,
                Outcome.DONE,
                step=info.activity_type,
                memory_ids=touched.memory_ids,
                touched=len(touched.memory_ids) + touched.others,
                keep_name=touched.of_new_user,
            )
        return done


# --- what a step asked of models, carried from attempt to attempt so that failed ones count
#
# An attempt that fails leaves no result. What it spent goes along with its
# heartbeats, which Temporal hands to the next attempt, and with the failure that
# ends the last one.

SPENT: Final = "spent"
"""Under this key an error's details say what all attempts spent."""

# An attempt ends itself this much before Temporal gives it up: then it can still say why.
_MARGIN_BEFORE_TIMEOUT = timedelta(seconds=5)
_MARGIN_SHARE = 0.2


class Account:
    """What all attempts at this step asked of models so far.

    Args:
        before: What earlier attempts left.
        meter: What this one asks.
        attempt: Its number, from 1.
    """

    def __init__(self, before: tuple[ModelSpent, ...], meter: Meter, attempt: int) -> None:
        self._before = before
        self._meter = meter
        self._attempt = attempt

    def succeeded(self) -> tuple[ModelSpent, ...]:
        """Everything, when this attempt gave what was asked."""
        return self._with_attempts(failed=self._uncounted() - 1)

    def failed(self) -> tuple[ModelSpent, ...]:
        """Everything, when this attempt gives nothing."""
        return self._with_attempts(failed=self._uncounted())

    def _uncounted(self) -> int:
        """Attempts since the last one that left a count; a killed worker left none."""
        return self._attempt - in_all(self._before).attempts

    def _with_attempts(self, *, failed: int) -> tuple[ModelSpent, ...]:
        asked = (*self._before, *self._meter.spent)
        if self._meter.answering is None:
            # No answer was asked for this time: only what went before was an attempt at one.
            return by_model(asked)
        here = ModelSpent(
            model=self._meter.answering, attempts=self._uncounted(), failed_attempts=failed
        )
        return by_model((*asked, here))


@asynccontextmanager
async def accounted() -> AsyncIterator[Account]:
    """Heartbeat, count what is asked of models, and end in time to say what became of it.

    Raises:
        ModelUnavailable: the block took as long as an attempt may.
        EngramError: what the block raised, with what was spent in its details.
    """
    info = activity.info()
    with metering() as meter:
        account = Account(_left_behind(info.heartbeat_details), meter, info.attempt)
        async with heartbeating(lambda: _as_data(account.failed())):
            try:
                async with asyncio.timeout(_seconds(info.start_to_close_timeout)):
                    yield account
            except TimeoutError:
                late = ModelUnavailable("The model did not answer in time (timeout).")
                raise _noted(late, account) from None
            except EngramError as error:
                _noted(error, account)
                raise
            except ApplicationError:
                raise
            except asyncio.CancelledError:
                activity.heartbeat(_as_data(account.failed()))
                raise
            except Exception as error:  # noqa: BLE001 - translated, logged and raised again
                what = unforeseen(error, info.activity_type)
                raise _noted(what, account) from None


def _noted(error: EngramError, account: Account) -> EngramError:
    spent = _as_data(account.failed())
    activity.heartbeat(spent)
    error.details[SPENT] = spent
    return error


def _seconds(limit: timedelta | None) -> float | None:
    if limit is None:
        return None
    return (limit - min(_MARGIN_BEFORE_TIMEOUT, limit * _MARGIN_SHARE)).total_seconds()


def _as_data(parts: Sequence[ModelSpent]) -> list[dict[str, Any]]:
    return [part.model_dump(mode="json", exclude_defaults=True) for part in parts]


def _left_behind(details: Sequence[Any]) -> tuple[ModelSpent, ...]:
    """What earlier attempts left; nothing when they left something else (another version)."""
    try:
        return SPENT_BY_MODEL.validate_python(details[0]) if details else ()
    except ValidationError:
        return ()
