"""One promotion pass over one user's memories; also called when one of the user's sessions ends."""

from __future__ import annotations

from datetime import datetime

from temporalio import workflow
from temporalio.exceptions import ActivityError

from engram.contracts import names
from engram.contracts.lifecycle import PromoteOutput, PromotionReport, PromotionState, WalkPosition
from workflows.failures import failure_of
from workflows.lifecycle_calls import call, walk_input


@workflow.defn(name=names.PROMOTION_WORKFLOW)
class PromotionWorkflow:
    """Promotes what sessions left, then what is ready, until no session has ended meanwhile."""

    @workflow.init
    def __init__(self, state: PromotionState) -> None:
        began: datetime = state.began_at or workflow.now()
        kept = {"dry_run": state.dry_run, "population": state.population}
        report = state.report.model_copy(update=kept)
        self._state = state.model_copy(update={"began_at": began, "report": report})

    @workflow.signal(name=names.SESSION_ENDED_SIGNAL)
    def session_ended(self, session_id: str) -> None:
        """One of the user's sessions ended."""
        if session_id not in self._state.sessions:
            self._update(sessions=(*self._state.sessions, session_id))

    @workflow.run
    async def run(self, state: PromotionState) -> PromotionReport:
        """Promote, then say what that did."""
        position = None if self._state.only_sessions else self._state.position
        try:
            while position is not None or self._state.sessions:
                self._describe()
                if position is not None and workflow.info().is_continue_as_new_suggested():
                    workflow.continue_as_new(
                        self._state.model_copy(update={"runs": self._state.runs + 1})
                    )
                if self._state.sessions:
                    await self._session(self._state.sessions[0])
                elif position is not None:
                    self._update(position=position)
                    position = await self._stretch()
        except ActivityError as error:
            failed = self._empty(failures=(failure_of(error),))
            self._add(failed)
        self._describe()
        info = workflow.info()
        return self._state.report.model_copy(
            update={"workflow_id": info.workflow_id, "run_id": info.run_id}
        )

    async def _session(self, session_id: str) -> None:
        state = self._state
        report = await call(
            names.PROMOTE_SESSION_ACTIVITY,
            walk_input(state, state.policy.decay_batch, session_id=session_id),
            PromotionReport,
            f"promote what session {session_id} leaves lively",
            state.policy,
        )
        self._add(report)
        left = tuple(one for one in self._state.sessions if one != session_id)
        self._update(sessions=left)

    async def _stretch(self) -> WalkPosition | None:
        state = self._state
        done = await call(
            names.PROMOTE_ACTIVITY,
            walk_input(state, state.policy.promotion_batch),
            PromoteOutput,
            f"promote what is ready, after {state.report.reviewed}",
            state.policy,
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
            f"habits, {report.changed} steps.\n{steps}"
        )
