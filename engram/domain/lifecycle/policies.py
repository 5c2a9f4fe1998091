"""Two ways of fading behind one Protocol: retention and energy.

Each value is a closed form of what was last written and the present, so time
passing writes nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, Protocol

from engram.domain.lifecycle.rules import EnergyRules, LifecycleSettings, RetentionRules
from engram.domain.lifecycle.states import Tier
from engram.domain.memories import AnyMemory, Episode, MemoryStatus, MemoryType

_HOUR: Final = 3600.0
_DAY: Final = 86_400.0
_TICK: Final = timedelta(microseconds=1)
# Past this nobody looks, and the calendar of the standard library ends.
_MOST_DAYS: Final = 1_000_000.0


class DecayPolicy(Protocol):
    """How the worth of a memory falls with time; never rises between two writes."""

    @property
    def name(self) -> Literal["retention", "energy"]:
        """As the setting names it."""
        ...

    @property
    def ends_as(self) -> MemoryStatus:
        """What a memory becomes that falls below the threshold."""
        ...

    def value(self, memory: AnyMemory, now: datetime) -> float:
        """The worth at ``now``, from 0 up."""
        ...

    def falls_from(self, memory: AnyMemory) -> datetime:
        """Since when the worth has been falling: the last access, confirmation or write."""
        ...

    def leaves_at(self, memory: AnyMemory) -> datetime | None:
        """The first moment at which the worth lies below the threshold; None for never."""
        ...

    def explain(self, memory: AnyMemory, now: datetime) -> str:
        """The worth at ``now`` in one sentence with its parts."""
        ...


def told_at(memory: AnyMemory) -> datetime:
    """When a memory was last told: stored here, or confirmed later (an import counts when made)."""
    if isinstance(memory, Episode):
        return memory.created_at
    return max(memory.created_at, memory.confidence.last_confirmed)


def touched_at(memory: AnyMemory) -> datetime:
    """When a memory was last told or recalled; both refresh the clock of fading."""
    told = told_at(memory)
    recalled = memory.last_accessed_at
    return told if recalled is None or recalled < told else recalled


def later(moment: datetime, *, days: float) -> datetime | None:
    """So many days later; None past the end of the calendar."""
    if not days < _MOST_DAYS:
        return None
    try:
        return moment + timedelta(days=days)
    except OverflowError:
        return None


def days_between(then: datetime, now: datetime) -> float:
    """Days from ``then`` to ``now``; 0 if it is still to come."""
    return max((now - then).total_seconds(), 0.0) / _DAY


@dataclass(frozen=True, slots=True)
class Retention:
    """score = base x exp(-time since access / constant) x (1 + bonus x accesses) x importance."""

    rules: RetentionRules

    @property
    def name(self) -> Literal["retention"]:
        """See :attr:`DecayPolicy.name`."""
        return "retention"

    @property
    def ends_as(self) -> MemoryStatus:
        """See :attr:`DecayPolicy.ends_as`."""
        return MemoryStatus.ARCHIVED

    def value(self, memory: AnyMemory, now: datetime) -> float:
        """See :meth:`DecayPolicy.value`."""
        days = days_between(touched_at(memory), now)
        return self._at_first(memory) * math.exp(-days / self._constant(memory.type))

    def falls_from(self, memory: AnyMemory) -> datetime:
        """See :meth:`DecayPolicy.falls_from`."""
        return touched_at(memory)

    def leaves_at(self, memory: AnyMemory) -> datetime | None:
        """See :meth:`DecayPolicy.leaves_at`."""
        return _below(
            touched_at(memory),
            self._at_first(memory),
            self.rules.archive_below,
            self._constant(memory.type),
        )

    def explain(self, memory: AnyMemory, now: datetime) -> str:
        """See :meth:`DecayPolicy.explain`."""
        constant = self._constant(memory.type)
        days = days_between(touched_at(memory), now)
        return (
            f"{self.value(memory, now):.2f}: {self.rules.base:g} base x "
            f"{math.exp(-days / constant):.2f} for {days:.1f} days since the last use "
            f"(constant {constant:g}) x {1 + self.rules.access_bonus * memory.access_count:.2f} "
            f"for {memory.access_count} recalls x {memory.importance:g} importance; "
            f"archived below {self.rules.archive_below:g}"
        )

    def _at_first(self, memory: AnyMemory) -> float:
        rules = self.rules
        return rules.base * (1 + rules.access_bonus * memory.access_count) * memory.importance

    def _constant(self, kind: MemoryType) -> float:
        rules = self.rules
        match kind:
            case MemoryType.EPISODIC:
                return rules.episodic_days
            case MemoryType.FACTUAL:
                return rules.factual_days
            case MemoryType.SEMANTIC:
                return rules.semantic_days
            case MemoryType.PROCEDURAL:
                return rules.procedural_days
            case MemoryType.NEGATION:
                return rules.negation_days


@dataclass(frozen=True, slots=True)
class Energy:
    """E(t) = E x e^(-decay x hours), plus 1 for each access; the decay depends on the tier."""

    rules: EnergyRules

    @property
    def name(self) -> Literal["energy"]:
        """See :attr:`DecayPolicy.name`."""
        return "energy"

    @property
    def ends_as(self) -> MemoryStatus:
        """See :attr:`DecayPolicy.ends_as`."""
        return MemoryStatus.EXPIRED

    def tier(self, memory: AnyMemory) -> Tier:
        """The tier a memory is in: where it was promoted to, or where its type begins."""
        if memory.vitals is not None and memory.vitals.tier is not None:
            return memory.vitals.tier
        rules = self.rules
        return Tier(rules.episode_tier if isinstance(memory, Episode) else rules.conclusion_tier)

    def decay(self, memory: AnyMemory) -> float:
        """By how much the logarithm of the energy falls in an hour."""
        match self.tier(memory):
            case Tier.WORKING:
                return self.rules.working_decay
            case Tier.SHORT_TERM:
                return self.rules.short_term_decay
            case Tier.LONG_TERM:
                return self.rules.long_term_decay

    def written(self, memory: AnyMemory) -> tuple[float, datetime]:
        """The energy that is on record, and of when.

        A confirmation since then counts like an access: no write of its own is needed.
        """
        vitals = memory.vitals
        if vitals is None or vitals.energy is None or vitals.energy_at is None:
            energy, at = self.rules.start, memory.created_at
        else:
            energy, at = vitals.energy, vitals.energy_at
        told = told_at(memory)
        if told <= at:
            return energy, at
        return energy * self.left(memory, at, told) + self.rules.per_access, told

    def value(self, memory: AnyMemory, now: datetime) -> float:
        """See :meth:`DecayPolicy.value`."""
        energy, at = self.written(memory)
        return energy * self.left(memory, at, now)

    def falls_from(self, memory: AnyMemory) -> datetime:
        """See :meth:`DecayPolicy.falls_from`."""
        return self.written(memory)[1]

    def leaves_at(self, memory: AnyMemory) -> datetime | None:
        """See :meth:`DecayPolicy.leaves_at`."""
        energy, at = self.written(memory)
        return _below(at, energy, self.rules.expire_below, 1 / (24 * self.decay(memory)))

    def explain(self, memory: AnyMemory, now: datetime) -> str:
        """See :meth:`DecayPolicy.explain`."""
        energy, at = self.written(memory)
        return (
            f"{self.value(memory, now):.2f}: energy {energy:.2f}, "
            f"{days_between(at, now) * 24:.1f} hours ago, falling by "
            f"{self.decay(memory):g} an hour in the {self.tier(memory)} tier; "
            f"expires below {self.rules.expire_below:g}"
        )

    def left(self, memory: AnyMemory, then: datetime, now: datetime) -> float:
        """Which part of the energy at ``then`` is left at ``now``."""
        hours = max((now - then).total_seconds(), 0.0) / _HOUR
        return math.exp(-self.decay(memory) * hours)


def policy_for(rules: LifecycleSettings, namespace: str) -> DecayPolicy:
    """The decay policy that a namespace goes by."""
    if rules.policy_name(namespace) == "energy":
        return Energy(rules.energy)
    return Retention(rules.retention)


def _below(
    since: datetime, value: float, threshold: float, constant_days: float
) -> datetime | None:
    """When ``value``, falling exponentially since then, lies below the threshold."""
    if value < threshold:
        return since
    if threshold <= 0:
        return None
    moment = later(since, days=constant_days * math.log(value / threshold))
    # At the crossing itself it only touches the threshold.
    return None if moment is None else moment + _TICK
