"""Reviews of disputes on Temporal: opening, asking them to look, answering, listing."""

from __future__ import annotations

from collections.abc import Iterable

import structlog
from pydantic import ValidationError
from temporalio.client import Client, WorkflowExecution
from temporalio.exceptions import ApplicationError, TemporalError
from temporalio.service import RPCError

from engram.contracts import names
from engram.contracts.attributes import attributes
from engram.contracts.reviews import (
    AnswerReview,
    ReviewNote,
    ReviewOutcome,
    ReviewState,
    review_id_of,
)
from engram.domain.rules import ReviewRules
from engram.domain.scope import Scope
from engram.errors import EngramError, ReviewNotFound
from engram.settings import Settings
from engram.temporal.retry import is_gone, retry_until_answered, start_or_meet, typed

_log = structlog.get_logger("engram.client")


class ReviewGateway:
    """Reaches the workflows that have a person settle disputes; every failure comes out typed.

    Args:
        client: Connected, with the pydantic data converter.
        settings: Queue, and the numbers that reviews wait by.
    """

    def __init__(self, client: Client, settings: Settings) -> None:
        self._client = client
        self._settings = settings

    async def open(
        self, scope: Scope, memory_ids: tuple[str, ...], rules: ReviewRules | None = None
    ) -> None:
        """Let a review wait for a person; where it waits already, it goes on.

        Args:
            scope: Whose memories.
            memory_ids: What contradicts each other; of one that the user disputes, only that.
            rules: How long it waits, and what then; None: as the settings say.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        state = ReviewState(
            scope=scope,
            memory_ids=tuple(sorted(memory_ids)),
            rules=rules or self._settings.reviews,
            store_timeout=self._settings.store_timeout,
            digests=self._settings.digests,
        )
        await start_or_meet(
            self._client,
            names.REVIEW_WORKFLOW,
            state,
            workflow_id=self._id(scope, review_id_of(memory_ids)),
            task_queue=self._settings.store_queue,
            described_by=attributes("review", user=scope.tenant),
            summary=f"a dispute of {scope.tenant} waits for a person",
        )

    async def changed(
        self,
        scope: Scope,
        settled: Iterable[tuple[str, ...]],
        opened: Iterable[tuple[str, ...]] = (),
    ) -> None:
        """Have reviews look whether there is anything left to wait for, and open others.

        What is written in the store is done, whether or not Temporal can be reached: a
        review that is not told looks at its next reminder.

        Args:
            scope: Whose memories.
            settled: Of what; those of which no review waits are passed over.
            opened: Of what a review is to wait, where reviews are switched on.
        """
        try:
            for memory_ids in settled:
                await self._tell(self._id(scope, review_id_of(memory_ids)))
            for memory_ids in opened if self._settings.reviews.enabled else ():
                await self.open(scope, memory_ids)
        except EngramError as error:
            _log.warning("reviews were not told of a change", code=error.code)

    async def answer(self, scope: Scope, review_id: str, keep: str) -> ReviewOutcome:
        """Say what holds, and wait until that is written.

        Raises:
            ReviewNotFound: no such review waits.
            InvalidInput: this is no answer to it.
            TemporalUnavailable: Temporal cannot be reached.
        """
        workflow_id = self._id(scope, review_id)
        handle = self._client.get_workflow_handle(workflow_id)

        async def attempt() -> ReviewOutcome:
            try:
                outcome: ReviewOutcome = await handle.execute_update(
                    names.ANSWER_REVIEW_UPDATE,
                    AnswerReview(keep=keep),
                    result_type=ReviewOutcome,
                )
            except RPCError as error:
                if is_gone(error):
                    raise no_review() from error
                raise
            return outcome

        return await retry_until_answered(attempt, workflow_id, self._settings.encode_timeout)

    async def waiting(self, scope: Scope) -> list[tuple[str, ReviewNote]]:
        """What waits for a person, by the ids of the runs, the longest first.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        query = (
            f"{names.USER_ATTRIBUTE} = '{scope.tenant}' AND "
            f"WorkflowType = '{names.REVIEW_WORKFLOW}' AND ExecutionStatus = 'Running'"
        )
        found: list[tuple[str, ReviewNote]] = []
        try:
            async for run in self._client.list_workflows(query):
                if names.store_of(run.id) != self._settings.collection_prefix:
                    continue
                note = await _noted(run)
                if note is not None:
                    found.append((run.id, note))
        except (RPCError, TemporalError) as error:
            raise typed(error) from error
        return sorted(found, key=lambda one: (one[1].opened_at, one[0]))

    async def _tell(self, workflow_id: str) -> None:
        try:
            handle = self._client.get_workflow_handle(workflow_id)
            await handle.signal(names.LOOK_SIGNAL, "settled")
        except RPCError as error:
            if not is_gone(error):
                raise typed(error) from error

    def _id(self, scope: Scope, review_id: str) -> str:
        return names.in_store(
            self._settings.collection_prefix, names.review_workflow_id(scope, review_id)
        )


async def _noted(run: WorkflowExecution) -> ReviewNote | None:
    try:
        return ReviewNote.model_validate(await run.memo_value(names.REVIEW_MEMO, None))
    except (ValidationError, ApplicationError):
        # It has not begun yet; or another program set the memo, and what is not ours is refused.
        return None


def no_review() -> ReviewNotFound:
    """The error for an id of which no review waits."""
    return ReviewNotFound(
        "No such review of this user waits for an answer.",
        hint="`reviews` lists those that do. What is settled is changed with confirm and dispute.",
    )
