"""The operation that asks what is remembered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from engram.domain.access import Access
from engram.domain.scope import Scope
from engram.operations.registry import Http, Intake, Operation, handles
from engram.ports import Clock
from engram.recall.request import RecallRequest
from engram.recall.results import RecallHit

if TYPE_CHECKING:
    # Who only asks for an operation needs nothing of what carries it out.
    from engram.lifecycle.accesses import AccessLog
    from engram.recall.pipeline import Recaller


def _within_limits(asked: RecallRequest, intake: Intake) -> RecallRequest:
    asked.check_limits(intake.settings)
    return asked


RECALL: Final = Operation(
    "recall",
    RecallRequest,
    list[RecallHit],
    "The memories that answer, best first, with sources and reasons where asked for.",
    access=Access.READ,
    http=Http(body="RecallBody", summary="Ask what is remembered", tag="memory"),
    accept=_within_limits,
)


class RecallHandlers:
    """Answers from the store (recall never goes through Temporal), and notes what was recalled.

    Args:
        recaller: Finds the memories that answer.
        clock: The present.
        accesses: Notes what was recalled.
        run_url: Where the Temporal UI shows a run.
    """

    def __init__(
        self,
        recaller: Recaller,
        clock: Clock,
        accesses: AccessLog,
        run_url: Callable[[str, str | None], str | None],
    ) -> None:
        self._recaller = recaller
        self._clock = clock
        self._accesses = accesses
        self._run_url = run_url

    @handles(RECALL)
    async def recall(self, scope: Scope, asked: RecallRequest) -> list[RecallHit]:
        """The memories that answer, best first."""
        now = self._clock()
        hits = await self._recaller.recall(scope, asked, now)
        self._accesses.note(scope, [hit.memory for hit in hits], now)
        return [self._with_url(hit) for hit in hits] if asked.explain else hits

    async def close(self) -> None:
        """Write down what was noted."""
        await self._accesses.close()

    def _with_url(self, hit: RecallHit) -> RecallHit:
        origin = hit.memory.provenance
        if hit.explanation is None or origin.workflow_id is None:
            return hit
        url = self._run_url(origin.workflow_id, origin.run_id)
        explanation = hit.explanation.model_copy(update={"run_url": url})
        return hit.model_copy(update={"explanation": explanation})
