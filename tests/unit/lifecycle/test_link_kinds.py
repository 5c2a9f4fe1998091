"""Every kind of link that a model may propose is stored on both ends, and fades as it should."""

from __future__ import annotations

from datetime import timedelta
from typing import get_args
from uuid import uuid4

from engram.agents.requests import ProposedKind
from engram.consolidation.apply import PlanWriter
from engram.domain.memories import LinkKind, MemoryType
from engram.domain.plan import ConsolidationPlan, LinkGraph
from engram.embedding.embedder import make_embedder
from engram.lifecycle.links import edge_confidence
from engram.ports import NewMemory
from tests.support.edge_stores import borrowed_store
from tests.support.lifecycle_memories import day
from tests.support.lifecycle_workers import knowledge
from tests.support.reconciliation import SCOPE

BY_PROMOTION = {LinkKind.PROMOTED_TO, LinkKind.CRYSTALLIZED_INTO}
BY_RECALLS = {LinkKind.COACTIVATED}
LASTING = {*BY_PROMOTION, LinkKind.BELONGS_TO}


async def test_each_proposed_kind_is_stored_and_fades() -> None:
    """Entity, time, causal and the others reach the store; only how things came about lasts."""
    proposed = set(get_args(ProposedKind))
    assert proposed | BY_PROMOTION | BY_RECALLS == set(LinkKind)
    embedder = make_embedder("wordllama")
    first, second = (knowledge(SCOPE, words, day(0)) for words in ("It rains", "It is wet"))
    async with borrowed_store() as repository:
        vectors = await embedder.embed_documents([first.content, second.content])
        pairs = zip((first, second), vectors, strict=True)
        await repository.insert(SCOPE, [NewMemory(memory, vector) for memory, vector in pairs])
        plan = ConsolidationPlan(
            actions=tuple(
                LinkGraph(
                    why="told", first_id=first.id, second_id=second.id, kind=kind, confidence=0.9
                )
                for kind in sorted(proposed)
            )
        )
        writer = PlanWriter(repository, embedder, lambda: uuid4().hex)
        await writer.write(SCOPE, plan)
        found = await repository.get(SCOPE, [first.id, second.id], [MemoryType.SEMANTIC])
    later = day(1) + timedelta(days=365)
    for one, other in ((first, second), (second, first)):
        links = {link.kind: link for link in getattr(found[one.id], "links", ())}
        assert links.keys() == proposed
        assert {link.target_id for link in links.values()} == {other.id}
        for kind, link in links.items():
            assert (edge_confidence(link, later) == link.confidence) == (kind in LASTING)
