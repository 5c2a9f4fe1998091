"""What becomes of a memory: by the transition table, or by what a user does to it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

from engram.domain.confidence import Verification
from engram.domain.memories import (
    FOLLOWING_FORMS,
    STORED_TYPES,
    AnyMemory,
    Category,
    DerivedMemory,
    Episode,
    LifecycleState,
    MemoryStatus,
    MemoryType,
    Placement,
    PolicyClass,
    Resolution,
    SemanticMemory,
    Vitals,
    not_replaced,
    replacing,
)
from engram.domain.rules import LifecycleRules
from engram.errors import InvalidInput
from engram.lifecycle.policies import (
    DecayPolicy,
    disputed_with,
    is_outcome,
    is_refuted,
    policy_class,
    policy_for,
    tier_of,
    verification_of,
)
from engram.lifecycle.table import ERASED_STATE, TABLE, Aspect, Event, TransitionRule
from engram.lifecycle.windows import PolicyContext, Window

# --- running the table: what becomes of a memory now, and when to look at it next

RULES_VERSION: Final = 2
"""Raised when the code decides otherwise than before, so that every memory is looked at again."""

_MOST_TRANSITIONS: Final = len(TABLE)
_ByState: TypeAlias = tuple[tuple[Aspect, Mapping[str, Sequence[tuple[int, TransitionRule]]]], ...]


class Transition(BaseModel):
    """One step in a memory's life.

    Attributes:
        rule: Name of the row in the table.
        event: What made it act.
        aspect: Which state changed.
        source: From which value.
        target: To which; ``erased`` for the end.
        why: In words, without any of the memory's content.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: str
    event: Event
    aspect: Aspect
    source: str
    target: str
    why: str


@dataclass(frozen=True, slots=True)
class Settled:
    """A memory after everything that was due.

    Attributes:
        memory: What to write; None if it is to be erased.
        transitions: What happened, in order; empty if the memory was only looked at.
    """

    memory: AnyMemory | None
    transitions: tuple[Transition, ...]


