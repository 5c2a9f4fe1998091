"""What test turns state and what real turns state never meet."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import pytest

from engram.consolidation.apply import PlanWriter
from engram.consolidation.keep import Circumstances
from engram.consolidation.known import KnownMemories
from engram.consolidation.reconcile import reconcile
from engram.domain.buffer import batches
from engram.domain.identity import content_hash, derived_id, with_test_namespace
from engram.domain.memories import Episode, MemoryStatus, MemoryType, SemanticMemory
from engram.domain.plan import ConsolidationPlan, LinkGraph, Statement
from engram.embedding.choice import make_embedder
from engram.ports import Embedder, MemoryRepository, NewMemory
from tests.support.edge_stores import borrowed_store
from tests.support.reconciliation import SCOPE, ReconciledKnowledge, said, stated

_counter = itertools.count()


@dataclass
class Consolidated:
    """A real store in which statements are reconciled."""

    repository: MemoryRepository
    embedder: Embedder

    async def take(self, episodes: Sequence[Episode], *statements: Statement) -> ConsolidationPlan:
        """Store turns, reconcile what they state with what is known, and apply the plan."""
        vectors = await self.embedder.embed_documents([e.indexed_text for e in episodes])
        pairs = zip(episodes, vectors, strict=True)
        await self.repository.insert(SCOPE, [NewMemory(e, vector) for e, vector in pairs])
        sides = frozenset(e.is_test for e in episodes)
        known = await KnownMemories(self.repository, self.embedder).about(
            SCOPE, statements, sides=sides
        )
        plan = reconcile(statements, known, circumstances(episodes))
        writer = self.writer()
        await writer.write(SCOPE, plan)
        await writer.retire(SCOPE, plan)
        return plan

    def writer(self) -> PlanWriter:
        """Applies plans."""
        return PlanWriter(self.repository, self.embedder, lambda: f"w{next(_counter)}")

    async def all(self) -> list[SemanticMemory]:
        """Everything that was concluded, real ones first."""
        page = await self.repository.scroll(SCOPE, MemoryType.SEMANTIC)
        found = [m for m in page.memories if isinstance(m, SemanticMemory)]
        return sorted(found, key=lambda memory: (memory.is_test, memory.known_at))


def circumstances(episodes: Sequence[Episode]) -> Circumstances:
    """Under which the statements of these turns are reconciled."""
    return ReconciledKnowledge(episodes={e.id: e for e in episodes}).circumstances()


def tried(days: int, name: str = "") -> Episode:
    """A test turn of that day."""
    return said(days, f"{name}-test").model_copy(update={"is_test": True})


@pytest.fixture
async def knowledge() -> AsyncIterator[Consolidated]:
    """A fresh store."""
    async with borrowed_store() as edge:
        yield Consolidated(edge, make_embedder("wordllama"))


async def test_neither_side_confirms_or_replaces_the_other(knowledge: Consolidated) -> None:
    """The same words twice are two memories; a test's move to London moves nobody."""
    real, test, moved = said(1), tried(2), tried(3)
    await knowledge.take([real], stated(real, "lives in", "Paris"))
    await knowledge.take([test], stated(test, "lives in", "Paris"))
    await knowledge.take([moved], stated(moved, "lives in", "London"))
    paris, test_paris, test_london = await knowledge.all()
    assert paris.status is MemoryStatus.ACTIVE
    assert paris.source_episode_ids == (real.id,)
    assert (test_paris.is_test, test_paris.status) == (True, MemoryStatus.SUPERSEDED)
    assert test_paris.source_episode_ids == (test.id,)
    assert test_paris.superseded_by == test_london.id
    assert paris.identity == content_hash(paris.content)
    assert test_paris.identity == f"test:{paris.identity}"


async def test_the_same_test_turn_again_finds_its_own_memory(knowledge: Consolidated) -> None:
    """A second test turn confirms the test memory, of which there stays one."""
    first, second = tried(1), tried(2)
    await knowledge.take([first], stated(first, None, "likes tea"))
    await knowledge.take([second], stated(second, None, "likes tea"))
    (only,) = await knowledge.all()
    assert only.source_episode_ids == (first.id, second.id)


async def test_links_join_no_test_to_what_is_real(knowledge: Consolidated) -> None:
    """A plan that links them links nothing; a search for what is near stays on its side."""
    real, test = said(1), tried(1)
    await knowledge.take([real], stated(real, None, "likes green tea"))
    await knowledge.take([test], stated(test, None, "likes green tea"))
    one, other = await knowledge.all()
    across = LinkGraph(why="alike", first_id=one.id, second_id=other.id)
    plan = ConsolidationPlan(actions=(across,))
    assert (await knowledge.writer().write(SCOPE, plan)).links == 0
    near = KnownMemories(knowledge.repository, knowledge.embedder)
    assert (await near.near(SCOPE, [one], limit=5)).memories == []
    assert (await near.near(SCOPE, [other], limit=5)).memories == []


def test_one_statement_of_both_becomes_two() -> None:
    """Where a model takes one statement from both sides, each memory has its own sources."""
    real, test = said(1), tried(1)
    both = stated(real, "lives in", "Paris", episode_ids=(real.id, test.id))
    plan = reconcile([both], [], circumstances([real, test]))
    ours, theirs = plan.new_memories()
    assert (ours.is_test, ours.source_episode_ids) == (False, (real.id,))
    assert (theirs.is_test, theirs.source_episode_ids) == (True, (test.id,))


def test_test_turns_are_read_apart() -> None:
    """No extraction reads test turns together with real ones of the same session."""
    cut = batches([said(1), tried(1), said(2)], max_turns=10, max_bytes=10_000)
    assert [[e.is_test for e in batch] for batch in cut] == [[False, False], [True]]


def test_the_ids_of_real_memories_are_as_they_were() -> None:
    """Fixed for ever: a change would give every stored conclusion a new id."""
    identity = content_hash("The user lives in Paris.")
    assert with_test_namespace(identity, is_test=False) == identity
    assert with_test_namespace(identity, is_test=True) != identity
    assert derived_id(SCOPE, "semantic", identity, 0) == "fd18854c-bc0d-50eb-ab0b-abf87a877f74"
