"""Asking a workflow until it answers, and Temporal's failures as typed errors."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import stamina
import structlog
from pydantic import BaseModel
from temporalio.api.common.v1 import WorkflowExecution as ExecutionId
from temporalio.api.enums.v1 import (
    PendingActivityState,
    PendingWorkflowTaskState,
    TaskQueueType,
)
from temporalio.api.errordetails.v1 import NamespaceNotFoundFailure
from temporalio.api.failure.v1 import Failure
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import (
    DescribeTaskQueueRequest,
    GetWorkflowExecutionHistoryRequest,
    GetWorkflowExecutionHistoryReverseRequest,
)
from temporalio.client import (
    Client,
    WithStartWorkflowOperation,
    WorkflowExecutionDescription,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowQueryFailedError,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import TypedSearchAttributes, WorkflowIDConflictPolicy
from temporalio.converter import DataConverter, WorkflowSerializationContext
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    FailureError,
    TemporalError,
    TerminatedError,
)
from temporalio.service import RPCError, RPCStatusCode

from engram.contracts import names
from engram.contracts.attributes import precedence
from engram.errors import (
    EncryptionKeysUnusable,
    EngramError,
    PayloadRefused,
    RunEnded,
    StorageUnavailable,
    TemporalNotSetUp,
    TemporalUnavailable,
    UnknownFailure,
    error_from_dict,
)
from engram.temporal.encryption import EncryptionCodec

# --- the one place where Temporal's failures become typed errors again

# What the server answers when an update meets a run that is just ending; the
# next attempt starts or finds the next run.
_RUN_ENDED = {"AcceptedUpdateCompletedWorkflow", "WorkflowUpdateAborted"}
# What it answers to a query that waited for a run's first task when the run was ended.
_ENDED_FIRST = "closed before workflowtaskstarted"
# What it answers of a run that ended meanwhile, or whose task has failed several times.
_LEFT = {RPCStatusCode.NOT_FOUND, RPCStatusCode.FAILED_PRECONDITION}
_TRY_AGAIN = {
    RPCStatusCode.ABORTED,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.INTERNAL,
    RPCStatusCode.FAILED_PRECONDITION,
    RPCStatusCode.NOT_FOUND,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.UNKNOWN,
}


def typed(error: BaseException) -> EngramError:
    """The typed error behind what Temporal's client raised."""
    if isinstance(error, EngramError):
        return error
    if isinstance(error, RPCError):
        return _from_rpc(error)
    if isinstance(error, WorkflowUpdateRPCTimeoutOrCancelledError):
        return TemporalUnavailable("Temporal did not answer in time.")
    if isinstance(error, WorkflowUpdateFailedError | WorkflowFailureError | ApplicationError):
        # The last is raised by whoever reads an answer that other keys have encrypted.
        return _from_failure(error if isinstance(error, ApplicationError) else error.cause)
    if isinstance(error, WorkflowQueryFailedError):
        # Engram's queries only read. Where one fails, its worker had let go of the run.
        return RunEnded(
            "The worker could not answer for the run, which may just have ended.",
            hint="The same call can be made again; the worker's log says what failed.",
        )
    return UnknownFailure(f"Temporal failed: {type(error).__name__}.")


def _from_rpc(error: RPCError) -> EngramError:
    if "search attribute" in error.message.lower():
        attributes = (names.USER_ATTRIBUTE, names.SESSION_ATTRIBUTE, names.STAGE_ATTRIBUTE)
        return TemporalNotSetUp(
            "Temporal does not know Engram's search attributes.",
            allowed=f"{', '.join(attributes)}, each of type Keyword",
            hint="Register them in the Temporal namespace; deploy/README.md shows how.",
        )
    # Not by the message: that names the workflow, and with it the user and the session.
    if any(one.Is(NamespaceNotFoundFailure.DESCRIPTOR) for one in error.grpc_status.details):
        return TemporalNotSetUp(
            "Temporal does not know the namespace that Engram is to use.",
            hint="Create it, or set ENGRAM_TEMPORAL_NAMESPACE to one that exists.",
        )
    if error.status is RPCStatusCode.FAILED_PRECONDITION and _ENDED_FIRST in error.message.lower():
        return RunEnded("The workflow ended before it could answer.")
    if error.status in _TRY_AGAIN:
        return TemporalUnavailable(
            f"Temporal cannot answer now ({error.status.name.lower()}).",
            hint="It may be starting or unreachable; the same call can be made again.",
        )
    return UnknownFailure(f"Temporal refused the call ({error.status.name.lower()}).")


