"""When each rule of the transition table acts, as a stretch of time.

A stretch follows from stored facts alone. So the moment at which a memory is to
be looked at, and the decision made then, cannot disagree: both ask here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from engram.domain.confidence import Verification, is_speculative
from engram.domain.memories import (
    AnyMemory,
    Category,
    Episode,
    Fact,
    MemoryStatus,
    NegationFact,
    PolicyClass,
    SemanticMemory,
)
from engram.domain.rules import LifecycleRules
from engram.lifecycle.policies import (
    DecayPolicy,
    Energy,
    expires_at,
    is_disputed,
    is_open_promise,
    is_refuted,
    is_supported,
    later,
    placement_value,
    policy_class,
    stale_at,
    told_at,
    touched_at,
)

_HORIZON_DAYS: Final = 36_525.0
_DAYS_UNTIL_LOOKED_AT_AGAIN: Final = 1.0
_TICK: Final = timedelta(microseconds=1)


class Window(NamedTuple):
    """From ``start`` on, until ``end``, the rule acts; None for always."""

    start: datetime
    end: datetime | None = None

    def holds(self, now: datetime) -> bool:
        """Whether the rule acts at ``now``."""
        return self.start <= now and (self.end is None or now < self.end)


@dataclass(frozen=True, slots=True)
class PolicyContext:
    """What a rule decides by besides the memory."""

    rules: LifecycleRules
    policy: DecayPolicy


WindowOf = Callable[[AnyMemory, PolicyContext], Window | None]


def _from(moment: datetime | None) -> Window | None:
    return None if moment is None else Window(moment)


def time_to_live_over(memory: AnyMemory, ground: PolicyContext) -> Window | None:
    """Its own end, or that of its type, has come."""
    return _from(expires_at(memory, ground.rules))


def faded(memory: AnyMemory, ground: PolicyContext) -> Window | None:
    """Its worth under the decay policy lies below the threshold."""
    return _from(ground.policy.leaves_at(memory))


def never_confirmed(memory: AnyMemory, ground: PolicyContext) -> Window | None:
    """Speculative, and so many days old."""
    rules = ground.rules.expiry
    if isinstance(memory, Episode) or is_supported(memory):
        return None
    if not is_speculative(memory.confidence, rules.speculative_below):
        return None
    return _from(later(told_at(memory), days=rules.speculative_days))


def commitment_over(memory: AnyMemory, ground: PolicyContext) -> Window | None:
    """A resolved commitment, so many days later."""
    if not isinstance(memory, SemanticMemory) or memory.category is not Category.COMMITMENT:
        return None
    if memory.resolution is None or memory.resolved_at is None:
        return None
    # Told again, or confirmed, after it ended: counted from then.
    return _from(later(told_at(memory), days=ground.rules.expiry.commitment_days))


def old_and_unused(memory: AnyMemory, ground: PolicyContext) -> Window | None:
    """Old, unimportant, hardly recalled, and of no category that stays."""
    rules = ground.rules.archival
    if not isinstance(memory, Fact | SemanticMemory) or _confirmed_by_user(memory):
        return None
    stays = {*rules.protected_categories, Category.CORRECTION.value}
    if isinstance(memory, SemanticMemory) and memory.category.value in stays:
        return None
    if memory.importance >= rules.importance_below or memory.access_count > rules.most_accesses:
        return None
    aged = later(told_at(memory), days=rules.age_days)
    return _from(None if aged is None else aged + _TICK)


def debris(memory: AnyMemory, ground: PolicyContext) -> Window | None:
    """Old, never recalled, and with an effective confidence below the floor."""
    if isinstance(memory, Episode) or memory.access_count or memory.last_accessed_at is not None:
        return None
    if is_open_promise(memory):
        return None
    rules, weights = ground.rules.expiry, ground.rules.weights
    told = memory.confidence.last_confirmed
    fresh = memory.confidence.score(told, weights)
    # Only the recency part falls: from its whole weight towards nothing.
    missing = rules.demote_below - (fresh - weights.recency)
    if missing <= 0:
        return None
    if missing > weights.recency:
        low: datetime | None = told
    else:
        low = later(told, days=weights.decay_days * math.log(weights.recency / missing))
    aged = later(told_at(memory), days=rules.demote_days)
    if low is None or aged is None:
        return None
    return Window(max(low, aged) + _TICK)


def kept_long_enough(memory: AnyMemory, ground: PolicyContext) -> Window | None:
    """Out of the answers for as long as the explicit retention setting says.

    What a pass has kept then is looked at once a day: a turn, for what was concluded from it, and
    a denial, for what it denies.
    """
    left = memory.expired_at or memory.archived_at
    days = ground.rules.expiry.erase_after_days
    over = None if left is None or days <= 0 else later(left, days=days)
    may_stay = isinstance(memory, Episode | NegationFact)
    kept = memory.vitals.last_decay if memory.vitals and may_stay else None
    if over is not None and kept is not None and kept >= over:
        over = later(kept, days=min(days, _DAYS_UNTIL_LOOKED_AT_AGAIN))
    return _from(over)


def at_once(memory: AnyMemory, ground: PolicyContext) -> Window | None:
    """Always; the states in the table say the rest."""
    return Window(memory.created_at)


def can_return(memory: AnyMemory, ground: PolicyContext) -> Window | None:
    """Nothing took its place; or what did, did so because it was refuted."""
    replaced = memory.status is MemoryStatus.SUPERSEDED and not is_refuted(memory)
    return None if replaced else at_once(memory, ground)


def can_be_refuted(memory: AnyMemory, ground: PolicyContext) -> Window | None:
    """It is not refuted yet: since when it is does not change."""
    return None if is_refuted(memory) else at_once(memory, ground)


def supported(memory: AnyMemory, ground: PolicyContext) -> Window | None:
    """Told on a second occasion, or the user confirmed it; nobody disputes it."""
    if not is_supported(memory) or is_disputed(memory):
        return None
    ephemeral = policy_class(memory, ground.rules) is PolicyClass.EPHEMERAL
    if ephemeral and not _confirmed_by_user(memory):
        return None
    return Window(memory.created_at)


def used(memory: AnyMemory, ground: PolicyContext) -> Window | None:
    """It was recalled, and nobody disputes it."""
    recalled = memory.last_accessed_at
    if recalled is None or not memory.access_count or is_disputed(memory):
        return None
    return (
        None
        if policy_class(memory, ground.rules) is PolicyClass.EPHEMERAL
        else Window(memory.created_at)
    )


def doubted(memory: AnyMemory, ground: PolicyContext) -> Window | None:
    """The user, or another memory that nothing settles, speaks against it."""
    return Window(memory.created_at) if is_disputed(memory) else None


def grown_stale(memory: AnyMemory, ground: PolicyContext) -> Window | None:
    """The decay score has reached the setting."""
    return _from(stale_at(memory, ground.rules.value, ground.policy))


def fresh_again(memory: AnyMemory, ground: PolicyContext) -> Window | None:
    """Used again, or under other rules: the decay score lies below the setting."""
    start = ground.policy.falls_from(memory)
    if policy_class(memory, ground.rules) is PolicyClass.PROTECTED:
        return Window(start)
    stale = stale_at(memory, ground.rules.value, ground.policy)
    return None if stale is not None and stale <= start else Window(start, stale)


def not_worth_keeping_hot(memory: AnyMemory, ground: PolicyContext) -> Window | None:
    """Old enough, and its placement value at or below the lower threshold."""
    placing = ground.rules.placement
    aged = later(memory.created_at, days=placing.cold_after_days)
    low = _crossing(memory, ground, placing.cold_at)
    return None if aged is None or low is None else Window(max(aged, low))


def worth_keeping_hot(memory: AnyMemory, ground: PolicyContext) -> Window | None:
    """Its placement value at or above the upper threshold, or protected."""
    start = touched_at(memory)
    if policy_class(memory, ground.rules) is PolicyClass.PROTECTED:
        return Window(memory.created_at)
    if placement_value(memory, start, ground.rules) < ground.rules.placement.hot_at:
        return None
    return Window(start, _crossing(memory, ground, ground.rules.placement.hot_at))


def reached_short_term(memory: AnyMemory, ground: PolicyContext) -> Window | None:
    """Its energy once reached the threshold."""
    return _reached(memory, ground.rules.energy.to_short_term)


def reached_long_term(memory: AnyMemory, ground: PolicyContext) -> Window | None:
    """Its energy once reached the threshold."""
    return _reached(memory, ground.rules.energy.to_long_term)


def lively_at_session_end(memory: AnyMemory, ground: PolicyContext) -> Window | None:
    """Its energy still reaches the lower threshold of a session's end."""
    energy = Energy(ground.rules.energy)
    value, at = energy.written(memory)
    threshold = ground.rules.energy.at_session_end
    if value < threshold:
        return None
    days = math.log(value / threshold) / (24 * energy.decay(memory))
    end = later(at, days=days)
    return Window(memory.created_at, None if end is None else end + _TICK)


def _reached(memory: AnyMemory, threshold: float) -> Window | None:
    # The highest energy, not the present one: a pass that comes late decides the same.
    vitals = memory.vitals
    if vitals is None or vitals.peak_energy is None or vitals.energy_at is None:
        return None
    return Window(vitals.energy_at) if vitals.peak_energy >= threshold else None


def _confirmed_by_user(memory: AnyMemory) -> bool:
    if isinstance(memory, Episode):
        return False
    return memory.confidence.verification is Verification.USER_CONFIRMED


def _crossing(memory: AnyMemory, ground: PolicyContext, threshold: float) -> datetime | None:
    """When the placement value, which never rises by itself, has come down to the threshold."""

    def low(days: float) -> bool:
        moment = start + timedelta(days=days)
        return placement_value(memory, moment, ground.rules) <= threshold

    start = touched_at(memory)
    if low(0.0):
        return start
    if not low(_HORIZON_DAYS):
        return None
    high_side, low_side = 0.0, _HORIZON_DAYS
    # To the millisecond.
    while (low_side - high_side) * 86_400e3 > 1:
        middle = (high_side + low_side) / 2
        if low(middle):
            low_side = middle
        else:
            high_side = middle
    return start + timedelta(days=low_side)
