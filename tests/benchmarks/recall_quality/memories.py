"""Conversations into a store, and their questions to it.

By default through the parts that ``encode`` and ``recall`` run on (turns are
stored as the storing activity stores them, questions go to the recaller) in this
process and without Temporal, which is faster. ``--embedded`` takes the
whole path of an application: a Temporal server, a session workflow for each
session, ``MemoryStore.encode`` and ``MemoryStore.recall``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol
from uuid import uuid4

import engram
from engram.consolidation.turns import TurnStore
from engram.contracts.session import EncodeCall, StoreTurnsInput
from engram.domain.memories import MemoryType
from engram.domain.scope import Scope
from engram.embedding.embedder import make_embedder
from engram.language.extractor import Extractor
from engram.language.negation_scope import covers
from engram.language.query import analyse
from engram.ports import Embedder
from engram.recall.pipeline import Recaller
from engram.recall.request import RecallRequest
from engram.recall.results import Ranked, RecallHit
from engram.recall.search import FoundMemory, PreparedQuery, Search, SearchBudget
from engram.recall.stages import Negations
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from tests.benchmarks.recall_quality.sets import Conversation, Question

_AT_ONCE = 10
"""Turns per call, as a chat that saves now and then would send them."""


class Memories(Protocol):
    """Keeps one conversation per user and answers about it."""

    async def keep(self, conversation: Conversation) -> None:
        """Encode every turn."""
        ...

    async def ask(
        self, conversation: Conversation, question: Question, *, limit: int
    ) -> Sequence[RecallHit]:
        """Recall turns."""
        ...


class InProcess:
    """The parts of a worker and of a client, put together without Temporal."""

    def __init__(self, repository: EdgeRepository, settings: Settings) -> None:
        embedder = make_embedder(settings.embedder)
        self._settings = settings
        self._embedder = embedder
        self._turns = TurnStore(
            repository, embedder, Extractor(settings), lambda: uuid4().hex, settings.max_turn_bytes
        )
        self._recaller = Recaller(
            repository, embedder, settings.confidence_weights, settings, covers
        )
        self._search = Search(repository, embedder)
        self._negations = Negations(repository, embedder.encode_terms, covers, 0.0)

    @property
    def embedder(self) -> Embedder:
        """What turns and questions are embedded with."""
        return self._embedder

    async def keep(self, conversation: Conversation) -> None:
        """See :class:`Memories`."""
        for session in conversation.sessions:
            for start in range(0, len(session.turns), _AT_ONCE):
                part = session.turns[start : start + _AT_ONCE]
                await self._turns.store(
                    StoreTurnsInput(
                        scope=_scope(conversation),
                        now=datetime.now(UTC),
                        session_id=session.name,
                        calls=(EncodeCall(turns=tuple(part)),),
                        first_sequence=start,
                        workflow_id="evaluation",
                        run_id="evaluation",
                    )
                )

    async def ask(
        self, conversation: Conversation, question: Question, *, limit: int
    ) -> Sequence[RecallHit]:
        """See :class:`Memories`."""
        now = question.at or datetime.now(UTC)
        return await self._recaller.recall(
            _scope(conversation), self._request(question, limit), now
        )

    async def bring_up(
        self, conversation: Conversation, question: Question, *, limit: int
    ) -> tuple[datetime, tuple[FoundMemory, ...], frozenset[str]]:
        """When it is asked, the candidates that recall scores, and the ids of those denied."""
        now = question.at or datetime.now(UTC)
        request = self._request(question, limit)
        prepared = PreparedQuery(
            scope=_scope(conversation),
            request=request,
            vectors=await self._embedder.embed_query(question.text),
            visibility=request.visibility(now),
            analysis=analyse(question.text, now),
        )
        reach = SearchBudget(
            candidates=max(self._settings.recall_candidates, 2 * limit),
            pool=max(self._settings.recall_pool, 3 * limit),
            loosely=True,
        )
        pool = await self._search.retrieve_candidates(prepared, reach)
        whole = [Ranked(one.memory, 1.0) for one in pool.found]
        spoken_against = await self._negations.apply(prepared, whole)
        denied = frozenset(one.memory.id for one in spoken_against if one.negated_by)
        return now, pool.found, denied

    def _request(self, question: Question, limit: int) -> RecallRequest:
        return RecallRequest.of(
            question.text,
            settings=self._settings,
            limit=limit,
            memory_types=MemoryType.EPISODIC,
        )


class WholePath:
    """A :class:`engram.MemoryStore` as applications hold it."""

    def __init__(self, memory: engram.MemoryStore) -> None:
        self._memory = memory

    async def keep(self, conversation: Conversation) -> None:
        """See :class:`Memories`."""
        memory = self._memory.for_user(conversation.name)
        for session in conversation.sessions:
            await memory.encode(session.turns, session_id=session.name)

    async def ask(
        self, conversation: Conversation, question: Question, *, limit: int
    ) -> Sequence[RecallHit]:
        """See :class:`Memories`; asked in the present, whenever the file asks it."""
        memory = self._memory.for_user(conversation.name)
        return await memory.recall(question.text, limit=limit, memory_types=MemoryType.EPISODIC)


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[InProcess]:
    """Memories in a folder."""
    settings = Settings.load()
    embedder = make_embedder(settings.embedder)
    repository = await EdgeRepository.open(
        folder / "store",
        embedder_identity=embedder.identity,
        dimensions=await embedder.dimensions(),
        settings=settings,
    )
    try:
        yield InProcess(repository, settings)
    finally:
        await repository.close()


@asynccontextmanager
async def opened_whole(folder: Path) -> AsyncIterator[WholePath]:
    """The same through a Temporal server, as applications have it."""
    async with engram.open(folder, user_id="nobody") as memory:
        yield WholePath(memory)


def _scope(conversation: Conversation) -> Scope:
    return Scope(namespace="default", user_id=conversation.name)
