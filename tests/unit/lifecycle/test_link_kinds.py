"""Every kind of link that a model may propose is stored on both ends, and fades as it should."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import get_args
from uuid import uuid4

from engram.agents.answers import ProposedKind
from engram.domain.lifecycle.edges import edge_confidence
from engram.domain.memories import LinkKind, MemoryType
from engram.domain.plan import ConsolidationPlan, LinkGraph
from engram.embedding.embedder import make_embedder
from engram.ports import NewMemory
from engram.settings import Settings
from engram.writing.plans import PlanWriter
from tests.support.lifecycle_memories import day
from tests.support.lifecycle_workers import knowledge
from tests.support.reconciliation import SCOPE
from tests.support.stores import open_edge

BY_PROMOTION = {LinkKind.PROMOTED_TO, LinkKind.CRYSTALLIZED_INTO}
BY_RECALLS = {LinkKind.COACTIVATED}
LASTING = {*BY_PROMOTION, LinkKind.BELONGS_TO}


async def test_each_proposed_kind_is_stored_and_fades(tmp_path: Path) -> None:
    """Entity, time, causal and the others reach the store; only how things came about lasts."""
    proposed = set(get_args(ProposedKind))
    assert proposed | BY_PROMOTION | BY_RECALLS == set(LinkKind)
    embedder = make_embedder("wordllama")
    first, second = (knowledge(SCOPE, words, day(0)) for words in ("It rains", "It is wet"))
    async with open_edge(tmp_path, Settings.load()) as repository:
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
        await writer.write(SCOPE, plan, day(1))
        found = await repository.get(SCOPE, [first.id, second.id], [MemoryType.SEMANTIC])
    later = day(1) + timedelta(days=365)
    for one, other in ((first, second), (second, first)):
        links = {link.kind: link for link in getattr(found[one.id], "links", ())}
        assert links.keys() == proposed
        assert {link.target_id for link in links.values()} == {other.id}
        for kind, link in links.items():
            assert (edge_confidence(link, later) == link.confidence) == (kind in LASTING)
