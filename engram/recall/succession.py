"""What was replaced never stands above what replaced it."""

from __future__ import annotations

from collections.abc import Sequence

from engram.domain.memories import DerivedMemory
from engram.recall.ranked import Ranked, by_score

# Just enough to come after, so that it stays near what it belongs to.
JUST_BELOW = 0.999


def below_successors(found: Sequence[Ranked]) -> list[Ranked]:
    """Best first, each replaced memory after the one that replaced it, where both are there.

    Both are there only when the question is about a time at which either may
    have been true (``valid_at``).
    """
    known = {one.memory.id: one for one in found}
    for memory_id in list(known):
        _lower(memory_id, known, set())
    return by_score(list(known.values()))


def _lower(memory_id: str, known: dict[str, Ranked], path: set[str]) -> None:
    one = known[memory_id]
    successor = one.memory.superseded_by if isinstance(one.memory, DerivedMemory) else None
    if successor is None or successor not in known or memory_id in path:
        return
    _lower(successor, known, path | {memory_id})
    bound = known[successor].score * JUST_BELOW
    if one.score > bound:
        known[memory_id] = one.moved_to(bound, "replaced")
