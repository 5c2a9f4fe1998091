"""A memory to be measured: turns go in and questions are answered as a worker and a client do it.

Without Temporal, and in a folder of its own: what is measured is what is found, and nothing that
is measured stays.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

from engram.agents.reranking import make_reranker
from engram.consolidation.turns import TurnStore
from engram.contracts.session import EncodeCall, StoreTurnsInput
from engram.domain.memories import MemoryType
from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.errors import EngramError, InvalidInput, error_from_dict
from engram.evaluation.metrics import DEPTH
from engram.evaluation.talks import Talk, TalkQuestion
from engram.language.extractor import Extractor
from engram.language.negation_scope import covers
from engram.language.query import analyse
from engram.ports import Clock, Embedder, Reranker
from engram.recall.denials import Negations
from engram.recall.pipeline import Recaller, first_reach
from engram.recall.request import RecallRequest
from engram.recall.results import Ranked, RecallHit
from engram.recall.search import (
    FoundMemory,
    PreparedQuery,
    Search,
)
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from engram.transfer.accept import session_name

_AT_ONCE: Final = 10
"""Turns per call, as a chat that saves now and then would send them."""


class MeasuredMemory:
    """The parts of a worker and of a client, put together without Temporal.

    Args:
        repository: Where turns are kept.
        embedder: What turns and questions are embedded with.
        settings: Which turns are stored by.
        clock: The present, where a question names no moment.
        new_id: Gives a fresh id for each write.
    """

    def __init__(
        self,
        repository: EdgeRepository,
        embedder: Embedder,
        settings: Settings,
        *,
        clock: Clock,
        new_id: Callable[[], str],
    ) -> None:
        self._repository = repository
        self.embedder = embedder
        self._clock = clock
        self._turns = TurnStore(
            repository, embedder, Extractor(settings), new_id, settings.max_turn_bytes
        )
        self._search = Search(repository, embedder)
        self._rerankers: dict[str, Reranker] = {}
        self._negations = Negations(repository, embedder, covers, 0.0)

    async def keep(self, talk: Talk) -> None:
        """Store every turn.

        Raises:
            InvalidInput: one of them cannot be kept, so that no figure would be true; its place is
                named, nothing quoted.
        """
        for place, session in enumerate(talk.sessions, start=1):
            for start in range(0, len(session.turns), _AT_ONCE):
                part = session.turns[start : start + _AT_ONCE]
                for number, turn in enumerate(part, start=start + 1):
                    if turn.timestamp is None or turn.message_id is None:
                        why = InvalidInput("It has no time or no id.", allowed="turns with both")
                        raise _unkept(talk, place, number, why)
                outcomes = await self._turns.store(
                    StoreTurnsInput(
                        scope=_scope(talk),
                        now=self._clock(),
                        session_id=session_name(session.name),
                        # A call is kept whole or not at all: each turn is one, to tell which.
                        calls=tuple(EncodeCall(turns=(turn,)) for turn in part),
                        first_sequence=start,
                        workflow_id="evaluation",
                        run_id="evaluation",
                    )
                )
                for number, one in enumerate(outcomes, start=start + 1):
                    if one.error is not None:
                        raise _unkept(talk, place, number, error_from_dict(one.error))

    async def ask(
        self, talk: Talk, question: TalkQuestion, settings: Settings, *, limit: int = DEPTH
    ) -> Sequence[RecallHit]:
        """Recall turns, as a client with these settings does."""
        recaller = Recaller(
            self._repository,
            self.embedder,
            settings.confidence_weights,
            settings,
            covers,
            self._reranker(settings.reranker),
        )
        request = _request(question, settings, limit)
        return await recaller.recall(_scope(talk), request, question.at or self._clock())

    def _reranker(self, spec: str | None) -> Reranker | None:
        """The one that is named, loaded once for all questions."""
        if spec is not None and spec not in self._rerankers:
            self._rerankers[spec] = make_reranker(spec)
        return None if spec is None else self._rerankers[spec]

    async def bring_up(
        self, talk: Talk, question: TalkQuestion, settings: Settings
    ) -> tuple[datetime, tuple[FoundMemory, ...], frozenset[str]]:
        """When it is asked, the candidates that recall scores, and the ids of those denied."""
        now = question.at or self._clock()
        request = _request(question, settings, DEPTH)
        prepared = PreparedQuery(
            scope=_scope(talk),
            request=request,
            vectors=await self.embedder.embed_query(question.text),
            visibility=request.visibility(now),
            analysis=analyse(question.text, now),
        )
        reach = first_reach(prepared, settings)
        pool = await self._search.retrieve_candidates(prepared, reach)
        whole = [Ranked(one.memory, 1.0) for one in pool.found]
        spoken_against = await self._negations.apply(prepared, whole)
        denied = frozenset(one.memory.id for one in spoken_against if one.negated_by)
        return now, pool.found, denied


@asynccontextmanager
async def measured_memory(
    folder: Path, settings: Settings, *, clock: Clock, new_id: Callable[[], str]
) -> AsyncIterator[MeasuredMemory]:
    """A memory in a folder, for as long as the block runs.

    Args:
        folder: Empty; it is the caller's to remove.
        settings: Which turns are stored by, the embedder among them.
        clock: The present.
        new_id: Gives a fresh id for each write.
    """
    embedder = make_embedder(settings.embedder)
    repository = await EdgeRepository.open(
        folder / "store",
        embedder_identity=embedder.identity,
        dimensions=await embedder.dimensions(),
        settings=settings,
    )
    try:
        yield MeasuredMemory(repository, embedder, settings, clock=clock, new_id=new_id)
    finally:
        await repository.close()


def _request(question: TalkQuestion, settings: Settings, limit: int) -> RecallRequest:
    return RecallRequest.of(
        question.text, settings=settings, limit=limit, memory_types=MemoryType.EPISODIC
    )


def _scope(talk: Talk) -> Scope:
    return Scope(namespace="default", user_id=session_name(talk.name))


def _unkept(talk: Talk, session: int, number: int, why: EngramError) -> InvalidInput:
    return InvalidInput(
        f"Turn {number} of session {session} of {session_name(talk.name)} cannot be kept: "
        f"{why.message}",
        allowed=why.allowed,
    )
