"""Links by rule: memories that name the same person, place or thing; and that say the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations

from engram.agents.requests import (
    MAX_DECISIONS,
    MAX_PROPOSED_LINKS,
    Decision,
    LinkingAnswer,
    LinkingRequest,
    LinkProposal,
    MemoryView,
)
from engram.consolidation.decisions import Relation, most_retired, word_stems
from engram.domain.identity import normalise
from engram.domain.memories import LinkKind, MemoryKind
from engram.domain.slots import USER

_ENTITY_CONFIDENCE = 0.9
_SAME_CONFIDENCE = 0.9
# What everything names (one's employer, one's city) links nothing in particular.
_MOST_NAMING_IT = 12


def link(request: LinkingRequest) -> LinkingAnswer:
    """Pairs of memories that share an entity or the object of their slots, and paraphrases.

    Prunes nothing.
    """
    naming: dict[str, list[MemoryView]] = defaultdict(list)
    for memory in request.memories:
        for name in _named_things(memory):
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
    links = list(found.values())[:MAX_PROPOSED_LINKS]
    same = _paraphrases(request.memories)
    return LinkingAnswer(
        reasoning=f"{len(links)} pairs name the same person, place or thing; "
        f"{len(same)} say the same in other forms of the words.",
        links=links,
        decisions=same,
        confidence=_ENTITY_CONFIDENCE if links else 1.0,
    )


def _paraphrases(memories: Sequence[MemoryView]) -> list[Decision]:
    """Notes that say the same in other forms of the same words, the older one first.

    No more than one answer may retire: with more, none would be believed.
    """
    first: dict[tuple[str, ...], MemoryView] = {}
    found: list[Decision] = []
    for memory in sorted(memories, key=lambda one: (one.known_at, one.alias)):
        if memory.kind is not MemoryKind.NOTE:
            continue
        older = first.setdefault(word_stems(memory.content), memory)
        if older is memory or _tell_the_same(older, memory):
            continue
        found.append(
            Decision(
                newer=memory.alias,
                older=older.alias,
                relation=Relation.SAME,
                confidence=_SAME_CONFIDENCE,
                why="the same words in other forms",
            )
        )
    return found[: min(most_retired(len(memories)), MAX_DECISIONS)]


def _named_things(memory: MemoryView) -> list[str]:
    """What it names, normalised, each once, in order; the subject counts unless it is the user."""
    names = dict.fromkeys(normalise(entity) for entity in memory.entities)
    if memory.slot is not None:
        names[memory.slot.object] = None
        names.pop(memory.slot.subject, None)
    return [name for name in names if len(name) > 1 and name != USER]


def _tell_the_same(first: MemoryView, second: MemoryView) -> bool:
    return first.content == second.content
