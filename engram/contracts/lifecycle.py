"""Inputs and outputs of the lifecycle passes, over one user and over all of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Self

from pydantic import Field

from engram.contracts.messages import (
    Failure,
    Message,
    Population,
    ScopedMessage,
    TimedMessage,
    Timeout,
)
from engram.domain.memories import MemoryType
from engram.domain.rules import DigestPolicy, LifecycleRules
from engram.domain.scope import Scope

# --- what passes between clients, schedules, the passes over memories' lives, and their
# activities

# Reports travel in payloads: they count everything and quote the first few.
MOST_QUOTED: Final = 200
MOST_FAILURES: Final = 5


class LifecyclePolicy(Message):
    """The numbers a pass runs by, fixed by its starter so that replays agree.

    Attributes:
        lifecycle_rules: Every number that decisions about a memory's life depend on.
        decay_batch: Memories that a decay pass writes at once.
        promotion_batch: Memories that a promotion pass considers at once.
        pass_users: Users whose passes run at the same time.
        store_timeout: Longest time for one activity.
        digests: By which profiles and topics follow what leaves; None: they do not.
    """

    lifecycle_rules: LifecycleRules = LifecycleRules()
    decay_batch: int = Field(default=100, ge=1)
    promotion_batch: int = Field(default=10, ge=1)
    pass_users: int = Field(default=10, ge=1)
    store_timeout: Timeout = timedelta(seconds=30)
    digests: DigestPolicy | None = None

    @classmethod
    def fixed_by(cls, settings: object) -> LifecyclePolicy:
        """The policy that ``engram.settings.Settings`` describes (same names)."""
        return cls.model_validate(settings, from_attributes=True)


class RuleCount(Message):
    """How many memories one rule of the transition table moved.

    Attributes:
        rule: Name of the row.
        aspect: Which of a memory's states changed.
        source: From which value.
        target: To which; ``erased`` for the end.
    """

    rule: str
    aspect: str
    source: str
    target: str
    memories: int = Field(ge=0)

    @property
    def step(self) -> tuple[str, str, str, str]:
        """What is counted."""
        return (self.rule, self.aspect, self.source, self.target)

    def __str__(self) -> str:
        return f"{self.rule}: {self.source} -> {self.target} ({self.memories})"


class Change(Message):
    """One step of one memory, quoted in a report; without the memory's content."""

    memory_id: str
    memory_type: MemoryType
    rule: str
    source: str
    target: str
    why: str


class PassReport(Message):
    """What a pass over one user's memories did, or would do.

    Attributes:
        dry_run: Whether nothing was written.
        population: Which memories were looked at.
        reviewed: Memories that were looked at.
        transitions: Every step that was made, counted by rule.
        changes: The first steps, one by one; ``transitions`` counts all of them.
        erased: Memories that the explicit retention setting removed.
        failures: Why the pass stopped; what was not done is still due.
    """

    dry_run: bool = False
    population: Population = Population.REAL
    reviewed: int = 0
    transitions: tuple[RuleCount, ...] = ()
    changes: tuple[Change, ...] = ()
    erased: int = 0
    failures: tuple[Failure, ...] = ()
    workflow_id: str | None = None
    run_id: str | None = None

    @property
    def changed(self) -> int:
        """Steps that were made, over all rules."""
        return sum(count.memories for count in self.transitions)

    def count(self, rule: str) -> int:
        """Memories that ``rule`` moved."""
        return sum(count.memories for count in self.transitions if count.rule == rule)

    def plus(self, other: Self) -> Self:
        """Both together; how and where it ran is the later one's."""
        return other.model_copy(update=self._sums(other))

    def _sums(self, other: Self) -> dict[str, object]:
        return {
            "reviewed": self.reviewed + other.reviewed,
            "erased": self.erased + other.erased,
            "transitions": summed((*self.transitions, *other.transitions)),
            "changes": (*self.changes, *other.changes)[:MOST_QUOTED],
            "failures": (*self.failures, *other.failures)[-MOST_FAILURES:],
        }


class DecayReport(PassReport):
    """What a decay pass did, or would do."""


