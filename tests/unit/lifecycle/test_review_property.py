"""``review_at`` against brute force: a year in small steps, with everything happening at random."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, TypeAlias

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engram.consolidation.amendments import corroborated
from engram.domain.confidence import is_speculative
from engram.domain.memories import (
    AnyMemory,
    Category,
    DerivedMemory,
    Episode,
    Fact,
    LifecycleState,
    MemoryStatus,
    Placement,
    PolicyClass,
    Resolution,
    SemanticMemory,
    Tier,
)
from engram.domain.rules import LifecycleRules
from engram.lifecycle import decisions
from engram.lifecycle.decisions import Rulebook, lifecycle_of
from engram.lifecycle.policies import (
    decay_score,
    is_disputed,
    is_open_promise,
    is_supported,
    placement_value,
    policy_class,
    policy_for,
    tier_of,
    touched_at,
    trust,
)
from tests.support.lifecycle_memories import (
    T0,
    day,
    episode,
    fact,
    habit,
    negation,
    recalled,
    rules,
    semantic,
)
from tests.support.sizes import examples

States: TypeAlias = tuple[str, LifecycleState, Placement, Tier]
Act: TypeAlias = Callable[[AnyMemory, datetime, LifecycleRules], AnyMemory]
_GONE: States | None = None
_DAY = timedelta(days=1)


# --- the reference: each rule as its row says it, asked of one moment ---------------------


def leaving(memory: AnyMemory, now: datetime, under: LifecycleRules) -> set[str]:
    """The statuses that the rows on leaving give an active memory at ``now``."""
    told = memory.created_at
    if isinstance(memory, DerivedMemory):
        told = max(told, memory.confidence.last_confirmed)
    promise = isinstance(memory, SemanticMemory) and memory.category is Category.COMMITMENT
    if isinstance(memory, SemanticMemory) and memory.resolved_at is not None:
        told = max(told, memory.resolved_at)
    stays = promise and isinstance(memory, SemanticMemory) and memory.resolution is None
    days = (now - told) / _DAY
    found: set[str] = set()
    lifetime = getattr(under.time_to_live, f"{memory.type.value}_days")
    if (memory.expires_at and memory.expires_at <= now) or (lifetime and days >= lifetime):
        found.add("expired")
    policy = policy_for(under, memory.namespace)
    if (
        policy.name == "retention"
        and not stays
        and policy.value(memory, now) < under.retention.archive_below
    ):
        found.add("archived")
    if (
        policy.name == "energy"
        and not stays
        and policy.value(in_its_tier(memory, under), now) < under.energy.expire_below
    ):
        found.add("expired")
    if isinstance(memory, Episode):
        return found
    found |= weak(memory, now, days, under)
    return found | (set() if stays else unsure(memory, now, days, under))


def weak(memory: AnyMemory, now: datetime, days: float, under: LifecycleRules) -> set[str]:
    """The same for the rows that only ask conclusions."""
    found: set[str] = set()
    assert not isinstance(memory, Episode)
    speculative = is_speculative(memory.confidence, under.expiry.speculative_below)
    if speculative and not is_supported(memory) and days >= under.expiry.speculative_days:
        found.add("expired")
    resolved = isinstance(memory, SemanticMemory) and memory.resolved_at is not None
    if resolved and days >= under.expiry.commitment_days:
        found.add("archived")
    spared = isinstance(memory, SemanticMemory) and (
        memory.category in {*under.archival.protected_categories, Category.CORRECTION}
    )
    confirmed = memory.confidence.verification == "user_confirmed"
    if (
        under.archival.enabled
        and isinstance(memory, Fact | SemanticMemory)
        and not spared
        and not confirmed
        and days > under.archival.age_days
        and memory.importance < under.archival.importance_below
        and memory.access_count <= under.archival.most_accesses
    ):
        found.add("archived")
    return found


def unsure(memory: AnyMemory, now: datetime, days: float, under: LifecycleRules) -> set[str]:
    """The same for old debris."""
    old = not memory.access_count and days > under.expiry.demote_days
    return {"archived"} if old and trust(memory, now, under) < under.expiry.demote_below else set()


def maturing(memory: AnyMemory, now: datetime, under: LifecycleRules) -> LifecycleState:
    """The lifecycle state of a memory that stays."""
    protected = memory.policy_class is PolicyClass.PROTECTED
    ephemeral = policy_class(memory, under) is PolicyClass.EPHEMERAL
    state = lifecycle_of(memory)
    stale = not protected and decay_score(memory, now, under) >= under.value.stale_at
    if stale:
        return LifecycleState.STALE
    if state in {LifecycleState.STALE, LifecycleState.ARCHIVED}:
        state = LifecycleState.ACTIVE
    if isinstance(memory, Episode):
        return state
    if is_disputed(memory):
        return LifecycleState.CANDIDATE
    confirmed = memory.confidence.verification == "user_confirmed"
    if is_supported(memory) and (confirmed or not ephemeral):
        return LifecycleState.VALIDATED
    if memory.access_count and not ephemeral and state is LifecycleState.CANDIDATE:
        return LifecycleState.ACTIVE
    return state


def placing(memory: AnyMemory, now: datetime, under: LifecycleRules) -> Placement:
    """Where a memory that stays is kept."""
    where = memory.placement or Placement.HOT
    if not under.placement.enabled:
        return where
    protected = memory.policy_class is PolicyClass.PROTECTED
    worth, age = placement_value(memory, now, under), (now - memory.created_at) / _DAY
    if where is Placement.COLD and (protected or worth >= under.placement.hot_at):
        return Placement.HOT
    cooled = age >= under.placement.cold_after_days and worth <= under.placement.cold_at
    return Placement.COLD if cooled and not protected else where


def tier(memory: AnyMemory, under: LifecycleRules) -> Tier:
    """The tier of a memory that stays."""
    now = tier_of(memory, under)
    peak = memory.vitals.peak_energy if memory.vitals else None
    if peak is None or under.policy_name(memory.namespace) != "energy":
        return now
    if now is Tier.WORKING and peak >= under.energy.to_short_term:
        now = Tier.SHORT_TERM
    if now is Tier.SHORT_TERM and peak >= under.energy.to_long_term:
        now = Tier.LONG_TERM
    return now


def in_its_tier(memory: AnyMemory, under: LifecycleRules) -> AnyMemory:
    """The memory after its promotion, which comes before anything else that is due.

    Recalled under retention it is promoted only when energy becomes the policy, and
    fades as slowly as if that had been so all the time.
    """
    if memory.vitals is None:
        return memory
    return memory.model_copy(
        update={"vitals": memory.vitals.model_copy(update={"tier": tier(memory, under)})}
    )


def expected(memory: AnyMemory, now: datetime, under: LifecycleRules) -> set[str]:
    """Every status that ``memory`` may have at ``now``; ``gone`` for erased."""
    protected = memory.policy_class is PolicyClass.PROTECTED
    left = memory.archived_at or memory.expired_at
    erase = under.expiry.erase_after_days
    if memory.status is not MemoryStatus.ACTIVE:
        over = bool(left and erase and (now - left) / _DAY >= erase) and not protected
        return {"gone"} if over else {memory.status.value}
    if protected:
        return {"active"}
    return leaving(memory, now, under) or {"active"}


def check(before: AnyMemory, after: AnyMemory | None, now: datetime, under: LifecycleRules) -> None:
    """What the table made of ``before`` is what the reference says."""
    allowed = expected(before, now, under)
    if after is None:
        assert allowed == {"gone"}
        return
    assert after.status.value in allowed, (now, allowed, after.status)
    if after.status is not MemoryStatus.ACTIVE:
        return
    # A promotion slows the decay, and so may keep from going stale: the tier first.
    assert tier_of(after, under) is tier(before, under)
    assert lifecycle_of(after) is maturing(
        before if tier_same(before, after, under) else after, now, under
    )
    assert (after.placement or Placement.HOT) is placing(before, now, under)


def tier_same(before: AnyMemory, after: AnyMemory, under: LifecycleRules) -> bool:
    """Whether no promotion happened in between."""
    return tier_of(before, under) is tier_of(after, under)


# --- what can happen ----------------------------------------------------------------------


def _told_again(memory: AnyMemory, now: datetime, under: LifecycleRules) -> AnyMemory:
    if isinstance(memory, Episode):
        return memory
    said = episode(f"again at {now}", timestamp=now, known_at=now)
    again: DerivedMemory = corroborated(memory, [said]) or memory
    return again  # type: ignore[return-value]  # a copy of what was given


def _judged(action: Callable[..., decisions.Changed]) -> Act:
    def act(memory: AnyMemory, now: datetime, under: LifecycleRules) -> AnyMemory:
        return memory if isinstance(memory, Episode) else action(memory, now, under).memory

    return act


def _resolved(memory: AnyMemory, now: datetime, under: LifecycleRules) -> AnyMemory:
    if not isinstance(memory, SemanticMemory) or memory.category is not Category.COMMITMENT:
        return memory
    return decisions.resolve(memory, Resolution.FULFILLED, now).memory


ACTS: dict[str, Act] = {
    "recalled": lambda memory, now, under: recalled(memory, now, under=under),
    "told again": _told_again,
    "confirm": _judged(decisions.confirm),
    "dispute": _judged(decisions.dispute),
    "protect": lambda memory, now, under: decisions.protect(memory, now, under).memory,
    "unprotect": lambda memory, now, under: decisions.unprotect(memory, now, under).memory,
    "resolve": _resolved,
    "demote": lambda memory, now, under: decisions.demote(memory, now, under).memory,
}
LIKELY = ("recalled",) * 5 + tuple(ACTS)


@st.composite
def some_rules(draw: st.DrawFn, policy: str) -> LifecycleRules:
    """Rules with everything on or off."""
    return rules(
        decay_policy=policy,
        retention={"archive_below": draw(st.sampled_from([0.0, 0.05, 0.2]))},
        time_to_live={"semantic_days": draw(st.sampled_from([0.0, 0.0, 150.0]))},
        expiry={
            "erase_after_days": draw(st.sampled_from([0.0, 40.0])),
            "demote_below": draw(st.sampled_from([0.35, 0.47])),
        },
        archival={"enabled": draw(st.booleans())},
        placement={"enabled": draw(st.booleans())},
        value={"stale_at": draw(st.sampled_from([0.5, 1.0]))},
    )


@st.composite
def some_memory(draw: st.DrawFn) -> AnyMemory:
    """A memory as it is stored."""
    importance = draw(st.sampled_from([0.0, 0.1, 0.29, 0.5, 1.0]))
    sure = draw(st.sampled_from([0.3, 0.9]))
    more: dict[str, Any] = {"importance": importance, "confidence": {"extraction": sure}}
    if draw(st.booleans()):
        # So weak that only its recency holds it above the floor.
        more["confidence"] |= {"method": "inferred", "contradictions": 3}
    category = draw(st.sampled_from(["fact", "commitment", "correction", "preference"]))
    ends = draw(st.sampled_from([None, None, day(50)]))
    made: tuple[AnyMemory, ...] = (
        episode(importance=importance, expires_at=ends),
        semantic(**more, category=category, expires_at=ends),
        fact(**more),
        negation(**more),
        habit(**more),
    )
    return draw(st.sampled_from(made))


def steps(acts: list[tuple[float, str]], span: float, step: float) -> Iterator[tuple[float, str]]:
    """Moments in small steps, with what happens at some of them."""
    grid = [(number * step, "") for number in range(1, int(span / step))]
    yield from sorted([*grid, *((at * span, act) for at, act in acts)])


def live(
    memory: AnyMemory,
    first: LifecycleRules,
    second: LifecycleRules,
    acts: list[tuple[float, str]],
    *,
    span: float,
    step: float,
) -> None:
    """Step through a life under one set of rules, then another, looking only when due."""
    under, book = first, Rulebook(first, memory.namespace)
    memory = book.stamped(memory)
    for at, act in steps(acts, span, step):
        now = day(at)
        if at > span / 2 and under is not second:
            under, book = second, Rulebook(second, memory.namespace)
        if act:
            memory = book.stamped(ACTS[act](memory, now, under))
        due = memory.review_at is not None and memory.review_at <= now
        if not due and memory.policy_fingerprint == book.fingerprint:
            check(memory, memory, now, under)
            continue
        settled = book.settle(memory, now)
        check(memory, settled.memory, now, under)
        if settled.memory is None:
            return
        memory = book.stamped(settled.memory)
        assert memory.review_at is None or memory.review_at > now
        assert not book.settle(memory, now).transitions


_LIVES = settings(
    max_examples=examples(50),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
_HAPPENINGS = st.lists(st.tuples(st.floats(0.001, 0.999), st.sampled_from(LIKELY)), max_size=12)


@_LIVES
@given(some_memory(), some_rules("retention"), some_rules("retention"), _HAPPENINGS)
def test_a_year_of_retention_misses_and_delays_nothing(
    memory: AnyMemory,
    first: LifecycleRules,
    second: LifecycleRules,
    acts: list[tuple[float, str]],
) -> None:
    """Looking only at ``review_at`` gives what looking every twelve hours gives, all year."""
    live(memory, first, second, acts, span=400, step=0.5)


@_LIVES
@given(some_memory(), some_rules("energy"), some_rules("energy"), _HAPPENINGS)
def test_weeks_of_energy_miss_and_delay_nothing(
    memory: AnyMemory,
    first: LifecycleRules,
    second: LifecycleRules,
    acts: list[tuple[float, str]],
) -> None:
    """The same under the energy policy, whose working tier fades within hours."""
    turn = isinstance(memory, Episode)
    live(memory, first, second, acts, span=2 if turn else 400, step=1 / 144 if turn else 1)


@_LIVES
@given(some_memory(), some_rules("energy"), some_rules("retention"), _HAPPENINGS, st.booleans())
def test_a_namespace_may_change_its_policy(
    memory: AnyMemory,
    energy: LifecycleRules,
    retention: LifecycleRules,
    acts: list[tuple[float, str]],
    back: bool,
) -> None:
    """Both policies live on the same facts: a change between them misses nothing either."""
    first, second = (retention, energy) if back else (energy, retention)
    live(memory, first, second, acts, span=120, step=0.5)


@given(some_memory(), some_rules("retention"), some_rules("energy"))
def test_the_closed_form_meets_the_threshold(
    memory: AnyMemory, retention: LifecycleRules, energy: LifecycleRules
) -> None:
    """Just before the moment of leaving the worth still reaches the threshold, then it does not."""
    moment = timedelta(milliseconds=5)
    for under, threshold in (
        (retention, retention.retention.archive_below),
        (energy, energy.energy.expire_below),
    ):
        policy = Rulebook(under, "default").policy
        leaves = policy.leaves_at(memory)
        if leaves is None:
            assert threshold == 0 or is_open_promise(memory)
            continue
        assert policy.value(memory, leaves + moment) < threshold
        if leaves > touched_at(memory):
            assert policy.value(memory, leaves - moment) >= threshold


def test_steps_are_finer_than_rules() -> None:
    """The grid has no hole, and what happens lies between its lines."""
    moments = [at for at, _ in steps([(0.5, "recalled")], 10, 0.5)]
    assert max(b - a for a, b in pairwise(moments)) <= 0.5
    assert day(moments[0]) > T0
