"""What a batch of turns says one after another of the same thing: each gave way to the next."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from uuid import uuid4

import pytest

from engram.consolidation.findings import FindingsStore, ReadEpisode
from engram.contracts.importing import ImportBatch, ImportKind, StoreBatchInput
from engram.domain.memories import Episode, Fact, MemoryStatus, MemoryType
from engram.domain.scope import Scope
from engram.embedding.embedder import make_embedder
from engram.language.extractor import Extractor
from engram.ports import NewMemory
from engram.settings import Settings
from tests.support.clock import NOW
from tests.support.edge_stores import borrowed_store

SCOPE = Scope.of("default", "ada")
ADDRESSES = [f"ada{number}@example.org" for number in range(6)]


def read(number: int, address: str) -> ReadEpisode:
    """A turn that tells an address, and what the rules find in it."""
    at = NOW - timedelta(days=10 - number)
    words = f"My email address is {address}."
    turn = Episode(
        id=str(uuid4()),
        namespace=SCOPE.namespace,
        user_id=SCOPE.user_id,
        content=words,
        known_at=at,
        created_at=NOW,
        timestamp=at,
        role="user",
        message_id=f"m{number}",
    )
    return turn, Extractor(Settings.load()).extract(words, "user", None, at)


async def test_what_gave_way_in_a_batch_is_noted_in_two_writes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not in two for each of them; and what is noted is neither read nor written once more."""
    embedder = make_embedder("wordllama")
    told = [read(number, address) for number, address in enumerate(ADDRESSES)]
    writes: list[int] = []
    async with borrowed_store() as repository:
        vectors = await embedder.embed_documents([turn.content for turn, _ in told])
        pairs = zip(told, vectors, strict=True)
        await repository.insert(SCOPE, [NewMemory(turn, vector) for (turn, _), vector in pairs])
        replace = repository.replace

        async def counted(scope, replacements, *, stamp=None):  # type: ignore[no-untyped-def]  # as the store's own
            given = list(replacements)
            writes.append(len(given))
            return await replace(scope, given, stamp=stamp)

        monkeypatch.setattr(repository, "replace", counted)
        store = FindingsStore(repository, embedder, lambda: uuid4().hex)
        request = StoreBatchInput(
            scope=SCOPE,
            now=NOW,
            kind=ImportKind.TURNS,
            batch=ImportBatch(first=0, count=1, packed=""),
            workflow_id="w",
            run_id="r",
        )
        await store.store(request, told)
        assert writes == [5, 5]
        await store.store(request, told)
        assert writes == [5, 5]
        page = await repository.scroll(SCOPE, MemoryType.FACTUAL, limit=10)
    facts = sorted((m for m in page.memories if isinstance(m, Fact)), key=lambda m: m.value)
    assert [fact.value for fact in facts] == ADDRESSES
    for old, new in pairwise(facts):
        assert (old.status, old.superseded_by) == (MemoryStatus.SUPERSEDED, new.id)
        assert new.supersedes == (old.id,)
    assert facts[-1].status is MemoryStatus.ACTIVE
