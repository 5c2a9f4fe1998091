"""One workflow per conversation session: it acknowledges turns and knows what waits.

Design notes: docs/decisions/0003-writing-through-updates.md.
"""

from __future__ import annotations

import contextlib
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from engram.contracts import names
from engram.contracts.activities import SessionActivities
from engram.contracts.session import (
    ConsolidationRequest,
    EncodeReply,
    EncodeRequest,
    EndSession,
    SessionState,
    SessionSummary,
    StoreTurnsInput,
    StoreTurnsOutput,
)
from engram.domain.buffer import Buffer, RememberedTurn, Signal
from engram.domain.scope import Scope, check_identifier
from engram.errors import InvalidScope, TemporalUnavailable
from engram.workflows.support import (
    check_start,
    history_is_full,
    listing_of_this_run,
    refusal,
    request_consolidation,
    store,
)

# A local activity that takes longer than this is not local any more.
_LOCAL_LIMIT = timedelta(seconds=3)
DISPATCH_AGAIN = timedelta(minutes=5)
# Markers that runs of before the first release have in their histories; they go with the next.
_FULL_GOES_FIRST = "full-goes-first"
_TESTS_APART = "tests-wait-apart"
# Runs of before kept turns waiting for as long as a refused trigger did.
_FULL_ENDS_PAUSE = "full-ends-pause"
# Runs of before took turns that came after the end, and ended with them.
_TURN_AFTER_END = "turn-after-end"


