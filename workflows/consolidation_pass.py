"""One pass of consolidation: the due episodes, batch by batch, then the links."""

from __future__ import annotations

from collections.abc import Callable

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from engram.contracts import names
from engram.contracts.consolidation import (
    ConsolidationReport,
    ConsolidationState,
    EpisodeBatch,
    Failure,
)
from engram.contracts.digests import Undigested
from engram.contracts.usage import ModelSpent
from engram.domain.identity import operation_id
from engram.domain.memories import MemoryForm
from engram.domain.plan import ConsolidationPlan, Reason
from workflows.activity_calls import ActivityCalls
from workflows.digest_stage import ENOUGH, digest, must_digest, with_undigested
from workflows.failures import failure_of, is_of_the_batch, mark_outlived
from workflows.refusals import Refusals, halves
from workflows.spending import spent, spent_in_vain, with_models

# Memories of one linking request. With what resembles them, a page or two of text.
_LINK_CHUNK = 20
# Past this many, linking does not wait for a full count of extractions.
_MOST_UNLINKED = 400
_ASK_MODELS = frozenset({names.EXTRACT_ACTIVITY, names.LINK_ACTIVITY})
# A marker that runs of before the first release have in their histories; it goes with the next.
_IN_SPITE_OF_MODELS = "digests-in-spite-of-models"


