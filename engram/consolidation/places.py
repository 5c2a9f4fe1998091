"""The timeline of one memory, read from the store as a whole and placed anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TypeAlias

from engram.consolidation.amendments import amended, retired
from engram.consolidation.keep import Circumstances
from engram.consolidation.reconcile import placed_again
from engram.domain.memories import (
    AnyMemory,
    DerivedMemory,
    Episode,
    MemoryForm,
    Provenance,
    SemanticMemory,
)
from engram.domain.plan import ConsolidationPlan
from engram.domain.scope import Scope
from engram.domain.slots import is_functional, related_predicates, timeline_key
from engram.ports import AnyOf, Equals, Filter, MemoryRepository
from engram.storage.updates import all_of

Placing: TypeAlias = Callable[[SemanticMemory], SemanticMemory | None]


async def timeline_of(
    repository: MemoryRepository, scope: Scope, memory: AnyMemory | DerivedMemory
) -> dict[str, SemanticMemory]:
    """All that shares a timeline with a memory, itself too; none where it has none."""
    if not isinstance(memory, SemanticMemory) or memory.slot is None:
        return {}
    slot = memory.slot
    about: Filter = (
        Equals("slot.subject", slot.subject),
        AnyOf("slot.predicate", related_predicates(slot)),
    )
    if not is_functional(slot):
        about = (*about, Equals("slot.object", slot.object))
    return {
        one.id: one
        for one in await all_of(repository, scope, SemanticMemory, where=about)
        if one.slot is not None
        and one.form is MemoryForm.STATEMENT
        and one.is_test == memory.is_test
        and timeline_key(one.slot) == timeline_key(slot)
    }


def places(scope: Scope, timeline: Iterable[SemanticMemory], now: datetime) -> ConsolidationPlan:
    """What changes in a timeline where its history is read once more, without what is refuted.

    Args:
        scope: Whose.
        timeline: All of it.
        now: The present; a part that comes into being is made then.
    """
    made = Circumstances(scope=scope, now=now, episodes={}, provenance=Provenance())
    return ConsolidationPlan(actions=tuple(placed_again(timeline, made)))


def placing(plan: ConsolidationPlan, episodes: Mapping[str, Episode]) -> Placing:
    """Makes of each memory what such a plan does, where nothing new comes into being.

    Args:
        plan: See :func:`places`.
        episodes: The turns that one memory takes over from another, by id.
    """
    amendments = {update.memory_id: update for update in plan.amendments()}
    endings = {update.memory_id: update.supersession for update in plan.retirements()}

    def change(memory: SemanticMemory) -> SemanticMemory | None:
        after, update, ended = memory, amendments.get(memory.id), endings.get(memory.id)
        if update is not None:
            after = amended(after, update, episodes) or after
        if ended is not None:
            after = retired(after, ended) or after
        return None if after is memory else after

    return change
