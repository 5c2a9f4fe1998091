"""Reaching Engram's workflows: updates, signals, queries, erasure, and what they spent."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import structlog
from pydantic import BaseModel, ValidationError
from temporalio.api.common.v1 import Payloads
from temporalio.api.common.v1 import WorkflowExecution as ExecutionId
from temporalio.api.workflowservice.v1 import (
    DeleteWorkflowExecutionRequest,
    DescribeNamespaceRequest,
)
from temporalio.client import (
    Client,
    WorkflowExecution,
    WorkflowExecutionStatus,
    WorkflowHandle,
    WorkflowQueryRejectedError,
)
from temporalio.common import (
    QueryRejectCondition,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
)
from temporalio.converter import WorkflowSerializationContext
from temporalio.exceptions import ApplicationError, TemporalError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from engram.contracts import names
from engram.contracts.attributes import attributes, precedence
from engram.contracts.consolidation import (
    ConsolidationPolicy,
    ConsolidationReport,
    ConsolidationState,
)
from engram.contracts.lifecycle import (
    MOST_FAILURES,
    MaintenanceReport,
    PassKind,
    variant_of,
)
from engram.contracts.messages import (
    SPENT_BY_MODEL,
    Failure,
    Message,
    ModelSpent,
    Population,
    UserUsage,
    by_model,
    in_all,
)
from engram.contracts.removal import (
    ErasureInput,
    ErasureReceipt,
    ForgetInput,
    ForgetReceipt,
    WorkflowRound,
)
from engram.contracts.session import (
    ConsolidationRequest,
    EncodeReply,
    EncodeRequest,
    EndSession,
    SessionPolicy,
    SessionState,
    SessionSummary,
)
from engram.domain.buffer import BufferPolicy, RememberedTurn
from engram.domain.scope import Scope
from engram.errors import EngramError
from engram.settings import Settings
from engram.system import system_clock
from engram.temporal.passes import PassRunner
from engram.temporal.retry import (
    LatelyAnswered,
    asked_again,
    is_gone,
    keeps_failing,
    lacks_key,
    retry_until_answered,
    start_or_meet,
    typed,
    unless_unreadable,
    until_ended,
    update_with_start,
    what_holds_up,
)

# --- reaching Engram's workflows by name: update-with-start, signal-with-start, queries

# Temporal lets ten updates of a workflow wait at once, and puts off what more there are. Not all
# ten are for one process: others may ask for the same user's consolidation.
_WAITING_AT_ONCE = 8

Reply = TypeVar("Reply", bound=BaseModel)
Held = TypeVar("Held")


class WorkflowGateway:
    """Starts and asks workflows; every failure comes out typed.

    Args:
        client: Connected, with the pydantic data converter.
        settings: Queues, limits, and the policies that new workflows are started with.
    """

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings
        self._passes = PassRunner(client, settings)
        self._sessions = LatelyAnswered()
        self._rooms: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def encode(self, scope: Scope, session_id: str, request: EncodeRequest) -> EncodeReply:
        """Have the session store turns, starting it if it does not run."""
        state = SessionState(
            scope=scope, session_id=session_id, policy=session_policy(self._settings)
        )
        return await update_with_start(
            self._client,
            names.ENCODE_UPDATE,
            request,
            EncodeReply,
            workflow=names.SESSION_WORKFLOW,
            task_queue=self._settings.store_queue,
            workflow_id=self.session_id(scope, session_id),
            state=state,
            described_by=attributes("session", user=scope.tenant, session=session_id),
            summary=f"session {session_id} of {scope.tenant}",
            patience=self._settings.encode_timeout,
            lately=self._sessions,
        )

    async def end_session(self, scope: Scope, session_id: str) -> SessionSummary | None:
        """End a running session; None when it does not run."""
        workflow_id = self.session_id(scope, session_id)
        handle = self._client.get_workflow_handle(workflow_id)
        self._sessions.drop(workflow_id)

        async def attempt() -> SessionSummary | None:
            try:
                ended: SessionSummary = await handle.execute_update(
                    names.END_SESSION_UPDATE, EndSession(), result_type=SessionSummary
                )
            except RPCError as error:
                if is_gone(error):
                    return None
                raise
            return ended

        return await retry_until_answered(
            partial(unless_unreadable, attempt, self._client, workflow_id),
            workflow_id,
            self._settings.encode_timeout,
            held_up_by=partial(what_holds_up, self._client, workflow_id),
        )

    async def working_memory(
        self, scope: Scope, session_id: str, *, include_test: bool = False
    ) -> list[RememberedTurn]:
        """What a running session holds in mind; empty when it does not run."""
        workflow_id = self.session_id(scope, session_id)
        held = await self._query(workflow_id, names.WORKING_MEMORY_QUERY, list[RememberedTurn])
        return [turn for turn in held or () if include_test or not turn.is_test]

    async def _query(self, workflow_id: str, query: str, result: type[Held]) -> Held | None:
        """What a running workflow answers; None where it does not run."""
        handle = self._client.get_workflow_handle(workflow_id)

        async def attempt() -> Held | None:
            try:
                held: Held = await handle.query(
                    query, result_type=result, reject_condition=QueryRejectCondition.NOT_OPEN
                )
            except WorkflowQueryRejectedError:
                return None
            except RPCError as error:
                if error.status is RPCStatusCode.NOT_FOUND:
                    return None
                raise
            return held

        return await asked_again(partial(unless_unreadable, attempt, self._client, workflow_id))

    async def request_consolidation(self, scope: Scope, request: ConsolidationRequest) -> None:
        """Signal the user's consolidation, starting it if it does not run.

        Where a session ended, the promotion of what it leaves lively is asked for as well.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        variant = variant_of(request.population, dry_run=False)
        await start_or_meet(
            self._client,
            names.CONSOLIDATION_WORKFLOW,
            self._consolidation(scope, request),
            workflow_id=self._of_store(names.consolidation_workflow_id(scope, variant)),
            task_queue=self._settings.store_queue,
            described_by=attributes("consolidation", user=scope.tenant),
            summary=f"consolidation{variant} of {scope.tenant}",
            signal=(names.REQUEST_CONSOLIDATION_SIGNAL, request),
        )
        await self._passes.session_ended(scope, request)

    async def unlinked(self, scope: Scope, population: Population) -> frozenset[str]:
        """Memories that the user's consolidation has yet to link, and turns it takes up now."""
        variant = variant_of(population, dry_run=False)
        workflow_id = self._of_store(names.consolidation_workflow_id(scope, variant))
        found = await self._query(workflow_id, names.UNLINKED_QUERY, tuple[str, ...])
        return frozenset(found or ())

    async def consolidate(
        self, scope: Scope, request: ConsolidationRequest, *, dry_run: bool = False
    ) -> ConsolidationReport:
        """Run a pass that begins after this call, and wait for its report.

        Args:
            scope: Whose turns.
            request: Which of them, and why.
            dry_run: Write nothing; say what the pass would do.

        Raises:
            TemporalUnavailable: Temporal cannot be reached, or no worker takes the pass up.
        """
        variant = variant_of(request.population, dry_run=dry_run)
        workflow_id = self._of_store(names.consolidation_workflow_id(scope, variant))
        state = self._consolidation(scope, request).model_copy(update={"dry_run": dry_run})
        return await update_with_start(
            self._client,
            names.CONSOLIDATE_UPDATE,
            request,
            ConsolidationReport,
            workflow=names.CONSOLIDATION_WORKFLOW,
            task_queue=self._settings.store_queue,
            workflow_id=workflow_id,
            state=state,
            described_by=attributes("consolidation", user=scope.tenant),
            summary=f"consolidation{variant} of {scope.tenant}",
            patience=self._settings.encode_timeout,
            to_the_end=True,
            room=self._rooms.setdefault(workflow_id, asyncio.Semaphore(_WAITING_AT_ONCE)),
        )

    async def forget(self, scope: Scope, memory_id: str) -> ForgetReceipt:
        """Forget one memory, or wait for the run that does.

        Raises:
            TemporalUnavailable: Temporal cannot be reached, or no worker takes it up.
        """
        workflow_id = self._of_store(names.forgetting_workflow_id(scope, memory_id))

        async def attempt() -> ForgetReceipt:
            running = await self._start(
                names.FORGETTING_WORKFLOW,
                ForgetInput(scope=scope, memory_id=memory_id, digests=self._settings.digests),
                ForgetReceipt,
                workflow_id=workflow_id,
                described_by=attributes("forgetting", user=scope.tenant),
                summary=f"forget {memory_id}",
                if_running=WorkflowIDConflictPolicy.USE_EXISTING,
            )
            return await running.result()

        return await self._done(attempt, workflow_id)

    async def erase(self, scope: Scope) -> ErasureReceipt:
        """Erase everything of a user that was there before this call.

        An erasure that runs already may be past its deletion: it is waited for, and another
        follows, the same for all who wait.

        Raises:
            TemporalUnavailable: Temporal cannot be reached, or no worker takes it up.
        """
        begun: WorkflowHandle[Any, ErasureReceipt] | None = None

        async def attempt() -> ErasureReceipt:
            # Asked again for want of an answer, it is this very erasure that is waited for.
            nonlocal begun
            begun = begun or await self._begin_erasure(scope)
            return await begun.result()

        return await self._done(attempt, self.erasure_id(scope))

    async def _begin_erasure(self, scope: Scope) -> WorkflowHandle[Any, ErasureReceipt]:
        try:
            return await self._start_erasure(scope, WorkflowIDConflictPolicy.FAIL)
        except WorkflowAlreadyStartedError as earlier:
            await until_ended(self._client, self.erasure_id(scope), earlier.run_id)
        # Somebody else who waited may have been quicker: that one began after this call, too.
        return await self._start_erasure(scope, WorkflowIDConflictPolicy.USE_EXISTING)

    async def _start_erasure(
        self, scope: Scope, if_running: WorkflowIDConflictPolicy
    ) -> WorkflowHandle[Any, ErasureReceipt]:
        return await self._start(
            names.ERASURE_WORKFLOW,
            ErasureInput(
                scope=scope, store_timeout=self._settings.store_timeout, asked_at=system_clock()
            ),
            ErasureReceipt,
            workflow_id=self.erasure_id(scope),
            described_by=attributes("erasure", user=scope.tenant),
            summary=f"erase {scope.tenant}",
            if_running=if_running,
        )

    async def erased(self, scope: Scope) -> ErasureReceipt | None:
        """Wait until histories are deleted behind the last erasure; None if there was none."""
        workflow_id = names.history_erasure_workflow_id(self.erasure_id(scope))

        async def attempt() -> ErasureReceipt | None:
            try:
                last = await self._last_to_end(workflow_id)
            except RPCError as error:
                if is_gone(error):
                    return None
                raise
            return await last.result()

        return await self._done(attempt, workflow_id)

    async def _last_to_end(self, workflow_id: str) -> WorkflowHandle[Any, ErasureReceipt]:
        """The run that no other has taken over from, once it has ended."""
        while True:
            await until_ended(self._client, workflow_id)
            last = await self._client.get_workflow_handle(workflow_id).describe()
            if last.status is not WorkflowExecutionStatus.RUNNING:
                return self._client.get_workflow_handle(
                    workflow_id, run_id=last.run_id, result_type=ErasureReceipt
                )

    async def _start(
        self,
        workflow: str,
        request: BaseModel,
        result: type[Reply],
        *,
        workflow_id: str,
        described_by: TypedSearchAttributes,
        summary: str,
        if_running: WorkflowIDConflictPolicy,
    ) -> WorkflowHandle[Any, Reply]:
        return await self._client.start_workflow(
            workflow,
            request,
            id=workflow_id,
            task_queue=self._settings.store_queue,
            result_type=result,
            id_conflict_policy=if_running,
            search_attributes=described_by,
            priority=precedence(described_by),
            static_summary=summary,
        )

    async def _done(self, attempt: Callable[[], Awaitable[Held]], workflow_id: str) -> Held:
        """What a workflow comes to, however long its work takes."""
        return await retry_until_answered(
            attempt,
            workflow_id,
            self._settings.encode_timeout,
            to_the_end=True,
            held_up_by=partial(what_holds_up, self._client, workflow_id),
        )

    def session_id(self, scope: Scope, session_id: str) -> str:
        """The id of a session's workflow."""
        return self._of_store(names.session_workflow_id(scope, session_id))

    def erasure_id(self, scope: Scope) -> str:
        """The id of the workflow that erases a user."""
        return self._of_store(names.erasure_workflow_id(scope))

    def _of_store(self, workflow_id: str) -> str:
        return names.in_store(self._settings.collection_prefix, workflow_id)

    async def check(self) -> None:
        """Ask Temporal whether it answers.

        Raises:
            TemporalUnavailable: it does not.
            TemporalNotSetUp: its namespace is gone.
        """
        try:
            await self._client.workflow_service.describe_namespace(
                DescribeNamespaceRequest(namespace=self._client.namespace)
            )
        except RPCError as error:
            raise typed(error) from error

    def _consolidation(self, scope: Scope, request: ConsolidationRequest) -> ConsolidationState:
        return ConsolidationState(
            scope=scope,
            policy=ConsolidationPolicy.fixed_by(self._settings),
            population=request.population,
        )


