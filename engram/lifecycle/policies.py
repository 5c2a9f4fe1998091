"""Fading and worth: retention, energy, and the values computed from them on demand."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from engram.domain.confidence import Verification, effective_confidence
from engram.domain.memories import (
    AnyMemory,
    Category,
    DerivedMemory,
    Episode,
    MemoryStatus,
    MemoryType,
    NegationFact,
    Placement,
    PolicyClass,
    SemanticMemory,
    Term,
    Tier,
    VerificationState,
)
from engram.domain.rules import (
    EnergyRules,
    LifecycleRules,
    LifecycleSettings,
    RetentionRules,
    ValueRules,
)
from engram.domain.slots import ends_something

# --- two ways of fading behind one Protocol: retention and energy
#
# Each value is a closed form of what was last written and the present, so time
# passing writes nothing.

_HOUR: Final = 3600.0
_DAY_SECONDS: Final = 86_400.0
# Part of the gap to 1 that each recall closes.
_PER_ACCESS: Final = 0.1
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
    """When a memory was last told: stored here, or confirmed later (an import counts when made).

    That a promise ended was told of it, too.
    """
    if isinstance(memory, Episode):
        return memory.created_at
    again = memory.vitals.told_at if memory.vitals is not None else None
    ended = memory.resolved_at if isinstance(memory, SemanticMemory) else None
    told = (memory.created_at, memory.confidence.last_confirmed, again, ended)
    return max(moment for moment in told if moment is not None)


def is_open_promise(memory: AnyMemory) -> bool:
    """Whether it is a commitment that nothing has resolved: time alone never takes it.

    What tells that a promise ended is none.
    """
    if not isinstance(memory, SemanticMemory) or memory.category is not Category.COMMITMENT:
        return False
    return memory.resolution is None and not is_outcome(memory)


def is_outcome(memory: SemanticMemory) -> bool:
    """Whether it tells that something is no longer so, such as a promise that was kept."""
    return memory.slot is not None and ends_something(memory.slot)


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
    seconds = (now - then).total_seconds()
    return seconds / _DAY_SECONDS if seconds > 0.0 else 0.0


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
        if is_open_promise(memory):
            return None
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
        if is_open_promise(memory):
            return None
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


# --- what a memory is worth: quality, heat, decay and placement value
#
# Computed when asked for. Every number here lies in 0 to 1.

_VERIFICATIONS: Final = {
    Verification.UNCHECKED: VerificationState.UNVERIFIED,
    Verification.USER_CONFIRMED: VerificationState.USER_CONFIRMED,
    Verification.EVIDENCE_FOUND: VerificationState.SYSTEM_INFERRED,
    Verification.DISPUTED: VerificationState.DISPUTED,
}
_SHORT_TERM_TYPES: Final = frozenset({MemoryType.EPISODIC})


class Quality(BaseModel):
    """The parts of a memory's quality; their product is it.

    Attributes:
        salience: Weight of the type, modulated by importance: half of it at
            importance 0, all of it at 1.
        confidence: Effective confidence; 1 for what has none.
        access: 0.5 if never recalled; each recall closes a tenth of the gap to 1.
        recency: Halves per half-life since the last use.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    salience: float = Field(ge=0, le=1)
    confidence: float = Field(ge=0, le=1)
    access: float = Field(ge=0, le=1)
    recency: float = Field(ge=0, le=1)

    @property
    def value(self) -> float:
        """Salience x confidence x access x recency."""
        return self.durable * self.recency

    @property
    def durable(self) -> float:
        """The same without recency: what matters however long ago. Ranks the briefing."""
        return self.salience * self.confidence * self.access

    def explain(self) -> str:
        """The quality in one sentence with its parts."""
        return (
            f"{self.value:.2f}: {self.salience:.2f} salience x {self.confidence:.2f} confidence "
            f"x {self.access:.2f} access x {self.recency:.2f} recency; "
            f"{self.durable:.2f} without recency"
        )


def quality(memory: AnyMemory, now: datetime, rules: LifecycleRules) -> Quality:
    """What a memory is worth at ``now``, in parts."""
    weight = _weight(rules.value, memory.type)
    days = days_between(touched_at(memory), now)
    return Quality(
        salience=weight * (0.5 + 0.5 * memory.importance),
        confidence=trust(memory, now, rules),
        access=1 - 0.5 * (1 - _PER_ACCESS) ** memory.access_count,
        recency=float(0.5 ** (days / rules.value.half_life_days)),
    )


def trust(memory: AnyMemory, now: datetime, rules: LifecycleRules) -> float:
    """Effective confidence of a memory at ``now``; 1 for a turn."""
    confidence = None if isinstance(memory, Episode) else memory.confidence
    return effective_confidence(confidence, now, rules.weights, recalled_at=memory.last_accessed_at)


def heat(memory: AnyMemory, now: datetime, rules: LifecycleRules) -> float:
    """How much it is in use: energy / (1 + energy), under either decay policy.

    0.5 for a fresh memory, towards 1 with each recall, towards 0 with time.
    """
    energy = Energy(rules.energy).value(memory, now)
    return energy / (1 + energy)


