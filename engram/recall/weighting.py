"""What a memory is, whatever was asked: its life, how sure Engram is, how fresh."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from engram.domain.lifecycle.policies import DecayPolicy, policy_for
from engram.domain.lifecycle.rules import LifecycleRules
from engram.domain.lifecycle.states import LifecycleState
from engram.domain.lifecycle.values import is_cold, is_disputed, trust
from engram.domain.memories import AnyMemory, Episode
from engram.domain.ranking import RankingFactors
from engram.recall.ranked import Ranked, by_score, change

_NEUTRAL_IMPORTANCE = 0.5


def weighted(
    found: Sequence[Ranked], now: datetime, rules: LifecycleRules, factors: RankingFactors
) -> list[Ranked]:
    """The candidates with their scores weighted, best first."""
    if not found:
        return []
    policy = policy_for(rules, found[0].memory.namespace)
    return by_score([_weighted(one, now, policy, rules, factors) for one in found])


def lifecycle_weight(memory: AnyMemory, factors: RankingFactors) -> float:
    """What its state in life multiplies a score with; 1 for a memory that has none."""
    match memory.lifecycle:
        case LifecycleState.VALIDATED | LifecycleState.ACTIVE:
            weight = factors.validated
        case LifecycleState.CANDIDATE:
            weight = factors.candidate
        case LifecycleState.STALE:
            weight = factors.stale
        case _:
            weight = 1.0
    return weight * factors.disputed if is_disputed(memory) else weight


def _weighted(
    one: Ranked, now: datetime, policy: DecayPolicy, rules: LifecycleRules, factors: RankingFactors
) -> Ranked:
    memory, whole, parts = one.memory, one.score, list(one.parts)
    for name, factor in _factors(memory, now, policy, rules, factors):
        if factor == 1.0:
            continue
        after = min(1.0, whole * factor)
        parts.append(change(name, after - whole, factor))
        whole = after
    return Ranked(memory, whole, tuple(parts), one.links, one.negated_by)


def _factors(
    memory: AnyMemory,
    now: datetime,
    policy: DecayPolicy,
    rules: LifecycleRules,
    factors: RankingFactors,
) -> Iterator[tuple[str, float]]:
    yield "lifecycle", lifecycle_weight(memory, factors)
    if is_cold(memory, rules):
        # Never more than behind what is hot: cold memories may be the only answer.
        yield "cold", factors.cold
    if isinstance(memory, Episode):
        worth = min(1.0, policy.value(memory, now))
        yield "faded", factors.faded + (1.0 - factors.faded) * worth
    else:
        sure = trust(memory, now, rules)
        yield "confidence", factors.unsure + (1.0 - factors.unsure) * sure
    if memory.importance < _NEUTRAL_IMPORTANCE:
        missing = 1.0 - memory.importance / _NEUTRAL_IMPORTANCE
        yield "importance", 1.0 - (1.0 - factors.unimportant) * missing
