"""Being recalled: what it adds to a memory, exactly once."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from engram.domain.lifecycle.policies import Energy
from engram.domain.lifecycle.rules import LifecycleRules
from engram.domain.lifecycle.states import Together, Vitals
from engram.domain.links import linked
from engram.domain.memories import AnyMemory, DerivedMemory, LinkKind

REMEMBERED_INSTANCES: Final = 16
"""Processes whose last batch a memory remembers; only running ones can repeat a batch."""
MOST_TOGETHER: Final = 32
# A link that ten common recalls speak for is as sure as one can be.
_SURE: Final = 10


class Recalls(BaseModel):
    """Recalls of one memory that one process collected.

    Attributes:
        count: How many.
        at: When the last of them was; they all count as of then, which is
            seconds after the first.
        instance_id: The process.
        batch: Counts the batches of that process; each is noted once.
        together: Memories in the same answers, and in how many.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    count: int = Field(ge=1)
    at: datetime
    instance_id: str
    batch: int = Field(ge=0)
    together: tuple[Together, ...] = ()


def accessed(memory: AnyMemory, recalls: Recalls, rules: LifecycleRules) -> AnyMemory | None:
    """``memory`` after these recalls; None if they are noted on it already.

    E <- E x e^(-decay x hours since) + 1 for each. Batches of several processes
    give the same in whichever order they arrive.
    """
    vitals = memory.vitals or Vitals()
    if _noted(vitals.flushes, recalls):
        return None
    policy = Energy(rules.energy)
    energy, energy_at = _risen(memory, policy, recalls)
    peak = max(energy, vitals.peak_energy or 0.0)
    lived = vitals.model_copy(
        update={
            "energy": energy,
            "energy_at": energy_at,
            "peak_energy": peak,
            "instance_id": recalls.instance_id,
            "flushes": _with_batch(vitals.flushes, recalls),
            "together": _counted(vitals.together, recalls.together),
        }
    )
    last = memory.last_accessed_at
    after = memory.model_copy(
        update={
            "access_count": memory.access_count + recalls.count,
            "last_accessed_at": recalls.at if last is None else max(last, recalls.at),
            "vitals": lived,
        }
    )
    return _coactivated(after, recalls, rules)


def _risen(memory: AnyMemory, policy: Energy, recalls: Recalls) -> tuple[float, datetime]:
    energy, at = policy.written(memory)
    latest = max(at, recalls.at)
    added = recalls.count * policy.rules.per_access * policy.left(memory, recalls.at, latest)
    return energy * policy.left(memory, at, latest) + added, latest


def _noted(flushes: Iterable[str], recalls: Recalls) -> bool:
    for entry in flushes:
        instance, _, batch = entry.rpartition(":")
        if instance == recalls.instance_id:
            return int(batch) >= recalls.batch
    return False


def _with_batch(flushes: tuple[str, ...], recalls: Recalls) -> tuple[str, ...]:
    prefix = f"{recalls.instance_id}:"
    others = tuple(entry for entry in flushes if not entry.startswith(prefix))
    return (*others, f"{prefix}{recalls.batch}")[-REMEMBERED_INSTANCES:]


def _counted(before: tuple[Together, ...], added: tuple[Together, ...]) -> tuple[Together, ...]:
    # The new ones first, so that of equal counts the oldest is forgotten.
    counts = {one.memory_id: one.count for one in added}
    for one in before:
        counts[one.memory_id] = counts.get(one.memory_id, 0) + one.count
    best = sorted(counts.items(), key=lambda item: -item[1])[:MOST_TOGETHER]
    return tuple(Together(memory_id=memory_id, count=count) for memory_id, count in best)


def _coactivated(memory: AnyMemory, recalls: Recalls, rules: LifecycleRules) -> AnyMemory:
    """Linked with what was recalled with it often enough (from three times on)."""
    if not isinstance(memory, DerivedMemory) or memory.vitals is None:
        return memory
    seen_now = {one.memory_id for one in recalls.together}
    after: DerivedMemory = memory
    for one in memory.vitals.together:
        if one.memory_id in seen_now and one.count >= rules.edges.coactivations:
            sure = min(one.count / _SURE, 1.0)
            after = linked(after, one.memory_id, LinkKind.COACTIVATED, sure, recalls.at) or after
    return after  # type: ignore[return-value]  # a copy of an AnyMemory is one