def is_gone(error: RPCError) -> bool:
    """Whether there is no such run, in a Temporal that is set up."""
    missing = error.status is RPCStatusCode.NOT_FOUND
    return missing and not isinstance(typed(error), TemporalNotSetUp)


def _from_failure(cause: BaseException | None) -> EngramError:
    while isinstance(cause, ActivityError) and cause.cause is not None:
        cause = cause.cause
    if isinstance(cause, ApplicationError):
        if cause.type in _RUN_ENDED:
            return RunEnded("The workflow ended before it could answer.")
        if cause.details and isinstance(cause.details[0], dict):
            return error_from_dict(cause.details[0])
        return error_from_dict({"code": cause.type, "message": cause.message})
    if isinstance(cause, CancelledError | TerminatedError):
        return UnknownFailure(
            "Somebody cancelled or terminated the run before it ended.",
            hint="What it had written stays. The same call can be made again.",
        )
    if isinstance(cause, FailureError):
        return UnknownFailure(f"The workflow failed: {type(cause).__name__}.")
    return UnknownFailure("The workflow failed without saying why.")


# --- asking a workflow until it answers: failures typed, waits announced, cancellation kept

_SLOW = timedelta(seconds=5)
_SLOW_WORK = timedelta(minutes=1)

Answer = TypeVar("Answer")
_log = structlog.get_logger("engram.client")


_STARTED_BY_NOW_SECONDS = 0.1


# Temporal's client gives a call up after some ten seconds where nobody listens: what failed after
# longer than this had been waiting for a result.
_LISTENED_SECONDS = 30.0


async def retry_until_answered(
    attempt: Callable[[], Awaitable[Answer]],
    workflow_id: str,
    patience: timedelta,
    *,
    to_the_end: bool = False,
    held_up_by: Callable[[], Awaitable[HeldUp | None]] | None = None,
) -> Answer:
    """Repeat an update until it is answered; ids make that safe.

    Args:
        attempt: Asks once.
        workflow_id: Who is asked.
        patience: How long an answer may take.
        to_the_end: What is waited for is work, such as consolidating a backlog, and may take any
            time: ``patience`` is for a Temporal that cannot be reached meanwhile, for a store
            that takes no writes, and for work that no worker takes up.
        held_up_by: Finds out what the answer waits for, when ``patience`` is over.

    Raises:
        TemporalUnavailable: when ``patience`` is over.
        EngramError: what the workflow answered, when trying again cannot help; or what it
            still tries again when ``patience`` is over, such as writing to a full disk.
    """
    longest = patience.total_seconds()
    if to_the_end and held_up_by is not None:
        asking = retry_until_answered(attempt, workflow_id, patience, to_the_end=True)
        return await _unless_held_up(asking, held_up_by, longest / 2)
    unreachable = _Unreachable(longest) if to_the_end else None

    def again(error: Exception) -> bool:
        temporary = isinstance(error, TemporalUnavailable)
        return temporary and not (unreachable and unreachable.for_too_long(error))

    with _said_when_slow(workflow_id, _SLOW_WORK if to_the_end else _SLOW):
        try:
            async with asyncio.timeout(None if to_the_end else longest):
                try:
                    # Mostly this is all; what tries again is not made for every update.
                    return await _typed(attempt)
                except TemporalUnavailable as error:
                    if not again(error):
                        raise
                async for retrying in stamina.retry_context(
                    on=again,
                    attempts=None,
                    timeout=None,
                    wait_initial=0.05,
                    wait_max=2.0,
                    wait_jitter=0.1,
                ):
                    with retrying:
                        return await _typed(attempt)
        except TimeoutError as error:
            held_up = await held_up_by() if held_up_by is not None else None
            raise (held_up.why if held_up else _unacknowledged()) from error
    raise TemporalUnavailable("No attempt was made.")


