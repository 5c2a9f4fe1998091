"""What an update in a plan makes of a memory. Applying it again changes nothing."""

from __future__ import annotations

from collections.abc import Mapping

from engram.domain.corroboration import corroborated
from engram.domain.memories import Episode, MemoryStatus, SemanticMemory
from engram.domain.plan import Supersession, Survival, UpdateNote
from engram.domain.revisions import has_seen, remember
from engram.domain.tellings import retold, tellings_of

# Row K3.
SELECTIVITY_STEP = 0.1


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
    after = corroborated(memory, sources) or memory
    if update.add_tellings or update.drop_tellings:
        before = tellings_of(memory)
        after = retold(after, (*before, *update.add_tellings), without=update.drop_tellings)
    if update.place is not None:
        after = after.model_copy(update=dict(update.place))
    after = _reinstated(_succeeding(after, update), update.reinstated_from)
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
    after = memory.model_copy(
        update={"status": MemoryStatus.SUPERSEDED, **supersession.model_dump()}
    )
    return after if after != memory else None


def _succeeding(memory: SemanticMemory, update: UpdateNote) -> SemanticMemory:
    fresh = tuple(old for old in update.supersedes if old not in memory.supersedes)
    changes: dict[str, object] = {}
    if fresh:
        changes["supersedes"] = (*memory.supersedes, *fresh)
    if update.valid_from is not None and memory.valid_from is None:
        changes["valid_from"] = update.valid_from
    return memory.model_copy(update=changes)


def _reinstated(memory: SemanticMemory, replaced_by: str | None) -> SemanticMemory:
    if replaced_by is None or memory.superseded_by != replaced_by:
        return memory
    return memory.model_copy(
        update={
            "status": MemoryStatus.ACTIVE,
            "superseded_by": None,
            "valid_to": None,
            "superseded_known_at": None,
        }
    )
