"""What passes between schedules, the pass over all users, and its activities."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Self

from pydantic import Field

from engram.contracts.common import Message
from engram.contracts.consolidation import Failure
from engram.contracts.lifecycle import (
    MOST_FAILURES,
    LifecyclePolicy,
    PassReport,
    Population,
    PromotionReport,
    RuleCount,
    summed,
)
from engram.domain.lifecycle.rules import LifecycleRules
from engram.domain.scope import Scope


class PassKind(StrEnum):
    """What a pass over all users does for each of them."""

    CONSOLIDATION = "consolidation"
    DECAY = "decay"
    PROMOTION = "promotion"


class MaintenanceReport(Message):
    """What a pass over all users did.

    Attributes:
        users: Users whose memories were passed over, or whose consolidation was asked for.
        busy: Users whose own pass was running already.
        failed: Users whose pass failed; what it left is still due.
        reviewed: Memories that were looked at.
        transitions: Every step, counted by rule.
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
    promoted: int = 0
    erased: int = 0
    remaining: bool = False
    failures: tuple[Failure, ...] = ()

    def with_user(self, report: PassReport) -> Self:
        """One more user's report in it."""
        made = len(report.promoted) if isinstance(report, PromotionReport) else 0
        return self.model_copy(
            update={
                "users": self.users + 1,
                "reviewed": self.reviewed + report.reviewed,
                "transitions": summed((*self.transitions, *report.transitions)),
                "promoted": self.promoted + made,
                "erased": self.erased + report.erased,
                "failures": (*self.failures, *report.failures)[-MOST_FAILURES:],
            }
        )


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
        runs: Runs of this workflow so far, this one included.
    """

    kind: PassKind
    policy: LifecyclePolicy
    population: Population = Population.REAL
    dry_run: bool = False
    began_at: datetime | None = None
    position: DuePosition = DuePosition()
    reached: DuePosition = DuePosition()
    skip: tuple[Scope, ...] = ()
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