class Rulebook:
    """The table under one set of rules, for the memories of one namespace.

    Args:
        rules: Every number.
        namespace: Decides which decay policy applies.
    """

    def __init__(self, rules: LifecycleRules, namespace: str) -> None:
        self.rules: Final = rules
        self.policy: Final[DecayPolicy] = policy_for(rules, namespace)
        self.fingerprint: Final = _fingerprint(rules, self.policy.name)
        self._ground = PolicyContext(rules, self.policy)
        self._rows = tuple(row for row in TABLE if row.enabled(rules, self.policy.name))
        self._timed = {
            (kind, status): self._by_state(kind, status)
            for kind in STORED_TYPES
            for status in MemoryStatus
        }

    def decide(self, memory: AnyMemory, now: datetime) -> Transition | None:
        """What time makes happen to ``memory`` next, at ``now``; None if nothing does."""
        due = self._due(memory, now)
        return None if due is None else self._transition(memory, due[1], now)

    def review_at(self, memory: AnyMemory) -> datetime | None:
        """The earliest moment at which a rule could act, if nothing is written before.

        It may lie in the past: then the memory is due at once. None for never.
        """
        seen = memory.vitals.last_decay if memory.vitals is not None else None
        starts = [
            window.start
            for _, _, window in self._windows(memory)
            # What was over when a pass last looked will not come again by itself.
            if window.end is None or seen is None or window.end > seen
        ]
        return min(starts) if starts else None

    def leaves_at(self, memory: AnyMemory) -> datetime | None:
        """When time takes ``memory`` out of the answers, if nothing is written before.

        By whichever rule comes first, its own end among them. None for never, and for what has
        left already.
        """
        if memory.status is not MemoryStatus.ACTIVE:
            return None
        windows = self._windows(memory)
        starts = [window.start for _, row, window in windows if row.aspect is Aspect.STATUS]
        return min(starts) if starts else None

    def settle(
        self,
        memory: AnyMemory,
        now: datetime,
        *,
        erasing: bool = True,
        since: datetime | None = None,
    ) -> Settled:
        """``memory`` after everything that is due at ``now``, and noted as looked at.

        Its next ``review_at`` lies after ``now``, so a pass that writes it is done with it.
        Without ``erasing`` it is kept, whatever the retention setting says. With ``since`` it is
        as if passes ran all the time from then on: each step counts from its own moment.
        """
        done: list[Transition] = []
        for _ in range(_MOST_TRANSITIONS):
            due = self._due(memory, now)
            if due is None:
                return Settled(_looked_at(memory, now), tuple(done))
            start, row = due
            if row.target == ERASED_STATE and not erasing:
                return Settled(_looked_at(memory, now), tuple(done))
            at = now if since is None else min(max(start, since), now)
            done.append(self._transition(memory, row, at))
            if row.target == ERASED_STATE:
                return Settled(None, tuple(done))
            memory = _applied(memory, row, at)
        raise AssertionError(f"rules go in a circle: {[step.rule for step in done]}")

    def fire(self, memory: AnyMemory, event: Event, now: datetime) -> Settled:
        """``memory`` after an event other than time; unchanged if no row fits.

        Events count in the order in which they arrive. The clock of whoever says so may be
        behind the one that wrote the memory: then it happens when it first can.
        """
        done: list[Transition] = []
        for row in self._rows:
            if row.event is event and self._fits(memory, row):
                window = row.when(memory, self._ground)
                if window is None:
                    continue
                at = max(now, window.start)
                if window.holds(at):
                    done.append(self._transition(memory, row, at))
                    memory = _applied(memory, row, at)
        return Settled(memory, tuple(done))

    def stamped(self, memory: AnyMemory) -> AnyMemory:
        """``memory`` with its ``review_at`` and the fingerprint of these rules, for writing."""
        review_at, named = self.review_at(memory), self.fingerprint
        if (review_at, named) == (memory.review_at, memory.policy_fingerprint):
            return memory
        return memory.model_copy(update={"review_at": review_at, "policy_fingerprint": named})

    def _by_state(self, kind: MemoryType, status: MemoryStatus) -> _ByState:
        """The rows of time for such memories: by aspect, then by its state, each with its rank."""
        found: dict[Aspect, dict[str, list[tuple[int, TransitionRule]]]] = {}
        for rank, row in enumerate(self._rows):
            if row.event is Event.TIME and kind in row.types and status in row.statuses:
                for state in row.sources:
                    found.setdefault(row.aspect, {}).setdefault(state, []).append((rank, row))
        return tuple((aspect, states) for aspect, states in found.items())

    def _due(self, memory: AnyMemory, now: datetime) -> tuple[datetime, TransitionRule] | None:
        due = [
            (window.start, rank, row)
            for rank, row, window in self._windows(memory)
            if window.holds(now)
        ]
        if not due:
            return None
        # No two rows have one rank.
        start, _, row = min(due)
        return start, row

    def _windows(self, memory: AnyMemory) -> Iterator[tuple[int, TransitionRule, Window]]:
        # Every stored turn passes here, so only the rows that can matter are looked at.
        spared = memory.policy_class is PolicyClass.PROTECTED or _follows_others(memory)
        for aspect, states in self._timed[memory.type, memory.status]:
            for rank, row in states.get(state_of(memory, aspect, self.rules), ()):
                if spared and row.takes:
                    continue
                window = row.when(memory, self._ground)
                if window is not None:
                    yield rank, row, window

    def _fits(self, memory: AnyMemory, row: TransitionRule) -> bool:
        return (
            memory.type in row.types
            and memory.status in row.statuses
            and state_of(memory, row.aspect, self.rules) in row.sources
            and not (row.takes and memory.policy_class is PolicyClass.PROTECTED)
        )

    def _transition(self, memory: AnyMemory, row: TransitionRule, now: datetime) -> Transition:
        why = row.condition
        if row.name in {"retention", "energy"}:
            why = f"{why}: {self.policy.explain(memory, now)}"
        return Transition(
            rule=row.name,
            event=row.event,
            aspect=row.aspect,
            source=str(state_of(memory, row.aspect, self.rules)),
            target=row.target,
            why=why,
        )


