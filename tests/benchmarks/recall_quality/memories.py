"""The whole path of an application: a Temporal server, ``MemoryStore.encode`` and ``recall``.

:mod:`engram.evaluation.memories` has the same parts without Temporal, which is faster.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import engram
from engram.domain.memories import MemoryType
from engram.evaluation.talks import Talk, TalkQuestion
from engram.recall.results import RecallHit


class WholePath:
    """A :class:`engram.MemoryStore` as applications hold it."""

    def __init__(self, memory: engram.MemoryStore) -> None:
        self._memory = memory

    async def keep(self, talk: Talk) -> None:
        """Encode every turn."""
        memory = self._memory.for_user(talk.name)
        for session in talk.sessions:
            await memory.encode(session.turns, session_id=session.name)

    async def ask(self, talk: Talk, question: TalkQuestion, *, limit: int) -> Sequence[RecallHit]:
        """Recall turns; asked in the present, whenever the file asks it."""
        memory = self._memory.for_user(talk.name)
        return await memory.recall(question.text, limit=limit, memory_types=MemoryType.EPISODIC)


@asynccontextmanager
async def opened_whole(folder: Path) -> AsyncIterator[WholePath]:
    """The same through a Temporal server, as applications have it."""
    async with engram.open(folder, user_id="nobody") as memory:
        yield WholePath(memory)
