"""Bringing in what another program, or another Engram, knows: batch by batch, each once.

Design notes: docs/decisions/0017-importing.md.
"""

from __future__ import annotations

from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from engram.contracts import names
from engram.contracts.activities import ImportActivities
from engram.contracts.importing import (
    BeginImport,
    FinishImport,
    ImportBatch,
    ImportKind,
    ImportProgress,
    ImportState,
    ImportTally,
    StoreBatchInput,
)
from engram.contracts.session import ConsolidationRequest
from engram.domain.scope import Scope
from engram.errors import ImportOutOfStep, RunEnded
from engram.workflows.support import (
    check_start,
    history_is_full,
    listing_of_this_run,
    refusal,
    request_consolidation,
    store,
)

# A batch of hundreds of turns takes a second, several on a busy machine.
_LOCAL_LIMIT = timedelta(seconds=20)
# A batch so far ahead of the others was not sent by a client that goes on here.
_MOST_AHEAD = 16


@workflow.defn(name=names.IMPORT_WORKFLOW)
class ImportWorkflow:
    """Runs until everything that its source has is stored, or nobody sends for long."""

    @workflow.init
    def __init__(self, state: ImportState) -> None:
        self._state = self._began = state
        self._updates = 0

    @property
    def scope(self) -> Scope:
        """Whose memory it goes to."""
        return self._state.scope

    @property
    def kind(self) -> ImportKind:
        """What it brings in."""
        return self._state.kind

    @workflow.run
    async def run(self, state: ImportState) -> ImportProgress:
        """Wait for batches; at the end, ask for the user's consolidation."""
        self._check_start(state)
        while True:
            seen = self._updates
            idle = not await self._attention()
            if self._state.total is not None:
                break
            if self._history_is_full():
                await workflow.wait_condition(workflow.all_handlers_finished)
                workflow.continue_as_new(
                    self._state.model_copy(update={"runs": self._state.runs + 1})
                )
            if idle and self._updates == seen and workflow.all_handlers_finished():
                break
        await workflow.wait_condition(workflow.all_handlers_finished)
        if self._state.consolidate and self._state.position:
            await request_consolidation(
                self._state.scope,
                ConsolidationRequest(reason="imported"),
                self._state.policy.store_timeout,
            )
        return self._progress()

    @workflow.update(name=names.BEGIN_IMPORT_UPDATE)
    def begin(self, request: BeginImport) -> ImportProgress:
        """Say where sending goes on."""
        self._updates += 1
        return self._progress()

    @begin.validator
    def _check_begin(self, request: BeginImport) -> None:
        self._check_start(self._began)
        # Whoever begins once more meets the run that is just ending; there is another after it.
        if self._state.total is not None:
            ending = RunEnded("This import is just ending.")
            raise ApplicationError(str(ending), ending.as_dict(), type=ending.code)

    @workflow.update(name=names.IMPORT_BATCH_UPDATE)
    async def store_batch(self, batch: ImportBatch) -> ImportProgress:
        """Store a batch; the reply is the acknowledgement."""
        self._updates += 1
        if not self._state.has(batch):
            tally = await self._store(batch)
            self._state = self._state.with_stored(batch, tally)
            self._describe()
        return self._progress()

    @store_batch.validator
    def _check_batch(self, batch: ImportBatch) -> None:
        self._check_start(self._began)
        furthest = self._state.position + _MOST_AHEAD * max(batch.count, 1)
        if self._state.total is not None or batch.first > furthest:
            raise _refused(
                "This part of the source does not follow what is stored.", self._state.position
            )

    @workflow.update(name=names.FINISH_IMPORT_UPDATE)
    def finish(self, request: FinishImport) -> ImportProgress:
        """All is there: let the import end."""
        consolidate = request.consolidate
        self._state = self._state.model_copy(
            update={
                "total": request.total,
                "consolidate": self._state.consolidate if consolidate is None else consolidate,
            }
        )
        self._describe()
        return self._progress()

    @finish.validator
    def _check_finish(self, request: FinishImport) -> None:
        self._check_start(self._began)
        if request.total != self._state.position:
            raise _refused("Not all of the source is stored yet.", self._state.position)

    @workflow.query(name=names.IMPORT_PROGRESS_QUERY)
    def progress(self) -> ImportProgress:
        """How far it has come."""
        return self._progress()

    def _check_start(self, state: ImportState) -> None:
        fresh = ImportState(
            scope=state.scope,
            import_id=state.import_id,
            kind=state.kind,
            policy=state.policy,
            consolidate=state.consolidate,
            epoch=state.epoch,
        )
        check_start(
            state.scope,
            names.import_workflow_id(state.scope, state.import_id),
            empty=state == fresh,
        )

    async def _attention(self) -> bool:
        """Wait until something is to be done; False when the time is over.

        One timer for many batches: what came meanwhile is seen when it fires.
        """
        try:
            await workflow.wait_condition(
                lambda: self._state.total is not None or self._history_is_full(),
                timeout=self._state.policy.idle_time,
                timeout_summary="nobody sends",
            )
        except TimeoutError:
            return False
        return True

    async def _store(self, batch: ImportBatch) -> ImportTally:
        info = workflow.info()
        work = StoreBatchInput(
            scope=self._state.scope,
            now=workflow.now(),
            kind=self._state.kind,
            batch=batch,
            epoch=self._state.epoch,
            workflow_id=info.workflow_id,
            run_id=info.run_id,
        )
        return await store(
            ImportActivities.store_batch,
            work,
            f"entries {batch.first} to {batch.first + batch.count - 1}",
            local_limit=_LOCAL_LIMIT,
            limit=self._state.policy.store_timeout,
        )

    def _history_is_full(self) -> bool:
        return history_is_full(self._updates, self._state.policy.updates_per_run)

    def _progress(self) -> ImportProgress:
        state = self._state
        return ImportProgress(
            import_id=state.import_id,
            position=state.position,
            tally=state.tally,
            complete=state.total is not None,
            runs=state.runs,
            workflow_id=workflow.info().workflow_id,
        )

    def _describe(self) -> None:
        state = self._state
        workflow.set_current_details(
            f"**{state.position}** entries of the source are stored: {state.tally.stored} new, "
            f"{state.tally.known} known, {state.tally.conflicts} in conflict; "
            f"run {state.runs} of this import.\n\n{listing_of_this_run(state.scope)}"
        )


def _refused(message: str, position: int) -> ApplicationError:
    error = ImportOutOfStep(message, details={"position": position})
    return refusal(error)
