"""Applying plans: first what is new, read back; then, and only then, what it replaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

import structlog

from engram.consolidation.amendments import amended, retired
from engram.contracts.consolidation import PlanOutput
from engram.domain.memories import AnyMemory, DerivedMemory, Episode, MemoryType, SemanticMemory
from engram.domain.plan import (
    Action,
    ConsolidationPlan,
    Discard,
    LinkGraph,
    Supersession,
    UpdateNote,
)
from engram.domain.scope import Scope
from engram.errors import StorageUnavailable
from engram.lifecycle.links import linked, without_link
from engram.lifecycle.promotion_pass import follow_sources
from engram.ports import Embedder, MemoryRepository, NewMemory
from engram.storage.updates import NewWriteId, episodes_by_id, update_memories

_SEMANTIC = (MemoryType.SEMANTIC,)
# A line of a log that grows without bound is cut by whoever collects it.
_LOGGED_AT_ONCE = 20
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PlanWriter:
    """Applies plans for the consolidation activities. Every method may run twice.

    Args:
        repository: Where memories are kept.
        embedder: Gives new memories their vectors.
        new_write_id: Makes a fresh value for each write.
    """

    repository: MemoryRepository
    embedder: Embedder
    new_write_id: NewWriteId

    async def write(
        self,
        scope: Scope,
        plan: ConsolidationPlan,
        now: datetime,
        progress: Callable[[str], None] = lambda _: None,
    ) -> PlanOutput:
        """Store what is new and read it back; confirm, count and link what exists.

        Raises:
            StorageUnavailable: something written was not there when it was read back.
        """
        _log_actions(plan)
        stored = await self._store(scope, plan.new_memories())
        progress("stored")
        amendments = {update.memory_id: update for update in plan.amendments()}
        episodes = await self._episodes(scope, amendments.values())
        updated = await update_memories(
            self.repository,
            scope,
            amendments,
            _on_semantic(lambda memory: amended(memory, amendments[memory.id], episodes)),
            new_write_id=self.new_write_id,
            types=_SEMANTIC,
        )
        progress("confirmed")
        links, lost = await self._link(scope, plan.links(), now)
        return PlanOutput(
            stored=stored,
            updated=tuple(sorted(updated.changed)),
            links=links,
            missing=tuple(sorted(updated.missing | lost)),
        )

    async def retire(self, scope: Scope, plan: ConsolidationPlan) -> PlanOutput:
        """Mark what the plan replaces, each memory naming its successor."""
        endings = {
            update.memory_id: update.supersession
            for update in plan.retirements()
            if update.supersession is not None
        }
        endings = await self._with_a_successor(scope, endings)
        updated = await update_memories(
            self.repository,
            scope,
            endings,
            _on_semantic(lambda memory: retired(memory, endings[memory.id])),
            new_write_id=self.new_write_id,
            types=_SEMANTIC,
        )
        # Of all of them, not only of those that changed now: a crash may have come in between.
        await follow_sources(self.repository, scope, endings, self.new_write_id)
        return PlanOutput(
            updated=tuple(sorted(updated.changed)), missing=tuple(sorted(updated.missing))
        )

    async def _store(self, scope: Scope, memories: tuple[SemanticMemory, ...]) -> tuple[str, ...]:
        memories = await self._with_a_source(scope, memories)
        if not memories:
            return ()
        ids = [memory.id for memory in memories]
        there = await self.repository.get(scope, ids, _SEMANTIC, fresh=True)
        missing = [memory for memory in memories if memory.id not in there]
        if missing:
            vectors = await self.embedder.embed_documents([m.indexed_text for m in missing])
            written = [m.model_copy(update={"write_id": self.new_write_id()}) for m in missing]
            pairs = zip(written, vectors, strict=True)
            await self.repository.insert(scope, [NewMemory(m, v) for m, v in pairs])
            there = await self.repository.get(scope, ids, _SEMANTIC, fresh=True)
        lost = [memory_id for memory_id in ids if memory_id not in there]
        if lost:
            raise StorageUnavailable(
                f"{len(lost)} of {len(ids)} new memories were not there when read back.",
                hint="Nothing was retired. Writing them again can succeed later.",
                details={"ids": lost[:10]},
            )
        return tuple(memory.id for memory in missing)

    async def _with_a_successor(
        self, scope: Scope, endings: dict[str, Supersession]
    ) -> dict[str, Supersession]:
        """Those whose successor exists: replaced by what was forgotten, nothing is replaced."""
        wanted = {ending.superseded_by for ending in endings.values()}
        if not wanted:
            return endings
        there = await self.repository.get(scope, wanted, _SEMANTIC, fresh=True)
        return {key: ending for key, ending in endings.items() if ending.superseded_by in there}

    async def _with_a_source(
        self, scope: Scope, memories: tuple[SemanticMemory, ...]
    ) -> tuple[SemanticMemory, ...]:
        """Those that still rest on something: a turn may be forgotten between plan and writing."""
        wanted = {source for memory in memories for source in memory.source_episode_ids}
        if not wanted:
            return memories
        there = await self.repository.get(scope, wanted, (MemoryType.EPISODIC,), fresh=True)
        kept = tuple(m for m in memories if not there.keys().isdisjoint(m.source_episode_ids))
        if len(kept) < len(memories):
            _log.info("new memories lost their sources", memories=len(memories) - len(kept))
        return kept

    async def _episodes(self, scope: Scope, updates: Iterable[UpdateNote]) -> dict[str, Episode]:
        wanted = {source for update in updates for source in update.add_sources}
        return await episodes_by_id(self.repository, scope, wanted)

    async def _link(
        self, scope: Scope, links: tuple[LinkGraph, ...], now: datetime
    ) -> tuple[int, frozenset[str]]:
        if not links:
            return 0, frozenset()
        ends = {end for link in links for end in (link.first_id, link.second_id)}
        there = await self.repository.get(scope, ends)
        edges: dict[str, list[LinkGraph]] = {}
        for link in links:
            first, second = there.get(link.first_id), there.get(link.second_id)
            # An edge to what was forgotten meanwhile would lead nowhere; and tests stay apart.
            if first is not None and second is not None and first.is_test == second.is_test:
                edges.setdefault(link.first_id, []).append(link)
                edges.setdefault(link.second_id, []).append(link)
        made: set[tuple[str, str]] = set()

        def change(memory: AnyMemory) -> AnyMemory | None:
            if not isinstance(memory, DerivedMemory):
                return None
            after: DerivedMemory = memory
            for link in edges[memory.id]:
                other = link.second_id if link.first_id == memory.id else link.first_id
                if link.instead_of is not None and link.first_id == memory.id:
                    after = without_link(after, link.instead_of, link.kind)
                known = any((x.target_id, x.kind) == (other, link.kind) for x in after.links)
                further = linked(after, other, link.kind, link.confidence, now)
                if further is not None:
                    after = further
                    if not known:
                        made.add((min(memory.id, other), max(memory.id, other)))
            return after if after is not memory else None  # type: ignore[return-value]  # a copy of an AnyMemory is one

        updated = await update_memories(
            self.repository, scope, edges, change, new_write_id=self.new_write_id
        )
        return len(made), frozenset(ends - there.keys()) | updated.missing


def _log_actions(plan: ConsolidationPlan) -> None:
    """How many actions of each kind and reason; at debug, of which memories.

    Never what they say.
    """
    reasons = Counter(str(action.reason) for action in plan.actions)
    _log.info("plan applied", actions=plan.counts(), reasons=dict(sorted(reasons.items())))
    for start in range(0, len(plan.actions), _LOGGED_AT_ONCE):
        part = plan.actions[start : start + _LOGGED_AT_ONCE]
        _log.debug("actions applied", actions=[_logged(action) for action in part])


def _logged(action: Action) -> str:
    match action:
        case UpdateNote():
            about = action.memory_id
        case LinkGraph():
            about = f"{action.first_id}~{action.second_id}"
        case Discard():
            about = "-"
        case _:
            about = action.memory.id
    return f"{action.action} {action.reason} {about}"


def _on_semantic(
    change: Callable[[SemanticMemory], SemanticMemory | None],
) -> Callable[[AnyMemory], AnyMemory | None]:
    def checked(memory: AnyMemory) -> AnyMemory | None:
        return change(memory) if isinstance(memory, SemanticMemory) else None

    return checked
