"""A memory without a server: what a session and a consolidation do, step by step, in process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from typing import Any, TypeVar
from uuid import uuid4

from pydantic_ai.models import Model
from temporalio.testing import ActivityEnvironment

from engram.activities.consolidation import (
    ConsolidationStoreActivitiesImpl,
)
from engram.activities.models import ConsolidationModelActivitiesImpl
from engram.agents.asking import Rules, Thinker
from engram.agents.extraction import ExtractionAgent
from engram.agents.linking import LinkingAgent
from engram.consolidation.apply import PlanWriter
from engram.contracts.consolidation import (
    ConsolidateTurnsInput,
    ConsolidationPolicy,
    ExtractInput,
    LinkInput,
    PlanEffect,
    PlanInput,
    SelectDueInput,
)
from engram.contracts.session import EncodeCall, StoreTurnsInput
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.embedding.choice import make_embedder
from engram.language.negation_scope import covers
from engram.ports import MemoryRepository
from engram.recall.pipeline import Recaller
from engram.recall.request import RecallRequest
from engram.recall.results import RecallHit
from tests.support.stores import turn_store, worker_settings

Q = TypeVar("Q")
A = TypeVar("A")
START = datetime(2025, 1, 1, 9, tzinfo=UTC)


def when(turn: int) -> datetime:
    """Every turn is said some days after the one before."""
    return START + timedelta(days=3 * turn, hours=turn % 5)


def agents_over(asked: Thinker, step: float) -> tuple[ExtractionAgent, LinkingAgent]:
    """Who reads turns, and who links memories."""
    return ExtractionAgent(asked), LinkingAgent(asked, step)


@cache
def rules_agents(step: float) -> tuple[ExtractionAgent, LinkingAgent]:
    """The same over the rules: they keep nothing, and to make them takes longer than most tests."""
    return agents_over(Rules(), step)


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
        embedder = make_embedder("wordllama")
        self.recaller = Recaller(
            repository, embedder, self.settings.confidence_weights, self.settings, covers
        )
        lives = self.settings.lifecycle
        step = lives.promotion.selectivity_step
        extraction, linking = rules_agents(step) if model is None else agents_over(model, step)
        self.storing = ConsolidationStoreActivitiesImpl(
            repository, embedder, lambda: uuid4().hex, lives.edges
        )
        self.thinking = ConsolidationModelActivitiesImpl(
            repository,
            embedder,
            extraction,
            linking,
            lives.edges,
            writer=PlanWriter(repository, embedder, lambda: uuid4().hex, lives.edges),
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

    def selecting(self, scope: Scope, now: datetime) -> SelectDueInput:
        """Asks for all that is due."""
        return SelectDueInput(scope=scope, now=now, policy=self.policy)

    async def consolidate(self, scope: Scope, now: datetime) -> None:
        """What a pass does, batch by batch, and a linking pass at its end."""
        due = await run(self.storing.select_due, self.selecting(scope, now))
        linkable, fresh = dict[str, None](), dict[str, None]()
        for batch in due.batches:
            done = await self.conclude(scope, batch.episode_ids, now)
            new = dict.fromkeys(e for e in done.stored if e not in done.unlinkable)
            fresh |= new
            linkable |= new | dict.fromkeys(done.confirmed)
        if linkable:
            await self._link(tuple(linkable), tuple(fresh), {"scope": scope, "now": now})

    async def conclude(self, scope: Scope, ids: tuple[str, ...], now: datetime) -> PlanEffect:
        """What a pass does with one batch of turns: read, take up."""
        common: dict[str, Any] = {"scope": scope, "now": now}
        read = await run(self.thinking.extract, ExtractInput(episode_ids=ids, **common))
        step = ConsolidateTurnsInput(parts=(read.of(ids),), workflow_id="w", run_id="r", **common)
        done = await run(self.storing.consolidate_turns, step)
        return done.effect

    async def recall(
        self, scope: Scope, question: str, now: datetime, **more: Any
    ) -> Sequence[RecallHit]:
        """Recall as applications do; ``more`` is what they may ask for besides."""
        request = RecallRequest.of(question, settings=self.settings, **more)
        return await self.recaller.recall(scope, request, now)

    async def _link(
        self, ids: tuple[str, ...], fresh: tuple[str, ...], common: dict[str, Any]
    ) -> None:
        question = LinkInput(
            memory_ids=ids,
            at_once=len(ids),
            fresh_ids=fresh,
            candidates_per_memory=self.policy.candidates_per_memory,
            operation=f"linking-{next(self._numbers)}",
            **common,
        )
        found = await run(self.thinking.link, question)
        # What rules find is written with it.
        if found.applied is None:
            await run(self.storing.apply_plan, PlanInput(plan=found.plan, **common))


async def run(activity: Callable[[Q], Awaitable[A]], question: Q) -> A:
    """What an activity answers, outside of a worker."""
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, start_to_close_timeout=timedelta(minutes=5))
    answer: A = await environment.run(activity, question)
    return answer
