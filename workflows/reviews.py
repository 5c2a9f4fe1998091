"""One workflow per dispute: it waits for a person to say which value holds, and then settles it."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from engram.contracts import names
from engram.contracts.activities import DisputeActivities
from engram.contracts.attributes import STAGE_SEARCH_KEY
from engram.contracts.messages import Failure
from engram.contracts.reviews import (
    AnswerReview,
    DisputeFound,
    DisputeState,
    LookAtDisputeInput,
    ReviewEnd,
    ReviewNote,
    ReviewOutcome,
    ReviewState,
    SettleDisputeInput,
    Settlement,
    allowed_answers,
    check_answer,
    review_id_of,
)
from engram.errors import InvalidInput
from engram.workflows.support import (
    as_update_failure,
    check_start,
    compose,
    execute,
    failure_of,
    refusal,
)

# A history has room for these and to spare; a longer wait is reminded of more seldom.
_MOST_REMINDERS = 100
# After an outage of a day the store is not asked again at once.
_AGAIN = timedelta(hours=1)
_ANSWER_WAKES = "answer-wakes-review"


@workflow.defn(name=names.REVIEW_WORKFLOW)
class DisputeReviewWorkflow:
    """Ends when the dispute does: answered, by default, settled elsewhere, or forgotten."""

    @workflow.init
    def __init__(self, state: ReviewState) -> None:
        self._state = state
        wait = timedelta(days=state.rules.wait_days)
        self._between = max(timedelta(days=state.rules.remind_days), wait / _MOST_REMINDERS)
        self._opened_at = workflow.now()
        self._deadline = self._opened_at + wait
        self._reminders = 0
        self._keep: str | None = None
        self._look = True
        self._outcome: ReviewOutcome | None = None
        self._failure: Failure | None = None

    @workflow.run
    async def run(self, state: ReviewState) -> ReviewOutcome:
        """Wait for an answer; remind, and in the end follow the setting."""
        check_start(
            state.scope, names.review_workflow_id(state.scope, review_id_of(state.memory_ids))
        )
        self._note()
        while self._outcome is None:
            try:
                self._outcome = await self._round()
            except ActivityError as error:
                if is_cancelled_exception(error):
                    raise
                await self._put_off(failure_of(error))
        self._enter("review settled")
        await workflow.wait_condition(workflow.all_handlers_finished)
        return self._outcome

    @workflow.update(name=names.ANSWER_REVIEW_UPDATE)
    async def answer(self, asked: AnswerReview) -> ReviewOutcome:
        """Say what holds, and wait until that is written; of several answers the first counts."""
        self._take(asked.keep)
        self._failure = None
        await workflow.wait_condition(
            lambda: self._outcome is not None or self._failure is not None
        )
        if self._outcome is None and self._failure is not None:
            raise as_update_failure(self._failure)
        return self._outcome or self._ended(ReviewEnd.SETTLED)

    @answer.validator
    def _check(self, asked: AnswerReview) -> None:
        try:
            check_answer(asked.keep, self._state.memory_ids)
        except InvalidInput as error:
            raise refusal(error) from None

    @workflow.signal(name=names.KEEP_SIGNAL)
    def keep(self, keep: str) -> None:
        """The same from the Temporal UI or its command line, which wait for nothing."""
        if keep in allowed_answers(self._state.memory_ids):
            self._take(keep)
        else:
            workflow.logger.warning("an answer to a review is none of those that are allowed")
            self._describe("**The last answer was none of those below.**\n\n")

    @workflow.signal(name=names.LOOK_SIGNAL)
    def look(self, reason: str) -> None:
        """Something was settled, or forgotten: look whether there is anything left to wait for."""
        del reason
        self._look = True

    @workflow.query(name=names.REVIEW_QUERY)
    def review(self) -> ReviewNote:
        """What it is about, and until when it waits."""
        return self._noted()

    async def _round(self) -> ReviewOutcome | None:
        """Wait until something is due, and do it; None: wait on."""
        await self._until(min(self._reminder_at(), self._deadline))
        self._look = False
        found = await execute(
            DisputeActivities.look_at_dispute,
            LookAtDisputeInput(scope=self._state.scope, memory_ids=self._state.memory_ids),
            "how things stand",
            self._state.store_timeout,
        )
        ids = self._state.memory_ids
        match found.state:
            case DisputeState.FORGOTTEN:
                return self._ended(ReviewEnd.FORGOTTEN)
            case DisputeState.SETTLED:
                return await self._settled_elsewhere(found)
            case DisputeState.HALFWAY:
                stands = tuple(one for one in ids if one not in found.refuted)
                return await self._settle(
                    found, ReviewEnd.SETTLED, Settlement(stands, found.refuted)
                )
        if self._keep is not None:
            settlement = found.settled_by(self._keep, ids)
            return await self._settle(found, ReviewEnd.ANSWERED, settlement, confirmed=True)
        if workflow.now() >= self._deadline:
            settlement = found.settled_after(self._state.rules.default, ids)
            return await self._settle(found, ReviewEnd.DEFAULTED, settlement)
        if workflow.now() >= self._reminder_at():
            self._remind()
        return None

    async def _until(self, due: datetime) -> None:
        """Wait for an answer, for word of a change, or for that moment."""
        left = due - workflow.now()
        if left <= timedelta(0):
            return
        try:
            await workflow.wait_condition(
                lambda: self._keep is not None or self._look,
                timeout=left,
                timeout_summary="remind, or decide",
            )
        except TimeoutError:
            return

    async def _settle(
        self,
        found: DisputeFound,
        end: ReviewEnd,
        settlement: Settlement,
        *,
        confirmed: bool = False,
    ) -> ReviewOutcome:
        if settlement.kept or settlement.refuted:
            await execute(
                DisputeActivities.settle_dispute,
                SettleDisputeInput(
                    scope=self._state.scope,
                    now=workflow.now(),
                    kept=settlement.kept,
                    refuted=settlement.refuted,
                    confirmed=confirmed,
                ),
                f"{end}: keep {len(settlement.kept)}, refute {len(settlement.refuted)}",
                self._state.store_timeout,
            )
            await self._compose(found)
        return self._ended(end, settlement)

    async def _settled_elsewhere(self, found: DisputeFound) -> ReviewOutcome:
        await self._compose(found)
        stands = tuple(one for one in self._state.memory_ids if one not in found.refuted)
        return self._ended(ReviewEnd.SETTLED, Settlement(stands, found.refuted))

    async def _compose(self, found: DisputeFound) -> None:
        """Let profiles follow: what it was about, and what holds again where that does not."""
        state = self._state
        touched = (*state.memory_ids, *found.replaced)
        await compose(state.scope, touched, state.digests, state.store_timeout)

    async def _put_off(self, failure: Failure) -> None:
        """What failed for a day is tried again later; who waits for an answer is told now."""
        workflow.logger.warning("a review could not be settled: %s", failure.code)
        self._failure, self._keep = failure, None
        again = "try again after an outage"
        if not workflow.patched(_ANSWER_WAKES):
            await workflow.sleep(_AGAIN, summary=again)
            return
        # Who answers meanwhile is not to wait for the hour to pass.
        with suppress(TimeoutError):
            await workflow.wait_condition(
                lambda: self._keep is not None, timeout=_AGAIN, timeout_summary=again
            )

    def _take(self, keep: str) -> None:
        if self._keep is None:
            self._keep = keep

    def _remind(self) -> None:
        self._reminders += 1
        workflow.logger.warning(
            "a dispute waits for a person: engram review %s; reminder %d, by default on %s",
            review_id_of(self._state.memory_ids),
            self._reminders,
            self._deadline.date().isoformat(),
        )
        self._enter("review reminded")
        self._note()

    def _reminder_at(self) -> datetime:
        return self._opened_at + (self._reminders + 1) * self._between

    def _noted(self) -> ReviewNote:
        return ReviewNote(
            memory_ids=self._state.memory_ids,
            opened_at=self._opened_at,
            deadline=self._deadline,
            default=self._state.rules.default,
            reminders=self._reminders,
        )

    def _note(self) -> None:
        """Say on the run what it waits for, where listings and the Temporal UI show it."""
        workflow.upsert_memo({names.REVIEW_MEMO: self._noted().model_dump(mode="json")})
        self._describe()

    def _describe(self, before: str = "") -> None:
        ids = self._state.memory_ids
        about = (
            "Two memories contradict each other." if len(ids) > 1 else "The user says it is not so."
        )
        answers = "\n".join(f"- `{one}`" for one in allowed_answers(ids))
        workflow.set_current_details(
            f"{before}**{about}** Which holds? Send the signal `{names.KEEP_SIGNAL}` with one of"
            f" these, as text, or the update `{names.ANSWER_REVIEW_UPDATE}`:\n\n{answers}\n\n"
            f"{self._reminders} reminders so far. On {self._deadline:%Y-%m-%d %H:%M} UTC:"
            f" {self._state.rules.default}."
        )

    def _enter(self, stage: str) -> None:
        workflow.upsert_search_attributes([STAGE_SEARCH_KEY.value_set(stage)])

    def _ended(self, end: ReviewEnd, settlement: Settlement = Settlement()) -> ReviewOutcome:  # noqa: B008 - a constant
        ids = self._state.memory_ids
        return ReviewOutcome(
            review_id=review_id_of(ids),
            memory_ids=ids,
            ended=end,
            kept=settlement.kept,
            refuted=settlement.refuted,
            reminders=self._reminders,
            workflow_id=workflow.info().workflow_id,
        )