@lru_cache(maxsize=64)
def rulebook(rules: LifecycleRules, namespace: str) -> Rulebook:
    """The rulebook of a namespace; made once per set of rules."""
    return Rulebook(rules, namespace)


def review_at(memory: AnyMemory, rules: LifecycleRules) -> datetime | None:
    """The earliest moment at which any rule could act on ``memory``; None for never."""
    return rulebook(rules, memory.namespace).review_at(memory)


def settle(memory: AnyMemory, now: datetime, rules: LifecycleRules) -> Settled:
    """``memory`` after everything that is due at ``now``."""
    return rulebook(rules, memory.namespace).settle(memory, now)


def fingerprint(rules: LifecycleRules, namespace: str) -> str:
    """Names the rules that a namespace's memories are judged by."""
    return rulebook(rules, namespace).fingerprint


def lifecycle_of(memory: AnyMemory) -> LifecycleState:
    """How far a memory has come: as written, else where its type begins."""
    if memory.lifecycle is not None:
        return memory.lifecycle
    return LifecycleState.ACTIVE if isinstance(memory, Episode) else LifecycleState.CANDIDATE


def state_of(memory: AnyMemory, aspect: Aspect, rules: LifecycleRules) -> str:
    """The value of one of a memory's states."""
    match aspect:
        case Aspect.STATUS:
            return memory.status
        case Aspect.LIFECYCLE:
            return lifecycle_of(memory)
        case Aspect.PLACEMENT:
            return memory.placement or Placement.HOT
        case Aspect.TIER:
            return tier_of(memory, rules)
        case Aspect.VERIFICATION:
            return verification_of(memory)
        case Aspect.POLICY_CLASS:
            return policy_class(memory, rules)


def _follows_others(memory: AnyMemory) -> bool:
    """Whether it is a digest that counts: it goes when what it is composed from goes."""
    if not isinstance(memory, SemanticMemory) or memory.form not in FOLLOWING_FORMS:
        return False
    return memory.status is MemoryStatus.ACTIVE


def _applied(memory: AnyMemory, row: TransitionRule, now: datetime) -> AnyMemory:
    return memory.model_copy(update=_changes(memory, row, now))


def _changes(memory: AnyMemory, row: TransitionRule, now: datetime) -> dict[str, Any]:
    match row.aspect:
        case Aspect.STATUS:
            return _new_status(memory, MemoryStatus(row.target), now, row.name)
        case Aspect.LIFECYCLE:
            lifecycle = LifecycleState(row.target)
            left = lifecycle is LifecycleState.ARCHIVED
            return {
                "lifecycle": lifecycle,
                "archived_at": now if left else None,
                "expired_at": None,
                # It has left already, by whatever is noted.
                "left_by": memory.left_by if left else None,
            }
        case Aspect.PLACEMENT:
            return {"placement": Placement(row.target)}
        case Aspect.TIER:
            vitals = memory.vitals or Vitals()
            attempts = vitals.promotion_attempts + 1
            changes = {
                "tier": row.target,
                "last_promotion": now,
                "promotion_attempts": attempts,
            }
            return {"vitals": Vitals.model_validate({**dict(vitals), **changes})}
        case Aspect.VERIFICATION | Aspect.POLICY_CLASS:
            # Facts of the memory itself: engram.lifecycle.decisions writes them.
            return {}