def _unacknowledged() -> TemporalUnavailable:
    return TemporalUnavailable(
        "No acknowledgement came in time.",
        hint=(
            "Is a worker running, with the same ENGRAM_COLLECTION_PREFIX, ENGRAM_STORE_QUEUE and "
            "ENGRAM_ENCRYPTION_KEYS, and is Temporal reachable? The same call can be made again: "
            "turns with the same message ids are kept once."
        ),
    )


_DESCRIBED_SECONDS = 5.0
# How far back it is looked for the last task of a run.
_LAST_EVENTS = 10


@dataclass(frozen=True)
class HeldUp:
    """Why an answer does not come: an activity or a task that keeps failing, keys, or no worker.

    Attributes:
        why: How the activity failed last; that keys differ, or one is gone; that the run's task
            fails; or that nobody acknowledges.
        activity_id: Of the activity; empty where it is none.
        attempt: The number of the attempt that is made or waited for.
        runs: Whether it is being made.
        polled_at: Where there is no worker, when one last asked for work; None if long ago.
    """

    why: EngramError
    activity_id: str = ""
    attempt: int = 0
    runs: bool = False
    polled_at: datetime | None = None

    def still_holds_up(self, before: HeldUp) -> bool:
        """Whether it does since ``before``: an attempt that goes on all the time may succeed."""
        goes_on = self.runs and self.attempt == before.attempt
        same = (self.activity_id, self.polled_at) == (before.activity_id, before.polled_at)
        return same and not goes_on


async def what_holds_up(client: Client, workflow_id: str, *, fails: bool = False) -> HeldUp | None:
    """Why a workflow does not answer; None where it goes on, or where that is not known.

    Args:
        client: Connected, with the keys that the caller has.
        workflow_id: Of the workflow.
        fails: Whether its worker is known to fail; or else the server is asked.
    """
    try:
        async with asyncio.timeout(_DESCRIBED_SECONDS):
            described = await client.get_workflow_handle(workflow_id).describe()
            if failing := await _failing_activity(client, described):
                return failing
            if refused := await _other_keys(client, workflow_id):
                return HeldUp(refused)
            # A worker that goes on has keys that are missing here: ours are others.
            if (fails or _fails(described)) and await lacks_key(client, workflow_id):
                return HeldUp(_lost_key(workflow_id))
            if keeps_failing(described):
                return HeldUp(_failing_task(workflow_id))
            return await _no_worker(client, described)
    except (RPCError, TemporalError, EngramError, TimeoutError) as error:
        _log.debug("what holds up an answer is not known", reason=type(error).__name__)
    return None


# What failed for a passing reason is done by the second attempt, mostly.
_KEEPS_FAILING = 3


def keeps_failing(described: WorkflowExecutionDescription) -> bool:
    """Whether a run's task has failed again and again: no worker that is there can do it."""
    return _fails(described, _KEEPS_FAILING)


def _fails(described: WorkflowExecutionDescription, attempt: int = 2) -> bool:
    running = described.status is WorkflowExecutionStatus.RUNNING
    return running and described.raw_description.pending_workflow_task.attempt >= attempt


def _failing_task(workflow_id: str) -> TemporalUnavailable:
    return TemporalUnavailable(
        "The task of the workflow that is to answer fails again and again.",
        hint=f"`engram replay {shlex.quote(workflow_id)}` says where the code and what ran part, "
        "and the worker's log what is raised. With a worker that can do it, it goes on.",
        details={"workflow_id": workflow_id},
    )


async def _failing_activity(
    client: Client, described: WorkflowExecutionDescription
) -> HeldUp | None:
    converter = _converter(client, described.id)
    for pending in described.raw_description.pending_activities:
        if pending.HasField("last_failure"):
            why = _from_failure(await converter.decode_failure(pending.last_failure))
            if not isinstance(why, UnknownFailure):
                runs = pending.state == PendingActivityState.PENDING_ACTIVITY_STATE_STARTED
                return HeldUp(why, pending.activity_id, pending.attempt, runs)
    return None


def _converter(client: Client, workflow_id: str) -> DataConverter:
    context = WorkflowSerializationContext(client.namespace, workflow_id)
    return client.data_converter.with_context(context)


