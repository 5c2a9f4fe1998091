"""Every consolidation activity shows that it lives, however long the store takes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from engram.activities.consolidation import (
    ConsolidationStoreActivitiesImpl,
)
from engram.activities.models import ConsolidationModelActivitiesImpl
from engram.agents.asking import Rules
from engram.agents.extraction import ExtractionAgent
from engram.agents.linking import LinkingAgent
from engram.contracts.consolidation import (
    ConsolidateTurnsInput,
    ConsolidationPolicy,
    ExtractInput,
    ExtractOutput,
    LinkInput,
    MarkConsolidatedInput,
    ModelUse,
    PlanInput,
    ReconcileInput,
    SelectDueInput,
)
from engram.domain.plan import ConsolidationPlan, Statement, Supersession, UpdateNote
from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.storage.edge import EdgeRepository
from tests.support.clock import NOW
from tests.support.stores import worker_settings

BEATS = 3
SCOPE = Scope.of("default", "ada")
NAMES = (
    *("select_due", "reconcile", "write_plan", "retire", "mark_consolidated"),
    *("consolidate_turns", "apply_plan", "extract", "link"),
)


class SlowStore:
    """A store whose first answer takes until somebody says go."""

    def __init__(self, inner: EdgeRepository, go: asyncio.Event) -> None:
        self._inner = inner
        self._go = go

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._inner, name)

        async def slowly(*args: Any, **more: Any) -> Any:
            await self._go.wait()
            return await method(*args, **more)

        return slowly


def _inputs() -> dict[str, Any]:
    common: dict[str, Any] = {"scope": SCOPE, "now": NOW}
    ended = Supersession(superseded_by="m2", valid_to=NOW, superseded_known_at=NOW)
    note = UpdateNote(memory_id="m1", why="said again", add_sources=("e1",), supersession=ended)
    plan = ConsolidationPlan(actions=(note,))
    policy = ConsolidationPolicy.fixed_by(worker_settings())
    statement = Statement(content="The user likes tea.", confidence=0.9, episode_ids=("e1",))
    use = ModelUse(model="m", instructions_version="1")
    run: dict[str, Any] = {"workflow_id": "w", "run_id": "r"}
    part = ExtractOutput(episode_ids=("e1",), statements=(statement,), use=use)
    return {
        "select_due": SelectDueInput(**common, policy=policy),
        "reconcile": ReconcileInput(**common, **run, statements=(statement,), use=use),
        "write_plan": PlanInput(**common, plan=plan),
        "retire": PlanInput(**common, plan=plan),
        "mark_consolidated": MarkConsolidatedInput(**common, episode_ids=("e1",)),
        "consolidate_turns": ConsolidateTurnsInput(**common, **run, parts=(part,)),
        "apply_plan": PlanInput(**common, plan=plan),
        "extract": ExtractInput(**common, episode_ids=("e1",)),
        "link": LinkInput(
            **common, memory_ids=("m1",), fresh_ids=(), candidates_per_memory=8, operation="o"
        ),
    }


@pytest.mark.parametrize("name", NAMES)
async def test_an_activity_that_waits_for_the_store_keeps_beating(
    name: str, repository: EdgeRepository
) -> None:
    """The store answers only after several heartbeats: each activity gives them meanwhile."""
    go, beats = asyncio.Event(), 0

    def beat(*_: Any) -> None:
        nonlocal beats
        beats += 1
        if beats >= BEATS:
            go.set()

    slow: Any = SlowStore(repository, go)
    embedder, model = make_embedder("wordllama"), Rules()
    storing = ConsolidationStoreActivitiesImpl(slow, embedder, lambda: "w")
    thinking = ConsolidationModelActivitiesImpl(
        slow, embedder, ExtractionAgent(model), LinkingAgent(model)
    )
    owner = storing if hasattr(storing, name) else thinking
    environment = ActivityEnvironment()
    # Activities beat three times as often as they must.
    environment.info = replace(environment.info, heartbeat_timeout=timedelta(milliseconds=3))
    environment.on_heartbeat = beat
    async with asyncio.timeout(20):
        await environment.run(getattr(owner, name), _inputs()[name])
    assert beats >= BEATS