@workflow.defn(name=names.SESSION_WORKFLOW)
class SessionWorkflow:
    """Runs while a session is used; ends when it is idle or ended."""

    @workflow.init
    def __init__(self, state: SessionState) -> None:
        self._state = self._began = state
        self._updates = 0
        self._storing = 0
        # How often a turn came after the end, before the run was over.
        self._begun_anew = 0
        # The turn with the highest number that this run has stored, where that is known.
        self._newest: tuple[int, str] | None = None
        # A turn can be forgotten before whoever stores it has answered.
        self._forgotten: frozenset[str] = frozenset()

    @property
    def scope(self) -> Scope:
        """Whose session it is."""
        return self._state.scope

    @workflow.run
    async def run(self, state: SessionState) -> SessionSummary:
        """Dispatch what is due, until the session ends or its history is full."""
        self._check_start(state)
        if self._state.buffer.touched_at is None:
            self._set_buffer(self._state.buffer.touched(workflow.now()))
        while True:
            await self._wait_for_attention()
            due = self._state.buffer.due is not None
            # First: turns that come without a pause make something due at every turn.
            if self._history_is_full():
                if due:
                    workflow.deprecate_patch(_FULL_GOES_FIRST)
                await self._continue_as_new()
            elif due:
                await self._dispatch_due()
            elif self._ended_because() is not None and await self._has_settled():
                return self._summary()

    @workflow.update(name=names.ENCODE_UPDATE)
    async def encode(self, request: EncodeRequest) -> EncodeReply:
        """Store turns; the reply is the acknowledgement."""
        self._updates += 1
        if self._state.ending is not None and workflow.patched(_TURN_AFTER_END):
            self._begin_anew()
        begun = self._begun_anew
        first = self._state.turns_accepted
        count = sum(len(call.turns) for call in request.calls)
        # Claimed before the first await, so that no other handler numbers its turns alike.
        self._state = self._state.model_copy(update={"turns_accepted": first + count})
        self._set_buffer(self._state.buffer.touched(workflow.now()))
        self._storing += 1
        try:
            stored = await self._store(request, first)
        finally:
            self._storing -= 1
        held = self._state.buffer.working_memory
        self._absorb(request, stored)
        if begun == self._begun_anew:
            self._note_newest(stored, first)
        else:
            # They wait like others, and are of the conversation that is over.
            self._set_buffer(self._state.buffer.model_copy(update={"working_memory": held}))
        return EncodeReply(
            outcomes=stored.outcomes,
            buffered=self._state.buffer.waiting,
            run_id=workflow.info().run_id,
        )

    @encode.validator
    def _check_encode(self, request: EncodeRequest) -> None:
        # Workers look in front of it, by settings of theirs: see PersonalDataInterceptor. They
        # are not asked where there is no validator.
        del request
        self._check_start(self._began)
        # The next run begins once all handlers have answered. Those that a store keeps waiting
        # must not be joined by ever more: Temporal takes no more than 2,000 updates of a run.
        # Where none is kept waiting, this one is taken: of a run that is refused everything else
        # nothing goes on, and that its history is too large Temporal says with a task only.
        if self._storing and self._history_is_full():
            raise refusal(
                TemporalUnavailable(
                    "This run of the session is full; the next one takes the turns.",
                    hint="The same call can be made again.",
                )
            )

    @workflow.update(name=names.END_SESSION_UPDATE)
    def end_session(self, request: EndSession) -> SessionSummary:
        """End the session; what waits is consolidated in the background."""
        self._set_buffer(self._state.buffer.closing("session ended"))
        self._state = self._state.model_copy(update={"ending": request.reason})
        return self._summary()

    @workflow.signal(name=names.FORGET_TURNS_SIGNAL)
    def forget(self, episode_ids: tuple[str, ...]) -> None:
        """Let go of turns that the user wants forgotten."""
        self._forgotten |= frozenset(episode_ids)
        self._set_buffer(self._state.buffer.without(self._forgotten))
        self._newest = None

    @workflow.query(name=names.WORKING_MEMORY_QUERY)
    def working_memory(self) -> tuple[RememberedTurn, ...]:
        """The recent turns, oldest first.

        Those that have expired since the last of them came are among them: a query has no
        present, so whoever asks leaves them out. A session that is ending has none.
        """
        return () if self._state.ending is not None else self._state.buffer.working_memory

    def _begin_anew(self) -> None:
        """A turn after the end begins a session, as it does where the run is over by then."""
        forgetful = self._state.buffer.model_copy(update={"working_memory": ()})
        self._state = self._state.model_copy(
            update={"ending": None, "turns_accepted": 0, "buffer": forgetful}
        )
        self._newest = None
        self._begun_anew += 1

    def _check_start(self, state: SessionState) -> None:
        try:
            check_identifier(state.session_id, "session id")
        except InvalidScope as error:
            raise refusal(error) from None
        fresh = SessionState(scope=state.scope, session_id=state.session_id, policy=state.policy)
        check_start(
            state.scope,
            names.session_workflow_id(state.scope, state.session_id),
            empty=state == fresh,
        )

    def _set_buffer(self, buffer: Buffer) -> None:
        self._state = self._state.model_copy(update={"buffer": buffer})

    def _absorb(self, request: EncodeRequest, stored: StoreTurnsOutput) -> None:
        turns: list[RememberedTurn] = []
        strongest = Signal.NONE
        if any(call.is_test for call in request.calls):
            workflow.deprecate_patch(_TESTS_APART)
        for call, outcome in zip(request.calls, stored.outcomes, strict=True):
            # A refused call has no receipts.
            for sent, receipt in zip(call.turns, outcome.turns, strict=False):
                if receipt.forgotten:
                    continue
                # Passes take test turns only when asked to.
                if not call.is_test:
                    strongest = max(strongest, receipt.signal, key=lambda signal: signal.rank)
                turns.append(
                    RememberedTurn(
                        episode_id=receipt.episode_id,
                        role=sent.role,
                        speaker=sent.speaker,
                        content=sent.content,
                        timestamp=receipt.timestamp,
                        is_test=call.is_test,
                        expires_at=sent.expires_at,
                    )
                )
        self._set_buffer(
            self._state.buffer.absorbed(
                turns,
                strongest,
                now=workflow.now(),
                policy=self._state.policy.buffer,
            ).without(self._forgotten)
        )
        self._describe()

    def _note_newest(self, stored: StoreTurnsOutput, first: int) -> None:
        receipts = [receipt for outcome in stored.outcomes for receipt in outcome.turns]
        if any(outcome.error for outcome in stored.outcomes) or not all(
            one.new for one in receipts
        ):
            # Which number the last of them has is not said.
            self._newest = None
            return
        last = (first + len(receipts) - 1, receipts[-1].episode_id)
        self._newest = max(last, self._newest or last)

    async def _store(self, request: EncodeRequest, first: int) -> StoreTurnsOutput:
        info = workflow.info()
        work = StoreTurnsInput(
            scope=self._state.scope,
            now=workflow.now(),
            session_id=self._state.session_id,
            calls=request.calls,
            epoch=request.epoch,
            first_sequence=first,
            workflow_id=info.workflow_id,
            run_id=info.run_id,
            after=None if self._newest is None else self._newest[1],
        )
        return await store(
            SessionActivities.store_turns,
            work,
            _counted(sum(len(call.turns) for call in request.calls)),
            local_limit=_LOCAL_LIMIT,
            limit=self._state.policy.store_timeout,
        )

    async def _wait_for_attention(self) -> None:
        """Wait until something is due, or the deadline that held when waiting began."""
        policy = self._state.policy.buffer
        armed = self._state.buffer.deadline(policy)
        timeout = None if armed is None else max(armed - workflow.now(), timedelta(0))

        def attention() -> bool:
            deadline = self._state.buffer.deadline(policy)
            earlier = deadline is not None and (armed is None or deadline < armed)
            ending = self._state.ending is not None and workflow.all_handlers_finished()
            due = self._state.buffer.due is not None
            return due or ending or earlier or self._history_is_full()

        with contextlib.suppress(TimeoutError):
            await workflow.wait_condition(
                attention, timeout=timeout, timeout_summary="buffer or idle"
            )
        if self._state.buffer.overdue(workflow.now(), policy):
            self._set_buffer(self._state.buffer.drained("turns waited long enough"))

    async def _dispatch_due(self) -> None:
        reason = self._state.buffer.due or ""
        self._set_buffer(self._state.buffer.dispatched())
        try:
            await request_consolidation(
                self._state.scope,
                ConsolidationRequest(reason=reason, session_id=self._state.session_id),
                self._state.policy.store_timeout,
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            # A trigger is never lost: it is due again, after a pause.
            workflow.logger.warning("asking for consolidation failed; it is tried again later")
            await self._pause()
            if self._state.buffer.due is None:
                self._set_buffer(self._state.buffer.model_copy(update={"due": reason}))

    async def _pause(self) -> None:
        """Wait before asking again, but not where turns wait for the next run to begin."""
        if not workflow.patched(_FULL_ENDS_PAUSE):
            await workflow.sleep(DISPATCH_AGAIN)
            return
        with contextlib.suppress(TimeoutError):
            await workflow.wait_condition(
                self._history_is_full, timeout=DISPATCH_AGAIN, timeout_summary="ask again"
            )

    def _history_is_full(self) -> bool:
        return history_is_full(self._updates, self._state.policy.updates_per_run)

    async def _continue_as_new(self) -> None:
        await workflow.wait_condition(workflow.all_handlers_finished)
        if self._state.buffer.due is not None:
            workflow.deprecate_patch(_FULL_GOES_FIRST)
        # What is due is part of the state; the next run begins with it.
        workflow.continue_as_new(self._state.model_copy(update={"runs": self._state.runs + 1}))

    def _ended_because(self) -> str | None:
        """Why the session is over; None while it is not. A new turn ends idleness."""
        if self._state.ending is not None:
            return self._state.ending
        idle = self._state.buffer.idle(workflow.now(), self._state.policy.buffer)
        return "idle" if idle else None

    async def _has_settled(self) -> bool:
        """Whether every handler has answered and nothing waits for consolidation."""
        reason = self._ended_because()
        await workflow.wait_condition(workflow.all_handlers_finished)
        self._set_buffer(
            self._state.buffer.closing("session idle" if reason == "idle" else "session ended")
        )
        return self._state.buffer.due is None and self._ended_because() is not None

    def _summary(self) -> SessionSummary:
        return SessionSummary(
            session_id=self._state.session_id,
            turns_accepted=self._state.turns_accepted,
            ended=self._ended_because() or "running",
        )

    def _describe(self) -> None:
        state = self._state
        workflow.set_current_details(
            f"**{state.turns_accepted}** turns accepted, "
            f"**{state.buffer.waiting}** wait for extraction, "
            f"run {state.runs} of this session.\n\n"
            f"{listing_of_this_run(state.scope)} "
            f"What became of it: workflow `{self._beside(state.scope)}`."
        )

    def _beside(self, scope: Scope) -> str:
        store = names.store_of(workflow.info().workflow_id)
        return names.in_store(store, names.consolidation_workflow_id(scope))


def _counted(turns: int) -> str:
    return "store 1 turn" if turns == 1 else f"store {turns} turns"
