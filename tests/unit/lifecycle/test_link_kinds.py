"""Every kind of link is stored on both ends, and fades as it should; what is alike is linked."""

from __future__ import annotations

from datetime import timedelta
from typing import get_args
from uuid import uuid4

import pytest

from engram.agents.requests import ProposedKind
from engram.consolidation.apply import PlanWriter
from engram.consolidation.verify import verify
from engram.domain.memories import LinkKind, MemoryStatus, MemoryType, SemanticMemory
from engram.domain.plan import ConsolidationPlan, LinkGraph
from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.lifecycle.links import edge_confidence
from engram.ports import NewMemory
from engram.storage.updates import episodes_by_id
from tests.support.edge_stores import borrowed_store
from tests.support.in_process_memory import InProcessMemory, when
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


async def active(memory: InProcessMemory, user: Scope) -> dict[str, SemanticMemory]:
    """What stands of a user's knowledge, by its words."""
    page = await memory.repository.scroll(user, MemoryType.SEMANTIC)
    known = (m for m in page.memories if isinstance(m, SemanticMemory))
    return {m.content: m for m in known if m.status is MemoryStatus.ACTIVE}


async def tea_drinker(memory: InProcessMemory) -> tuple[SemanticMemory, SemanticMemory]:
    """Two likings of one user after three linking passes."""
    user = Scope.of("default", uuid4().hex)
    for number, turn in enumerate(("I like tea.", "I like green tea.", "I live in Porto.")):
        await memory.hear(user, [turn], first=number)
        await memory.consolidate(user, when(number))
    known = await active(memory, user)
    return known["The user likes tea."], known["The user likes green tea."]


async def test_knowledge_that_is_alike_reinforces_at_run_time() -> None:
    """Linked both ways from the setting's similarity on; how likely, and what it adds, are set."""
    async with borrowed_store() as store:
        tea, green = await tea_drinker(InProcessMemory(store))
        for one, other in ((tea, green), (green, tea)):
            (link,) = (x for x in one.links if x.target_id == other.id)
            assert link.kind is LinkKind.REINFORCES
            assert link.confidence >= 0.7
        assert tea.selectivity == pytest.approx(0.2)
        strict = {"edges": {"similarity": 0.99}, "promotion": {"selectivity_step": 0.3}}
        tea, green = await tea_drinker(InProcessMemory(store, lifecycle=strict))
        assert (tea.links, green.links) == ((), ())
        assert tea.selectivity == pytest.approx(0.6)


async def test_a_paraphrase_is_merged_without_a_language_model() -> None:
    """The same words in another form are one memory with two sources; a denial never joins."""
    async with borrowed_store() as store:
        memory = InProcessMemory(store)
        user = memory.somebody()
        said = ("I like green tea.", "I like green teas.", "I don't like black tea.")
        for number, turn in enumerate((*said, "I like black teas.")):
            await memory.hear(user, [turn], first=number)
            await memory.consolidate(user, when(number))
        known = await active(memory, user)
        assert "The user likes green teas." not in known
        green = known["The user likes green tea."]
        assert len(green.source_episode_ids) == 2
        assert verify(green, await episodes_by_id(store, user, green.source_episode_ids)).ok
        assert "The user likes black teas." in known