def _new_status(
    memory: AnyMemory, status: MemoryStatus, now: datetime, by: str | None = None
) -> dict[str, Any]:
    left: dict[str, Any] = {"status": status, "archived_at": None, "expired_at": None}
    left["left_by"] = None if status is MemoryStatus.ACTIVE else by
    if is_refuted(memory):
        left |= {"refuted_at": None, "superseded_by": None, "superseded_known_at": None}
    match status:
        case MemoryStatus.SUPERSEDED:
            # What was history went out of the answers before, and was true of no time at all.
            known = memory.superseded_known_at or max(memory.known_at, now)
            nothing = {"superseded_by": None, "valid_to": None}
            return {**left, **nothing, "refuted_at": now, "superseded_known_at": known}
        case MemoryStatus.ARCHIVED:
            return {**left, "archived_at": now, "lifecycle": LifecycleState.ARCHIVED}
        case MemoryStatus.EXPIRED:
            return {**left, "expired_at": now, "lifecycle": LifecycleState.ARCHIVED}
    # Its own end has come already: it cannot hold for what came back.
    ended = memory.status is MemoryStatus.EXPIRED
    expires_at = None if ended else memory.expires_at
    return {**left, "lifecycle": LifecycleState.ACTIVE, "expires_at": expires_at}


def _looked_at(memory: AnyMemory, now: datetime) -> AnyMemory:
    vitals = (memory.vitals or Vitals()).model_copy(update={"last_decay": now})
    return memory.model_copy(update={"vitals": vitals})


