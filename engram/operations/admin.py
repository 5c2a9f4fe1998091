"""Operations for whoever operates a store: inspecting memories' lives, and mending them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from pydantic import Field

from engram.contracts.messages import Population
from engram.domain.access import Access
from engram.domain.memories import (
    STORED_TYPES,
    AnyMemory,
    DerivedMemory,
    MemoryStatus,
    MemoryType,
    ProceduralMemory,
    SemanticMemory,
)
from engram.domain.rules import HealthRules, LifecycleRules
from engram.domain.scope import Scope
from engram.lifecycle.checks import Diagnosis, Finding
from engram.lifecycle.decisions import Rulebook, Transition, lifecycle_of, rulebook, why_left
from engram.lifecycle.due import due_by, of_population, to_consider
from engram.lifecycle.links import edge_confidence
from engram.lifecycle.policies import (
    Energy,
    decay_score,
    heat,
    policy_class,
    quality,
    term_of,
    tier_of,
    verification_of,
)
from engram.lifecycle.promotion import habits_of, promotable
from engram.lifecycle.repairs import Repairer, health, pages, validate
from engram.operations.memories import ActOn, resolve_target
from engram.operations.registry import AboutMemory, Answered, Operation, Question, handles
from engram.ports import Clock, Equals, MemoryRepository, Missing
from engram.storage.updates import NewWriteId, one_memory

# --- what operations that look at memories' lives answer


class TypeStatus(Answered):
    """How the memories of one type stand.

    Attributes:
        memories: All of them.
        by_status: How many stand where.
        due: How many a decay pass would look at now, by time.
    """

    memories: int
    by_status: Mapping[MemoryStatus, int]
    due: int


class StatusReport(Answered):
    """How a user's memories stand.

    Attributes:
        policy: The decay policy of the namespace.
        types: By type.
        test_memories: How many test memories there are beside what is counted.
        waiting: Turns that consolidation has not seen yet.
        to_consider: Knowledge that the next promotion pass reads.
    """

    policy: str
    types: Mapping[MemoryType, TypeStatus]
    test_memories: int
    waiting: int
    to_consider: int


class TierEnergy(Answered):
    """The energy of the active memories of one tier, now."""

    tier: str
    memories: int
    lowest: float
    mean: float
    highest: float


class MemoryEnergy(Answered):
    """How lively one memory is.

    Attributes:
        heat: How much it is in use, 0 to 1.
        decay: How far it is on its way out, 0 to 1.
        leaves_at: When it leaves the answers if nothing happens to it before; None for never.
    """

    memory_id: str
    memory_type: MemoryType
    tier: str
    energy: float
    heat: float
    decay: float
    leaves_at: datetime | None = None


class EnergyReport(Answered):
    """The energy of a user's active memories, by tier and for those that leave first."""

    policy: str
    tiers: tuple[TierEnergy, ...] = ()
    faintest: tuple[MemoryEnergy, ...] = ()


class PromotedMemory(Answered):
    """A habit and where it came from."""

    habit_id: str
    source_id: str | None
    status: MemoryStatus
    promoted_at: datetime


class Candidate(Answered):
    """Knowledge on its way to a habit, and what is missing."""

    memory_id: str
    missing: tuple[str, ...] = ()