async def _other_keys(client: Client, workflow_id: str) -> EngramError | None:
    """What tells, in a workflow's last run, that its worker has other encryption keys than we.

    A worker with keys ends a run that it cannot read, by a failure that we cannot read. One
    without any fails the run's task again and again. A failure that we can read says that somebody
    else, without our keys, had started the run: it is asked again.
    """
    last = await client.workflow_service.get_workflow_execution_history_reverse(
        GetWorkflowExecutionHistoryReverseRequest(
            namespace=client.namespace,
            execution=ExecutionId(workflow_id=workflow_id),
            maximum_page_size=_LAST_EVENTS,
        )
    )
    for event in last.history.events:
        if event.HasField("workflow_execution_failed_event_attributes"):
            failed = event.workflow_execution_failed_event_attributes
            return await _unreadable(client, workflow_id, failed.failure)
        if event.HasField("workflow_task_completed_event_attributes"):
            return None
        task = event.workflow_task_failed_event_attributes
        if task.failure.cause.application_failure_info.type == PayloadRefused.__name__:
            return PayloadRefused(
                "A worker without encryption keys cannot read what it is to do.",
                hint="Client and workers need the same ENGRAM_ENCRYPTION_KEYS.",
            )
    return None


async def lacks_key(client: Client, workflow_id: str) -> bool:
    """Whether a workflow's last run was started with a data key that is not there any more.

    No worker reads it then, once it has let go of it: the run's task fails for ever.

    Raises:
        RPCError: there is no such workflow, or Temporal does not say.
        EncryptionKeysUnusable: the keys cannot be read now.
    """
    codec = client.data_converter.payload_codec
    if not isinstance(codec, EncryptionCodec):
        return False
    first = await client.workflow_service.get_workflow_execution_history(
        GetWorkflowExecutionHistoryRequest(
            namespace=client.namespace,
            execution=ExecutionId(workflow_id=workflow_id),
            maximum_page_size=1,
        )
    )
    started = first.history.events[0].workflow_execution_started_event_attributes
    for payload in started.input.payloads:
        if await codec.lacks_key_of(payload):
            return True
    return False


def _lost_key(workflow_id: str) -> EncryptionKeysUnusable:
    return EncryptionKeysUnusable(
        "The workflow that is to answer runs encrypted with a data key that is missing.",
        allowed="the encryption keys that it was started with",
        hint="Restore the keys from a backup, and it goes on. Is this one gone for good, then "
        f"`{ending_command(workflow_id)}` ends the run, of which no memory is lost (with "
        "--connected before the dashes where Temporal is a server of yours).",
        details={"workflow_id": workflow_id},
    )


def ending_command(workflow_id: str, option: str = "") -> str:
    """What ends a run that nobody can read; the option leads to its server."""
    return f"engram temporal{option} -- workflow terminate --workflow-id {shlex.quote(workflow_id)}"


async def _unreadable(client: Client, workflow_id: str, failure: Failure) -> EngramError | None:
    try:
        await _converter(client, workflow_id).decode_failure(failure)
    except (PayloadRefused, ApplicationError) as error:
        return typed(error)
    return None