class UserRehearsal(Message):
    """What consolidation would do for one user.

    Attributes:
        scope: Who that is.
        report: What it would come to, and the first changes; None where that failed.
        failure: Why it failed.
    """

    scope: Scope
    report: ConsolidationReport | None = None
    failure: Failure | None = None


class ConsolidationRehearsal(MaintenanceReport):
    """Whose consolidation a pass over all users would ask for, and what would come of it.

    Attributes:
        of_users: User by user, as :attr:`would_change` names them.
    """

    of_users: tuple[UserRehearsal, ...] = ()


async def rehearse_consolidation(
    client: Client,
    settings: Settings,
    population: Population = Population.REAL,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> ConsolidationRehearsal:
    """What a pass over all users would have consolidated; nothing is written.

    Each user's dry run is a workflow of their own, as it is by hand: what would be learnt of
    somebody stands in no history but theirs. Where a language model is configured, it is asked.

    Args:
        client: Connected, with the pydantic data converter.
        settings: Queue, and the numbers that passes run by.
        population: Test memories, or all others.
        on_progress: Takes for how many users it is done, and for how many it is to be.

    Raises:
        TemporalUnavailable: Temporal cannot be reached.
    """
    gateway, room = WorkflowGateway(client, settings), asyncio.Semaphore(settings.pass_users)
    request = ConsolidationRequest(reason="asked for", population=population)

    waiting = await PassRunner(client, settings).maintain(
        PassKind.CONSOLIDATION, population=population, dry_run=True
    )
    users, done = [one.scope for one in waiting.would_change], itertools.count(1)

    async def of_one(scope: Scope) -> UserRehearsal:
        async with room:
            try:
                report = await gateway.consolidate(scope, request, dry_run=True)
                rehearsed = UserRehearsal(scope=scope, report=report)
            except EngramError as error:
                rehearsed = UserRehearsal(scope=scope, failure=Failure.of(error))
            on_progress(next(done), len(users))
            return rehearsed

    found = await asyncio.gather(*map(of_one, users))
    failures = tuple(one.failure for one in found if one.failure is not None)
    return ConsolidationRehearsal(
        **{
            **dict(waiting),
            "of_users": tuple(found),
            "failed": waiting.failed + len(failures),
            "failures": (*waiting.failures, *failures)[-MOST_FAILURES:],
        }
    )


def session_policy(settings: Settings) -> SessionPolicy:
    """The numbers a session starts with."""
    return SessionPolicy(
        buffer=BufferPolicy(
            turns=settings.buffer_turns,
            time=timedelta(minutes=settings.buffer_minutes),
            idle_time=timedelta(minutes=settings.session_idle_minutes),
            working_memory_turns=settings.working_memory_turns,
            working_memory_bytes=settings.working_memory_bytes,
        ),
        updates_per_run=settings.updates_per_run,
        store_timeout=settings.store_timeout,
    )


# --- finding, stopping and deleting a user's workflows on the Temporal service

_log = structlog.get_logger("engram.client")
_NOT_ALLOWED = frozenset({RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNIMPLEMENTED})


async def list_workflows(
    client: Client, scope: Scope, store: str = names.DEFAULT_STORE
) -> AsyncIterator[WorkflowExecution]:
    """Every workflow of one user of a store that the service still knows, running or not.

    Args:
        client: Of the Temporal service.
        scope: Whose workflows.
        store: The collection prefix; other stores may have a user of the same name.
    """
    # Tenants consist of letters that need no quoting; see Scope.
    query = f"{names.USER_ATTRIBUTE} = '{scope.tenant}'"
    async for execution in client.list_workflows(query):
        if names.store_of(execution.id) == store:
            yield execution


# Histories whose beginnings are asked for at once.
_LOOKED_AT_ONCE = 16


@dataclass(frozen=True)
class StuckRuns:
    """Workflows that run and do not go on.

    Attributes:
        without_key: Ids of those that are encrypted with data keys that are gone.
        failing: Ids of the others whose task fails again and again.
        looked_at: How many runs were looked at.
    """

    without_key: Sequence[str]
    failing: Sequence[str]
    looked_at: int


async def stuck_runs(client: Client, most: int) -> StuckRuns:
    """Which of the workflows that run no worker can go on with.

    Args:
        client: With the keys that workers have.
        most: How many runs are looked at, the latest first.

    Raises:
        EngramError: Temporal, or the keys, cannot be asked.
    """
    query = f"ExecutionStatus = 'Running' AND {names.STAGE_ATTRIBUTE} IS NOT NULL"
    room = asyncio.Semaphore(_LOOKED_AT_ONCE)

    async def is_stuck(workflow_id: str) -> tuple[bool, bool]:
        async with room:
            try:
                if await lacks_key(client, workflow_id):
                    return True, False
                described = await client.get_workflow_handle(workflow_id).describe()
            except RPCError as error:
                if is_gone(error):
                    return False, False
                raise
        return False, keeps_failing(described)

    try:
        running = [run.id async for run in client.list_workflows(query, limit=most)]
        found = await asyncio.gather(*map(is_stuck, running))
    except (RPCError, TemporalError) as error:
        raise typed(error) from error
    without_key, failing = (
        list(itertools.compress(running, (one[why] for one in found))) for why in (0, 1)
    )
    return StuckRuns(without_key, failing, len(running))


async def began_behind(client: Client, execution: WorkflowExecution, fence: datetime) -> bool:
    """Whether a listed run belongs to what began behind the fence.

    What goes on in a new run has the words of the run before it, so the first one counts. A
    listing does not name it. Where it is gone, it was erased, and began before the fence.
    """
    if execution.start_time <= fence:
        return False
    try:
        run = await client.get_workflow_handle(execution.id, run_id=execution.run_id).describe()
        first = run.raw_description.workflow_execution_info.first_run_id
        if first != run.run_id:
            run = await client.get_workflow_handle(execution.id, run_id=first).describe()
    except RPCError as error:
        if is_gone(error):
            return False
        raise
    return run.start_time > fence


async def remove(client: Client, execution: WorkflowExecution) -> WorkflowRound:
    """Delete what the service keeps of a run, and end the run; where that is not allowed, end it.

    Deleting ends what runs, and takes it away at once. Whatever ended a moment ago stays until
    the service has written down how far its queues are, which it does every 30 seconds unless
    it is told otherwise: so nothing is terminated first.
    """
    running = execution.status is WorkflowExecutionStatus.RUNNING
    request = DeleteWorkflowExecutionRequest(
        namespace=client.namespace,
        workflow_execution=ExecutionId(workflow_id=execution.id, run_id=execution.run_id),
    )
    try:
        await client.workflow_service.delete_workflow_execution(request)
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return WorkflowRound(deleted=(execution.run_id,))
        if error.status not in _NOT_ALLOWED:
            raise
        _log.warning("a history cannot be deleted", status=error.status.name)
        return WorkflowRound(stopped=int(running and await _stop(client, execution)), kept=1)
    return WorkflowRound(stopped=int(running), deleted=(execution.run_id,))


async def _stop(client: Client, execution: WorkflowExecution) -> bool:
    """Terminate a run; False if it ended meanwhile."""
    handle = client.get_workflow_handle(execution.id, run_id=execution.run_id)
    try:
        await handle.terminate(reason="everything of this user is erased")
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    return True


async def erased_runs(client: Client, workflow_id: str) -> set[str]:
    """Runs whose deletion erasures under this id asked for; empty if there was none.

    Of all that are listed: the last one is not told again what the one before it deleted, from
    which it may have taken over.
    """
    behind = names.history_erasure_workflow_id(workflow_id)
    found: set[str] = set()
    async for run in client.list_workflows(f'WorkflowId IN ("{workflow_id}", "{behind}")'):
        found |= await _deleted_in(client, run)
    return found


async def _deleted_in(client: Client, run: WorkflowExecution) -> set[str]:
    found: set[str] = set()
    rounds: set[int] = set()
    try:
        handle = client.get_workflow_handle(run.id, run_id=run.run_id)
        async for event in handle.fetch_history_events():
            scheduled = event.activity_task_scheduled_event_attributes
            if scheduled.activity_type.name == names.ERASE_WORKFLOWS_ACTIVITY:
                rounds.add(event.event_id)
            completed = event.activity_task_completed_event_attributes
            if completed.scheduled_event_id in rounds:
                found.update((await _round(client, run.id, completed.result)).deleted)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
    return found


async def _round(client: Client, workflow_id: str, result: Payloads) -> WorkflowRound:
    context = WorkflowSerializationContext(client.namespace, workflow_id)
    converter = client.data_converter.with_context(context)
    (answer,) = await converter.decode(result.payloads, [WorkflowRound])
    done: WorkflowRound = answer
    return done


# --- reading what consolidations noted that they spent: one listing, no workflow is asked


class SpendingReader:
    """Sums what the consolidations of a user noted on their runs.

    Args:
        client: Connected to the namespace that they run in.
        store: The collection prefix of the store that they work for.
    """

    def __init__(self, client: Client, store: str = names.DEFAULT_STORE) -> None:
        self._client = client
        self._store = store

    async def of(self, scope: Scope) -> UserUsage:
        """What models were asked for this user, in all runs that Temporal still knows.

        A pass that is going on is counted when it ends.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        # Reading test turns costs as much as reading any.
        variants = ("", variant_of(Population.TEST, dry_run=False))
        ids = ", ".join(
            f'"{names.in_store(self._store, names.consolidation_workflow_id(scope, variant))}"'
            for variant in variants
        )
        # A run that went on in a new one handed its sum to it.
        query = f'WorkflowId IN ({ids}) AND ExecutionStatus != "ContinuedAsNew"'
        parts: list[ModelSpent] = []
        runs, since = 0, list[datetime]()
        try:
            async for run in self._client.list_workflows(query):
                runs += 1
                since.append(run.start_time)
                parts += await _noted(run)
        except (RPCError, TemporalError) as error:
            raise typed(error) from error
        models = by_model(parts)
        total = in_all(models).model_dump()
        return UserUsage(**total, models=models, runs=runs, since=min(since, default=None))


async def _noted(run: WorkflowExecution) -> tuple[ModelSpent, ...]:
    try:
        return SPENT_BY_MODEL.validate_python(await run.memo_value(names.SPENT_MEMO, ()))
    except (ValidationError, ApplicationError):
        # Another program may set memos too; what is not encrypted by us is refused.
        return ()
