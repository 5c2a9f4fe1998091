"""The operations that ask what is remembered: as memories, and as a block for a prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import AfterValidator, Field

from engram.domain.access import Access
from engram.domain.memories import RunLink
from engram.domain.scope import Scope
from engram.domain.turns import LEAST_TOKENS, MOST_ALREADY
from engram.errors import InvalidQuery
from engram.giving_way import awaited
from engram.operations.registry import Answered, Http, Intake, Operation, Untold, handles
from engram.recall.request import RecallRequest
from engram.recall.results import RecallHit
from engram.settings import Settings

if TYPE_CHECKING:
    # Who only asks for an operation needs nothing of what carries it out.
    from engram.lifecycle.accesses import AccessLog
    from engram.ports import Clock
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


_MOST_HITS: Final = 50
# A line has hardly fewer than so many tokens, so more hits than this never fit.
_TOKENS_OF_A_LINE: Final = 15
# Notes may come before the summary of them, which has a dozen at most, and says them in one line.
_FEWEST_LOOKED_AT: Final = 16


def _room(tokens: int) -> int:
    if tokens < LEAST_TOKENS:
        raise InvalidQuery(
            "The number of tokens is out of range.",
            allowed=f"a whole number from {LEAST_TOKENS} on",
        )
    return tokens


def _few(texts: tuple[str, ...]) -> tuple[str, ...]:
    if len(texts) > MOST_ALREADY:
        raise InvalidQuery(
            "There are too many texts that the prompt has already.",
            allowed=f"up to {MOST_ALREADY}",
            hint="Give the latest.",
        )
    return texts


class ContextRequest(RecallRequest):
    """A question whose answers go into a prompt, and how long that may become."""

    limit: int = Field(default=0, description="How many answers at most; 0 for as many as may fit.")
    include_sources: bool = Field(
        default=True,
        description="Look up the turns behind each answer, by which its line is dated.",
    )
    tokens: Annotated[int, AfterValidator(_room)] = Field(
        default=1000,
        description="The most that the block may have, estimated as a quarter of its characters.",
    )
    already: Annotated[tuple[str, ...], AfterValidator(_few)] = Field(
        default=(),
        description="Texts that the prompt has anyway, such as the conversation so far, up to "
        f"{MOST_ALREADY}: turns with these words are left out.",
    )

    @classmethod
    def within(
        cls, query: str, tokens: int, settings: Settings, options: Mapping[str, Any]
    ) -> ContextRequest:
        """A request of a program, see :meth:`RecallRequest.of`; raises what that raises."""
        asked = {"tokens": tokens, **options}
        if "limit" not in asked:
            asked["limit"] = _hits_in(tokens, settings) if type(tokens) is int else 1
        return cls.of(query, settings=settings, **asked)


def _hits_in(tokens: int, settings: Settings) -> int:
    return min(_MOST_HITS, settings.recall_max_limit, max(1, tokens // _TOKENS_OF_A_LINE))


class ContextBlock(Answered):
    """What answers a question, for a prompt.

    Attributes:
        context: A fenced block of text; empty if nothing answers.
    """

    context: str
    memory_ids: Untold = ()


def _fitting(asked: ContextRequest, intake: Intake) -> ContextRequest:
    if asked.limit == 0:
        limit = _hits_in(asked.tokens, intake.settings)
        asked = asked.model_copy(update={"limit": limit})
    asked.check_limits(intake.settings)
    return asked


CONTEXT: Final = Operation(
    "context",
    ContextRequest,
    ContextBlock,
    "What answers, as a dated and fenced block of text for a prompt; empty if nothing does.",
    access=Access.READ,
    http=Http(body="ContextBody", summary="What to put into a prompt", tag="memory"),
    accept=_fitting,
)


_RUNS_KEPT = 1024


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

        # A few runs write what is recalled again and again.
        @lru_cache(maxsize=_RUNS_KEPT)
        def link_to(workflow_id: str, run_id: str | None) -> RunLink:
            url = run_url(workflow_id, run_id)
            return RunLink(workflow_id=workflow_id, run_id=run_id, url=url)

        self._link_to = link_to

    @handles(RECALL)
    async def recall(self, scope: Scope, asked: RecallRequest) -> list[RecallHit]:
        """The memories that answer, best first."""
        hits = self._noted(scope, await self._found(scope, asked))
        return [self._with_run(hit) for hit in hits]

    @handles(CONTEXT)
    async def context(self, scope: Scope, asked: ContextRequest) -> ContextBlock:
        """The memories that answer, as a block for a prompt."""
        # Who asks needs none of it.
        from engram.recall.context import block_of  # noqa: PLC0415

        hits = self._noted(scope, await self._new(scope, asked))
        return ContextBlock(
            context=block_of(hits, tokens=asked.tokens, query=asked.query, zone=asked.zone),
            memory_ids=tuple(one.id for hit in hits for one in (hit.memory, *hit.sources)),
        )

    async def close(self) -> None:
        """Write down what was noted."""
        await self._accesses.close()

    async def _found(self, scope: Scope, asked: RecallRequest) -> list[RecallHit]:
        with awaited():
            return await self._recaller.recall(scope, asked, self._clock())

    async def _new(self, scope: Scope, asked: ContextRequest) -> list[RecallHit]:
        """What answers and the prompt has not; a turn that is left out takes no other's place.

        Asked for wider only where some are left out, as most of a long chat answers nothing.
        """
        # Who asks needs none of it.
        from engram.recall.context import best_of, without_said  # noqa: PLC0415

        limit = wanted = max(asked.limit, _FEWEST_LOOKED_AT)
        widest = wanted + len(asked.already)
        while True:
            found = await self._found(scope, asked.model_copy(update={"limit": limit}))
            new = without_said(found, asked.already)
            if len(new) >= wanted or len(found) < limit or limit >= widest:
                return best_of(new, asked.limit)
            limit = min(2 * limit, widest)

    def _noted(self, scope: Scope, hits: list[RecallHit]) -> list[RecallHit]:
        self._accesses.note(scope, [hit.memory for hit in hits], self._clock())
        return hits

    def _with_run(self, hit: RecallHit) -> RecallHit:
        origin = hit.memory.provenance
        if origin.workflow_id is None:
            return hit
        run = self._link_to(origin.workflow_id, origin.run_id)
        explanation = hit.explanation
        if explanation is not None:
            explanation = explanation.model_copy(update={"run_url": run.url})
        return hit.model_copy(update={"explanation": explanation, "run": run})
