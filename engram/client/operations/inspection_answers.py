"""What operations that look at memories' lives answer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from engram.domain.checks import Finding
from engram.domain.health import Diagnosis
from engram.domain.lifecycle.decisions import Transition
from engram.domain.memories import AnyMemory, MemoryStatus, MemoryType


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class TypeStatus(_Answer):
    """How the memories of one type stand.

    Attributes:
        memories: All of them.
        by_status: How many stand where.
        due: How many a decay pass would look at now, by time.
    """

    memories: int
    by_status: Mapping[MemoryStatus, int]
    due: int


class StatusReport(_Answer):
    """How a user's memories stand.

    Attributes:
        policy: The decay policy of the namespace.
        types: By type.
        test_memories: How many test memories there are beside what is counted.
        waiting: Turns that consolidation has not seen yet.
        to_consider: Knowledge that the next promotion pass reads.
    """

    policy: str
    types: Mapping[MemoryType, TypeStatus]
    test_memories: int
    waiting: int
    to_consider: int


class TierEnergy(_Answer):
    """The energy of the active memories of one tier, now."""

    tier: str
    memories: int
    lowest: float
    mean: float
    highest: float


class MemoryEnergy(_Answer):
    """How lively one memory is.

    Attributes:
        heat: How much it is in use, 0 to 1.
        decay: How far it is on its way out, 0 to 1.
        leaves_at: When it leaves the answers unless it is used; None for never.
    """

    memory_id: str
    memory_type: MemoryType
    tier: str
    energy: float
    heat: float
    decay: float
    leaves_at: datetime | None = None


class EnergyReport(_Answer):
    """The energy of a user's active memories, by tier and for those that fade first."""

    policy: str
    tiers: tuple[TierEnergy, ...] = ()
    faintest: tuple[MemoryEnergy, ...] = ()


class PromotedMemory(_Answer):
    """A habit and where it came from."""

    habit_id: str
    source_id: str | None
    status: MemoryStatus
    promoted_at: datetime


class Candidate(_Answer):
    """Knowledge on its way to a habit, and what is missing."""

    memory_id: str
    missing: tuple[str, ...] = ()


class PromotionsReport(_Answer):
    """What was promoted, what is ready, what is nearly."""

    habits: int = 0
    promoted: tuple[PromotedMemory, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    tiers: Mapping[str, int] = Field(default_factory=dict)


class HealthReport(_Answer):
    """What is not well with a user's memories."""

    memories: int
    diagnoses: tuple[Diagnosis, ...] = ()


class ValidationReport(_Answer):
    """What is wrong with a user's memories; counted in full, the first quoted."""

    memories: int
    counts: Mapping[str, int] = Field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


class RepairReport(_Answer):
    """What was wrong with a memory, and what was mended."""

    memory_id: str
    dry_run: bool = False
    found: tuple[Finding, ...] = ()
    mended: tuple[Finding, ...] = ()


class LinkNow(_Answer):
    """A link, as sure as it is now."""

    target_id: str
    kind: str
    confidence: float
    exists: bool


class Inspection(_Answer):
    """Everything about one memory's life.

    Attributes:
        states: Lifecycle, verification, policy class, tier, term, placement.
        values: Quality, heat, decay score and energy, each 0 or more.
        explanations: The numbers in words.
        next_step: What a pass would do to it now.
        links: Its links, as sure as they are now.
        missing_sources: Turns it names that do not exist.
        problems: What is wrong with it.
    """

    memory: AnyMemory
    states: Mapping[str, str]
    values: Mapping[str, float]
    explanations: tuple[str, ...]
    leaves_at: datetime | None = None
    next_step: Transition | None = None
    links: tuple[LinkNow, ...] = ()
    missing_sources: tuple[str, ...] = ()
    problems: tuple[Finding, ...] = ()
