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
from engram.recall.pipeline import Recaller
from engram.recall.request import RecallRequest
from engram.recall.results import RecallHit
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from tests.benchmarks.locomo.conversations import Conversation

_AT_ONCE = 10
"""Turns per call, as a chat that saves now and then would send them."""


class Memories(Protocol):
    """Keeps one conversation per user and answers about it."""

    async def keep(self, conversation: Conversation) -> None:
        """Encode every turn."""
        ...

    async def ask(
        self, conversation: Conversation, query: str, *, limit: int, explain: bool = False
    ) -> Sequence[RecallHit]:
        """Recall turns."""
        ...


class InProcess:
    """The parts of a worker and of a client, put together without Temporal."""

    def __init__(self, repository: EdgeRepository, settings: Settings) -> None:
        embedder = make_embedder(settings.embedder)
        self._settings = settings
        self._turns = TurnStore(
            repository, embedder, Extractor(settings), lambda: uuid4().hex, settings.max_turn_bytes
        )
        self._recaller = Recaller(
            repository, embedder, settings.confidence_weights, settings, covers
        )

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
                        workflow_id="locomo",
                        run_id="locomo",
                    )
                )

    async def ask(
        self, conversation: Conversation, query: str, *, limit: int, explain: bool = False
    ) -> Sequence[RecallHit]:
        """See :class:`Memories`."""
        request = RecallRequest.of(
            query,
            settings=self._settings,
            limit=limit,
            memory_types=MemoryType.EPISODIC,
            explain=explain,
        )
        return await self._recaller.recall(_scope(conversation), request, datetime.now(UTC))


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
        self, conversation: Conversation, query: str, *, limit: int, explain: bool = False
    ) -> Sequence[RecallHit]:
        """See :class:`Memories`."""
        memory = self._memory.for_user(conversation.name)
        return await memory.recall(
            query, limit=limit, memory_types=MemoryType.EPISODIC, explain=explain
        )


@asynccontextmanager
async def opened(folder: Path, *, embedded: bool) -> AsyncIterator[Memories]:
    """Memories in a folder."""
    settings = Settings.load()
    if embedded:
        async with engram.open(folder, user_id="nobody") as memory:
            yield WholePath(memory)
        return
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


def _scope(conversation: Conversation) -> Scope:
    return Scope(namespace="default", user_id=conversation.name)
