"""A memory without a server: what a session and a consolidation do, step by step, in process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import uuid4

from pydantic_ai.models import Model
from temporalio.testing import ActivityEnvironment

from engram.activities.consolidation import (
    ConsolidationModelActivitiesImpl,
    ConsolidationStoreActivitiesImpl,
)
from engram.agents.extraction import ExtractionAgent
from engram.agents.linking import LinkingAgent
from engram.agents.rules_model import RulesModel
from engram.contracts.consolidation import (
    ConsolidationPolicy,
    ExtractInput,
    LinkInput,
    MarkConsolidatedInput,
    PlanInput,
    ReconcileInput,
    SelectDueInput,
)
from engram.contracts.session import EncodeCall, StoreTurnsInput
from engram.domain.plan import ConsolidationPlan
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.embedding.embedder import make_embedder
from engram.language.negation_scope import covers
from engram.ports import MemoryRepository
from engram.recall.pipeline import Recaller
from engram.recall.request import RecallRequest
from engram.recall.results import RecallHit
from tests.support.stores import turn_store, worker_settings

START = datetime(2025, 1, 1, 9, tzinfo=UTC)


def when(turn: int) -> datetime:
    """Every turn is said some days after the one before."""
    return START + timedelta(days=3 * turn, hours=turn % 5)


class InProcessMemory:
    """A store with what writes to it, without a server between the steps.

    Args:
        repository: The store.
        model: Reads turns and links memories; the rules when absent.
        settings: That are other than the default.
    """

    def __init__(
        self, repository: MemoryRepository, model: Model | None = None, **settings: Any
    ) -> None:
        self.settings = worker_settings(extraction_batch_turns=4, **settings)
        self.repository = repository
        self.turns = turn_store(repository, self.settings)
        embedder, model = make_embedder("wordllama"), model or RulesModel()
        self.recaller = Recaller(
            repository, embedder, self.settings.confidence_weights, self.settings, covers
        )
        lives = self.settings.lifecycle
        self.storing = ConsolidationStoreActivitiesImpl(
            repository, embedder, lambda: uuid4().hex, lives.edges
        )
        self.thinking = ConsolidationModelActivitiesImpl(
            repository,
            embedder,
            ExtractionAgent(model),
            LinkingAgent(model, lives.promotion.selectivity_step),
            lives.edges,
        )
        self.policy = ConsolidationPolicy.fixed_by(self.settings)
        self._numbers = count()

    def somebody(self) -> Scope:
        """A user of whom nothing is known."""
        return Scope.of("default", f"user-{next(self._numbers)}")

    async def hear(
        self,
        scope: Scope,
        turns: Sequence[str],
        first: int = 0,
        role: str = "user",
        *,
        at: datetime | None = None,
        session: str | None = None,
    ) -> tuple[str, ...]:
        """Encode some turns.

        Args:
            scope: Whose they are.
            turns: What is said.
            first: The place of the first of them in all that is said.
            role: Who says it.
            at: When it is said, all of it; some days after one another when absent.
            session: Where; one of its own when absent.

        Returns:
            Their ids.
        """
        accepted = tuple(
            Turn(message_id=f"m{n}", role=role, content=words, timestamp=at or when(n))
            for n, words in enumerate(turns, start=first)
        )
        last = first + len(accepted) - 1
        (outcome,) = await self.turns.store(
            StoreTurnsInput(
                scope=scope,
                now=at or when(last),
                session_id=session or f"s{first}",
                calls=(EncodeCall(turns=accepted),),
                first_sequence=first,
                workflow_id="w",
                run_id="r",
                epoch=await self.repository.epoch(scope),
            )
        )
        assert outcome.error is None
        return tuple(turn.episode_id for turn in outcome.turns)

    async def consolidate(self, scope: Scope, now: datetime) -> None:
        """What a pass does, step by step, and a linking pass at its end."""
        due = await _run(
            self.storing.select_due, SelectDueInput(scope=scope, now=now, policy=self.policy)
        )
        linkable: dict[str, None] = {}
        for batch in due.batches:
            ids = batch.episode_ids
            plan = await self.conclude(scope, ids, now)
            linkable |= {m.id: None for m in plan.new_memories() if not m.superseded_by}
            await _run(
                self.storing.mark_consolidated,
                MarkConsolidatedInput(scope=scope, now=now, episode_ids=ids),
            )
        if linkable:
            await self._link(tuple(linkable), {"scope": scope, "now": now})

    async def conclude(
        self, scope: Scope, ids: tuple[str, ...], now: datetime
    ) -> ConsolidationPlan:
        """What a pass does with one batch of turns: read, reconcile, write, retire."""
        common: dict[str, Any] = {"scope": scope, "now": now}
        read = await _run(self.thinking.extract, ExtractInput(episode_ids=ids, **common))
        if not read.statements:
            return ConsolidationPlan()
        question = ReconcileInput(
            statements=read.statements, use=read.use, workflow_id="w", run_id="r", **common
        )
        plan: ConsolidationPlan = await _run(self.storing.reconcile, question)
        await _run(self.storing.write_plan, PlanInput(plan=plan, **common))
        if plan.retirements():
            await _run(self.storing.retire, PlanInput(plan=plan, **common))
        return plan

    async def recall(
        self, scope: Scope, question: str, now: datetime, **more: Any
    ) -> Sequence[RecallHit]:
        """Recall as applications do; ``more`` is what they may ask for besides."""
        request = RecallRequest.of(question, settings=self.settings, **more)
        return await self.recaller.recall(scope, request, now)

    async def _link(self, ids: tuple[str, ...], common: dict[str, Any]) -> None:
        question = LinkInput(
            memory_ids=ids,
            fresh_ids=ids,
            candidates_per_memory=self.policy.candidates_per_memory,
            operation=f"linking-{next(self._numbers)}",
            **common,
        )
        found = await _run(self.thinking.link, question)
        await _run(self.storing.write_plan, PlanInput(plan=found.plan, **common))
        if found.plan.retirements():
            await _run(self.storing.retire, PlanInput(plan=found.plan, **common))


async def _run(activity: Any, question: Any) -> Any:
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, start_to_close_timeout=timedelta(minutes=5))
    return await environment.run(activity, question)
