"""The one table of all that can happen to a memory: from, event and condition, to.

The code runs it and ``docs/lifecycle.md`` prints it. Rows further up win where
two would act at the same moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from engram.domain.memories import (
    STORED_TYPES,
    LifecycleState,
    MemoryStatus,
    MemoryType,
    Placement,
    PolicyClass,
    Tier,
    VerificationState,
)
from engram.domain.rules import LifecycleRules
from engram.lifecycle import windows


class Event(StrEnum):
    """What makes a rule act."""

    TIME = "time"
    """A pass looks at the memory, at or after its ``review_at``."""
    SESSION_ENDED = "session_ended"
    TOLD_AGAIN = "told_again"
    """A further turn says the same."""
    CONFIRMED = "confirmed"
    DISPUTED = "disputed"
    PROTECTED = "protected"
    UNPROTECTED = "unprotected"
    DEMOTED = "demoted"
    """The user or an operator archives it by hand."""
    FORCED = "forced"
    """An operator promotes it by hand."""


class Aspect(StrEnum):
    """Which of a memory's states a rule changes."""

    STATUS = "status"
    LIFECYCLE = "lifecycle"
    PLACEMENT = "placement"
    TIER = "tier"
    VERIFICATION = "verification"
    POLICY_CLASS = "policy_class"


ERASED_STATE: Final = "erased"
"""The target of the one rule after which a memory is not there any more."""


def _always(_: LifecycleRules, __: str) -> bool:
    return True


def _retention(_: LifecycleRules, policy: str) -> bool:
    return policy == "retention"


def _energy(_: LifecycleRules, policy: str) -> bool:
    return policy == "energy"


def _archival(rules: LifecycleRules, _: str) -> bool:
    return rules.archival.enabled


def _placing(rules: LifecycleRules, _: str) -> bool:
    return rules.placement.enabled


def _erasing(rules: LifecycleRules, _: str) -> bool:
    return rules.expiry.erase_after_days > 0


@dataclass(frozen=True, slots=True)
class TransitionRule:
    """One row of the table.

    Attributes:
        name: Names the rule, in reports and in metrics.
        event: What makes it act.
        aspect: Which state it changes.
        sources: From which of its values.
        target: To which.
        condition: When, in words.
        when: The same as a stretch of time; for other events than time: at all.
        statuses: Only memories of these statuses.
        types: Only memories of these types.
        takes: Whether it takes something away; protected memories are spared.
        enabled: Under which settings, and names of decay policies, it acts.
    """

    name: str
    event: Event
    aspect: Aspect
    sources: tuple[str, ...]
    target: str
    condition: str
    when: windows.WindowOf = windows.at_once
    statuses: tuple[MemoryStatus, ...] = (MemoryStatus.ACTIVE,)
    types: tuple[MemoryType, ...] = STORED_TYPES
    takes: bool = False
    enabled: Callable[[LifecycleRules, str], bool] = field(default=_always)


_ACTIVE: Final = (MemoryStatus.ACTIVE.value,)
_LEFT_STATUSES: Final = (MemoryStatus.ARCHIVED.value, MemoryStatus.EXPIRED.value)
_ALL: Final = tuple(MemoryStatus)
_DERIVED_TYPES: Final = STORED_TYPES[1:]
_EXPIRED, _ARCHIVED = MemoryStatus.EXPIRED.value, MemoryStatus.ARCHIVED.value
_STATE: Final = LifecycleState
_LIVING: Final = (_STATE.CANDIDATE.value, _STATE.VALIDATED.value, _STATE.ACTIVE.value)
_NOT_LEFT: Final = (MemoryStatus.ACTIVE, MemoryStatus.SUPERSEDED)


def _leaves(
    name: str, target: str, condition: str, when: windows.WindowOf, **more: object
) -> TransitionRule:
    return TransitionRule(
        name,
        Event.TIME,
        Aspect.STATUS,
        _ACTIVE,
        target,
        condition,
        when,
        takes=True,
        **more,  # type: ignore[arg-type]  # types and enabled, checked by Row's users
    )


def _matures(
    name: str,
    sources: tuple[str, ...],
    target: str,
    condition: str,
    when: windows.WindowOf,
    types: tuple[MemoryType, ...] = STORED_TYPES,
) -> TransitionRule:
    return TransitionRule(
        name, Event.TIME, Aspect.LIFECYCLE, sources, target, condition, when, types=types
    )


def _by_hand(
    event: Event,
    aspect: Aspect,
    sources: tuple[str, ...],
    target: str,
    condition: str,
    when: windows.WindowOf = windows.at_once,
    **more: object,
) -> TransitionRule:
    more.setdefault("statuses", _ALL)
    name = f"{event.value}_{target}"
    return TransitionRule(name, event, aspect, sources, target, condition, when, **more)  # type: ignore[arg-type]  # statuses and types only


