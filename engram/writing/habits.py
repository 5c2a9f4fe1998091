"""Habits hold as long as the knowledge they came from does."""

from __future__ import annotations

from collections.abc import Iterable

from engram.domain.lifecycle.promotion import following
from engram.domain.memories import (
    AnyMemory,
    LinkKind,
    MemoryType,
    ProceduralMemory,
    SemanticMemory,
)
from engram.domain.scope import Scope
from engram.ports import MemoryRepository
from engram.writing.updates import NewWriteId, update_memories

_BECAME = frozenset({LinkKind.PROMOTED_TO, LinkKind.CRYSTALLIZED_INTO})


async def follow_sources(
    repository: MemoryRepository,
    scope: Scope,
    source_ids: Iterable[str],
    new_write_id: NewWriteId,
) -> frozenset[str]:
    """Let the habits made of this knowledge end with it, or return; the ids of those that did.

    Args:
        repository: Where memories are kept; it stamps what it writes.
        scope: Whose they are.
        source_ids: Knowledge whose status changed.
        new_write_id: Makes a fresh value for each write.
    """
    found = await repository.get(scope, source_ids, (MemoryType.SEMANTIC,), fresh=True)
    origins: dict[str, SemanticMemory] = {}
    for source in found.values():
        if isinstance(source, SemanticMemory):
            became = (link.target_id for link in source.links if link.kind in _BECAME)
            origins.update((habit_id, source) for habit_id in became)
    if not origins:
        return frozenset()

    def change(memory: AnyMemory) -> AnyMemory | None:
        if not isinstance(memory, ProceduralMemory):
            return None
        return following(memory, origins[memory.id])

    updated = await update_memories(
        repository,
        scope,
        origins,
        change,
        new_write_id=new_write_id,
        types=(MemoryType.PROCEDURAL,),
    )
    return updated.changed
