"""Which tellings a memory has, and what it is after it gained or lost some."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from engram.domain.confidence import ExtractionMethod, Verification
from engram.domain.memories import SemanticMemory, Telling


def tellings_of(memory: SemanticMemory) -> tuple[Telling, ...]:
    """Each time the memory was told, as far as its sources exist.

    Where none of these tells it, because it gained them from a duplicate without a slot,
    the memory itself says when it was first and last told.
    """
    sources = set(memory.source_episode_ids)
    kept = tuple(one for one in memory.tellings if sources & set(one.episode_ids))
    return kept or _remembered(memory)


def retold(
    memory: SemanticMemory, tellings: Iterable[Telling], *, without: Collection[Telling]
) -> SemanticMemory:
    """``memory`` with these tellings; what only the others say is no source of it any more.

    Args:
        memory: With all sources of all tellings. A telling without any is left out.
        tellings: The old and the new ones; doubles count once.
        without: Those that are taken away.
    """
    known = set(memory.source_episode_ids)
    kept = tuple(
        one
        for one in dict.fromkeys(tellings)
        if one not in without and known & set(one.episode_ids)
    )
    if not kept:
        return memory
    gone = sources_only_of(without, kept)
    sources = tuple(e for e in memory.source_episode_ids if e not in gone)
    changes: dict[str, object] = {"tellings": kept}
    if sources != memory.source_episode_ids:
        changes["source_episode_ids"] = sources
        changes["confidence"] = memory.confidence.model_copy(
            update={
                "supporting_episodes": _support_without(gone, memory),
                "last_confirmed": max(one.known_at for one in kept),
            }
        )
    return quoting(memory.model_copy(update=changes), without=gone)


def quoting(memory: SemanticMemory, *, without: Collection[str]) -> SemanticMemory:
    """``memory`` without what it quotes from these episodes; without any, it counts as inferred."""
    kept = tuple(quote for quote in memory.evidence if quote.episode_id not in without)
    if kept == memory.evidence:
        return memory
    changes: dict[str, object] = {}
    if not kept:
        changes["method"] = ExtractionMethod.INFERRED
        if memory.confidence.verification is Verification.EVIDENCE_FOUND:
            changes["verification"] = Verification.UNCHECKED
    confidence = memory.confidence.model_copy(update=changes)
    return memory.model_copy(update={"evidence": kept, "confidence": confidence})


def sources_only_of(these: Iterable[Telling], others: Iterable[Telling]) -> set[str]:
    """The episodes that some tellings rest on, and others do not."""
    elsewhere = {e for one in others for e in one.episode_ids}
    return {e for one in these for e in one.episode_ids} - elsewhere


def _support_without(gone: Collection[str], memory: SemanticMemory) -> int:
    """How many episodes support it without those; folded ones stay."""
    lost = sum(source in gone for source in memory.source_episode_ids)
    return max(memory.confidence.supporting_episodes - lost, 1)


def _remembered(memory: SemanticMemory) -> tuple[Telling, ...]:
    first = Telling(
        event_at=memory.event_at,
        known_at=memory.known_at,
        begins=memory.valid_from == memory.event_at,
        episode_ids=memory.source_episode_ids[:1],
    )
    if len(memory.source_episode_ids) == 1:
        return (first,)
    last = memory.confidence.last_confirmed
    again = Telling(event_at=last, known_at=last, episode_ids=memory.source_episode_ids[1:])
    return first, again
