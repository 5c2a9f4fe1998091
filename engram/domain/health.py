"""Whether a user's memories live as they should: the four ways in which they may not."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from engram.domain.checks import bad_fields
from engram.domain.lifecycle.decisions import Rulebook
from engram.domain.lifecycle.policies import Energy
from engram.domain.lifecycle.promotion import is_habit
from engram.domain.lifecycle.states import Tier
from engram.domain.memories import (
    AnyMemory,
    DerivedMemory,
    LinkKind,
    MemoryStatus,
    SemanticMemory,
)

_PROMOTED = frozenset({LinkKind.PROMOTED_TO, LinkKind.CRYSTALLIZED_INTO})


class HealthRules(BaseModel):
    """From where on something is called unhealthy.

    Attributes:
        enough: Memories below which shares say nothing.
        promoted_share: Share of what could be promoted, above which everything is.
        settled_days: Age from which something should have been promoted.
        young_days: Age up to which memories should not leave.
        young_left_share: Share of young memories that may leave.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    enough: int = Field(default=20, ge=1)
    promoted_share: float = Field(default=0.8, gt=0, le=1)
    settled_days: float = Field(default=30.0, ge=0)
    young_days: float = Field(default=14.0, gt=0)
    young_left_share: float = Field(default=0.2, gt=0, le=1)


class Ailment(StrEnum):
    """The ways in which memories may not live as they should."""

    WRONG_ENERGIES = "wrong_energies"
    ORPHANS = "orphans"
    EVERYTHING_PROMOTES = "everything_promotes"
    NOTHING_PROMOTES = "nothing_promotes"
    EAGER_DECAY = "eager_decay"


class Diagnosis(BaseModel):
    """One thing that is not well.

    Attributes:
        ailment: Which.
        memories: How many memories it concerns.
        what: In words.
        hint: What to look at.
        examples: The first few of them.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    ailment: Ailment
    memories: int
    what: str
    hint: str
    examples: tuple[str, ...] = ()


class Census:
    """Counts what health is told from, memory by memory.

    Args:
        rules: From where on something is unhealthy.
        book: By which the memories live.
        now: The present.
    """

    def __init__(self, rules: HealthRules, book: Rulebook, now: datetime) -> None:
        self._rules = rules
        self._book = book
        self._now = now
        self.seen = 0
        self._young = self._left_young = 0
        self._ready = self._promoted = self._risen = self._used = 0
        self._oldest_ready: datetime | None = None
        self._energies: list[str] = []
        self._orphans: list[str] = []
        self._eager: list[str] = []

    def count(self, memory: AnyMemory, *, orphan: bool) -> None:
        """One more memory; ``orphan``: none of the turns it names exists."""
        self.seen += 1
        if self._is_wrong(memory):
            self._energies.append(memory.id)
        if orphan and isinstance(memory, DerivedMemory) and memory.status is MemoryStatus.ACTIVE:
            self._orphans.append(memory.id)
        if memory.created_at > self._now - timedelta(days=self._rules.young_days):
            self._young += 1
            if memory.status in {MemoryStatus.ARCHIVED, MemoryStatus.EXPIRED}:
                self._left_young += 1
                self._eager.append(memory.id)
        self._count_promotion(memory)

    def diagnose(self) -> list[Diagnosis]:
        """What is not well; empty if everything is."""
        found = [*self._of_energies(), *self._of_orphans()]
        return [*found, *self._of_promotion(), *self._of_decay()]

    def _is_wrong(self, memory: AnyMemory) -> bool:
        value = Energy(self._book.rules.energy).value(memory, self._now)
        if not math.isfinite(value) or value < 0:
            return True
        return any(what.startswith("energy") for what in bad_fields(memory, self._now, self._book))

    def _count_promotion(self, memory: AnyMemory) -> None:
        if self._book.policy.name == "energy" and memory.vitals is not None:
            self._used += bool(memory.access_count)
            self._risen += memory.vitals.tier in {Tier.SHORT_TERM, Tier.LONG_TERM}
        if not isinstance(memory, SemanticMemory) or not is_habit(memory.content):
            return
        promoted = any(link.kind in _PROMOTED for link in memory.links)
        self._promoted += promoted
        wanted = self._book.rules.promotion
        earned = memory.selectivity >= wanted.selectivity
        if promoted or (earned and memory.consolidation_passes >= wanted.passes):
            self._ready += 1
            if not promoted:
                oldest = self._oldest_ready or memory.created_at
                self._oldest_ready = min(oldest, memory.created_at)

    def _of_energies(self) -> list[Diagnosis]:
        if not self._energies:
            return []
        return [
            Diagnosis(
                ailment=Ailment.WRONG_ENERGIES,
                memories=len(self._energies),
                what=f"{len(self._energies)} memories have an energy that nothing writes.",
                hint="engram validate names the fields, engram repair ID mends them.",
                examples=tuple(self._energies[:5]),
            )
        ]

    def _of_orphans(self) -> list[Diagnosis]:
        if not self._orphans:
            return []
        return [
            Diagnosis(
                ailment=Ailment.ORPHANS,
                memories=len(self._orphans),
                what=f"{len(self._orphans)} active conclusions name turns that do not exist.",
                hint="engram repair ID archives one; forgetting a turn should have taken it along.",
                examples=tuple(self._orphans[:5]),
            )
        ]

    def _of_promotion(self) -> list[Diagnosis]:
        rules, ready, promoted = self._rules, self._ready, self._promoted
        found: list[Diagnosis] = []
        risen_share = self._risen / self._used if self._used >= rules.enough else 0.0
        all_habits = self.seen and promoted / self.seen > rules.promoted_share
        if (all_habits and promoted >= rules.enough) or risen_share > rules.promoted_share:
            found.append(
                Diagnosis(
                    ailment=Ailment.EVERYTHING_PROMOTES,
                    memories=max(promoted, self._risen),
                    what="Nearly everything is promoted, so that being promoted says nothing.",
                    hint="Raise ENGRAM_LIFECYCLE__PROMOTION__SELECTIVITY or the energy thresholds.",
                )
            )
        settled = self._now - timedelta(days=rules.settled_days)
        waits = self._oldest_ready is not None and self._oldest_ready < settled
        stuck = self._used >= rules.enough and not self._risen
        if (ready and not promoted and waits) or stuck:
            found.append(
                Diagnosis(
                    ailment=Ailment.NOTHING_PROMOTES,
                    memories=ready or self._used,
                    what="Memories have what promotion asks for, and none was promoted.",
                    hint="Do passes run? engram schedules list; engram promote --dry-run.",
                )
            )
        return found

    def _of_decay(self) -> list[Diagnosis]:
        if self._young < self._rules.enough:
            return []
        if self._left_young / self._young <= self._rules.young_left_share:
            return []
        return [
            Diagnosis(
                ailment=Ailment.EAGER_DECAY,
                memories=self._left_young,
                what=(
                    f"{self._left_young} of {self._young} memories younger than "
                    f"{self._rules.young_days:g} days have left the answers already."
                ),
                hint="Compare the decay settings with docs/lifecycle.md; "
                "engram decay --dry-run says what comes next.",
                examples=tuple(self._eager[:5]),
            )
        ]