def _fingerprint(rules: LifecycleRules, policy: str) -> str:
    # Only what decides about time: other numbers may change without a look at every memory.
    other = "energy" if policy == "retention" else "retention"
    skipped = {"decay_policy", "energy_namespaces", "retention_namespaces", "promotion", "edges"}
    numbers = rules.model_dump(mode="json", exclude={*skipped, other})
    text = json.dumps([RULES_VERSION, policy, numbers], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


# --- what the user, an operator or a further turn does to a memory's life: memory to memory

D = TypeVar("D", bound=DerivedMemory)
# The row of being told again does not depend on any number.
_ANY_RULES = LifecycleRules()


@dataclass(frozen=True, slots=True)
class Changed:
    """A memory as an action leaves it, and the steps of its life in that."""

    memory: AnyMemory
    transitions: tuple[Transition, ...] = ()


def confirm(memory: AnyMemory, now: datetime, rules: LifecycleRules) -> Changed:
    """The user says that it is so: it is validated, and comes back if it had left.

    An end of its own that has come holds no more, whether or not a pass has seen to it.

    What it was in dispute with, and what was kept in its place, gives way to it: that the
    others are refuted is written with them.

    Raises:
        InvalidInput: it is a turn, which was said whatever one thinks of it.
    """
    derived = _derived(memory, "confirmed")
    fired = rulebook(rules, memory.namespace).fire(memory, Event.CONFIRMED, now)
    before = derived.confidence
    confidence = before.model_copy(
        update={
            "verification": Verification.USER_CONFIRMED,
            "last_confirmed": max(before.last_confirmed, now),
            "contradictions": max(before.contradictions - _spoken_against(derived), 0),
        }
    )
    changes: dict[str, Any] = {"confidence": confidence}
    if isinstance(memory, SemanticMemory):
        changes["disputed_with"] = ()
    if memory.expires_at is not None and memory.expires_at <= now:
        changes["expires_at"] = None
    kept = in_place_of(fired.memory or memory, rivals_of(memory))
    return _changed(kept, changes, fired.transitions)


def in_place_of(memory: AnyMemory, beaten: tuple[str, ...]) -> AnyMemory:
    """``memory`` as what stands in the place of these."""
    return replacing(memory, beaten) if isinstance(memory, DerivedMemory) else memory


def dispute(memory: AnyMemory, now: datetime, rules: LifecycleRules) -> Changed:
    """The user says that it is not so: refuted, it leaves the answers, and stays readable.

    Its disputes end with that, on its side: what it contradicted stands.

    Raises:
        InvalidInput: it is a turn, which was said whatever one thinks of it.
    """
    derived = _derived(memory, "disputed")
    fired = rulebook(rules, memory.namespace).fire(memory, Event.DISPUTED, now)
    before = derived.confidence
    # The user counts once, in place of whatever spoke against it until now.
    against = before.contradictions - _spoken_against(derived) + 1
    confidence = before.model_copy(
        update={"verification": Verification.DISPUTED, "contradictions": max(against, 1)}
    )
    changes: dict[str, Any] = {"confidence": confidence}
    if isinstance(memory, SemanticMemory):
        changes["disputed_with"] = ()
    return _changed(fired.memory or memory, changes, fired.transitions)


def why_left(memory: AnyMemory) -> str | None:
    """By which rule a memory left the answers, in words; None if none is noted."""
    if memory.left_by is None:
        return None
    meant = (row.condition for row in TABLE if row.name == memory.left_by)
    return f"left by {memory.left_by}: {next(meant, 'a rule of another version')}"


def rivals_of(memory: AnyMemory) -> tuple[str, ...]:
    """What gives way if ``memory`` is confirmed: what it contradicts, and what was kept for it."""
    if not isinstance(memory, DerivedMemory):
        return ()
    kept = memory.superseded_by if is_refuted(memory) else None
    return (*disputed_with(memory), *((kept,) if kept is not None else ()))


def disputes_of(memory: AnyMemory | DerivedMemory) -> list[tuple[str, ...]]:
    """What reviews about a memory are about: each pair that it is in, or itself where refuted."""
    alone = [(memory.id,)] if isinstance(memory, DerivedMemory) and memory.refuted_at else []
    pairs = ((memory.id, other) for other in disputed_with(memory))
    return [*((min(pair), max(pair)) for pair in pairs), *alone]


def disputed(
    memory: SemanticMemory, *, with_: Collection[str], settled: Collection[str] = ()
) -> SemanticMemory:
    """``memory`` in dispute with these, and no longer with those that are settled.

    Each dispute counts as one contradiction while it lasts. What the user
    confirmed stays confirmed; it counts for less all the same. What a person said
    holds beside it is not disputed again.
    """
    known = {*memory.disputed_with, *memory.settled_with}
    new = tuple(one for one in dict.fromkeys(with_) if one not in known)
    gone = tuple(one for one in memory.disputed_with if one in settled)
    if not (new or gone):
        return memory
    left = tuple(one for one in (*memory.disputed_with, *new) if one not in gone)
    before = memory.confidence
    verification = before.verification
    if left and verification is not Verification.USER_CONFIRMED:
        verification = Verification.DISPUTED
    elif not left and verification is Verification.DISPUTED and memory.refuted_at is None:
        found = bool(memory.evidence)
        verification = Verification.EVIDENCE_FOUND if found else Verification.UNCHECKED
    confidence = before.model_copy(
        update={
            "contradictions": max(before.contradictions + len(new) - len(gone), 0),
            "verification": verification,
        }
    )
    return memory.model_copy(update={"disputed_with": left, "confidence": confidence})


def taken_back(memory: D) -> D:
    """``memory`` as if it had never been refuted; the same if it was not."""
    if not is_refuted(memory):  # type: ignore[arg-type]  # every derived memory is an AnyMemory
        return memory
    quoted = memory.evidence if isinstance(memory, SemanticMemory) else ()
    before = memory.confidence
    confidence = before.model_copy(
        update={
            "verification": Verification.EVIDENCE_FOUND if quoted else Verification.UNCHECKED,
            "contradictions": max(before.contradictions - _spoken_against(memory), 0),
        }
    )
    back = _new_status(memory, MemoryStatus.ACTIVE, memory.known_at)  # type: ignore[arg-type]  # same
    return memory.model_copy(update={**back, "confidence": confidence})


def holding_again(memory: D) -> D:
    """``memory`` as one that nothing replaces any more; refuted, if the user disputes it.

    Since when the user does is not noted of what was replaced: it has been out of the answers
    since it was.
    """
    by_user = memory.confidence.verification is Verification.DISPUTED and not (
        isinstance(memory, SemanticMemory) and memory.disputed_with
    )
    if not by_user:
        return not_replaced(memory)
    refuted_at = memory.superseded_known_at or memory.confidence.last_confirmed
    return memory.model_copy(
        update={"superseded_by": None, "valid_to": None, "refuted_at": refuted_at}
    )


def _spoken_against(memory: DerivedMemory) -> int:
    """How many of its contradictions end with its disputes, that of the user included."""
    if isinstance(memory, SemanticMemory) and memory.disputed_with:
        return len(memory.disputed_with)
    return int(memory.confidence.verification is Verification.DISPUTED)


def protect(memory: AnyMemory, now: datetime, rules: LifecycleRules) -> Changed:
    """No rule may take it away any more; it comes back if one had. New knowledge still replaces it.

    Its own expiry date is dropped, for that would end it all the same.
    """
    fired = rulebook(rules, memory.namespace).fire(memory, Event.PROTECTED, now)
    changes = {"policy_class": PolicyClass.PROTECTED, "expires_at": None}
    return _changed(fired.memory or memory, changes, fired.transitions)


def unprotect(memory: AnyMemory, now: datetime, rules: LifecycleRules) -> Changed:
    """Rules apply to it again, from when it was last used."""
    fired = rulebook(rules, memory.namespace).fire(memory, Event.UNPROTECTED, now)
    return _changed(fired.memory or memory, {"policy_class": None}, fired.transitions)


def demote(memory: AnyMemory, now: datetime, rules: LifecycleRules) -> Changed:
    """Archive it by hand; nothing happens to what is protected or has left."""
    fired = rulebook(rules, memory.namespace).fire(memory, Event.DEMOTED, now)
    return Changed(fired.memory or memory, fired.transitions)


def force_promote(memory: AnyMemory, now: datetime, rules: LifecycleRules) -> Changed:
    """Lift it one tier by hand; nothing happens at the top."""
    fired = rulebook(rules, memory.namespace).fire(memory, Event.FORCED, now)
    return Changed(fired.memory or memory, fired.transitions)


def end_session(memory: AnyMemory, now: datetime, rules: LifecycleRules) -> Changed:
    """Its session ended: what is lively enough leaves the working tier."""
    fired = rulebook(rules, memory.namespace).fire(memory, Event.SESSION_ENDED, now)
    return Changed(fired.memory or memory, fired.transitions)


def resolve(memory: AnyMemory, how: Resolution, now: datetime) -> Changed:
    """A commitment ended. Saying it again changes nothing; saying otherwise does.

    Raises:
        InvalidInput: it is no commitment, or tells how one ended.
    """
    if not isinstance(memory, SemanticMemory) or memory.category is not Category.COMMITMENT:
        raise InvalidInput(
            "Only commitments can be resolved.",
            allowed="a semantic memory of the category commitment",
            details={"id": memory.id},
        )
    if is_outcome(memory):
        raise InvalidInput(
            "This tells how a promise ended; it cannot be resolved itself.",
            allowed="the promise",
            hint="Resolve the promise itself. If it did not end, dispute this.",
            details={"id": memory.id},
        )
    if memory.resolution is how and memory.resolved_at is not None:
        return Changed(memory)
    return Changed(memory.model_copy(update={"resolution": how, "resolved_at": now}))


def told_again(memory: D) -> D:
    """A further turn says the same: what had left comes back.

    Takes no clock and no rules, for whoever adds the source has neither.
    """
    book = rulebook(_ANY_RULES, "")
    fired = book.fire(memory, Event.TOLD_AGAIN, memory.created_at)  # type: ignore[arg-type]  # every derived memory is an AnyMemory
    return fired.memory or memory  # type: ignore[return-value]  # a copy of what was given


def _derived(memory: AnyMemory, what: str) -> DerivedMemory:
    if isinstance(memory, Episode):
        raise InvalidInput(
            f"A turn cannot be {what}: it was said.",
            allowed="a conclusion: factual, semantic, procedural or negation",
            hint="Name a conclusion drawn from it.",
            details={"id": memory.id},
        )
    return memory


def _changed(
    memory: AnyMemory, changes: dict[str, Any], transitions: tuple[Transition, ...]
) -> Changed:
    return Changed(memory.model_copy(update=changes), transitions)
