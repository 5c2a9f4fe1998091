"""The lifecycle passes: decay and promotion of one user's memories, and over all users."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any, Final

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ChildWorkflowError,
    WorkflowAlreadyStartedError,
    is_cancelled_exception,
)

from engram.contracts import names
from engram.contracts.activities import LifecycleActivities
from engram.contracts.attributes import attributes, precedence
from engram.contracts.lifecycle import (
    MOST_FAILURES,
    DecayReport,
    DecayState,
    FindDueUsersInput,
    FindDueUsersOutput,
    MaintenanceProgress,
    MaintenanceReport,
    MaintenanceState,
    PassKind,
    PassReport,
    PromotionReport,
    PromotionState,
    WalkPosition,
    variant_of,
)
from engram.contracts.messages import Failure
from engram.contracts.session import ConsolidationRequest
from engram.domain.scope import Scope
from engram.errors import UnforeseenFailure
from engram.workflows.support import (
    check_start,
    compose,
    execute,
    failure_of,
    listing_of_this_run,
    request_consolidation,
    walk_input,
)

# --- one decay pass over one user's memories: what is due by the time it begins happens to them


@workflow.defn(name=names.DECAY_WORKFLOW)
class DecayWorkflow:
    """Reviews stretch after stretch until nothing is due; everything is judged as of its start."""

    @workflow.run
    async def run(self, state: DecayState) -> DecayReport:
        """Review what is due, then say what that did."""
        variant = variant_of(state.population, dry_run=state.dry_run)
        check_start(state.scope, names.decay_workflow_id(state.scope, variant))
        state = state.model_copy(update={"began_at": state.began_at or workflow.now()})
        kept = {"dry_run": state.dry_run, "population": state.population}
        report, position = state.report.model_copy(update=kept), state.position
        while True:
            state = state.model_copy(update={"report": report, "position": position})
            _describe(state)
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(state.model_copy(update={"runs": state.runs + 1}))
            try:
                done = await execute(
                    LifecycleActivities.review,
                    walk_input(state, state.policy.decay_batch),
                    _summary(state),
                    state.policy.store_timeout,
                )
            except ActivityError as error:
                if is_cancelled_exception(error):
                    raise
                failures = (*report.failures, failure_of(error))
                return _ended(report.model_copy(update={"failures": failures}))
            report = report.plus(done.report)
            if not state.dry_run and state.policy.digests is not None:
                await compose(
                    state.scope,
                    (*done.moved, *done.composed),
                    state.policy.digests,
                    state.policy.store_timeout,
                    boxed=done.boxed,
                    ended=done.ended,
                )
            if done.position is None:
                _describe(state.model_copy(update={"report": report}))
                return _ended(report)
            position = done.position


def _summary(state: DecayState) -> str:
    tests = " test" if state.population == "test" else ""
    doing = "what would happen to" if state.dry_run else "review"
    return f"{doing} due{tests} memories, after {state.report.reviewed}"


def _describe(state: DecayState) -> None:
    report = state.report
    steps = "".join(f"\n- {count}" for count in report.transitions)
    mode = "A dry run: nothing is written. " if state.dry_run else ""
    workflow.set_current_details(
        f"{mode}**{report.reviewed} memories reviewed**, {report.changed} steps, "
        f"{report.erased} erased.\n{steps}"
    )


def _ended(report: DecayReport) -> DecayReport:
    info = workflow.info()
    return report.model_copy(update={"workflow_id": info.workflow_id, "run_id": info.run_id})


# --- one promotion pass over one user's memories; also called when one of the user's sessions
# ends

_ENDED_AGAIN: Final = "ended-again-while-promoted"
_GOES_ON: Final = "goes-on-past-a-failing-session"


@workflow.defn(name=names.PROMOTION_WORKFLOW)
class PromotionWorkflow:
    """Promotes what sessions left, then what is ready, until no session has ended meanwhile."""

    @workflow.init
    def __init__(self, state: PromotionState) -> None:
        began: datetime = state.began_at or workflow.now()
        kept = {"dry_run": state.dry_run, "population": state.population}
        report = state.report.model_copy(update=kept)
        self._state = state.model_copy(update={"began_at": began, "report": report})
        # Whether the first of the sessions is being promoted.
        self._promotes_session = False

    @workflow.signal(name=names.SESSION_ENDED_SIGNAL)
    def session_ended(self, session_id: str) -> None:
        """One of the user's sessions ended."""
        known = self._state.sessions
        if session_id in (known[1:] if self._promotes_session else known):
            return
        # Its promotion may have passed by what it was given since. Runs of before let this end go.
        if session_id not in known or workflow.patched(_ENDED_AGAIN):
            self._update(sessions=(*known, session_id))

    @workflow.run
    async def run(self, state: PromotionState) -> PromotionReport:
        """Promote, then say what that did."""
        variant = variant_of(state.population, dry_run=state.dry_run)
        check_start(state.scope, names.promotion_workflow_id(state.scope, variant))
        position = None if self._state.only_sessions else self._state.position
        try:
            while position is not None or self._state.sessions:
                self._describe()
                if position is not None and workflow.info().is_continue_as_new_suggested():
                    workflow.continue_as_new(
                        self._state.model_copy(
                            update={"position": position, "runs": self._state.runs + 1}
                        )
                    )
                if self._state.sessions:
                    await self._session(self._state.sessions[0])
                elif position is not None:
                    self._update(position=position)
                    position = await self._stretch()
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            failed = self._empty(failures=(failure_of(error),))
            self._add(failed)
        self._describe()
        info = workflow.info()
        return self._state.report.model_copy(
            update={"workflow_id": info.workflow_id, "run_id": info.run_id}
        )

    async def _session(self, session_id: str) -> None:
        state = self._state
        self._promotes_session = True
        try:
            report = await execute(
                LifecycleActivities.promote_session,
                walk_input(state, state.policy.decay_batch, session_id=session_id),
                f"promote what session {session_id} leaves lively",
                state.policy.store_timeout,
            )
        except ActivityError as error:
            # Runs of before ended with the first session that failed.
            if is_cancelled_exception(error) or not workflow.patched(_GOES_ON):
                raise
            report = self._empty(failures=(failure_of(error),))
        self._promotes_session = False
        self._add(report)
        self._update(sessions=self._state.sessions[1:])

    async def _stretch(self) -> WalkPosition | None:
        state = self._state
        done = await execute(
            LifecycleActivities.promote,
            walk_input(state, state.policy.promotion_batch),
            f"promote what is ready, after {state.report.reviewed}",
            state.policy.store_timeout,
        )
        self._add(done.report)
        return done.position

    def _empty(self, **fields: object) -> PromotionReport:
        kept = {"dry_run": self._state.dry_run, "population": self._state.population}
        return PromotionReport.model_validate({**kept, **fields})

    def _add(self, report: PromotionReport) -> None:
        self._update(report=self._state.report.plus(report))

    def _update(self, **changes: object) -> None:
        self._state = self._state.model_copy(update=changes)

    def _describe(self) -> None:
        report = self._state.report
        steps = "".join(f"\n- {count}" for count in report.transitions)
        mode = "A dry run: nothing is written. " if self._state.dry_run else ""
        workflow.set_current_details(
            f"{mode}**{report.reviewed} memories looked at**, {len(report.promoted)} became "
            f"habits, {report.changed} steps.\n{steps}\n\n{listing_of_this_run(self._state.scope)}"
        )


