"""What a memory is worth: quality, heat, decay and placement value.

Computed when asked for. Every number here lies in 0 to 1.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from engram.domain.confidence import GAP_CLOSED, Verification, effective_confidence
from engram.domain.lifecycle.policies import (
    DecayPolicy,
    Energy,
    days_between,
    later,
    policy_for,
    told_at,
    touched_at,
)
from engram.domain.lifecycle.rules import LifecycleRules, ValueRules
from engram.domain.lifecycle.states import (
    Placement,
    PolicyClass,
    Term,
    Tier,
    VerificationState,
)
from engram.domain.memories import (
    AnyMemory,
    Category,
    Episode,
    MemoryType,
    NegationFact,
    SemanticMemory,
)

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
        access=1 - 0.5 * (1 - GAP_CLOSED) ** memory.access_count,
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
    return min(max((now - since) / (leaves - since), 0.0), 1.0)


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


def is_disputed(memory: AnyMemory) -> bool:
    """Whether the user, or another memory that nothing settles, speaks against it."""
    return verification_of(memory) is VerificationState.DISPUTED


def is_correction(memory: AnyMemory) -> bool:
    """Whether it sets something right."""
    if isinstance(memory, SemanticMemory):
        return memory.category is Category.CORRECTION
    return isinstance(memory, NegationFact)


def is_supported(memory: AnyMemory) -> bool:
    """Whether something besides its first source speaks for it: a second turn, or the user."""
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
