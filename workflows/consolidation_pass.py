"""One pass of consolidation: the due episodes batch by batch, the links, then the digests."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any

from pydantic import ValidationError
from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    TimeoutError,
    is_cancelled_exception,
)

from engram.contracts import names
from engram.contracts.activities import DigestActivities
from engram.contracts.consolidation import (
    ConsolidateTurnsOutput,
    ConsolidationReport,
    ConsolidationState,
    DigestInput,
    DigestOutput,
    EpisodeBatch,
    ExtractOutput,
    LearnInput,
    LinkOutput,
    LinksApplied,
    PendingDigests,
    PlanOutput,
    planned,
)
from engram.contracts.messages import (
    SPENT_BY_MODEL,
    Failure,
    ModelSpent,
    Population,
    by_model,
    in_all,
)
from engram.contracts.session import ConsolidationRequest
from engram.domain.buffer import portions
from engram.domain.identity import operation_id
from engram.domain.memories import MemoryForm
from engram.domain.plan import ConsolidationPlan, Reason
from engram.domain.rules import DigestPolicy
from engram.workflows.support import (
    ActivityCalls,
    RejectedBatches,
    asks_models,
    bisect,
    execute,
    failure_of,
    is_of_the_batch,
    mark_outlived,
)

# --- what a consolidation spends on models: summed in its report, noted where it outlives the run

# A marker that runs of before the first release have in their histories; it goes with the next.
_NOTED = "consolidation-notes-spending"


def spent(output: ExtractOutput | LinkOutput) -> tuple[ModelSpent, ...]:
    """What an answer took; of an activity that did not count attempts, what it said of itself."""
    use = output.use
    if output.spent or use is None:
        return output.spent
    return (
        ModelSpent(
            model=use.model,
            attempts=1,
            requests=use.requests,
            input_tokens=use.input_tokens,
            output_tokens=use.output_tokens,
            cost_usd=use.cost_usd or 0.0,
            unpriced_requests=use.requests if use.cost_usd is None else 0,
        ),
    )


def usage_of_failed_activity(error: ActivityError) -> tuple[ModelSpent, ...]:
    """What all attempts at a failed activity took, as far as the last of them left word."""
    cause = error.cause
    left: Any = ()
    if isinstance(cause, TimeoutError):
        left = next(iter(cause.last_heartbeat_details), ())
    elif isinstance(cause, ApplicationError) and cause.details:
        described = cause.details[0]
        details = described.get("details") if isinstance(described, dict) else None
        left = details.get("spent", ()) if isinstance(details, dict) else ()
    try:
        return SPENT_BY_MODEL.validate_python(left)
    except ValidationError:
        return ()


def with_models(part: ConsolidationReport, models: tuple[ModelSpent, ...]) -> ConsolidationReport:
    """A report that also counts what was asked of models."""
    total = in_all(models)
    return part.model_copy(
        update={
            "models": by_model(models),
            "input_tokens": total.input_tokens,
            "output_tokens": total.output_tokens,
            "cost_usd": total.cost_usd,
        }
    )


def note_spending(totals: ConsolidationReport) -> None:
    """Note on the run what it spent, where listings show it when the run has ended."""
    if totals.models:
        workflow.deprecate_patch(_NOTED)
        noted = [m.model_dump(mode="json", exclude_defaults=True) for m in totals.models]
        workflow.upsert_memo({names.SPENT_MEMO: noted})


# --- the last stage of a pass: what is composed from memories follows what the pass touched

# A marker that runs of before the first release have in their histories; it goes with the next.
_DIGESTS_PATCH = "digests"
# What one activity looks at: a few seconds of work, a few kilobytes of ids.
_DIGEST_CHUNK = 200
_SESSION_CHUNK = 1000
# Past this a pass digests before it goes on, so that what it carries stays small: in half a
# megabyte of ids, and for runs of before in what they did.
MOST_UNDIGESTED = 8000
ENOUGH = 1000
# Guidance is never worth waiting for.
_LEARN_RETRIES = RetryPolicy(initial_interval=timedelta(seconds=1), maximum_attempts=3)


def with_endings(
    state: ConsolidationState, served: tuple[ConsolidationRequest, ...], closing: frozenset[str]
) -> ConsolidationState:
    """The state with the sessions noted that ended, where there is a digest stage."""
    ended = tuple(r.session_id for r in served if r.session_id and r.reason in closing)
    if not ended or _policy(state) is None:
        return state
    return with_undigested(state, state.undigested.after_endings(ended))


def with_undigested(state: ConsolidationState, undigested: PendingDigests) -> ConsolidationState:
    """The state with what is to be digested, where there is a digest stage."""
    if _policy(state) is None:
        return state
    return state.model_copy(update={"undigested": undigested})


def must_digest(state: ConsolidationState, *, least: int = 1) -> bool:
    """Whether so much is to be digested, where there is a digest stage."""
    if _policy(state) is None or state.undigested.size < least:
        return False
    workflow.deprecate_patch(_DIGESTS_PATCH)
    return True


async def digest_at_once(calls: ActivityCalls, state: ConsolidationState) -> ConsolidationReport:
    """Rebuild every digest that rests on what was touched, in one step.

    Raises:
        ActivityError: the store failed; doing it again later does no harm.
    """
    policy = _policy(state)
    assert policy is not None  # noqa: S101 - for the type checker; must_digest has looked
    run_id = workflow.info().first_execution_run_id
    operation = operation_id("digest", run_id, state.digests + 1)
    done = await calls.digest(policy, state.undigested, operation)
    return ConsolidationReport(
        profiles=done.profiles,
        topics=done.topics,
        boxes=done.boxes,
        guidelines=done.guidelines,
        guideline_failures=int(done.unlearnt),
    )


async def digest(calls: ActivityCalls, state: ConsolidationState) -> ConsolidationReport:
    """Rebuild every digest that rests on what was touched.

    Raises:
        ActivityError: the store failed; doing it again later does no harm.
    """
    policy = _policy(state)
    assert policy is not None  # noqa: S101 - for the type checker; must_digest has looked
    undigested, limit = state.undigested, calls.policy.store_timeout
    done = DigestOutput()
    for memories, episodes in zip_longest(
        portions(undigested.memory_ids, _DIGEST_CHUNK),
        portions(undigested.episode_ids, _DIGEST_CHUNK),
        fillvalue=(),
    ):
        request = _input(calls, policy, memory_ids=memories, episode_ids=episodes)
        about = f"profiles and topics of {len(memories)} memories"
        done = done.plus(await execute(DigestActivities.digest_knowledge, request, about, limit))
    ended = undigested.ended
    for episodes in portions(undigested.episode_ids, _SESSION_CHUNK) or ((),):
        if episodes or ended:
            request = _input(calls, policy, episode_ids=episodes, ended=ended)
            about = f"boxes of {len(episodes)} turns, {len(ended)} sessions ended"
            done = done.plus(await execute(DigestActivities.digest_sessions, request, about, limit))
            ended = ()
    learnt, failed = await _learn(calls, policy, state)
    done = done.plus(learnt)
    return ConsolidationReport(
        profiles=done.profiles,
        topics=done.topics,
        boxes=done.boxes,
        guidelines=done.guidelines,
        guideline_failures=failed,
    )


async def _learn(
    calls: ActivityCalls, policy: DigestPolicy, state: ConsolidationState
) -> tuple[DigestOutput, int]:
    """Learn from what was done; whatever goes wrong is logged, counted, and left."""
    if not state.undigested.done:
        return DigestOutput(), 0
    info = workflow.info()
    request = LearnInput(
        scope=calls.scope,
        now=workflow.now(),
        policy=policy,
        done=state.undigested.done,
        operation=operation_id("digest", info.first_execution_run_id, state.digests + 1),
        workflow_id=info.workflow_id,
        run_id=info.run_id,
    )
    about = f"learn from {len(request.done)} actions"
    try:
        learnt = await execute(
            DigestActivities.learn_guidelines,
            request,
            about,
            calls.policy.store_timeout,
            retries=_LEARN_RETRIES,
        )
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        workflow.logger.warning("guidelines were not learnt: %s", failure_of(error).code)
        return DigestOutput(), 1
    return learnt, 0


def _policy(state: ConsolidationState) -> DigestPolicy | None:
    # Nothing is composed from test memories.
    policy = state.policy.digests if state.population is Population.REAL else None
    return policy if policy is not None and policy.enabled else None


def _input(
    calls: ActivityCalls,
    policy: DigestPolicy,
    *,
    memory_ids: tuple[str, ...] = (),
    episode_ids: tuple[str, ...] = (),
    ended: tuple[str, ...] = (),
) -> DigestInput:
    info = workflow.info()
    return DigestInput(
        scope=calls.scope,
        now=workflow.now(),
        policy=policy,
        memory_ids=memory_ids,
        episode_ids=episode_ids,
        ended=ended,
        workflow_id=info.workflow_id,
        run_id=info.run_id,
    )


# --- one pass of consolidation: the due episodes, batch by batch, then the links

# Memories of one linking request. With what resembles them, a page or two of text.
_LINK_CHUNK = 20
# A dry run asks a model, and changes nothing about what it will be asked again.
_MOST_REHEARSED = 20
# Past this many, linking does not wait for a full count of extractions.
_MOST_UNLINKED = 400
# A marker that runs of before the first release have in their histories; it goes with the next.
_IN_SPITE_OF_MODELS = "digests-in-spite-of-models"
# Runs of before only remember for themselves which turns they left out.
_REFUSED_WAIT = "refused-turns-wait"
# Runs of before take a step for each thing that is done with a batch, one after the other.
_FEW_STEPS = "consolidation-in-few-steps"
# Turns that one step reads at most, where that asks nobody, and takes up.
_READ_AT_ONCE = 200


@dataclass
class _ReadingAhead:
    """Batches that are being read."""

    batches: tuple[EpisodeBatch, ...]
    answer: asyncio.Task[ExtractOutput]


class ConsolidationPass:
    """Runs once. Its state and report say how far it came, whether or not it failed.

    Args:
        state: Of the workflow, when the pass began.
        reason: Why it runs, for the Temporal UI.
        describe: Told what is being done.
        must_stop: Whether the pass has to end before its next batch.
        asked: Whether somebody waits for it.

    Attributes:
        state: As the pass leaves it.
        stopped_by: What stopped it, when something did.
        ended_early: Whether it had to end before its next batch.
    """

    def __init__(
        self,
        state: ConsolidationState,
        reason: str,
        describe: Callable[[str], None],
        must_stop: Callable[[], bool],
        *,
        asked: bool,
    ) -> None:
        self._asked = asked
        self.state = state
        # Turns whose conclusions are being written: marked before it is known what was stored.
        self.taking_up: tuple[str, ...] = ()
        self.stopped_by: Failure | None = None
        self.ended_early = False
        self._calls = ActivityCalls(state.scope, state.policy, state.population)
        self._refusals = RejectedBatches()
        self._reason = reason
        self._describe = describe
        self._must_stop = must_stop
        self._in_few_steps = workflow.patched(_FEW_STEPS)
        # How many batches an answer covers: known when the first one is there.
        self._reads_on = True
        info = workflow.info()
        self._report = ConsolidationReport(
            passes=1, workflow_id=info.workflow_id, run_id=info.run_id
        )

    async def run(self, *, linking: bool) -> ConsolidationReport:
        """Everything that is due, then a linking pass if it is time.

        A batch that fails for its own sake is left out; what would fail every
        batch ends the pass. Whatever was not written is still due.
        """
        if self.state.dry_run:
            linking = False
        try:
            if self.state.dry_run:
                await self._rehearse()
            elif self._in_few_steps:
                await self._consolidate_in_few_steps()
            else:
                await self._consolidate()
            if linking or self._enough_to_link():
                await self._link()
            await self._digest()
        except ActivityError as error:
            if is_cancelled_exception(error):
                mark_outlived()
                raise
            failure = self.stopped_by = failure_of(error)
            self._count(ConsolidationReport(failures=(failure,), remaining=True))
            self._describe(f"Stopped: {failure.message}")
            workflow.logger.warning("consolidation pass stopped: %s", failure.code)
            await self._digest_in_spite_of(error)
        else:
            refused = self._report.refused
            self._describe(f"{refused} turns were refused." if refused else "Nothing more is due.")
        return self._report

    async def _consolidate(self) -> None:
        more = True
        while more:
            due = await self._calls.select_due(self.state.refused, self._reason, asked=self._asked)
            for number, batch in enumerate(due.batches, start=1):
                if self._must_stop():
                    self.ended_early = True
                    self._count(ConsolidationReport(remaining=True))
                    return
                self._describe(
                    f"{self._reason}: batch {number} of {len(due.batches)}, "
                    f"{len(batch.episode_ids)} turns"
                )
                await self._batch(batch)
                if self._enough_to_link():
                    await self._link()
                await self._digest(least=ENOUGH)
            more = due.more and bool(due.batches)

    async def _consolidate_in_few_steps(self) -> None:
        """Read what is due ahead of what is taken up; each is one step for many batches."""
        more = True
        while more:
            due = await self._calls.select_due(self.state.refused, self._reason, asked=self._asked)
            waiting = deque(due.batches)
            self._refusals.selected(due.batches)
            ahead = self._begin_reading(waiting)
            try:
                while ahead is not None:
                    reading, ahead = ahead, None
                    parts = await self._answered(reading, waiting)
                    # A refusal leaves nothing to take up: what to ask for instead comes first.
                    ahead = self._begin_reading(waiting)
                    if parts:
                        await self._take_up(parts)
                    if self._enough_to_link():
                        await self._link()
                    await self._digest(least=MOST_UNDIGESTED)
            except GeneratorExit:
                # A worker puts the run out of its memory: nothing can be waited for any more.
                ahead = None
                raise
            finally:
                if ahead is not None:
                    self._count(ConsolidationReport(), await _let_go(ahead))
            if self.ended_early:
                return
            more = due.more and bool(due.batches)

    def _begin_reading(self, waiting: deque[EpisodeBatch]) -> _ReadingAhead | None:
        """Have the next batches read; None where there is none, or the pass has to end."""
        if not waiting:
            return None
        if self._must_stop():
            if not self.ended_early:
                self.ended_early = True
                self._count(ConsolidationReport(remaining=True))
            return None
        batches = [waiting.popleft()]
        turns = len(batches[0].episode_ids)
        while waiting and self._reads_on:
            turns += len(waiting[0].episode_ids)
            if turns > _READ_AT_ONCE:
                break
            batches.append(waiting.popleft())
        self._describe(f"{self._reason}: {turns} turns, {len(waiting)} batches wait")
        asked = asyncio.create_task(self._calls.extract(batches[0], tuple(batches[1:])))
        return _ReadingAhead(tuple(batches), asked)

    async def _answered(
        self, reading: _ReadingAhead, waiting: deque[EpisodeBatch]
    ) -> tuple[ExtractOutput, ...]:
        """What was read, batch by batch; what was not goes back to what waits, in order."""
        first, *further = reading.batches
        try:
            extracted = await reading.answer
        except ActivityError as error:
            self._count(ConsolidationReport(), usage_of_failed_activity(error))
            self._reads_on = False
            self._refusals.look_at(first)
            instead = await self._refused(first, self._going_on_after(error))
            waiting.extendleft(reversed((*instead, *further)))
            return ()
        answers = (extracted, *extracted.further)
        self._reads_on = self._reads_on and len(answers) == len(reading.batches)
        left = reading.batches[len(answers) :]
        self._count(ConsolidationReport(), spent(extracted))
        self._count(ConsolidationReport(guideline_failures=int(extracted.unguided)))
        parts: list[ExtractOutput] = []
        for batch, answer in zip(reading.batches, answers, strict=False):
            self._count(ConsolidationReport(extractions=1))
            if answer.full and (halves := bisect(batch)):
                left = (*halves, *left)
                continue
            self._count_answer(answer)
            parts.append(answer.of(batch.episode_ids))
        waiting.extendleft(reversed(left))
        return tuple(parts)

    def _count_answer(self, answer: ExtractOutput) -> None:
        self._count(
            ConsolidationReport(
                statements=len(answer.statements),
                dropped_references=answer.dropped_references,
                dropped_quotes=answer.dropped_quotes,
                dropped_unattested=answer.dropped_unattested,
                dropped_masked=answer.dropped_masked,
                dropped_secrets=answer.dropped_secrets,
                dropped_malformed=answer.dropped_malformed,
                overfull=int(answer.full),
            )
        )
        self.state = self.state.model_copy(update={"extractions": self.state.extractions + 1})

    async def _take_up(self, parts: tuple[ExtractOutput, ...]) -> None:
        """Make what was read known; where that fails for its own sake, batch by batch."""
        self.taking_up = tuple(turn for part in parts for turn in part.episode_ids)
        try:
            await self._take_up_together(parts, workflow.now())
        finally:
            self.taking_up = ()

    async def _take_up_together(self, parts: tuple[ExtractOutput, ...], now: datetime) -> None:
        try:
            done = await self._calls.consolidate_turns(parts, now)
        except ActivityError as error:
            self._refusals.look_at(parts[0])
            failure = self._going_on_after(error)
            if len(parts) > 1:
                for part in parts:
                    await self._take_up_alone(part, now)
                return
            await self._leave_out(parts[0], failure)
        else:
            await self._taken_up(parts, done)

    async def _take_up_alone(self, part: ExtractOutput, now: datetime) -> None:
        try:
            # At the same moment: what the others and it had done by then counts as done by this.
            done = await self._calls.consolidate_turns((part,), now, repeated=True)
        except ActivityError as error:
            self._refusals.look_at(part)
            await self._leave_out(part, self._going_on_after(error))
        else:
            await self._taken_up((part,), done)

    async def _leave_out(self, part: ExtractOutput, failure: Failure) -> None:
        batch = EpisodeBatch(session_id=None, episode_ids=part.episode_ids)
        await self._left_out(batch, failure)

    async def _taken_up(
        self, parts: tuple[ExtractOutput, ...], done: ConsolidateTurnsOutput
    ) -> None:
        effect = done.effect
        self._count(
            ConsolidationReport(
                episodes=done.marked,
                stored=done.stored,
                refused_links=done.refused_links,
                corroborated=done.corroborated,
                superseded=done.superseded,
                discarded=done.actions.get("discard", 0),
                dropped_echoes=done.reasons.get(Reason.ECHO, 0),
                actions=done.actions,
            )
        )
        left_out = {*effect.unlinkable}
        self._to_link([one for one in effect.stored if one not in left_out], effect.confirmed)
        read = tuple(e for part in parts for e in part.episode_ids if e not in done.reread)
        self._touched(self.state.undigested.after(effect).after_reading(read))
        await self._open_reviews(effect.disputes)

    async def _rehearse(self) -> None:
        """What the first batches that are due would come to; nothing is written.

        Each is compared with what is known now, not with what the one before would add.
        """
        due = await self._calls.select_due(self.state.refused, self._reason, asked=self._asked)
        for number, batch in enumerate(due.batches[:_MOST_REHEARSED], start=1):
            self._describe(f"Dry run: batch {number} of {len(due.batches)}")
            extracted = await self._calls.extract(batch)
            plan = ConsolidationPlan()
            if (extracted.statements or extracted.verbatim) and extracted.use is not None:
                plan = await self._calls.reconcile(extracted, extracted.use)
            would = ConsolidationReport(
                episodes=len(batch.episode_ids),
                extractions=1,
                statements=len(extracted.statements),
                stored=len(plan.new_memories()),
                corroborated=len(_confirmed(plan)),
                superseded=len(plan.retirements()),
                discarded=len(plan.discarded()),
                dropped_actions=plan.invalid(),
                actions=plan.counts(),
                changes=planned(plan),
            )
            self._count(would, spent(extracted))
        more = due.more or len(due.batches) > _MOST_REHEARSED
        self._count(ConsolidationReport(dry_run=True, remaining=more))

    async def _batch(self, batch: EpisodeBatch) -> None:
        """A batch, or the parts of it that a model can answer."""
        waiting = [batch]
        while waiting:
            part = waiting.pop(0)
            try:
                further = await self._read(part)
            except ActivityError as error:
                further = await self._refused(part, self._going_on_after(error))
            waiting = [*further, *waiting]
        self._refusals.batches += not frozenset(self.state.refused).isdisjoint(batch.episode_ids)

    async def _read(self, batch: EpisodeBatch) -> tuple[EpisodeBatch, ...]:
        """Consolidate a batch; its halves instead, when it states more than an answer holds."""
        try:
            extracted = await self._calls.extract(batch)
        except ActivityError as error:
            self._count(ConsolidationReport(), usage_of_failed_activity(error))
            raise
        self._count(ConsolidationReport(extractions=1), spent(extracted))
        self._count(ConsolidationReport(guideline_failures=int(extracted.unguided)))
        if extracted.full and (parts := bisect(batch)):
            return parts
        self._count_answer(extracted)
        if (extracted.statements or extracted.verbatim) and extracted.use is not None:
            written = await self._apply(await self._calls.reconcile(extracted, extracted.use))
            # A turn that shared its conclusions with one that was forgotten is due again.
            read = tuple(e for e in batch.episode_ids if e not in written.reread)
            batch = batch.model_copy(update={"episode_ids": read})
        marked = await self._calls.mark_consolidated(batch)
        self._count(ConsolidationReport(episodes=marked.marked))
        self._touched(self.state.undigested.after_reading(batch.episode_ids))
        return ()

    async def _refused(self, batch: EpisodeBatch, failure: Failure) -> tuple[EpisodeBatch, ...]:
        """What to ask for instead: the halves of a refused batch; else it is left out."""
        if parts := self._refusals.halve(batch, failure):
            return parts
        await self._left_out(batch, failure)
        return ()

    async def _left_out(self, batch: EpisodeBatch, failure: Failure) -> None:
        count = len(batch.episode_ids)
        self._refusals.note_loss(batch, failure)
        refused = (*self.state.refused, *batch.episode_ids)
        self.state = self.state.model_copy(update={"refused": refused})
        self._count(ConsolidationReport(refused=count, failures=(failure,), remaining=True))
        workflow.logger.warning("%d turns left out: %s", count, failure.code)
        if workflow.patched(_REFUSED_WAIT):
            await self._calls.mark_refused(batch, failure.code)

    def _going_on_after(self, error: ActivityError) -> Failure:
        """What failed, where the pass can go on without it; else raises it again."""
        failure = failure_of(error)
        if (
            is_cancelled_exception(error)
            or not is_of_the_batch(failure)
            or self._refusals.must_end(
                failure, accepted=self._report.episodes, left_out=len(self.state.refused)
            )
        ):
            raise error
        mark_outlived()
        return failure

    async def _apply(self, plan: ConsolidationPlan) -> PlanOutput:
        """Write what is new; only when it was read back, retire what it replaces."""
        written = await self._calls.write(plan)
        retired = await self._calls.retire(plan)
        self._count(
            ConsolidationReport(
                stored=len(written.stored),
                refused_links=written.refused_links,
                corroborated=len(_confirmed(plan).keys() & set(written.updated)),
                superseded=len(retired.updated),
                discarded=len(plan.discarded()),
                dropped_actions=plan.invalid(),
                dropped_echoes=sum(d.reason is Reason.ECHO for d in plan.discarded()),
                actions=plan.counts(),
            )
        )
        new = [
            memory.id
            for memory in plan.new_memories()
            if memory.superseded_by is None and memory.form is MemoryForm.STATEMENT
        ]
        self._to_link(new, _confirmed(plan))
        self._touched(self.state.undigested.after_plan(plan))
        await self._open_reviews(plan.disputes())
        return written

    async def _open_reviews(self, pairs: tuple[tuple[str, str], ...]) -> None:
        """Let a person settle what is left in dispute, which stays marked meanwhile."""
        rules = self.state.policy.reviews
        # Runs that began before there were reviews have none among their numbers.
        if not pairs or rules is None or not rules.enabled:
            return
        if self.state.population is not Population.REAL:
            return
        try:
            opened = await self._calls.open_reviews(pairs, rules)
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            failure = failure_of(error)
            workflow.logger.warning("no review waits for %d disputes: %s", len(pairs), failure.code)
            self._count(ConsolidationReport(failures=(failure,)))
        else:
            self._count(ConsolidationReport(reviews=opened.opened))

    def _to_link(self, new: Iterable[str], confirmed: Iterable[str]) -> None:
        unlinked = dict.fromkeys((*self.state.unlinked, *new, *confirmed))
        self.state = self.state.model_copy(
            update={
                "unlinked": tuple(unlinked),
                "fresh": tuple(dict.fromkeys((*self.state.fresh, *new))),
            }
        )

    def _enough_to_link(self) -> bool:
        state = self.state
        counted = state.extractions >= state.policy.consolidate_every
        return bool(state.unlinked) and (counted or len(state.unlinked) >= _MOST_UNLINKED)

    async def _link(self) -> None:
        """A linking pass over what was stored or confirmed since the last one."""
        state = self.state
        if state.unlinked:
            number = state.linking_passes + 1
            operation = operation_id("linking", workflow.info().first_execution_run_id, number)
            # An answer covers a chunk, or all that is left where it is written already.
            offered = len(state.unlinked) if self._in_few_steps else _LINK_CHUNK
            left = state.unlinked
            while left:
                looked_at = _LINK_CHUNK
                try:
                    looked_at = await self._link_some(left[:offered], operation)
                except ActivityError as error:
                    # These are linked when something is stored that resembles them.
                    self._count(ConsolidationReport(failures=(self._going_on_after(error),)))
                if looked_at < offered:
                    offered = _LINK_CHUNK
                left = left[looked_at:]
            self._count(ConsolidationReport(linking_passes=1))
            self.state = self.state.model_copy(
                update={"linking_passes": number, "unlinked": (), "fresh": ()}
            )
        self.state = self.state.model_copy(update={"extractions": 0})

    async def _link_some(self, ids: tuple[str, ...], operation: str) -> int:
        """Link the first of these; how many were looked at."""
        at_once = _LINK_CHUNK if self._in_few_steps else None
        try:
            found = await self._calls.link(ids, self.state.fresh, operation, at_once=at_once)
        except ActivityError as error:
            self._count(ConsolidationReport(), usage_of_failed_activity(error))
            raise
        dropped = ConsolidationReport(
            dropped_references=found.dropped_references,
            dropped_retirements=found.dropped_retirements,
        )
        self._count(dropped, spent(found))
        if found.applied is not None:
            await self._linked(found.applied)
        else:
            await self._write_links(found.plan)
        return len(ids) if found.applied is not None else found.looked_at or len(ids)

    async def _linked(self, done: LinksApplied) -> None:
        """Count what was linked and written in one step."""
        self._touched(self.state.undigested.after(done.effect))
        await self._open_reviews(done.effect.disputes)
        self._count(
            ConsolidationReport(
                links=done.links,
                refused_links=done.refused_links,
                pruned=len(done.effect.pruned),
                discarded=done.discarded,
                superseded=done.superseded,
                actions=done.actions,
            )
        )

    async def _write_links(self, plan: ConsolidationPlan) -> None:
        """Write what a model made of memories; only then retire what that replaces."""
        if self._in_few_steps:
            written = await self._calls.apply_plan(plan)
            superseded = len(written.retired)
        else:
            written = await self._calls.write(plan)
            superseded = len((await self._calls.retire(plan)).updated)
        self._touched(self.state.undigested.after_plan(plan))
        await self._open_reviews(plan.disputes())
        self._count(
            ConsolidationReport(
                links=written.links,
                refused_links=written.refused_links,
                pruned=sum(
                    update.survival is not None and update.survival.pruned
                    for update in plan.amendments()
                ),
                discarded=len(plan.discarded()),
                dropped_actions=plan.invalid(),
                superseded=superseded,
                actions=plan.counts(),
            )
        )

    async def _digest(self, *, least: int = 1) -> None:
        """Let what is composed from memories follow what was touched."""
        if not must_digest(self.state, least=least):
            return
        try:
            stage = digest_at_once if self._in_few_steps else digest
            self._count(await stage(self._calls, self.state))
        except ActivityError as error:
            # Nothing is lost with it: what it would have composed follows the next touch.
            failure = self._going_on_after(error)
            self._count(ConsolidationReport(digest_failures=1, failures=(failure,)))
        number = self.state.digests + 1
        self.state = self.state.model_copy(
            update={"undigested": PendingDigests(), "digests": number}
        )

    async def _digest_in_spite_of(self, stopped_by: ActivityError) -> None:
        """A model that stays away keeps nothing from being composed of what is stored."""
        if not asks_models(stopped_by):
            return
        # Noted in this order: that there is a digest stage has a marker of its own.
        workflow.deprecate_patch(_IN_SPITE_OF_MODELS)
        try:
            await self._digest()
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            self._count(ConsolidationReport(digest_failures=1, failures=(failure_of(error),)))

    def _touched(self, undigested: PendingDigests) -> None:
        self.state = with_undigested(self.state, undigested)

    def _count(self, part: ConsolidationReport, models: tuple[ModelSpent, ...] = ()) -> None:
        if models:
            part = with_models(part, models)
        if part.dropped_actions:
            workflow.logger.warning("%d actions could not be read", part.dropped_actions)
        kept = {
            "workflow_id": self._report.workflow_id,
            "run_id": self._report.run_id,
            "remaining": self._report.remaining or part.remaining,
        }
        self._report = self._report.plus(part.model_copy(update=kept))


async def _let_go(reading: _ReadingAhead) -> tuple[ModelSpent, ...]:
    """End a reading that nobody waits for any more; what it spent."""
    reading.answer.cancel()
    try:
        return spent(await reading.answer)
    except ActivityError as error:
        return usage_of_failed_activity(error)
    except asyncio.CancelledError:
        return ()


def _confirmed(plan: ConsolidationPlan) -> dict[str, None]:
    """The memories that gain a source, in order."""
    return {update.memory_id: None for update in plan.amendments() if update.add_sources}
