"""What an update in a plan makes of a memory. Applying it again changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from engram.domain.confidence import ExtractionMethod, Verification
from engram.domain.corroboration import corroborated
from engram.domain.memories import Episode, Evidence, MemoryStatus, SemanticMemory
from engram.domain.plan import Supersession, Survival, UpdateNote
from engram.domain.revisions import has_seen, remember
from engram.domain.tellings import retold, tellings_of

SELECTIVITY_STEP = 0.1
# Quotations beyond these add nothing to what verifying finds.
MAX_EVIDENCE = 16


def amended(
    memory: SemanticMemory, update: UpdateNote, episodes: Mapping[str, Episode]
) -> SemanticMemory | None:
    """``memory`` with everything the update says but the retirement; None if nothing changes.

    Args:
        memory: As it is stored.
        update: From the plan.
        episodes: The episodes that confirm it, by id; those that are gone confirm nothing.
    """
    sources = [episodes[e] for e in update.add_sources if e in episodes]
    after = evident(corroborated(memory, sources) or memory, update.add_evidence)
    if update.add_tellings or update.drop_tellings:
        before = tellings_of(memory)
        after = retold(after, (*before, *update.add_tellings), without=update.drop_tellings)
    if update.place is not None:
        after = after.model_copy(update=dict(update.place))
    after = _reinstated(_succeeding(after, update), update.reinstated_from)
    after = disputed(after, with_=update.dispute_with, settled=update.settle_with)
    if update.ending is not None and after.resolution is None:
        ended = {"resolution": update.ending.resolution, "resolved_at": update.ending.at}
        after = after.model_copy(update=ended)
    if update.survival is not None:
        after = survived(after, update.survival) or after
    return after if after != memory else None


def survived(memory: SemanticMemory, survival: Survival) -> SemanticMemory | None:
    """``memory`` after a linking pass looked at it; None if that pass has counted already."""
    if has_seen(memory, survival.operation):
        return None
    step = -SELECTIVITY_STEP if survival.pruned else SELECTIVITY_STEP
    # Rounded, because ten steps of 0.1 should make 1.
    selectivity = round(min(max(memory.selectivity + step, 0.0), 1.0), 6)
    passes = memory.consolidation_passes + (0 if survival.pruned else 1)
    counted = memory.model_copy(update={"selectivity": selectivity, "consolidation_passes": passes})
    return remember(counted, survival.operation)


def retired(memory: SemanticMemory, supersession: Supersession) -> SemanticMemory | None:
    """``memory`` as something that held until then; None if that is known already."""
    changes = supersession.model_dump(exclude={"duplicate"})
    if supersession.duplicate:
        changes["duplicate_of"] = supersession.superseded_by
    after = memory.model_copy(update={"status": MemoryStatus.SUPERSEDED, **changes})
    return after if after != memory else None


def disputed(
    memory: SemanticMemory, *, with_: Collection[str], settled: Collection[str] = ()
) -> SemanticMemory:
    """``memory`` in dispute with these, and no longer with those that are settled.

    Each dispute counts as one contradiction while it lasts. What the user
    confirmed stays confirmed; it counts for less all the same.
    """
    new = tuple(one for one in dict.fromkeys(with_) if one not in memory.disputed_with)
    gone = tuple(one for one in memory.disputed_with if one in settled)
    if not (new or gone):
        return memory
    left = tuple(one for one in (*memory.disputed_with, *new) if one not in gone)
    before = memory.confidence
    verification = before.verification
    if left and verification is not Verification.USER_CONFIRMED:
        verification = Verification.DISPUTED
    elif not left and verification is Verification.DISPUTED:
        found = bool(memory.evidence)
        verification = Verification.EVIDENCE_FOUND if found else Verification.UNCHECKED
    confidence = before.model_copy(
        update={
            "contradictions": max(before.contradictions + len(new) - len(gone), 0),
            "verification": verification,
        }
    )
    return memory.model_copy(update={"disputed_with": left, "confidence": confidence})


def evident(memory: SemanticMemory, quotes: Iterable[Evidence]) -> SemanticMemory:
    """With further quotations: what was inferred and is now found in words counts as extracted."""
    fresh = tuple(
        quote
        for quote in dict.fromkeys(quotes)
        if quote not in memory.evidence and quote.episode_id in memory.source_episode_ids
    )
    kept = (*memory.evidence, *fresh)[:MAX_EVIDENCE]
    if kept == memory.evidence:
        return memory
    changes: dict[str, object] = {"method": ExtractionMethod.EXTRACTED}
    if memory.confidence.verification is Verification.UNCHECKED:
        changes["verification"] = Verification.EVIDENCE_FOUND
    confidence = memory.confidence.model_copy(update=changes)
    return memory.model_copy(update={"evidence": kept, "confidence": confidence})


def _succeeding(memory: SemanticMemory, update: UpdateNote) -> SemanticMemory:
    fresh = tuple(old for old in update.supersedes if old not in memory.supersedes)
    return memory.model_copy(update={"supersedes": (*memory.supersedes, *fresh)})


def _reinstated(memory: SemanticMemory, replaced_by: str | None) -> SemanticMemory:
    if replaced_by is None or memory.superseded_by != replaced_by:
        return memory
    return memory.model_copy(
        update={
            "status": MemoryStatus.ACTIVE,
            "superseded_by": None,
            "duplicate_of": None,
            "valid_to": None,
            "superseded_known_at": None,
        }
    )