TABLE: Final[tuple[TransitionRule, ...]] = (
    # --- leaving the answers
    _leaves(
        "time_to_live",
        _EXPIRED,
        "its own expiry date, or the time to live of its type, has come",
        windows.time_to_live_over,
    ),
    _leaves(
        "speculation",
        _EXPIRED,
        "speculative, and not confirmed within `expiry.speculative_days`",
        windows.never_confirmed,
        types=_DERIVED_TYPES,
    ),
    _leaves(
        "commitment",
        _ARCHIVED,
        "a commitment, resolved `expiry.commitment_days` ago",
        windows.commitment_over,
        types=(MemoryType.SEMANTIC,),
    ),
    _leaves(
        "retention",
        _ARCHIVED,
        "retention score below `retention.archive_below`",
        windows.faded,
        enabled=_retention,
    ),
    _leaves(
        "energy",
        _EXPIRED,
        "energy below `energy.expire_below`",
        windows.faded,
        enabled=_energy,
    ),
    _leaves(
        "old_and_unused",
        _ARCHIVED,
        "older than `archival.age_days`, importance below `archival.importance_below`, at most "
        "`archival.most_accesses` recalls, no correction, no protected category",
        windows.old_and_unused,
        types=(MemoryType.FACTUAL, MemoryType.SEMANTIC),
        enabled=_archival,
    ),
    _leaves(
        "debris",
        _ARCHIVED,
        "never recalled, older than `expiry.demote_days`, effective confidence below "
        "`expiry.demote_below`",
        windows.debris,
        types=_DERIVED_TYPES,
    ),
    TransitionRule(
        "erase",
        Event.TIME,
        Aspect.STATUS,
        (*_LEFT_STATUSES, MemoryStatus.SUPERSEDED.value),
        ERASED_STATE,
        "out of the answers for `expiry.erase_after_days`; looked at daily, a turn not before the "
        "last that was concluded from it, a denial not before the last that it denies",
        windows.kept_long_enough,
        statuses=_ALL,
        takes=True,
        enabled=_erasing,
    ),
    # --- maturing
    _matures(
        "doubted",
        (_STATE.VALIDATED.value, _STATE.ACTIVE.value),
        _STATE.CANDIDATE.value,
        "disputed, by the user or by another memory",
        windows.doubted,
        types=_DERIVED_TYPES,
    ),
    _matures(
        "supported",
        (_STATE.CANDIDATE.value, _STATE.ACTIVE.value),
        _STATE.VALIDATED.value,
        "told on a second occasion, or the user confirmed it; not disputed; if ephemeral, "
        "only confirmed",
        windows.supported,
        types=_DERIVED_TYPES,
    ),
    _matures(
        "used",
        (_STATE.CANDIDATE.value,),
        _STATE.ACTIVE.value,
        "recalled, not disputed, not ephemeral",
        windows.used,
        types=_DERIVED_TYPES,
    ),
    TransitionRule(
        "grown_stale",
        Event.TIME,
        Aspect.LIFECYCLE,
        _LIVING,
        _STATE.STALE.value,
        "decay score has reached `value.stale_at`",
        windows.grown_stale,
        takes=True,
    ),
    _matures(
        "fresh_again",
        (_STATE.STALE.value,),
        _STATE.ACTIVE.value,
        "decay score below `value.stale_at` again, or protected",
        windows.fresh_again,
    ),
    _matures(
        "returned",
        (_STATE.ARCHIVED.value,),
        _STATE.ACTIVE.value,
        "its status is active again",
        windows.at_once,
    ),
    TransitionRule(
        "replaced",
        Event.TIME,
        Aspect.LIFECYCLE,
        (*_LIVING, _STATE.STALE.value),
        _STATE.ARCHIVED.value,
        "superseded, and `expiry.erase_after_days` is set, which counts from here",
        statuses=(MemoryStatus.SUPERSEDED,),
        takes=True,
        enabled=_erasing,
    ),
    # --- tiers, under the energy policy
    TransitionRule(
        "to_short_term",
        Event.TIME,
        Aspect.TIER,
        (Tier.WORKING.value,),
        Tier.SHORT_TERM.value,
        "energy has reached `energy.to_short_term`",
        windows.reached_short_term,
        enabled=_energy,
    ),
    TransitionRule(
        "to_long_term",
        Event.TIME,
        Aspect.TIER,
        (Tier.SHORT_TERM.value,),
        Tier.LONG_TERM.value,
        "energy has reached `energy.to_long_term` (crystallisation)",
        windows.reached_long_term,
        enabled=_energy,
    ),
    TransitionRule(
        "session_end",
        Event.SESSION_ENDED,
        Aspect.TIER,
        (Tier.WORKING.value,),
        Tier.SHORT_TERM.value,
        "energy is at least `energy.at_session_end`",
        windows.lively_at_session_end,
        enabled=_energy,
    ),
    # --- placement
    TransitionRule(
        "cooled",
        Event.TIME,
        Aspect.PLACEMENT,
        (Placement.HOT.value,),
        Placement.COLD.value,
        "older than `placement.cold_after_days`, placement value at most `placement.cold_at`",
        windows.not_worth_keeping_hot,
        takes=True,
        enabled=_placing,
    ),
    TransitionRule(
        "warmed",
        Event.TIME,
        Aspect.PLACEMENT,
        (Placement.COLD.value,),
        Placement.HOT.value,
        "placement value at least `placement.hot_at`, or protected",
        windows.worth_keeping_hot,
        enabled=_placing,
    ),
    # --- by hand, and by what is said
    _by_hand(
        Event.TOLD_AGAIN,
        Aspect.STATUS,
        _LEFT_STATUSES,
        MemoryStatus.ACTIVE.value,
        "a further turn says the same",
        types=_DERIVED_TYPES,
    ),
    _by_hand(
        Event.CONFIRMED,
        Aspect.VERIFICATION,
        tuple(v.value for v in VerificationState if v is not VerificationState.USER_CONFIRMED),
        VerificationState.USER_CONFIRMED.value,
        "the user confirms it",
        types=_DERIVED_TYPES,
    ),
    _by_hand(
        Event.CONFIRMED,
        Aspect.STATUS,
        (*_LEFT_STATUSES, MemoryStatus.SUPERSEDED.value),
        MemoryStatus.ACTIVE.value,
        "the user confirms what had left; what was replaced only if it was refuted",
        windows.can_return,
        types=_DERIVED_TYPES,
    ),
    _by_hand(
        Event.CONFIRMED,
        Aspect.LIFECYCLE,
        tuple(s.value for s in _STATE if s is not _STATE.VALIDATED),
        _STATE.VALIDATED.value,
        "the user confirms it",
        types=_DERIVED_TYPES,
        statuses=_NOT_LEFT,
    ),
    _by_hand(
        Event.DISPUTED,
        Aspect.VERIFICATION,
        tuple(v.value for v in VerificationState if v is not VerificationState.DISPUTED),
        VerificationState.DISPUTED.value,
        "the user disputes it",
        types=_DERIVED_TYPES,
    ),
    _by_hand(
        Event.DISPUTED,
        Aspect.LIFECYCLE,
        (_STATE.VALIDATED.value, _STATE.ACTIVE.value),
        _STATE.CANDIDATE.value,
        "the user disputes it",
        types=_DERIVED_TYPES,
    ),
    _by_hand(
        Event.DISPUTED,
        Aspect.STATUS,
        (*_ACTIVE, *_LEFT_STATUSES, MemoryStatus.SUPERSEDED.value),
        MemoryStatus.SUPERSEDED.value,
        "the user disputes it: refuted, it leaves the answers, of any time, and stays readable",
        windows.can_be_refuted,
        types=_DERIVED_TYPES,
    ),
    _by_hand(
        Event.PROTECTED,
        Aspect.POLICY_CLASS,
        (PolicyClass.EPHEMERAL.value, PolicyClass.DURABLE.value),
        PolicyClass.PROTECTED.value,
        "the user protects it; its own expiry date is dropped",
    ),
    _by_hand(
        Event.PROTECTED,
        Aspect.STATUS,
        _LEFT_STATUSES,
        MemoryStatus.ACTIVE.value,
        "the user protects what had left",
    ),
    _by_hand(
        Event.UNPROTECTED,
        Aspect.POLICY_CLASS,
        (PolicyClass.PROTECTED.value,),
        PolicyClass.DURABLE.value,
        "the user takes the protection back (ephemeral where its type has a time to live)",
    ),
    _by_hand(
        Event.DEMOTED,
        Aspect.STATUS,
        _ACTIVE,
        MemoryStatus.ARCHIVED.value,
        "archived by hand; not if protected",
        takes=True,
    ),
    _by_hand(
        Event.FORCED,
        Aspect.TIER,
        (Tier.SHORT_TERM.value,),
        Tier.LONG_TERM.value,
        "promoted by hand",
    ),
    _by_hand(
        Event.FORCED,
        Aspect.TIER,
        (Tier.WORKING.value,),
        Tier.SHORT_TERM.value,
        "promoted by hand",
    ),
)
