"""What a memory store answers."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from engram.contracts.sessions import Signal
from engram.domain.memories import AnyMemory, MemoryType


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Receipt(_Answer):
    """What ``encode`` acknowledges: stored, searchable, and surviving a crash.

    Attributes:
        episode_ids: One per turn, in order.
        fact_ids: Pattern facts that the turns state, new or known before.
        negation_ids: What the turns say is not true.
        signal: The strongest signal among the turns.
        buffered: Turns of the session that wait for extraction.
        workflow_id: The session's workflow, as the Temporal UI names it.
    """

    episode_ids: tuple[str, ...]
    fact_ids: tuple[str, ...] = ()
    negation_ids: tuple[str, ...] = ()
    signal: Signal = Signal.NONE
    buffered: int = 0
    workflow_id: str


class MemoryPage(_Answer):
    """A stretch of a listing, oldest known first; ``cursor`` continues it."""

    memories: tuple[AnyMemory, ...]
    cursor: str | None = None


class MemoryStats(_Answer):
    """How much is kept for one user.

    Attributes:
        counts: Memories by type, whatever their status.
        active: Those of them that answer by default.
        waiting: Episodes that consolidation has not seen yet.
    """

    counts: Mapping[MemoryType, int]
    active: Mapping[MemoryType, int]
    waiting: int