class PromotionReport(PassReport):
    """What a promotion pass did, or would do.

    Attributes:
        considered: Memories that had what promotion asks for, before their words were read.
        promoted: Procedural memories that were made.
        linked: Memories that were linked to what they became.
    """

    considered: int = 0
    promoted: tuple[str, ...] = ()
    linked: int = 0

    def _sums(self, other: Self) -> dict[str, object]:
        return {
            **super()._sums(other),
            "considered": self.considered + other.considered,
            "promoted": tuple(dict.fromkeys((*self.promoted, *other.promoted))),
            "linked": self.linked + other.linked,
        }


class WalkPosition(Message):
    """How far a walk over what is due has come.

    Attributes:
        stage: Counts the listings that are walked one after the other.
        cursor: Continues the listing; None for its beginning.
    """

    stage: int = 0
    cursor: str | None = None


class PassState(ScopedMessage):
    """All that a pass over one user's memories knows; carried whole over continue-as-new.

    Attributes:
        began_at: The moment that everything is judged by; None before the first run.
        at_asked: Whether somebody asked for that moment; else it is the present.
        position: Where to go on.
        sessions: Sessions that ended: what is lively in them is promoted first.
        runs: Runs of this workflow so far, this one included.
    """

    policy: LifecyclePolicy = LifecyclePolicy(digests=DigestPolicy())
    population: Population = Population.REAL
    dry_run: bool = False
    began_at: datetime | None = None
    at_asked: bool = False
    position: WalkPosition = WalkPosition()
    sessions: tuple[str, ...] = ()
    runs: int = 1


class DecayState(PassState):
    """The state of a decay pass."""

    report: DecayReport = DecayReport()


class PromotionState(PassState):
    """The state of a promotion pass.

    Attributes:
        only_sessions: Look only at what sessions that ended leave behind.
    """

    only_sessions: bool = False

    report: PromotionReport = PromotionReport()


class WalkInput(TimedMessage):
    """Input of an activity that walks over memories.

    Attributes:
        rules: What is decided by.
        at_asked: Whether somebody asked for this ``now``; else it is the present.
        present: The present where ``now`` was asked for: passes go on from here till then.
        batch: Memories that are written at once.
        position: Where to begin.
        session_id: Of the activity that promotes what a session leaves.
    """

    rules: LifecycleRules
    population: Population = Population.REAL
    dry_run: bool = False
    at_asked: bool = False
    present: datetime | None = None
    batch: int = Field(ge=1)
    position: WalkPosition = WalkPosition()
    session_id: str | None = None
    workflow_id: str | None = None
    run_id: str | None = None


class ReviewOutput(Message):
    """What reviewing memories did, and where to go on.

    Attributes:
        report: What was done, counted.
        position: Where to go on; None when the walk is over.
        moved: Knowledge and habits that left the answers, or came back to them.
        composed: What profiles and topics rest on that went with an erased turn.
        boxed: The turns that were in a box with an erased one.
        ended: Sessions whose last box is among those.
    """

    report: DecayReport
    position: WalkPosition | None = None
    moved: tuple[str, ...] = ()
    composed: tuple[str, ...] = ()
    boxed: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()


class PromoteOutput(Message):
    """What promoting did, and where to go on; None when the walk is over."""

    report: PromotionReport
    position: WalkPosition | None = None


def summed(counts: Iterable[RuleCount]) -> tuple[RuleCount, ...]:
    """One count for each step, in order of names."""
    totals: dict[tuple[str, str, str, str], int] = {}
    for count in counts:
        totals[count.step] = totals.get(count.step, 0) + count.memories
    return tuple(
        RuleCount(rule=rule, aspect=aspect, source=source, target=target, memories=number)
        for (rule, aspect, source, target), number in sorted(totals.items())
    )


def variant_of(population: Population, *, dry_run: bool) -> str:
    """What sets the ids of dry runs, and of passes over test memories, apart from the real ones."""
    tests = "-test" if population is Population.TEST else ""
    return f"{tests}-trial" if dry_run else tests


# --- what passes between schedules, the pass over all users, and its activities


class PassKind(StrEnum):
    """What a pass over all users does for each of them."""

    CONSOLIDATION = "consolidation"
    DECAY = "decay"
    PROMOTION = "promotion"


class UserChanges(Message):
    """What a dry run over all users would change for one of them: numbers and ids, no words.

    Attributes:
        scope: Who that is.
        transitions: Every step, counted by rule.
        changes: The first of them, one by one.
    """

    scope: Scope
    transitions: tuple[RuleCount, ...] = ()
    changes: tuple[Change, ...] = ()


