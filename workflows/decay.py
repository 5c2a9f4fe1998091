"""One decay pass over one user's memories: what is due by the time it begins happens to them."""

from __future__ import annotations

from temporalio import workflow
from temporalio.exceptions import ActivityError

from engram.contracts import names
from engram.contracts.lifecycle import DecayReport, DecayState, ReviewOutput
from workflows.failures import failure_of
from workflows.lifecycle_calls import call, walk_input


@workflow.defn(name=names.DECAY_WORKFLOW)
class DecayWorkflow:
    """Reviews stretch after stretch until nothing is due; everything is judged as of its start."""

    @workflow.run
    async def run(self, state: DecayState) -> DecayReport:
        """Review what is due, then say what that did."""
        state = state.model_copy(update={"began_at": state.began_at or workflow.now()})
        kept = {"dry_run": state.dry_run, "population": state.population}
        report, position = state.report.model_copy(update=kept), state.position
        while True:
            state = state.model_copy(update={"report": report, "position": position})
            _describe(state)
            if workflow.info().is_continue_as_new_suggested():
                workflow.continue_as_new(state.model_copy(update={"runs": state.runs + 1}))
            try:
                done = await call(
                    names.REVIEW_ACTIVITY,
                    walk_input(state, state.policy.decay_batch),
                    ReviewOutput,
                    _summary(state),
                    state.policy,
                )
            except ActivityError as error:
                failures = (*report.failures, failure_of(error))
                return _ended(report.model_copy(update={"failures": failures}))
            report = report.plus(done.report)
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
