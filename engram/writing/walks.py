"""Walking over what is due, in order: what it costs follows from what is due, not from what is."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from engram.contracts.lifecycle import Population, WalkPosition
from engram.domain.lifecycle.decisions import fingerprint
from engram.domain.lifecycle.rules import LifecycleRules
from engram.domain.lifecycle.states import Tier
from engram.domain.memories import STORED_TYPES, AnyMemory, MemoryStatus, MemoryType
from engram.domain.scope import Scope
from engram.errors import StorageError
from engram.ports import (
    AnyOf,
    Between,
    Condition,
    Either,
    Equals,
    Filter,
    MaintenanceRepository,
    MemoryRepository,
    Missing,
    Not,
)
from engram.writing.reviewed import ReviewedRepository

# Of each type first what is due by time, then what was judged by other rules.
STAGES: Final = 2 * len(STORED_TYPES)
_FINGERPRINT: Final = "policy_fingerprint"


def underneath(repository: MemoryRepository) -> MaintenanceRepository:
    """The store itself, which passes read and stamp by the rules that they were started with.

    Raises:
        StorageError: the repository cannot tell whose memories are due.
    """
    inner = repository.inner if isinstance(repository, ReviewedRepository) else repository
    if not isinstance(inner, MaintenanceRepository):
        raise StorageError(
            "This store cannot run passes.", allowed="engram.ports.MaintenanceRepository"
        )
    return inner


def of_population(population: Population) -> Condition:
    """Only test memories, or none of them."""
    tests = Equals("is_test", value=True)
    return tests if population is Population.TEST else Not(tests)


def due_by(now: datetime) -> Condition:
    """A rule could act on it by now."""
    return Between("review_at", at_most=now)


def to_consider(rules: LifecycleRules) -> Filter:
    """Knowledge that may be ready to become a habit, and was not promoted or refused before."""
    ready: Filter = (
        Between("selectivity", at_least=rules.promotion.selectivity),
        Equals("status", MemoryStatus.ACTIVE.value),
    )
    if rules.energy.conclusion_tier != Tier.LONG_TERM.value:
        return ready  # Rising through the tiers counts as an attempt too.
    return (*ready, Not(Between("vitals.promotion_attempts", at_least=1)))


async def judged_otherwise(
    repository: MaintenanceRepository, memory_type: MemoryType, current: str
) -> Condition | None:
    """Judged by other rules than the current; None if no memory of anybody was.

    Which fingerprints there are is asked first, for "another one than this" would
    make the engine look at every memory.
    """
    present = await repository.values(memory_type, _FINGERPRINT)
    others = sorted(one for one in present if one is not None and one != current)
    found: list[Condition] = [AnyOf(_FINGERPRINT, tuple(others))] if others else []
    if None in present:
        found.append(Missing(_FINGERPRINT))
    return Either(tuple(found)) if found else None


@dataclass(frozen=True, slots=True)
class _Listing:
    memory_type: MemoryType
    where: Filter
    order_by: str


@dataclass(slots=True)
class DueWalk:
    """What is due of one user, page by page.

    Args:
        repository: Where memories are kept.
        scope: Whose they are.
        rules: Which fingerprint is the current one.
        now: What is due by then.
        population: Test memories, or all others.
    """

    repository: MaintenanceRepository
    scope: Scope
    rules: LifecycleRules
    now: datetime
    population: Population
    _listings: dict[int, _Listing | None] = field(default_factory=dict)

    async def page(
        self, position: WalkPosition, limit: int
    ) -> tuple[tuple[AnyMemory, ...], WalkPosition | None]:
        """The next memories, all of one type, and where to go on; None at the end.

        What is written meanwhile is not due any more, and is not met again.
        """
        stage, cursor = position.stage, position.cursor
        while stage < STAGES:
            listing = await self._listing(stage)
            if listing is not None:
                page = await self.repository.scroll(
                    self.scope,
                    listing.memory_type,
                    where=listing.where,
                    order_by=listing.order_by,
                    limit=limit,
                    cursor=cursor,
                )
                if page.memories:
                    return page.memories, _after(stage, page.cursor)
            stage, cursor = stage + 1, None
        return (), None

    async def _listing(self, stage: int) -> _Listing | None:
        if stage not in self._listings:
            self._listings[stage] = await self._made(stage)
        return self._listings[stage]

    async def _made(self, stage: int) -> _Listing | None:
        memory_type, whose = STORED_TYPES[stage // 2], of_population(self.population)
        due = due_by(self.now)
        if stage % 2 == 0:
            return _Listing(memory_type, (due, whose), "review_at")
        current = fingerprint(self.rules, self.scope.namespace)
        foreign = await judged_otherwise(self.repository, memory_type, current)
        if foreign is None:
            return None
        return _Listing(memory_type, (foreign, Not(due), whose), "known_at")


def _after(stage: int, cursor: str | None) -> WalkPosition | None:
    if cursor is not None:
        return WalkPosition(stage=stage, cursor=cursor)
    return WalkPosition(stage=stage + 1) if stage + 1 < STAGES else None
