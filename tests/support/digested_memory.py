"""A user's memory with digests on it, over a store that counts what is asked of it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from typing import Any

from engram.digests.stage import Digests
from engram.digests.versions import Composer
from engram.domain.memories import (
    AnyMemory,
    MemoryStatus,
    MemoryType,
    SemanticMemory,
)
from engram.domain.rules import DigestPolicy
from engram.embedding.choice import make_embedder
from engram.errors import StorageUnavailable
from engram.language.negation_scope import covers
from engram.operations.digests import DigestHandlers
from engram.ports import MemoryRepository, NewMemory
from engram.recall.denials import Negations
from engram.storage.updates import update_memories
from tests.support.digest_memories import ADA, minute

POLICY = DigestPolicy()


class CountingStore:
    """A store that counts what is asked of it, and fails where it is told to.

    Attributes:
        calls: How often each method was called.
        read: How many memories came back.
        fails_at: Which write, counted from 1, fails; 0 for none.
        forgets_turns: Whether turns are forgotten as soon as they were listed.
    """

    def __init__(self, inner: MemoryRepository) -> None:
        self.inner = inner
        self.calls: Counter[str] = Counter()
        self.read = 0
        self.writes = 0
        self.fails_at = 0
        self.forgets_turns = False

    def __getattr__(self, name: str) -> Any:
        inner = getattr(self.inner, name)

        async def watched(*args: Any, **kwargs: Any) -> Any:
            self.calls[name] += 1
            if name in {"insert", "replace"}:
                self.writes += 1
                if self.writes == self.fails_at:
                    raise StorageUnavailable("staged")
            answer = await inner(*args, **kwargs)
            found = getattr(answer, "memories", answer)
            if self.forgets_turns and name == "scroll" and MemoryType.EPISODIC in args:
                await self.inner.delete(ADA, MemoryType.EPISODIC, [m.id for m in found])
            self.read += len(found) if name in {"get", "scroll", "search"} else 0
            return answer

        return watched


def digests_of(repository: MemoryRepository, asked: Any = None) -> DigestHandlers:
    """What answers about digests; with ``asked``, that is asked for them in place of the store."""
    negations = Negations(repository, make_embedder("wordllama"), covers, 0.0)
    return DigestHandlers(asked or repository, negations, lambda: minute(100_000), POLICY)


class DigestedMemory:
    """A user's memory with digests on it."""

    def __init__(self, repository: MemoryRepository) -> None:
        self.store = CountingStore(repository)
        self.embedder = make_embedder("wordllama")
        counter = itertools.count()
        watched: Any = self.store
        self.digests = Digests(watched, self.embedder, lambda: f"w{next(counter)}")
        self.asked = digests_of(repository, watched)
        self.runs = 0

    async def keep(self, *memories: AnyMemory) -> None:
        """Store memories."""
        for start in range(0, len(memories), 500):
            part = memories[start : start + 500]
            vectors = await self.embedder.embed_documents([m.indexed_text for m in part])
            pairs = zip(part, vectors, strict=True)
            await self.store.inner.insert(ADA, [NewMemory(m, v) for m, v in pairs])

    async def supersede(self, old: SemanticMemory, new: SemanticMemory) -> None:
        """Let one memory replace another."""
        ended = {
            "status": MemoryStatus.SUPERSEDED,
            "superseded_by": new.id,
            "superseded_known_at": new.known_at,
        }
        await update_memories(
            self.store.inner,
            ADA,
            [old.id],
            lambda memory: memory.model_copy(update=ended),
            new_write_id=lambda: f"s{old.id}",
        )

    async def digest(self, *touched: AnyMemory, ended: Iterable[str] = ()) -> None:
        """The digest stage for what was touched."""
        self.runs += 1
        composer = Composer(ADA, minute(10_000 + self.runs), "w", "r")
        memories = [m.id for m in touched if isinstance(m, SemanticMemory)]
        episodes = [m.id for m in touched if not isinstance(m, SemanticMemory)]
        await self.digests.knowledge(composer, memories, episodes, POLICY)
        await self.digests.sessions(composer, episodes, ended, POLICY)

    async def picture(self) -> list[tuple[Any, ...]]:
        """Every digest, without what differs between runs that did the same."""
        page = await self.store.inner.scroll(ADA, MemoryType.SEMANTIC, limit=500)
        digests = [m for m in page.memories if isinstance(m, SemanticMemory) and m.detail]
        return sorted(
            (m.id, m.content, m.status.value, m.superseded_by, m.known_at, m.detail, m.related_ids)
            for m in digests
        )