async def _no_worker(client: Client, described: WorkflowExecutionDescription) -> HeldUp | None:
    """Whether a run may be without workers: its task is not begun, or nobody polls its queue.

    A worker that is there asks for work again after each task. The server knows of one for some
    minutes after it went.
    """
    if described.status is not WorkflowExecutionStatus.RUNNING:
        return None
    queue = await client.workflow_service.describe_task_queue(
        DescribeTaskQueueRequest(
            namespace=client.namespace,
            task_queue=TaskQueue(name=described.task_queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )
    )
    polled = max((one.last_access_time.ToDatetime() for one in queue.pollers), default=None)
    task = described.raw_description.pending_workflow_task.state
    waits = task == PendingWorkflowTaskState.PENDING_WORKFLOW_TASK_STATE_SCHEDULED
    return HeldUp(_unacknowledged(), polled_at=polled) if waits or polled is None else None


# What does not pass by waiting for models.
_KEYS = PayloadRefused | EncryptionKeysUnusable
_HOLDS_UP = StorageUnavailable | TemporalUnavailable | _KEYS


async def _unless_held_up(
    asking: Coroutine[Any, Any, Answer],
    held_up_by: Callable[[], Awaitable[HeldUp | None]],
    seconds: float,
) -> Answer:
    """Wait for work to its end, but not where two looks in a row find it held up.

    It may be by a store or a Temporal that fails it, or for want of a worker or of its keys.
    Models are waited for: a pass that they fail ends by itself, and says so in its report.
    """
    answer = asyncio.ensure_future(asking)
    before: HeldUp | None = None
    try:
        while not answer.done():
            await asyncio.wait([answer], timeout=seconds)
            if answer.done():
                break
            now = await held_up_by()
            if now and not isinstance(now.why, _HOLDS_UP):
                now = None
            if now and before and now.still_holds_up(before):
                raise _goes_on(now.why)
            before = now
        return answer.result()
    finally:
        answer.cancel()
        await asyncio.gather(answer, return_exceptions=True)


def _goes_on(why: EngramError) -> EngramError:
    further = "What was asked for goes on by itself then; the same call waits for it again."
    hint = f"{why.hint} {further}" if why.hint else further
    return error_from_dict({**why.as_dict(), "hint": hint})


class _Unreachable:
    """For how long nobody has answered, asked at each attempt that failed."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._since = self._failed = time.monotonic()

    def for_too_long(self, error: Exception) -> bool:
        now = time.monotonic()
        if now - self._failed > _LISTENED_SECONDS or _was_put_off(error):
            self._since = now
        self._failed = now
        return now - self._since >= self._longest


def _was_put_off(error: Exception) -> bool:
    """Whether the server answered that there is no room now, as to the eleventh who waits."""
    cause = error.__cause__
    return isinstance(cause, RPCError) and cause.status is RPCStatusCode.RESOURCE_EXHAUSTED


async def start_or_meet(
    client: Client,
    workflow: str,
    state: BaseModel,
    *,
    workflow_id: str,
    task_queue: str,
    described_by: TypedSearchAttributes,
    summary: str,
    signal: tuple[str, object] | None = None,
) -> None:
    """Start a workflow unless it runs; a signal, with what it brings, reaches it in either case.

    Raises:
        TemporalUnavailable: Temporal cannot be reached.
    """
    name, *brought = (None,) if signal is None else signal

    async def attempt() -> None:
        await client.start_workflow(
            workflow,
            state,
            id=workflow_id,
            task_queue=task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            start_signal=name,
            start_signal_args=brought,
            search_attributes=described_by,
            priority=precedence(described_by),
            static_summary=summary,
        )

    await _typed(attempt)


async def until_ended(client: Client, workflow_id: str, run_id: str | None = None) -> None:
    """Wait until a run, and what it goes on in, has ended in whatever way.

    Raises:
        RPCError: Temporal does not say so; asking again is safe.
    """
    try:
        await client.get_workflow_handle(workflow_id, run_id=run_id).result()
    except RPCError as error:
        if not is_gone(error):
            raise
    except TemporalError:
        return


_MOST_REMEMBERED = 10_000


class LatelyAnswered:
    """Which workflows answered last: they are taken to run, and asked without a start."""

    def __init__(self) -> None:
        self._ids: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, workflow_id: str) -> bool:
        return workflow_id in self._ids

    def note(self, workflow_id: str) -> None:
        """It answered."""
        self._ids[workflow_id] = None
        self._ids.move_to_end(workflow_id)
        if len(self._ids) > _MOST_REMEMBERED:
            self._ids.popitem(last=False)

    def drop(self, workflow_id: str) -> None:
        """It ended, or is about to."""
        self._ids.pop(workflow_id, None)


async def _read_failure(operation: WithStartWorkflowOperation[Any, Any]) -> None:
    # The start's own failure is that of the update; unread, asyncio would report it.
    with contextlib.suppress(Exception):
        async with asyncio.timeout(_STARTED_BY_NOW_SECONDS):
            await operation.workflow_handle()


async def _started(
    client: Client,
    update: str,
    request: BaseModel,
    reply: type[Answer],
    operation: WithStartWorkflowOperation[Any, Any],
) -> Answer:
    try:
        answer: Answer = await client.execute_update_with_start_workflow(
            update, request, start_workflow_operation=operation, result_type=reply
        )
    except (RPCError, TemporalError):
        await _read_failure(operation)
        raise
    return answer


async def unless_unreadable(
    ask: Callable[[], Awaitable[Answer]], client: Client, workflow_id: str
) -> Answer:
    """Ask; where an error leaves open why, say whether it is for want of a key.

    Raises:
        PayloadRefused: what was sent could not be read there.
        EncryptionKeysUnusable: the workflow's own key is not there any more.
        RPCError, TemporalError: what else went wrong.
    """
    try:
        return await ask()
    except (RPCError, TemporalError) as error:
        if _leaves_why_open(error):
            failed = isinstance(error, WorkflowQueryFailedError)
            held_up = await what_holds_up(client, workflow_id, fails=failed)
            if held_up is not None and isinstance(held_up.why, _KEYS):
                raise held_up.why from error
        raise


async def update_with_start(
    client: Client,
    update: str,
    request: BaseModel,
    reply: type[Answer],
    *,
    workflow: str,
    workflow_id: str,
    task_queue: str,
    state: BaseModel,
    described_by: TypedSearchAttributes,
    summary: str,
    patience: timedelta,
    to_the_end: bool = False,
    lately: LatelyAnswered | None = None,
    room: asyncio.Semaphore | None = None,
) -> Answer:
    """Send an update to a workflow, starting it if it does not run, until it is answered.

    ``patience`` and ``to_the_end`` are those of :func:`retry_until_answered`. One of ``lately``
    is sent the update alone first. That leaves out a second operation with what the workflow
    would be started with, which takes client and server about as long. Where there is a ``room``,
    each attempt waits for a place in it.

    Raises:
        TemporalUnavailable: when ``patience`` is over.
        EngramError: what the workflow answered, when trying again cannot help.
    """

    async def ask() -> Answer:
        if lately is not None and workflow_id in lately:
            with contextlib.suppress(_NotRunning):
                return await _update(client, update, request, reply, workflow_id)
            lately.drop(workflow_id)
        operation: WithStartWorkflowOperation[Any, Any] = WithStartWorkflowOperation(
            workflow,
            state,
            id=workflow_id,
            task_queue=task_queue,
            id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            search_attributes=described_by,
            priority=precedence(described_by),
            static_summary=summary,
        )
        async with room or contextlib.nullcontext():
            answer = await _started(client, update, request, reply, operation)
        if lately is not None:
            lately.note(workflow_id)
        return answer

    return await retry_until_answered(
        partial(unless_unreadable, ask, client, workflow_id),
        workflow_id,
        patience,
        to_the_end=to_the_end,
        held_up_by=partial(what_holds_up, client, workflow_id),
    )


def _leaves_why_open(error: Exception) -> bool:
    """Whether a run ended, or its task failed, without answering."""
    left = isinstance(error, RPCError) and error.status in _LEFT
    return (left or isinstance(typed(error), RunEnded)) and not being_cancelled()


class _NotRunning(Exception):
    """There is no workflow of this id that runs."""


async def _update(
    client: Client, update: str, request: BaseModel, reply: type[Answer], workflow_id: str
) -> Answer:
    try:
        answer: Answer = await client.get_workflow_handle(workflow_id).execute_update(
            update, request, result_type=reply
        )
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise _NotRunning from error
        raise
    return answer


async def asked_again(attempt: Callable[[], Awaitable[Answer]]) -> Answer:
    """Ask once more whatever met a run that was just ending: what is there then answers.

    Raises:
        EngramError: what else went wrong, or runs that keep ending.
    """
    async for retrying in stamina.retry_context(
        on=RunEnded, attempts=5, timeout=None, wait_initial=0.02, wait_max=0.5
    ):
        with retrying:
            return await _typed(attempt)
    raise TemporalUnavailable("No attempt was made.")


async def _typed(attempt: Callable[[], Awaitable[Answer]]) -> Answer:
    try:
        return await attempt()
    except (RPCError, TemporalError) as error:
        if being_cancelled():
            raise asyncio.CancelledError from error
        raise typed(error) from error


def being_cancelled() -> bool:
    """Whether our caller cancels us, which Temporal's client turns into an error of its own."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


@contextlib.contextmanager
def _said_when_slow(workflow_id: str, unusual: timedelta) -> Iterator[None]:
    """Say what is being waited for, once, when an answer takes unusually long."""

    def say() -> None:
        _log.warning(
            "waiting for an answer; is a worker running and Temporal reachable?",
            workflow_id=workflow_id,
        )

    saying = asyncio.get_running_loop().call_later(unusual.total_seconds(), say)
    try:
        yield
    finally:
        saying.cancel()
