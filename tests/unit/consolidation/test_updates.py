"""Changing memories while others change them too, on the real engine."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest

from engram.domain.memories import AnyMemory, MemoryType
from engram.embedding.choice import make_embedder
from engram.errors import LostUpdate
from engram.ports import MemoryRepository, NewMemory
from engram.storage.updates import update_memories
from tests.support.edge_stores import borrowed_store
from tests.support.reconciliation import SCOPE, said

_writes = itertools.count()


def write_id() -> str:
    """A value no other write has."""
    return f"w{next(_writes)}"


@pytest.fixture
async def repository() -> AsyncIterator[MemoryRepository]:
    """A store with three turns."""
    async with borrowed_store() as opened:
        episodes = [said(day) for day in range(3)]
        vectors = await make_embedder("wordllama").embed_documents([e.content for e in episodes])
        pairs = zip(episodes, vectors, strict=True)
        await opened.insert(SCOPE, [NewMemory(e, v) for e, v in pairs])
        yield opened


def tagged(tag: str) -> object:
    """A change that adds a tag."""

    def change(memory: AnyMemory) -> AnyMemory | None:
        if tag in memory.tags:
            return None
        return memory.model_copy(update={"tags": (*memory.tags, tag)})

    return change


async def _update(repository: MemoryRepository, tag: str, attempts: int = 40) -> None:
    await update_memories(
        repository,
        SCOPE,
        [said(0).id],
        tagged(tag),  # type: ignore[arg-type]  # a change, see tagged
        new_write_id=write_id,
        attempts=attempts,
    )


async def test_twenty_writers_lose_nothing(repository: MemoryRepository) -> None:
    """Every writer's change is there at the end, whoever won each race."""
    await asyncio.gather(*(_update(repository, f"t{n}") for n in range(20)))
    found = await repository.get(SCOPE, [said(0).id], [MemoryType.EPISODIC])
    assert set(found[said(0).id].tags) == {f"t{n}" for n in range(20)}
    assert found[said(0).id].revision == 20


async def test_nothing_to_do_writes_nothing(repository: MemoryRepository) -> None:
    """A change that returns None leaves the revision; what is missing is reported, not made."""
    await _update(repository, "once")
    again = await update_memories(
        repository,
        SCOPE,
        [said(0).id, said(99).id],
        tagged("once"),  # type: ignore[arg-type]  # a change, see tagged
        new_write_id=write_id,
    )
    assert again.changed == frozenset()
    assert again.unchanged == {said(0).id}
    assert again.missing == {said(99).id}
    found = await repository.get(SCOPE, [said(0).id, said(99).id])
    assert {key: memory.revision for key, memory in found.items()} == {said(0).id: 1}


async def test_always_losing_ends_in_a_typed_error(repository: MemoryRepository) -> None:
    """Attempts are bounded: a writer that never wins says so."""

    class Contested:
        """The store, with somebody who is always faster."""

        def __getattr__(self, name: str) -> object:
            return getattr(repository, name)

        async def replace(self, *arguments: object, **options: object) -> frozenset[str]:
            """Lose."""
            return frozenset()

    with pytest.raises(LostUpdate) as lost:
        await _update(Contested(), "never", attempts=3)  # type: ignore[arg-type]  # stands in for the store
    assert lost.value.details["attempts"] == 3
