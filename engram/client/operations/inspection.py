"""Operations that look at memories' lives, and mend them, for whoever operates a store."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from engram.client.operations.acting import ActOn, meant
from engram.client.operations.handlers import Handlers
from engram.client.operations.inspection_answers import (
    Candidate,
    EnergyReport,
    HealthReport,
    Inspection,
    LinkNow,
    MemoryEnergy,
    PromotedMemory,
    PromotionsReport,
    RepairReport,
    StatusReport,
    TierEnergy,
    TypeStatus,
    ValidationReport,
)
from engram.client.operations.operation import AboutMemory, Operation, Question
from engram.contracts.lifecycle import Population
from engram.domain.access import Access
from engram.domain.health import HealthRules
from engram.domain.lifecycle.decisions import Rulebook, lifecycle_of, rulebook
from engram.domain.lifecycle.edges import edge_confidence
from engram.domain.lifecycle.policies import Energy
from engram.domain.lifecycle.promotion import promotable
from engram.domain.lifecycle.rules import LifecycleRules
from engram.domain.lifecycle.values import (
    decay_score,
    heat,
    policy_class,
    quality,
    term_of,
    tier_of,
    verification_of,
)
from engram.domain.memories import (
    STORED_TYPES,
    DerivedMemory,
    MemoryStatus,
    MemoryType,
    ProceduralMemory,
    SemanticMemory,
)
from engram.domain.scope import Scope
from engram.ports import Clock, Equals, MemoryRepository, Missing
from engram.writing.lookup import one_memory
from engram.writing.repairs import Repairer
from engram.writing.surveys import health, pages, validate
from engram.writing.updates import NewWriteId
from engram.writing.walks import due_by, of_population, to_consider

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

INSPECTION_OPERATIONS: Final[tuple[Operation[Any, Any], ...]] = (
    STATUS,
    ENERGY,
    PROMOTIONS,
    HEALTH,
    INSPECT,
    VALIDATE,
    REPAIR,
)


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

    def register(self, handlers: Handlers) -> None:
        """Add every operation of this module."""
        handlers.add(STATUS, self.status)
        handlers.add(ENERGY, self.energy)
        handlers.add(PROMOTIONS, self.promotions)
        handlers.add(HEALTH, self.health)
        handlers.add(INSPECT, self.inspect)
        handlers.add(VALIDATE, self.validate)
        handlers.add(REPAIR, self.repair)

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
                    leaves_at=book.policy.leaves_at(memory),
                )
                for memory in page
            ]
        tiers: dict[str, list[float]] = {}
        for row in rows:
            tiers.setdefault(row.tier, []).append(row.energy)
        rows.sort(key=lambda row: (-row.decay, row.energy, row.memory_id))
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
                elif isinstance(memory, SemanticMemory):
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
                    source_id=habit.vitals.promoted_from if habit.vitals else None,
                    status=habit.status,
                    promoted_at=habit.created_at,
                )
                for habit in habits[:MOST_LISTED]
            ),
            candidates=tuple(candidates[:MOST_LISTED]),
            tiers=dict(tiers),
        )

    async def health(self, scope: Scope, asked: OfPopulation) -> HealthReport:
        """What is not well."""
        seen, found = await health(
            self._repository,
            scope,
            asked.population,
            self._clock(),
            self._book(scope),
            self._health_rules,
        )
        return HealthReport(memories=seen, diagnoses=tuple(found))

    async def validate(self, scope: Scope, asked: OfPopulation) -> ValidationReport:
        """What is wrong."""
        seen, found = await validate(
            self._repository, scope, asked.population, self._clock(), self._book(scope)
        )
        counts = Counter(finding.problem.value for finding in found)
        return ValidationReport(
            memories=seen, counts=dict(sorted(counts.items())), findings=tuple(found[:MOST_LISTED])
        )

    async def repair(self, scope: Scope, asked: ActOn) -> RepairReport:
        """Mend one memory.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: it is no test memory, and only those may be mended.
        """
        await meant(self._repository, scope, asked)
        repairer = Repairer(self._repository, self._book(scope), self._new_write_id)
        now = self._clock()
        found = tuple(await repairer.findings(scope, asked.memory_id, now))
        if asked.dry_run:
            return RepairReport(memory_id=asked.memory_id, dry_run=True, found=found)
        mended = await repairer.repair(scope, asked.memory_id, now)
        return RepairReport(memory_id=asked.memory_id, found=found, mended=tuple(mended))

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
            explanations.append(memory.confidence.explain(now, rules.weights))
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
            leaves_at=book.policy.leaves_at(memory),
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

    def _book(self, scope: Scope) -> Rulebook:
        return rulebook(self._rules, scope.namespace)
