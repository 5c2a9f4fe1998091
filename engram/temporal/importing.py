"""Reaching importing workflows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

from temporalio.client import Client
from temporalio.service import RPCError

from engram.contracts import names
from engram.contracts.attributes import attributes
from engram.contracts.importing import (
    BeginImport,
    FinishImport,
    ImportBatch,
    ImportKind,
    ImportPolicy,
    ImportProgress,
    ImportState,
)
from engram.domain.scope import Scope
from engram.errors import ImportOutOfStep
from engram.settings import Settings
from engram.temporal.retry import (
    asked_again,
    is_gone,
    retry_until_answered,
    update_with_start,
)

# An outage of the store lasts as long as it lasts; a client that waits can be stopped.
_IMPORT_PATIENCE: Final = timedelta(hours=1)


class ImportGateway:
    """Begins imports, hands them batches, ends them; every failure comes out typed.

    Args:
        client: Connected, with the pydantic data converter.
        settings: Queue and limits that new workflows are started with.
        idle: How long an import waits for a client that went away.
    """

    def __init__(
        self, client: Client, settings: Settings, *, idle: timedelta = timedelta(days=7)
    ) -> None:
        self._client = client
        self._settings = settings
        self._idle = idle

    @property
    def idle(self) -> timedelta:
        """How long an import waits for a client that went away."""
        return self._idle

    async def begin(
        self,
        scope: Scope,
        import_id: str,
        kind: ImportKind,
        *,
        consolidate: bool,
        epoch: int | None = None,
    ) -> ImportProgress:
        """Start the import, or find it where it stopped.

        Args:
            scope: Whose memory it goes to.
            import_id: Names the source.
            kind: What it brings in.
            consolidate: Whether the user's consolidation is asked for at its end.
            epoch: The user's, of now; nothing is stored once that is raised.

        Returns:
            How far it has come.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        workflow_id = self._id(scope, import_id)
        state = ImportState(
            scope=scope,
            import_id=import_id,
            kind=kind,
            consolidate=consolidate,
            epoch=epoch,
            policy=ImportPolicy(
                updates_per_run=self._settings.updates_per_run,
                store_timeout=self._settings.store_timeout,
                idle_time=self._idle,
            ),
        )
        return await update_with_start(
            self._client,
            names.BEGIN_IMPORT_UPDATE,
            BeginImport(),
            ImportProgress,
            workflow=names.IMPORT_WORKFLOW,
            workflow_id=workflow_id,
            task_queue=self._settings.store_queue,
            state=state,
            described_by=attributes("import", user=scope.tenant),
            summary=f"import for {scope.tenant}",
            patience=self._settings.encode_timeout,
        )

    async def send(self, scope: Scope, import_id: str, batch: ImportBatch) -> ImportProgress:
        """Have a batch stored; returns when it is stored and searchable.

        Raises:
            ImportOutOfStep: the batch does not follow what is stored, or the import
                does not run any more.
            TemporalUnavailable: no acknowledgement came in time.
        """
        return await self._update(scope, import_id, names.IMPORT_BATCH_UPDATE, batch)

    async def finish(self, scope: Scope, import_id: str, asked: FinishImport) -> ImportProgress:
        """End the import: all of the source is there.

        Raises:
            ImportOutOfStep: not all of it is.
            TemporalUnavailable: no acknowledgement came in time.
        """
        try:
            return await self._update(scope, import_id, names.FINISH_IMPORT_UPDATE, asked)
        except ImportOutOfStep:
            # The acknowledgement of an earlier attempt may have been lost.
            ended = await self.progress(scope, import_id)
            if ended is not None and ended.complete and ended.position == asked.total:
                return ended
            raise

    async def progress(self, scope: Scope, import_id: str) -> ImportProgress | None:
        """How far an import has come, also one that ended; None if there never was one.

        Raises:
            TemporalUnavailable: Temporal, or a worker, cannot be reached.
        """
        handle = self._client.get_workflow_handle(self._id(scope, import_id))

        async def attempt() -> ImportProgress | None:
            try:
                found: ImportProgress = await handle.query(
                    names.IMPORT_PROGRESS_QUERY, result_type=ImportProgress
                )
            except RPCError as error:
                if is_gone(error):
                    return None
                raise
            return found

        return await asked_again(attempt)

    def _id(self, scope: Scope, import_id: str) -> str:
        workflow_id = names.import_workflow_id(scope, import_id)
        return names.in_store(self._settings.collection_prefix, workflow_id)

    async def _update(
        self, scope: Scope, import_id: str, update: str, asked: ImportBatch | FinishImport
    ) -> ImportProgress:
        workflow_id = self._id(scope, import_id)
        handle = self._client.get_workflow_handle(workflow_id)

        async def attempt() -> ImportProgress:
            answer: ImportProgress = await handle.execute_update(
                update, asked, result_type=ImportProgress
            )
            return answer

        return await retry_until_answered(_unless_gone(attempt), workflow_id, _IMPORT_PATIENCE)


def _unless_gone(
    attempt: Callable[[], Awaitable[ImportProgress]],
) -> Callable[[], Awaitable[ImportProgress]]:
    async def guarded() -> ImportProgress:
        try:
            return await attempt()
        except RPCError as error:
            if is_gone(error):
                raise ImportOutOfStep(
                    "This import does not run any more.",
                    hint="It ended, nobody sent for a week, or the user was erased; "
                    "the same command begins it again.",
                ) from error
            raise

    return guarded