class PromotionsReport(Answered):
    """What was promoted, what is ready, what is nearly."""

    habits: int = 0
    promoted: tuple[PromotedMemory, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    tiers: Mapping[str, int] = Field(default_factory=dict)


class HealthReport(Answered):
    """What is not well with a user's memories."""

    memories: int
    diagnoses: tuple[Diagnosis, ...] = ()


class ValidationReport(Answered):
    """What is wrong with a user's memories; counted in full, the first quoted."""

    memories: int
    counts: Mapping[str, int] = Field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


class RepairReport(Answered):
    """What was wrong with a memory, and what was mended."""

    memory_id: str
    dry_run: bool = False
    found: tuple[Finding, ...] = ()
    mended: tuple[Finding, ...] = ()


class LinkNow(Answered):
    """A link, as sure as it is now."""

    target_id: str
    kind: str
    confidence: float
    exists: bool


class Inspection(Answered):
    """Everything about one memory's life.

    Attributes:
        states: Lifecycle, verification, policy class, tier, term, placement.
        values: Quality, heat, decay score and energy, each 0 or more.
        explanations: The numbers in words; by which rule it left, if one took it.
        leaves_at: When it leaves the answers, by whichever rule comes first, if nothing happens to
            it before; None for never, and for what has left.
        next_step: What a pass would do to it now.
        links: Its links, as sure as they are now.
        missing_sources: Turns it names that do not exist.
        problems: What is wrong with it.
    """

    memory: AnyMemory
    states: Mapping[str, str]
    values: Mapping[str, float]
    explanations: tuple[str, ...]
    leaves_at: datetime | None = None
    next_step: Transition | None = None
    links: tuple[LinkNow, ...] = ()
    missing_sources: tuple[str, ...] = ()
    problems: tuple[Finding, ...] = ()


# --- operations that look at memories' lives, and mend them, for whoever operates a store

MOST_LISTED: Final = 50


class OfPopulation(Question):
    """Which memories are meant.

    Attributes:
        test_only: Test memories only; without it, all others.
    """

    test_only: bool = False

    @property
    def population(self) -> Population:
        """Which memories are looked at."""
        return Population.TEST if self.test_only else Population.REAL


STATUS: Final = Operation(
    "status", OfPopulation, StatusReport, "How memories stand.", access=Access.READ
)
ENERGY: Final = Operation(
    "energy", OfPopulation, EnergyReport, "How lively memories are.", access=Access.READ
)
PROMOTIONS: Final = Operation(
    "promotions",
    OfPopulation,
    PromotionsReport,
    "What was promoted, and what is nearly.",
    access=Access.READ,
)
HEALTH: Final = Operation(
    "health", OfPopulation, HealthReport, "What is not well.", access=Access.READ
)
INSPECT: Final = Operation(
    "inspect", AboutMemory, Inspection, "All about one memory's life.", access=Access.READ
)
VALIDATE: Final = Operation(
    "validate",
    OfPopulation,
    ValidationReport,
    "Orphans, broken links, duplicates, bad fields.",
    access=Access.READ,
)
REPAIR: Final = Operation("repair", ActOn, RepairReport, "Mend one memory.", access=Access.ADMIN)


class InspectionHandlers:
    """Carries out the operations of this module.

    Args:
        repository: Where memories are kept; it stamps what it writes.
        rules: By which memories live.
        health_rules: From where on something is unhealthy.
        clock: The present.
        new_write_id: Makes a fresh value for each write.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        rules: LifecycleRules,
        health_rules: HealthRules,
        clock: Clock,
        new_write_id: NewWriteId,
    ) -> None:
        self._repository = repository
        self._rules = rules
        self._health_rules = health_rules
        self._clock = clock
        self._new_write_id = new_write_id

    @handles(STATUS)
    async def status(self, scope: Scope, asked: OfPopulation) -> StatusReport:
        """How memories stand, from counts alone."""
        whose, count, now = of_population(asked.population), self._repository.count, self._clock()
        types: dict[MemoryType, TypeStatus] = {}
        tests = 0
        for kind in STORED_TYPES:
            by_status = {
                status: await count(scope, kind, (whose, Equals("status", status.value)))
                for status in MemoryStatus
            }
            types[kind] = TypeStatus(
                memories=sum(by_status.values()),
                by_status={status: n for status, n in by_status.items() if n},
                due=await count(scope, kind, (whose, due_by(now))),
            )
            tests += await count(scope, kind, (of_population(Population.TEST),))
        return StatusReport(
            policy=self._book(scope).policy.name,
            types=types,
            test_memories=tests,
            waiting=await count(scope, MemoryType.EPISODIC, (whose, Missing("consolidated_at"))),
            to_consider=await count(scope, MemoryType.SEMANTIC, (whose, *to_consider(self._rules))),
        )

    @handles(ENERGY)
    async def energy(self, scope: Scope, asked: OfPopulation) -> EnergyReport:
        """How lively active memories are."""
        now, energy, book = self._clock(), Energy(self._rules.energy), self._book(scope)
        active = (Equals("status", MemoryStatus.ACTIVE.value),)
        rows: list[MemoryEnergy] = []
        async for page in pages(self._repository, scope, asked.population, where=active):
            rows += [
                MemoryEnergy(
                    memory_id=memory.id,
                    memory_type=memory.type,
                    tier=tier_of(memory, self._rules).value,
                    energy=energy.value(memory, now),
                    heat=heat(memory, now, self._rules),
                    decay=decay_score(memory, now, self._rules),
                    leaves_at=book.leaves_at(memory),
                )
                for memory in page
            ]
        tiers: dict[str, list[float]] = {}
        for row in rows:
            tiers.setdefault(row.tier, []).append(row.energy)
        rows.sort(key=_leaving)
        return EnergyReport(
            policy=book.policy.name,
            tiers=tuple(
                TierEnergy(
                    tier=tier,
                    memories=len(values),
                    lowest=min(values),
                    mean=sum(values) / len(values),
                    highest=max(values),
                )
                for tier, values in sorted(tiers.items())
            ),
            faintest=tuple(rows[:MOST_LISTED]),
        )

    @handles(PROMOTIONS)
    async def promotions(self, scope: Scope, asked: OfPopulation) -> PromotionsReport:
        """What was promoted, and what the next pass would consider."""
        now = self._clock()
        habits: list[ProceduralMemory] = []
        tiers: Counter[str] = Counter()
        candidates: list[Candidate] = []
        async for page in pages(self._repository, scope, asked.population):
            for memory in page:
                if memory.vitals is not None and memory.vitals.last_promotion is not None:
                    tiers[tier_of(memory, self._rules).value] += 1
                if isinstance(memory, ProceduralMemory):
                    habits.append(memory)
                elif isinstance(memory, SemanticMemory) and not habits_of(memory):
                    missing = promotable(memory, now, self._rules).missing
                    if len(missing) <= 1:
                        candidates.append(Candidate(memory_id=memory.id, missing=missing))
        habits.sort(key=lambda habit: habit.created_at, reverse=True)
        candidates.sort(key=lambda one: (len(one.missing), one.memory_id))
        return PromotionsReport(
            habits=len(habits),
            promoted=tuple(
                PromotedMemory(
                    habit_id=habit.id,
                    source_id=habit.promoted_from,
                    status=habit.status,
                    promoted_at=habit.created_at,
                )
                for habit in habits[:MOST_LISTED]
            ),
            candidates=tuple(candidates[:MOST_LISTED]),
            tiers=dict(tiers),
        )

    @handles(HEALTH)
    async def health(self, scope: Scope, asked: OfPopulation) -> HealthReport:
        """What is not well."""
        seen, found = await health(
            self._repository,
            scope,
            asked.population,
            self._clock(),
            self._book(scope),
            self._health_rules,
            await self._missing(),
        )
        return HealthReport(memories=seen, diagnoses=tuple(found))

    @handles(INSPECT)
    async def inspect(self, scope: Scope, asked: AboutMemory) -> Inspection:
        """All about one memory.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        memory = await one_memory(self._repository, scope, asked.memory_id)
        now, rules, book = self._clock(), self._rules, self._book(scope)
        problems = await Repairer(self._repository, book, self._new_write_id).findings(
            scope, memory.id, now
        )
        worth = quality(memory, now, rules)
        sources = memory.source_episode_ids if isinstance(memory, DerivedMemory) else ()
        links = memory.links if isinstance(memory, DerivedMemory) else ()
        there = await self._repository.get(scope, [*sources, *(link.target_id for link in links)])
        explanations = [worth.explain(), book.policy.explain(memory, now)]
        if isinstance(memory, DerivedMemory):
            recalled = memory.last_accessed_at
            explanations.append(memory.confidence.explain(now, rules.weights, recalled_at=recalled))
        if (left := why_left(memory)) is not None:
            explanations.append(left)
        return Inspection(
            memory=memory,
            states={
                "lifecycle": lifecycle_of(memory).value,
                "verification": verification_of(memory).value,
                "policy class": policy_class(memory, rules).value,
                "tier": tier_of(memory, rules).value,
                "term": term_of(memory, rules).value,
                "placement": memory.placement.value if memory.placement else "hot",
            },
            values={
                "quality": worth.value,
                "durable": worth.durable,
                "heat": heat(memory, now, rules),
                "decay": decay_score(memory, now, rules),
                "energy": Energy(rules.energy).value(memory, now),
            },
            explanations=tuple(explanations),
            leaves_at=book.leaves_at(memory),
            next_step=book.decide(memory, now),
            links=tuple(
                LinkNow(
                    target_id=link.target_id,
                    kind=link.kind.value,
                    confidence=edge_confidence(link, now, rules.edges),
                    exists=link.target_id in there,
                )
                for link in links
            ),
            missing_sources=tuple(source for source in sources if source not in there),
            problems=tuple(problems),
        )

    @handles(VALIDATE)
    async def validate(self, scope: Scope, asked: OfPopulation) -> ValidationReport:
        """What is wrong."""
        seen, found, unreadable = await validate(
            self._repository, scope, asked.population, self._clock(), self._book(scope)
        )
        counts = Counter(finding.problem.value for finding in found)
        if unreadable:
            # Of a newer version, or damaged: left out of every answer.
            counts["unreadable"] = unreadable
        if missing := await self._missing():
            # Of all users of the store: what is gone does not say whose it was.
            counts["missing"] = missing
        return ValidationReport(
            memories=seen, counts=dict(sorted(counts.items())), findings=tuple(found[:MOST_LISTED])
        )

    @handles(REPAIR)
    async def repair(self, scope: Scope, asked: ActOn) -> RepairReport:
        """Mend one memory.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: it is no test memory, and only those may be mended.
        """
        await resolve_target(self._repository, scope, asked)
        repairer = Repairer(self._repository, self._book(scope), self._new_write_id)
        now = self._clock()
        found = tuple(await repairer.findings(scope, asked.memory_id, now))
        if asked.dry_run:
            return RepairReport(memory_id=asked.memory_id, dry_run=True, found=found)
        mended = await repairer.repair(scope, asked.memory_id, now)
        return RepairReport(memory_id=asked.memory_id, found=found, mended=tuple(mended))

    async def _missing(self) -> int:
        """How many memories the store has lost, as far as it can tell."""
        return int((await self._repository.info()).details.get("missing", 0))

    def _book(self, scope: Scope) -> Rulebook:
        return rulebook(self._rules, scope.namespace)


def _leaving(row: MemoryEnergy) -> tuple[bool, datetime, float, str]:
    """What leaves first comes first, and what never does last, the faintest before others."""
    never = row.leaves_at is None
    return never, row.leaves_at or datetime.max.replace(tzinfo=UTC), row.energy, row.memory_id
