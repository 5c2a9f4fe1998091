"""What is left of memories when others are forgotten: a pure function each way.

Forgetting takes a memory, and whatever was derived only from it. What rests on
something else as well stays, without any trace of what is gone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from engram.domain.memories import (
    DerivedMemory,
    Episode,
    Fact,
    LinkKind,
    MemoryForm,
    MemoryStatus,
    NegationFact,
    ProceduralMemory,
    SemanticMemory,
)
from engram.domain.tellings import retold

# Composed again from what is left. Guidance is not: it counts, and quotes nobody.
RECOMPOSED = frozenset({MemoryForm.PROFILE, MemoryForm.TOPIC, MemoryForm.BOX})
# What another memory is made of: a summary of its members, a habit of what it was promoted from.
_MADE_FROM = frozenset({LinkKind.BELONGS_TO, LinkKind.PROMOTED_TO, LinkKind.CRYSTALLIZED_INTO})

# Shorter ones are in everybody's mouth.
_WORD = re.compile(r"\w{4,}")


def is_digest(memory: DerivedMemory) -> bool:
    """Whether it is composed from memories, and is composed again from those that are left."""
    return isinstance(memory, SemanticMemory) and memory.form in RECOMPOSED


def names_any(memory: DerivedMemory, gone: Collection[str]) -> bool:
    """Whether anything in it refers to one of these ids."""
    text = memory.model_dump_json()
    return any(memory_id in text for memory_id in gone)


def is_made_from(memory: DerivedMemory, gone: Collection[str]) -> bool:
    """Whether its words come from one of these: a summary or a habit of it."""
    return _is_composed(memory) and any(
        link.target_id in gone and link.kind in _MADE_FROM for link in memory.links
    )


def is_worded_by(memory: DerivedMemory, gone: Iterable[Episode], left: Iterable[Episode]) -> bool:
    """Whether it is a summary or a habit with words that only forgotten turns say.

    Such wording goes; a later pass words anew what the other sources support.
    """
    if not _is_composed(memory):
        return False
    kept = {word for episode in left for word in _words(episode.content)}
    lost = {word for episode in gone for word in _words(episode.content)}
    said = memory.content
    if isinstance(memory, ProceduralMemory):
        said = f"{said} {memory.trigger_context}"
    return not lost.isdisjoint(_words(said) - kept)


def only_says_the_same(memory: DerivedMemory, gone: Mapping[str, DerivedMemory]) -> bool:
    """Whether it was merged into one of these, and rests on nothing that this one does not."""
    kept = gone.get(memory.duplicate_of or "") if isinstance(memory, SemanticMemory) else None
    return kept is not None and set(memory.source_episode_ids) <= set(kept.source_episode_ids)


def _is_composed(memory: DerivedMemory) -> bool:
    return isinstance(memory, ProceduralMemory) or (
        isinstance(memory, SemanticMemory) and memory.form is MemoryForm.SUMMARY
    )


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


def without_sources(
    memory: DerivedMemory, gone: Collection[str], left: Mapping[str, Episode]
) -> DerivedMemory | None:
    """``memory`` as drawn from its other sources; None if it has no other.

    Args:
        memory: Rests on some of the episodes that are forgotten.
        gone: Those episodes.
        left: The episodes among its sources that stay, by id.
    """
    sources = tuple(e for e in memory.source_episode_ids if e in left and e not in gone)
    if not sources:
        return None
    lost = sum(source in gone for source in memory.source_episode_ids)
    confidence = memory.confidence.model_copy(
        update={"supporting_episodes": max(memory.confidence.supporting_episodes - lost, 1)}
    )
    kept = memory.model_copy(update={"source_episode_ids": sources, "confidence": confidence})
    match kept:
        case SemanticMemory():
            evidence = tuple(quote for quote in kept.evidence if quote.episode_id not in gone)
            kept = kept.model_copy(update={"evidence": evidence})
            told = tuple(
                telling.model_copy(update={"episode_ids": ids})
                for telling in kept.tellings
                if (ids := tuple(e for e in telling.episode_ids if e not in gone))
            )
            return retold(kept, told, without=()) if told else kept
        case Fact() | NegationFact():
            words = kept.evidence
            if not any(words in left[source].content for source in sources):
                # Those words were the forgotten turn's; a source that stays speaks for itself.
                words = left[sources[0]].content
            return kept.model_copy(update={"evidence": words})
    return kept


def without_references(
    memory: DerivedMemory, gone: Collection[str], heirs: Mapping[str, str | None]
) -> DerivedMemory | None:
    """``memory`` without links to, and disputes with, what is gone; None if nothing changes.

    What was replaced by something that is gone is replaced by what replaced that,
    or holds again.

    Args:
        memory: Stays.
        gone: Ids that are forgotten.
        heirs: For each of them, the memory that stays and had replaced it, if any.
    """
    changes: dict[str, object] = {
        "links": tuple(link for link in memory.links if link.target_id not in gone),
        "supersedes": tuple(one for one in memory.supersedes if one not in gone),
    }
    if isinstance(memory, SemanticMemory):
        changes["disputed_with"] = tuple(m for m in memory.disputed_with if m not in gone)
        if memory.duplicate_of in gone:
            changes["duplicate_of"] = None
    if memory.superseded_by in gone:
        heir = heirs.get(memory.superseded_by or "")
        changes["superseded_by"] = heir
        # What only said the same as a forgotten memory does not come back in its place.
        said_the_same = isinstance(memory, SemanticMemory) and memory.duplicate_of in gone
        if heir is None and not said_the_same:
            changes |= {
                "status": MemoryStatus.ACTIVE,
                "valid_to": None,
                "superseded_known_at": None,
            }
    after = memory.model_copy(update=changes)
    return after if after != memory else None


def heirs_of(gone: Iterable[DerivedMemory]) -> dict[str, str | None]:
    """What replaced each of these, past all that is gone itself; None where nothing did."""
    replaced = {memory.id: memory.superseded_by for memory in gone}
    heirs: dict[str, str | None] = {}
    for memory_id, successor in replaced.items():
        heir = successor
        seen = {memory_id}
        while heir in replaced and heir not in seen:
            seen.add(heir)
            heir = replaced[heir]
        heirs[memory_id] = None if heir in replaced else heir
    return heirs


def referred_to(gone: Iterable[DerivedMemory]) -> frozenset[str]:
    """The memories that refer back to these: links are two-way, and so is history."""
    found: set[str] = set()
    for memory in gone:
        found.update(memory.related_ids, memory.supersedes)
        found.update(one for one in (memory.superseded_by,) if one is not None)
        if isinstance(memory, SemanticMemory):
            found.update(memory.disputed_with)
            found.update(one for one in (memory.duplicate_of,) if one is not None)
    return frozenset(found)