class ConsolidationPass:
    """Runs once. Its state and report say how far it came, whether or not it failed.

    Args:
        state: Of the workflow, when the pass began.
        reason: Why it runs, for the Temporal UI.
        describe: Told what is being done.
        must_stop: Whether the pass has to end before its next batch.

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
    ) -> None:
        self.state = state
        self.stopped_by: Failure | None = None
        self.ended_early = False
        self._calls = ActivityCalls(state.scope, state.policy, state.population)
        self._refusals = Refusals()
        self._reason = reason
        self._describe = describe
        self._must_stop = must_stop
        info = workflow.info()
        self._report = ConsolidationReport(
            passes=1, workflow_id=info.workflow_id, run_id=info.run_id
        )

    async def run(self, *, linking: bool) -> ConsolidationReport:
        """Everything that is due, then a linking pass if it is time.

        A batch that fails for its own sake is left out; what would fail every
        batch ends the pass. Whatever was not written is still due.
        """
        try:
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
            due = await self._calls.select_due(self.state.refused, self._reason)
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

    async def _batch(self, batch: EpisodeBatch) -> None:
        """A batch, or the parts of it that a model can answer."""
        waiting = [batch]
        while waiting:
            part = waiting.pop(0)
            try:
                further = await self._read(part)
            except ActivityError as error:
                further = self._refused(part, self._going_on_after(error))
            waiting = [*further, *waiting]
        self._refusals.batches += not frozenset(self.state.refused).isdisjoint(batch.episode_ids)

    async def _read(self, batch: EpisodeBatch) -> tuple[EpisodeBatch, ...]:
        """Consolidate a batch; its halves instead, when it states more than an answer holds."""
        try:
            extracted = await self._calls.extract(batch)
        except ActivityError as error:
            self._count(ConsolidationReport(), spent_in_vain(error))
            raise
        self._count(ConsolidationReport(extractions=1), spent(extracted))
        self._count(ConsolidationReport(guideline_failures=int(extracted.unguided)))
        if extracted.full and (parts := halves(batch)):
            return parts
        self._count(
            ConsolidationReport(
                statements=len(extracted.statements),
                dropped_references=extracted.dropped_references,
                dropped_quotes=extracted.dropped_quotes,
                dropped_unattested=extracted.dropped_unattested,
                overfull=int(extracted.full),
            )
        )
        self.state = self.state.model_copy(update={"extractions": self.state.extractions + 1})
        if (extracted.statements or extracted.verbatim) and extracted.use is not None:
            await self._apply(await self._calls.reconcile(extracted, extracted.use))
        marked = await self._calls.mark_consolidated(batch)
        self._count(ConsolidationReport(episodes=marked.marked))
        self._touched(self.state.undigested.after_reading(batch.episode_ids))
        return ()

    def _refused(self, batch: EpisodeBatch, failure: Failure) -> tuple[EpisodeBatch, ...]:
        """What to ask for instead: the halves of a refused batch; else it is left out."""
        if parts := self._refusals.halve(batch, failure):
            return parts
        count = len(batch.episode_ids)
        refused = (*self.state.refused, *batch.episode_ids)
        self.state = self.state.model_copy(update={"refused": refused})
        self._count(ConsolidationReport(refused=count, failures=(failure,), remaining=True))
        workflow.logger.warning("%d turns left out: %s", count, failure.code)
        return ()

    def _going_on_after(self, error: ActivityError) -> Failure:
        """What failed, where the pass can go on without it; else raises it again."""
        failure = failure_of(error)
        if (
            is_cancelled_exception(error)
            or not is_of_the_batch(failure)
            or self._refusals.must_end(
                accepted=self._report.episodes, left_out=len(self.state.refused)
            )
        ):
            raise error
        mark_outlived()
        return failure

    async def _apply(self, plan: ConsolidationPlan) -> None:
        """Write what is new; only when it was read back, retire what it replaces."""
        written = await self._calls.write(plan)
        retired = await self._calls.retire(plan)
        self._count(
            ConsolidationReport(
                stored=len(written.stored),
                corroborated=len(_confirmed(plan).keys() & set(written.updated)),
                superseded=len(retired.updated),
                discarded=len(plan.discarded()),
                dropped_echoes=sum(d.reason is Reason.ECHO for d in plan.discarded()),
                actions=plan.counts(),
            )
        )
        self._to_link(plan)
        self._touched(self.state.undigested.after_plan(plan))

    def _to_link(self, plan: ConsolidationPlan) -> None:
        new = [
            memory.id
            for memory in plan.new_memories()
            if memory.superseded_by is None and memory.form is MemoryForm.STATEMENT
        ]
        unlinked = dict.fromkeys((*self.state.unlinked, *new, *_confirmed(plan)))
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
            for start in range(0, len(state.unlinked), _LINK_CHUNK):
                try:
                    await self._link_some(state.unlinked[start : start + _LINK_CHUNK], operation)
                except ActivityError as error:
                    # These are linked when something is stored that resembles them.
                    self._count(ConsolidationReport(failures=(self._going_on_after(error),)))
            self._count(ConsolidationReport(linking_passes=1))
            self.state = self.state.model_copy(
                update={"linking_passes": number, "unlinked": (), "fresh": ()}
            )
        self.state = self.state.model_copy(update={"extractions": 0})

    async def _link_some(self, ids: tuple[str, ...], operation: str) -> None:
        try:
            found = await self._calls.link(ids, self.state.fresh, operation)
        except ActivityError as error:
            self._count(ConsolidationReport(), spent_in_vain(error))
            raise
        written = await self._calls.write(found.plan)
        retired = await self._calls.retire(found.plan)
        self._touched(self.state.undigested.after_plan(found.plan))
        self._count(
            ConsolidationReport(
                links=written.links,
                pruned=sum(
                    update.survival is not None and update.survival.pruned
                    for update in found.plan.amendments()
                ),
                discarded=len(found.plan.discarded()),
                dropped_references=found.dropped_references,
                superseded=len(retired.updated),
                dropped_retirements=found.dropped_retirements,
                actions=found.plan.counts(),
            ),
            spent(found),
        )

    async def _digest(self, *, least: int = 1) -> None:
        """Let what is composed from memories follow what was touched."""
        if not must_digest(self.state, least=least):
            return
        try:
            self._count(await digest(self._calls, self.state))
        except ActivityError as error:
            # Nothing is lost with it: what it would have composed follows the next touch.
            failure = self._going_on_after(error)
            self._count(ConsolidationReport(digest_failures=1, failures=(failure,)))
        number = self.state.digests + 1
        self.state = self.state.model_copy(update={"undigested": Undigested(), "digests": number})

    async def _digest_in_spite_of(self, stopped_by: ActivityError) -> None:
        """A model that stays away keeps nothing from being composed of what is stored."""
        if stopped_by.activity_type not in _ASK_MODELS:
            return
        # Noted in this order: that there is a digest stage has a marker of its own.
        workflow.deprecate_patch(_IN_SPITE_OF_MODELS)
        try:
            await self._digest()
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            self._count(ConsolidationReport(digest_failures=1, failures=(failure_of(error),)))

    def _touched(self, undigested: Undigested) -> None:
        self.state = with_undigested(self.state, undigested)

    def _count(self, part: ConsolidationReport, models: tuple[ModelSpent, ...] = ()) -> None:
        if models:
            part = with_models(part, models)
        kept = {
            "workflow_id": self._report.workflow_id,
            "run_id": self._report.run_id,
            "remaining": self._report.remaining or part.remaining,
        }
        self._report = self._report.plus(part.model_copy(update=kept))


def _confirmed(plan: ConsolidationPlan) -> dict[str, None]:
    """The memories that gain a source, in order."""
    return {update.memory_id: None for update in plan.amendments() if update.add_sources}
