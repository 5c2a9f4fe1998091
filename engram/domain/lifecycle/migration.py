"""Memories that come from elsewhere."""

from __future__ import annotations

from datetime import datetime
from typing import Final, TypeVar

from engram.domain.confidence import SEED_IMPORTED
from engram.domain.lifecycle.states import Tier, Vitals
from engram.domain.memories import DerivedMemory, Memory

MIGRATED_ENERGY: Final = 10.0
MIGRATED_ACCESSES: Final = 1

M = TypeVar("M", bound=Memory)


def migrated(
    memory: M,
    now: datetime,
    *,
    last_accessed_at: datetime | None = None,
    instance_id: str | None = None,
) -> M:
    """``memory`` as one that had a life before: long-term, energy 10, recalled once.

    Args:
        memory: Not stored yet. A conclusion loses the head start in corroboration
            that fresh ones have.
        now: When it is imported; its energy counts from here (imported
            memories count as last accessed when imported).
        last_accessed_at: When it was last recalled; unknown: when it became known.
        instance_id: Where it comes from.
    """
    vitals = Vitals(
        energy=MIGRATED_ENERGY,
        energy_at=now,
        peak_energy=MIGRATED_ENERGY,
        tier=Tier.LONG_TERM,
        instance_id=instance_id,
    )
    changes: dict[str, object] = {
        "vitals": vitals,
        "access_count": MIGRATED_ACCESSES,
        "last_accessed_at": last_accessed_at or memory.known_at,
    }
    if isinstance(memory, DerivedMemory):
        seeded = memory.confidence.model_copy(update={"seed": SEED_IMPORTED})
        changes["confidence"] = seeded
    return memory.model_copy(update=changes)
