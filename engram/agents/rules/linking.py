"""Links by rule: memories that name the same person, place or thing."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

from engram.agents.answers import MAX_LINKS, LinkingAnswer, LinkProposal
from engram.agents.requests import LinkingRequest, MemoryView
from engram.domain.memories import LinkKind
from engram.domain.normalisation import normalise
from engram.domain.slots import USER

_ENTITY_CONFIDENCE = 0.9
# What everything names (one's employer, one's city) links nothing in particular.
_MOST_NAMING_IT = 12


def link(request: LinkingRequest) -> LinkingAnswer:
    """Pairs of memories that share an entity or the object of their slots; prunes nothing."""
    naming: dict[str, list[MemoryView]] = defaultdict(list)
    for memory in request.memories:
        for name in _names(memory):
            naming[name].append(memory)
    found: dict[tuple[str, str], LinkProposal] = {}
    for name, memories in naming.items():
        if len(memories) > _MOST_NAMING_IT:
            continue
        for first, second in combinations(memories, 2):
            if not (first.fresh or second.fresh) or _tell_the_same(first, second):
                continue
            found.setdefault(
                (first.alias, second.alias),
                LinkProposal(
                    source=first.alias,
                    target=second.alias,
                    kind=LinkKind.ENTITY,
                    confidence=_ENTITY_CONFIDENCE,
                    why=f"both name {name}"[:300],
                ),
            )
    links = list(found.values())[:MAX_LINKS]
    return LinkingAnswer(
        reasoning=f"{len(links)} pairs name the same person, place or thing.",
        links=links,
        confidence=_ENTITY_CONFIDENCE if links else 1.0,
    )


def _names(memory: MemoryView) -> set[str]:
    """What it names, normalised; the subject counts unless it is the user."""
    names = {normalise(entity) for entity in memory.entities}
    if memory.slot is not None:
        names.add(memory.slot.object)
        names.discard(memory.slot.subject)
    return {name for name in names if len(name) > 1 and name != USER}


def _tell_the_same(first: MemoryView, second: MemoryView) -> bool:
    return first.content == second.content