def decay_score(memory: AnyMemory, now: datetime, rules: LifecycleRules) -> float:
    """How far it is on its way out: 0 when last used, 1 when it leaves; 0 if it never does."""
    policy = policy_for(rules, memory.namespace)
    leaves = policy.leaves_at(memory)
    if leaves is None or policy_class(memory, rules) is PolicyClass.PROTECTED:
        return 0.0
    since = policy.falls_from(memory)
    if now >= leaves:
        return 1.0
    # Told a little ahead of this clock, it may leave the moment it begins to fall.
    return (now - since) / (leaves - since) if now > since else 0.0


def stale_at(memory: AnyMemory, rules: ValueRules, policy: DecayPolicy) -> datetime | None:
    """When the decay score reaches the setting ``stale_at``; None for never."""
    leaves = policy.leaves_at(memory)
    if leaves is None:
        return None
    since = policy.falls_from(memory)
    return since + (leaves - since) * rules.stale_at


def placement_value(memory: AnyMemory, now: datetime, rules: LifecycleRules) -> float:
    """What decides between hot and cold.

    Quality; a dispute lowers it, being a correction or confirmed by the user raises it.
    """
    placing, worth = rules.placement, quality(memory, now, rules).value
    if is_disputed(memory):
        worth *= placing.disputed_factor
    if is_correction(memory):
        worth += placing.correction_bonus
    if verification_of(memory) is VerificationState.USER_CONFIRMED:
        worth += placing.confirmed_bonus
    return min(worth, 1.0)


def is_cold(memory: AnyMemory, rules: LifecycleRules) -> bool:
    """Whether it is kept cold; nothing is where placement is switched off."""
    return rules.placement.enabled and memory.placement is Placement.COLD


def verification_of(memory: AnyMemory) -> VerificationState:
    """Who vouches for a memory; nobody needs to for a turn."""
    if isinstance(memory, Episode):
        return VerificationState.UNVERIFIED
    if isinstance(memory, SemanticMemory) and memory.disputed_with:
        return VerificationState.DISPUTED
    return _VERIFICATIONS[memory.confidence.verification]


def disputed_with(memory: AnyMemory | DerivedMemory) -> tuple[str, ...]:
    """The memories that it contradicts, with nothing to settle which holds."""
    return memory.disputed_with if isinstance(memory, SemanticMemory) else ()


def is_disputed(memory: AnyMemory) -> bool:
    """Whether the user, or another memory that nothing settles, speaks against it."""
    return verification_of(memory) is VerificationState.DISPUTED


def is_refuted(memory: AnyMemory) -> bool:
    """Whether it was settled that it is not so."""
    return isinstance(memory, DerivedMemory) and memory.refuted_at is not None


def dispute_of(memory: AnyMemory) -> str | None:
    """What speaks against a memory, in one sentence without its words; None if nothing does."""
    if isinstance(memory, DerivedMemory) and memory.refuted_at is not None:
        kept = memory.superseded_by
        instead = "" if kept is None else f", and {kept} was kept"
        return f"refuted on {memory.refuted_at:%Y-%m-%d}{instead}"
    if isinstance(memory, SemanticMemory) and memory.disputed_with:
        rivals = ", ".join(memory.disputed_with)
        return f"disputed: it contradicts {rivals}, and nothing settles which holds"
    return "disputed by the user" if is_disputed(memory) else None


def is_correction(memory: AnyMemory) -> bool:
    """Whether it sets something right."""
    if isinstance(memory, SemanticMemory):
        return memory.category is Category.CORRECTION
    return isinstance(memory, NegationFact)


def is_supported(memory: AnyMemory) -> bool:
    """Whether it was told on a second occasion, or the user vouches for it."""
    if isinstance(memory, Episode):
        return False
    confirmed = memory.confidence.verification is Verification.USER_CONFIRMED
    return confirmed or memory.confidence.supporting_episodes > 1


def policy_class(memory: AnyMemory, rules: LifecycleRules) -> PolicyClass:
    """How freely time may take it: as it was set, else ephemeral if an end is set for it."""
    if memory.policy_class is not None:
        return memory.policy_class
    if memory.expires_at is not None or time_to_live(memory.type, rules) > 0:
        return PolicyClass.EPHEMERAL
    return PolicyClass.DURABLE


def time_to_live(kind: MemoryType, rules: LifecycleRules) -> float:
    """Days after which memories of a type expire; 0 for never."""
    days: float = getattr(rules.time_to_live, f"{kind.value}_days")
    return days


def expires_at(memory: AnyMemory, rules: LifecycleRules) -> datetime | None:
    """When its time to live is over, by its own date or by its type."""
    days = time_to_live(memory.type, rules)
    by_type = later(told_at(memory), days=days) if days > 0 else None
    if memory.expires_at is None or by_type is None:
        return memory.expires_at or by_type
    return min(memory.expires_at, by_type)


def tier_of(memory: AnyMemory, rules: LifecycleRules) -> Tier:
    """The tier of a memory."""
    return Energy(rules.energy).tier(memory)


def term_of(memory: AnyMemory, rules: LifecycleRules) -> Term:
    """The coarse horizon: turns are short-term until they reach the long-term tier."""
    if memory.type not in _SHORT_TERM_TYPES:
        return Term.LONG
    return Term.LONG if tier_of(memory, rules) is Tier.LONG_TERM else Term.SHORT


def _weight(rules: ValueRules, kind: MemoryType) -> float:
    weight: float = getattr(rules, f"{kind.value}_weight")
    return weight