# --- a pass over all users: finds who is due, and does for each, a few at a time, what is asked

AT_ONCE: Final = 100
# Who stays due although this pass has seen to them travels in payloads: past so many the
# pass goes on from where it is, and they need no name any more.
MOST_SKIPPED: Final = 2000
# All of them can be due since one moment; payloads are bounded, so at last the pass ends.
MOST_AT_ONE_MOMENT: Final = 10_000
# A marker that runs of before the first release have in their histories; it goes with the next.
_GOES_ON_PATCH: Final = "goes-on-past-skipped"
_REQUEST = RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_attempts=10)


@workflow.defn(name=names.MAINTENANCE_WORKFLOW)
class MaintenanceWorkflow:
    """Goes on until nobody is due, or until too many could not be served."""

    @workflow.init
    def __init__(self, state: MaintenanceState) -> None:
        report = state.report or MaintenanceReport(
            kind=state.kind, population=state.population, dry_run=state.dry_run
        )
        began = state.began_at or workflow.now()
        self._state = state.model_copy(update={"began_at": began})
        self._report = report
        self._skip = dict.fromkeys(state.skip)
        self._position, self._reached = state.position, state.reached
        self._served = self._found = state.served

    @workflow.query(name=names.MAINTENANCE_PROGRESS_QUERY)
    def progress(self) -> MaintenanceProgress:
        """How many users are served, of those who were found."""
        return MaintenanceProgress(found=self._found, served=self._served)

    @workflow.run
    async def run(self, state: MaintenanceState) -> MaintenanceReport:
        """Serve those who are due, then say what that did."""
        while True:
            self._describe()
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(self._carried())
            if len(self._skip) >= MOST_SKIPPED and not self._go_on_from_here():
                return self._report.model_copy(update={"remaining": True})
            found = await self._due()
            if not found.users and not found.passed:
                return self._report
            self._found += len(found.users)
            room = asyncio.Semaphore(self._state.policy.pass_users)
            await asyncio.gather(*(self._serve(user, room) for user in found.users))

    def _go_on_from_here(self) -> bool:
        """Whether everybody who was seen to lies behind, or there is room to name more."""
        workflow.deprecate_patch(_GOES_ON_PATCH)
        if self._reached == self._position:
            return len(self._skip) < MOST_AT_ONE_MOMENT
        self._position = self._reached
        # Of the last ones, some may be due since that very moment.
        self._skip = dict.fromkeys(list(self._skip)[-AT_ONCE:])
        return True

    async def _due(self) -> FindDueUsersOutput:
        state = self._state
        found = await execute(
            LifecycleActivities.find_due_users,
            FindDueUsersInput(
                kind=state.kind,
                now=state.began_at or workflow.now(),
                rules=state.policy.lifecycle_rules,
                population=state.population,
                most=AT_ONCE,
                position=self._position,
                skip=tuple(self._skip),
            ),
            f"who is due for {state.kind.value}",
            state.policy.store_timeout,
        )
        self._reached = found.reached
        self._skip |= dict.fromkeys(found.passed)
        return found

    async def _serve(self, user: Scope, room: asyncio.Semaphore) -> None:
        async with room:
            # Whatever comes of it, this pass does not come back to them.
            self._skip[user] = None
            try:
                report = await self._pass_over(user)
            except WorkflowAlreadyStartedError:
                self._report = self._report.model_copy(update={"busy": self._report.busy + 1})
            except (ActivityError, ChildWorkflowError) as error:
                self._failed(_failure(error))
            else:
                self._report = self._report.with_user(user, report)
                if report.failures:
                    failed = self._report.failed + 1
                    self._report = self._report.model_copy(update={"failed": failed})
                elif (
                    self._state.kind is PassKind.DECAY
                    and not self._state.dry_run
                    # Else what is due of theirs cannot be read, and stays due.
                    and report.reviewed
                ):
                    # Nothing is due any more, so nobody has to remember.
                    del self._skip[user]
            self._served += 1

    async def _pass_over(self, user: Scope) -> PassReport:
        state, scope = self._state, {"scope": user}
        variant = variant_of(state.population, dry_run=state.dry_run)
        common: dict[str, Any] = {
            **scope,
            "policy": state.policy,
            "population": state.population,
            "dry_run": state.dry_run,
            "began_at": state.began_at,
        }
        match state.kind:
            case PassKind.DECAY:
                return await self._child(
                    names.DECAY_WORKFLOW,
                    DecayState(**common),
                    DecayReport,
                    _beside_this(names.decay_workflow_id(user, variant)),
                )
            case PassKind.PROMOTION:
                return await self._child(
                    names.PROMOTION_WORKFLOW,
                    PromotionState(**common),
                    PromotionReport,
                    _beside_this(names.promotion_workflow_id(user, variant)),
                )
            case PassKind.CONSOLIDATION:
                if not state.dry_run:
                    await self._ask_for_consolidation(user)
                return PassReport()

    async def _child(
        self,
        name: str,
        state: DecayState | PromotionState,
        result: type[PassReport],
        workflow_id: str,
    ) -> PassReport:
        described_by = attributes(self._state.kind.value, user=state.scope.tenant)
        answer: PassReport = await workflow.execute_child_workflow(
            name,
            state,
            id=workflow_id,
            result_type=result,
            search_attributes=described_by,
            priority=precedence(described_by),
            static_summary=f"{self._state.kind.value} of {state.scope.tenant}",
        )
        return answer

    async def _ask_for_consolidation(self, user: Scope) -> None:
        await request_consolidation(
            user,
            ConsolidationRequest(reason="scheduled", population=self._state.population),
            self._state.policy.store_timeout,
            retries=_REQUEST,
        )

    def _failed(self, failure: Failure) -> None:
        self._report = self._report.model_copy(
            update={
                "failed": self._report.failed + 1,
                "failures": (*self._report.failures, failure)[-MOST_FAILURES:],
            }
        )

    def _carried(self) -> MaintenanceState:
        return self._state.model_copy(
            update={
                "position": self._position,
                "reached": self._reached,
                "skip": tuple(self._skip),
                "served": self._served,
                "report": self._report,
                "runs": self._state.runs + 1,
            }
        )

    def _describe(self) -> None:
        report = self._report
        steps = "".join(f"\n- {count}" for count in report.transitions)
        workflow.set_current_details(
            f"**{report.users} users**, {report.busy} busy, {report.failed} failed; "
            f"{report.reviewed} memories reviewed, {report.promoted} habits made.\n{steps}"
        )


def _beside_this(workflow_id: str) -> str:
    """The id of a workflow that works for the same store as this one."""
    return names.in_store(names.store_of(workflow.info().workflow_id), workflow_id)


def _failure(error: ActivityError | ChildWorkflowError) -> Failure:
    if isinstance(error, ActivityError):
        return failure_of(error)
    cause = error.cause
    if isinstance(cause, ApplicationError):
        return Failure(code=cause.type or "unknown", message=cause.message)
    return Failure.of(UnforeseenFailure("A user's pass did not end well."))
