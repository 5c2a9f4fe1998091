"""One consolidation per user: what was said becomes what is known.

Order of effects: extract, reconcile to a plan, write what is new and read it
back, retire what it replaces, mark the episodes. Whatever stops it in between,
doing it again leads to the same memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import is_cancelled_exception

from engram.contracts import names
from engram.contracts.attributes import STAGE_SEARCH_KEY
from engram.contracts.calls import ConsolidateArgs
from engram.contracts.consolidation import (
    CLOSING_REASONS,
    LINKING_REASONS,
    ConsolidationReport,
    ConsolidationState,
)
from engram.contracts.lifecycle import variant_of
from engram.contracts.messages import Failure
from engram.contracts.session import ConsolidationRequest
from engram.errors import RunEnded
from engram.workflows.consolidation_pass import ConsolidationPass, note_spending, with_endings
from engram.workflows.support import (
    after_outage,
    as_update_failure,
    check_start,
    is_outage,
    listing_of_this_run,
    mark_outlived,
)

# Past this a pass ends early even while a caller waits for it: a history that
# reaches the server's limit (51,200 events, 50 MB) could not go on at all.
_FULL_EVENTS = 30_000
_FULL_BYTES = 30 * 1024 * 1024
_MORE_WAS_DUE = "more was due"
# Requests that are told as the reasons of a pass.
_MOST_REASONS = 10
_EVERY_ENDING = "every-ending-is-kept"
# Of who asked from another namespace; a worker that died is noticed after the second.
_LONGEST_WAIT = timedelta(hours=12)
_SILENCE = timedelta(seconds=30)


@dataclass
class _Waiter:
    """A caller that waits for a pass that begins after it asked."""

    after: int
    report: ConsolidationReport | None = None
    failure: Failure | None = None

    @property
    def answered(self) -> bool:
        """Whether its pass has ended."""
        return self.report is not None or self.failure is not None


@workflow.defn(name=names.CONSOLIDATION_WORKFLOW)
class ConsolidationWorkflow:
    """Runs while there is something to consolidate; ends when nothing is asked any more."""

    @workflow.init
    def __init__(self, state: ConsolidationState) -> None:
        self._state = state
        self._begun = 0
        self._waiters: list[_Waiter] = []
        self._progress = ""
        self._running: ConsolidationPass | None = None
        self._stage = ""

    @workflow.run
    async def run(self, state: ConsolidationState) -> ConsolidationReport:
        """Passes, until nothing is asked; then what they did, summed."""
        self._check_start(state)
        try:
            return await self._work()
        except BaseException as error:
            if is_cancelled_exception(error):
                await self._dismiss()
            raise

    def _check_start(self, state: ConsolidationState) -> None:
        variant = variant_of(state.population, dry_run=state.dry_run)
        check_start(state.scope, names.consolidation_workflow_id(state.scope, variant))

    async def _work(self) -> ConsolidationReport:
        # A fresh start is a request in itself, whoever made it.
        asked = self._state.runs == 1 or self._is_asked()
        while True:
            if self._history_is_full() and workflow.all_handlers_finished():
                self._continue_as_new()
            elif asked:
                await self._pass()
            elif self._state.outages:
                await self._try_again_later()
            elif self._state.unlinked:
                await self._link_when_quiet()
            else:
                self._enter("done")
                return self._state.totals
            await workflow.wait_condition(
                lambda: self._is_asked() or workflow.all_handlers_finished()
            )
            asked = self._is_asked()

    @workflow.signal(name=names.REQUEST_CONSOLIDATION_SIGNAL)
    def request(self, request: ConsolidationRequest) -> None:
        """Ask for a pass; a running one goes round again."""
        self._ask_anew(request, linking=request.reason in LINKING_REASONS)

    @workflow.update(name=names.CONSOLIDATE_UPDATE)
    async def consolidate(self, request: ConsolidationRequest) -> ConsolidationReport:
        """Ask for a pass that begins from now on, and wait for its report.

        Fails when the pass was stopped, or when every turn it read was refused.
        """
        waiter = _Waiter(after=self._begun)
        self._waiters.append(waiter)
        self._ask_anew(request, linking=True)
        await workflow.wait_condition(lambda: waiter.answered)
        if waiter.failure is not None:
            raise as_update_failure(waiter.failure)
        return waiter.report or ConsolidationReport()

    @consolidate.validator
    def _check_consolidate(self, request: ConsolidationRequest) -> None:
        del request
        self._check_start(self._state)

    @workflow.query(name=names.CONSOLIDATION_PROGRESS_QUERY)
    def progress(self) -> ConsolidationState:
        """All that the workflow knows."""
        return self._state

    @workflow.query(name=names.UNLINKED_QUERY)
    def unlinked(self) -> tuple[str, ...]:
        """Memories that wait for a linking pass, those of a pass that goes on included.

        Turns that are marked before it is known here what was concluded from them are among
        them, too.
        """
        if self._running is None:
            return self._state.unlinked
        return (*self._running.state.unlinked, *self._running.taking_up)

    def _ask_anew(self, request: ConsolidationRequest, *, linking: bool) -> None:
        """Somebody asks: what was given up before is worth trying again."""
        self._update(outages=0)
        self._ask(request, linking=linking)

    def _ask(self, request: ConsolidationRequest, *, linking: bool) -> None:
        self._update(
            requests=self._kept((*self._state.requests, request)),
            linking_due=self._state.linking_due or linking,
        )

    def _kept(self, asked: tuple[ConsolidationRequest, ...]) -> tuple[ConsolidationRequest, ...]:
        """The last few, which say why somebody asked, and the end of each session before them."""
        before, last = asked[:-_MOST_REASONS], asked[-_MOST_REASONS:]
        named = {one.session_id for one in last if one.reason in CLOSING_REASONS}
        endings = tuple(
            one
            for one in before
            if one.reason in CLOSING_REASONS and one.session_id and one.session_id not in named
        )
        # Runs of before forget these, and so have less to digest.
        return (*endings, *last) if endings and workflow.patched(_EVERY_ENDING) else last

    def _is_asked(self) -> bool:
        return bool(self._state.requests)

    async def _pass(self) -> ConsolidationPass:
        """One pass over everything that is due, for everyone who has asked so far."""
        self._begun += 1
        number, served = self._begun, self._state.requests
        linking = self._state.linking_due
        self._update(requests=(), linking_due=False)
        if any(request.reason != _MORE_WAS_DUE for request in served):
            self._update(refused=())
        self._state = with_endings(self._state, served, CLOSING_REASONS)
        self._enter("consolidating")
        reasons = ", ".join(dict.fromkeys(request.reason for request in served)) or "started"
        work = ConsolidationPass(
            self._state, reasons, self._describe, self._must_stop, asked=bool(self._waiters)
        )
        self._running = work
        report = await work.run(linking=linking)
        self._running = None
        failure = work.stopped_by
        self._state = work.state.model_copy(
            # Signals that came in meanwhile went to the workflow, not to the pass.
            update={
                "requests": self._state.requests,
                "linking_due": self._state.linking_due or (linking and failure is not None),
                "outages": self._outages_after(failure),
                "totals": self._state.totals.plus(report),
            }
        )
        note_spending(self._state.totals)
        if work.ended_early and failure is None:
            self._ask(ConsolidationRequest(reason=_MORE_WAS_DUE), linking=linking)
        if failure is None and report.failures and not report.episodes:
            failure = report.failures[-1]
        self._answer(number, report, failure)
        return work

    def _outages_after(self, failure: Failure | None) -> int:
        """How many outages in a row there were; 0 as well when they have lasted too long."""
        if failure is None or self._state.dry_run or not is_outage(failure):
            return 0
        mark_outlived()
        outages = self._state.outages + 1
        return outages if after_outage(outages) is not None else 0

    def _answer(self, number: int, report: ConsolidationReport, failure: Failure | None) -> None:
        for waiter in self._waiters:
            if waiter.after < number:
                waiter.report, waiter.failure = report, failure
        self._waiters = [waiter for waiter in self._waiters if not waiter.answered]

    async def _dismiss(self) -> None:
        """Send callers to the next run, because this one is cancelled."""
        ended = RunEnded("The consolidation was cancelled before it could answer.")
        for waiter in self._waiters:
            waiter.failure = Failure.of(ended)
        await workflow.wait_condition(workflow.all_handlers_finished)

    async def _try_again_later(self) -> None:
        """Wait out an outage, longer each time, so that no turn waits for its user to speak."""
        self._enter("waiting")
        try:
            await workflow.wait_condition(
                self._is_asked,
                timeout=after_outage(self._state.outages),
                timeout_summary="try again after an outage",
            )
        except TimeoutError:
            work = await self._pass()
            if work.stopped_by is not None and not self._state.outages:
                self._give_up_linking()

    async def _link_when_quiet(self) -> None:
        """Link what is left over, once no session is likely to add to it."""
        self._enter("waiting")
        quiet = timedelta(minutes=self._state.policy.session_idle_minutes)
        try:
            await workflow.wait_condition(
                self._is_asked, timeout=quiet, timeout_summary="link when quiet"
            )
        except TimeoutError:
            self._update(linking_due=True)
            work = await self._pass()
            if self._state.outages:
                return
            if work.ended_early:
                mark_outlived()
            else:
                self._give_up_linking()

    def _give_up_linking(self) -> None:
        """What could not be linked now is linked with what comes next."""
        self._update(unlinked=(), fresh=(), extractions=0)

    def _must_stop(self) -> bool:
        info = workflow.info()
        if not self._waiters and info.is_continue_as_new_suggested():
            return True
        return (
            info.get_current_history_length() >= _FULL_EVENTS
            or info.get_current_history_size() >= _FULL_BYTES
        )

    def _history_is_full(self) -> bool:
        return workflow.info().is_continue_as_new_suggested()

    def _continue_as_new(self) -> None:
        workflow.continue_as_new(self._state.model_copy(update={"runs": self._state.runs + 1}))

    def _update(self, **changes: object) -> None:
        self._state = self._state.model_copy(update=changes)

    def _enter(self, stage: str) -> None:
        if stage != self._stage:
            self._stage = stage
            workflow.upsert_search_attributes([STAGE_SEARCH_KEY.value_set(stage)])

    def _describe(self, doing: str) -> None:
        totals = self._state.totals
        workflow.set_current_details(
            f"**{doing}**\n\n"
            f"So far: {totals.passes} passes, {totals.episodes} episodes, {totals.stored} stored, "
            f"{totals.corroborated} confirmed, {totals.superseded} superseded, "
            f"{totals.links} links.\n\n"
            f"{listing_of_this_run(self._state.scope)}"
        )


@workflow.defn(name=names.ASKED_CONSOLIDATION_WORKFLOW)
class AskedConsolidationWorkflow:
    """Waits for a consolidation that somebody in another Temporal namespace asked for.

    Cancelled, it waits no longer. What was begun goes on: others may have asked for it too, and
    the next one would do the same work.
    """

    @workflow.run
    async def run(self, asked: ConsolidateArgs) -> ConsolidationReport:
        """The report, in numbers."""
        report: ConsolidationReport = await workflow.execute_activity(
            names.CONSOLIDATE_CALL,
            asked,
            result_type=ConsolidationReport,
            start_to_close_timeout=_LONGEST_WAIT,
            heartbeat_timeout=_SILENCE,
            summary="wait for the user's consolidation",
        )
        return report
