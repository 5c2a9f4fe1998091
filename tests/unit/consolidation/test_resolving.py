"""Commitments are resolved by hand, on the real store."""

from __future__ import annotations

from uuid import uuid4

import pytest

from engram.domain.memories import Category, MemoryStatus, Resolution, SemanticMemory
from engram.embedding.choice import make_embedder
from engram.errors import InvalidInput, MemoryNotFound
from engram.operations.memories import CommitmentHandlers, Resolve
from engram.ports import MemoryRepository, NewMemory
from tests.support.reconciliation import NOW, SCOPE, ReconciledKnowledge, said, stated


async def stored(repository: MemoryRepository, category: Category) -> SemanticMemory:
    """A memory of that category."""
    knowledge, turn = ReconciledKnowledge(), said(1)
    content = "The user promised Bo a cake."
    plan = knowledge.hear(turn, stated(turn, None, "", content=content, category=category))
    (memory,) = plan.new_memories()
    (vector,) = await make_embedder("wordllama").embed_documents([memory.content])
    await repository.insert(SCOPE, [NewMemory(memory, vector)])
    return memory


async def test_a_commitment_is_resolved_once_and_stays_readable(
    repository: MemoryRepository,
) -> None:
    """Saying it again writes nothing; saying otherwise does."""
    promise = await stored(repository, Category.COMMITMENT)
    handlers = CommitmentHandlers(repository, lambda: NOW, lambda: uuid4().hex)
    asked = Resolve(memory_id=promise.id, resolution=Resolution.FULFILLED)
    kept = await handlers.resolve(SCOPE, asked)
    assert (kept.resolution, kept.resolved_at) == (Resolution.FULFILLED, NOW)
    assert kept.status is MemoryStatus.ACTIVE
    assert await handlers.resolve(SCOPE, asked) == kept
    otherwise = Resolve(memory_id=promise.id, resolution=Resolution.EXPIRED)
    assert (await handlers.resolve(SCOPE, otherwise)).resolution is Resolution.EXPIRED


async def test_only_commitments_are_resolved(repository: MemoryRepository) -> None:
    """A typed error for anything else, and for what does not exist."""
    fact = await stored(repository, Category.FACT)
    handlers = CommitmentHandlers(repository, lambda: NOW, lambda: uuid4().hex)
    with pytest.raises(InvalidInput, match="commitments"):
        await handlers.resolve(SCOPE, Resolve(memory_id=fact.id, resolution=Resolution.EXPIRED))
    with pytest.raises(MemoryNotFound):
        await handlers.resolve(SCOPE, Resolve(memory_id="no", resolution=Resolution.EXPIRED))
