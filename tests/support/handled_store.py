"""One user's memories in a real store, and the operations' handlers over them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from engram.contracts.lifecycle import (
    DecayReport,
    PromoteOutput,
    PromotionReport,
    ReviewOutput,
    WalkInput,
    WalkPosition,
)
from engram.contracts.messages import Population
from engram.domain.memories import AnyMemory
from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.lifecycle.due import review_stamp
from engram.lifecycle.promotion_pass import Promoter
from engram.lifecycle.review import Reviewer
from engram.operations.registry import Answer, Asked, Handlers, Operation
from engram.ports import NewMemory, unstamped
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from tests.support.clock import NOW

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
        """See :meth:`engram.temporal.passes.PassRunner.decay`."""
        assert at is None
        work = self._work(scope, population, dry_run)
        done: ReviewOutput = await Reviewer(
            self.store, make_embedder("wordllama"), self.write_id
        ).review(work)
        return done.report

    async def promote(
        self, scope: Scope, *, population: Population = Population.REAL, dry_run: bool = False
    ) -> PromotionReport:
        """See :meth:`engram.temporal.passes.PassRunner.promote`."""
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
class ReviewsTold:
    """Takes note of what reviews are told, in place of Temporal."""

    settled: list[tuple[str, ...]] = field(default_factory=list)
    opened: list[tuple[str, ...]] = field(default_factory=list)

    async def changed(
        self,
        scope: Scope,
        settled: Iterable[tuple[str, ...]],
        opened: Iterable[tuple[str, ...]] = (),
    ) -> None:
        """See :meth:`engram.temporal.reviews.ReviewGateway.changed`."""
        assert scope == ADA
        self.settled += settled
        self.opened += opened


@dataclass
class HandledStore:
    """Ada's memories, and the operations' handlers over them."""

    store: EdgeRepository
    settings: Settings
    handlers: Handlers
    reviews: ReviewsTold

    async def keep(self, *memories: AnyMemory, stamped: bool = True) -> None:
        """Store memories."""
        embedder = make_embedder("wordllama")
        vectors = await embedder.embed_documents([m.indexed_text for m in memories])
        stamp = review_stamp(self.settings.lifecycle_rules) if stamped else unstamped
        pairs = zip(memories, vectors, strict=True)
        await self.store.insert(ADA, [NewMemory(m, vector) for m, vector in pairs], stamp=stamp)

    async def now_is(self, memory: AnyMemory) -> AnyMemory:
        """A memory as it is stored now."""
        stored: AnyMemory = (await self.store.get(ADA, [memory.id]))[memory.id]
        return stored

    async def ask(self, operation: Operation[Asked, Answer], asked: Asked) -> Answer:
        """Carry an operation out."""
        return await self.handlers.call(ADA, operation, asked)


def ago(days: float) -> datetime:
    """So many days before the test's present."""
    return NOW - timedelta(days=days)
