"""One user's memories in a real store, and the handlers over them, at a clock of the test's own."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from engram.client.operations.handlers import Handlers
from engram.client.operations.inspection import InspectionHandlers
from engram.client.operations.lifecycle import LifecycleHandlers
from engram.client.operations.operation import Answer, Asked, Operation
from engram.client.operations.trials import TrialHandlers
from engram.contracts.lifecycle import (
    DecayReport,
    Population,
    PromoteOutput,
    PromotionReport,
    ReviewOutput,
    WalkInput,
    WalkPosition,
)
from engram.domain.memories import AnyMemory
from engram.domain.negation_cover import covers
from engram.domain.scope import Scope
from engram.embedding.embedder import make_embedder
from engram.ports import NewMemory
from engram.recall.briefing import Briefing
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from engram.writing.promotions import Promoter
from engram.writing.reviewed import ReviewedRepository
from engram.writing.reviews import Reviewer
from tests.support.stores import open_edge, worker_settings

NOW = datetime(2026, 3, 11, 9, 30, tzinfo=UTC)
ADA = Scope.of("default", "ada")


@dataclass
class DirectPasses:
    """Passes without Temporal: the same walks, run here."""

    store: EdgeRepository
    settings: Settings
    write_id: Any

    def _work(self, scope: Scope, population: Population, dry_run: bool) -> WalkInput:
        return WalkInput(
            scope=scope,
            now=NOW,
            rules=self.settings.lifecycle_rules,
            population=population,
            dry_run=dry_run,
            batch=50,
        )

    async def decay(
        self,
        scope: Scope,
        *,
        population: Population = Population.REAL,
        dry_run: bool = False,
        at: datetime | None = None,
    ) -> DecayReport:
        """See :meth:`engram.client.passes.PassRunner.decay`."""
        assert at is None
        work = self._work(scope, population, dry_run)
        done: ReviewOutput = await Reviewer(self.store, self.write_id).review(work)
        return done.report

    async def promote(
        self, scope: Scope, *, population: Population = Population.REAL, dry_run: bool = False
    ) -> PromotionReport:
        """See :meth:`engram.client.passes.PassRunner.promote`."""
        promoter = Promoter(self.store, make_embedder("wordllama"), self.write_id)
        position: WalkPosition | None = WalkPosition()
        report = PromotionReport()
        while position is not None:
            work = self._work(scope, population, dry_run)
            done: PromoteOutput = await promoter.promote(
                work.model_copy(update={"position": position})
            )
            report, position = report.plus(done.report), done.position
        return report


@dataclass
class Bench:
    """What a test works with."""

    store: EdgeRepository
    settings: Settings
    handlers: Handlers
    now: datetime = NOW
    counter: Any = field(default_factory=itertools.count)

    async def keep(self, *memories: AnyMemory, stamped: bool = True) -> None:
        """Store memories."""
        embedder = make_embedder("wordllama")
        vectors = await embedder.embed_documents([m.indexed_text for m in memories])
        writing = ReviewedRepository(self.store, self.settings.lifecycle_rules)
        target = writing if stamped else self.store
        pairs = zip(memories, vectors, strict=True)
        await target.insert(ADA, [NewMemory(m, vector) for m, vector in pairs])

    async def now_is(self, memory: AnyMemory) -> AnyMemory:
        """A memory as it is stored now."""
        stored: AnyMemory = (await self.store.get(ADA, [memory.id]))[memory.id]
        return stored

    async def ask(self, operation: Operation[Asked, Answer], asked: Asked) -> Answer:
        """Carry an operation out."""
        return await self.handlers.perform(ADA, operation, asked)


def ago(days: float) -> datetime:
    """So many days before the test's present."""
    return NOW - timedelta(days=days)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    """A fresh store under the default rules."""
    settings = worker_settings()
    async with open_edge(tmp_path, settings) as store:
        numbers = itertools.count()

        def write_id() -> str:
            return f"write-{next(numbers)}"

        rules = settings.lifecycle_rules
        reviewed = ReviewedRepository(store, rules)
        embedder, handlers = make_embedder("wordllama"), Handlers()
        passes: Any = DirectPasses(store, settings, write_id)
        briefing = Briefing(reviewed, rules, covers, settings.briefing_candidates)

        def clock() -> datetime:
            return NOW

        LifecycleHandlers(reviewed, embedder, passes, briefing, rules, clock, write_id).register(
            handlers
        )
        InspectionHandlers(reviewed, rules, settings.health, clock, write_id).register(handlers)
        TrialHandlers(
            reviewed, embedder, passes, rules, clock, write_id, settings.max_turn_bytes
        ).register(handlers)
        yield Bench(store, settings, handlers)
