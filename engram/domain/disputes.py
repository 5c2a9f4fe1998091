"""Disputes end when one of those that contradict each other stops holding."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from engram.domain.memories import SemanticMemory
from engram.domain.plan import Eligibility, Reason, UpdateNote, eligibility_of


def settled(known: Mapping[str, SemanticMemory], updates: MutableMapping[str, UpdateNote]) -> None:
    """Lift the disputes of everything that these updates retire, on both ends.

    Args:
        known: The memories that are updated, by id.
        updates: By memory; further ones are added where a dispute ends.
    """
    for update in tuple(updates.values()):
        memory = known.get(update.memory_id)
        if memory is None or update.supersession is None:
            continue
        for other in memory.disputed_with:
            _settle(memory.id, other, known, updates)
            _settle(other, memory.id, known, updates)


def _settle(
    one: str,
    other: str,
    known: Mapping[str, SemanticMemory],
    updates: MutableMapping[str, UpdateNote],
) -> None:
    memory = known.get(one)
    update = updates.get(one) or UpdateNote(
        memory_id=one,
        reason=Reason.SETTLED,
        why="what it contradicted does not hold any more",
        eligibility=Eligibility() if memory is None else eligibility_of(memory),
    )
    with_ = tuple(dict.fromkeys((*update.settle_with, other)))
    updates[one] = update.model_copy(update={"settle_with": with_})