class MaintenanceReport(Message):
    """What a pass over all users did.

    Attributes:
        users: Users whose memories were passed over, or whose consolidation was asked for.
        busy: Users whose own pass was running already.
        failed: Users whose pass failed; what it left is still due.
        reviewed: Memories that were looked at.
        transitions: Every step, counted by rule.
        would_change: Of a dry run, the first users for whom something would change, or whose
            consolidation would be asked for.
        promoted: Procedural memories that were made.
        erased: Memories that the explicit retention setting removed.
        remaining: Whether users were left for the next pass: very many, due since one moment.
        failures: The last few failures.
    """

    kind: PassKind
    population: Population = Population.REAL
    dry_run: bool = False
    users: int = 0
    busy: int = 0
    failed: int = 0
    reviewed: int = 0
    transitions: tuple[RuleCount, ...] = ()
    would_change: tuple[UserChanges, ...] = ()
    promoted: int = 0
    erased: int = 0
    remaining: bool = False
    failures: tuple[Failure, ...] = ()

    def with_user(self, scope: Scope, report: PassReport) -> Self:
        """One more user's report in it."""
        made = len(report.promoted) if isinstance(report, PromotionReport) else 0
        return self.model_copy(
            update={
                "users": self.users + 1,
                "reviewed": self.reviewed + report.reviewed,
                "transitions": summed((*self.transitions, *report.transitions)),
                "would_change": (*self.would_change, *self._quoted(scope, report)),
                "promoted": self.promoted + made,
                "erased": self.erased + report.erased,
                "failures": (*self.failures, *report.failures)[-MOST_FAILURES:],
            }
        )

    def _quoted(self, scope: Scope, report: PassReport) -> tuple[UserChanges, ...]:
        """What is told of one user by name, as long as there is room."""
        touched = report.transitions or self.kind is PassKind.CONSOLIDATION
        if not (self.dry_run and touched) or len(self.would_change) >= MOST_QUOTED:
            return ()
        room = MOST_QUOTED - sum(len(one.changes) for one in self.would_change)
        return (
            UserChanges(scope=scope, transitions=report.transitions, changes=report.changes[:room]),
        )


class MaintenanceProgress(Message):
    """How far a pass over all users is.

    Attributes:
        found: Users who were found due so far; there may be more.
        served: Of these, those for whom it is done.
    """

    found: int = Field(default=0, ge=0)
    served: int = Field(default=0, ge=0)


class DuePosition(Message):
    """How far the search for due users has come: everybody before it was found.

    Attributes:
        stage: Counts the listings that are searched one after the other.
        since: In that listing, the moment from which on it is searched; None for all of it.
    """

    stage: int = Field(default=0, ge=0)
    since: datetime | None = None


class MaintenanceState(Message):
    """All that a pass over all users knows; carried whole over continue-as-new.

    Attributes:
        kind: What is done for each user.
        position: From where on users are looked for.
        reached: Up to where everybody was found.
        skip: Users to leave out: they stay due though this pass has seen to them. Who
            is due before the position needs no place here.
        served: Users for whom it is done.
        runs: Runs of this workflow so far, this one included.
    """

    kind: PassKind
    policy: LifecyclePolicy = LifecyclePolicy(digests=DigestPolicy())
    population: Population = Population.REAL
    dry_run: bool = False
    began_at: datetime | None = None
    position: DuePosition = DuePosition()
    reached: DuePosition = DuePosition()
    skip: tuple[Scope, ...] = ()
    served: int = Field(default=0, ge=0)
    report: MaintenanceReport | None = None
    runs: int = 1


class FindDueUsersInput(Message):
    """Input of the activity that finds users for whom a pass has something to do.

    Attributes:
        most: As many users at most.
        position: From where on to look; who is due before it is left out.
        skip: Users to leave out.
    """

    kind: PassKind
    now: datetime
    rules: LifecycleRules
    population: Population = Population.REAL
    most: int = Field(ge=1)
    position: DuePosition = DuePosition()
    skip: tuple[Scope, ...] = ()


class FindDueUsersOutput(Message):
    """Who is due; nothing of what they hold.

    Attributes:
        users: Whose turn it is.
        passed: Who is due beyond the position as well, and was found before it.
        reached: Up to where everybody was found.
    """

    users: tuple[Scope, ...] = ()
    passed: tuple[Scope, ...] = ()
    reached: DuePosition = DuePosition()
