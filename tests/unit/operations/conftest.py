"""One user's memories in a real store, and the handlers over them, at a clock of the test's own."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest

from engram.embedding.choice import make_embedder
from engram.language.negation_scope import covers
from engram.lifecycle.due import review_stamp
from engram.operations.admin import InspectionHandlers
from engram.operations.lifecycle import LifecycleHandlers
from engram.operations.memories import MemoryHandlers
from engram.operations.registry import Handlers
from engram.operations.trials import TrialHandlers
from engram.recall.context import Briefing
from engram.recall.pipeline import Recaller
from tests.support.clock import NOW
from tests.support.edge_stores import borrowed_store
from tests.support.handled_store import DirectPasses, HandledStore, ReviewsTold
from tests.support.stores import worker_settings


@pytest.fixture
async def handled(request: pytest.FixtureRequest) -> AsyncIterator[HandledStore]:
    """A fresh store under the default rules, or under the settings that a test asks for."""
    settings = worker_settings(**getattr(request, "param", {}))
    rules = settings.lifecycle_rules
    async with borrowed_store(review_stamp(rules)) as store:
        numbers = itertools.count()

        def write_id() -> str:
            return f"write-{next(numbers)}"

        embedder = make_embedder("wordllama")
        passes: Any = DirectPasses(store, settings, write_id)
        recaller = Recaller(store, embedder, settings.confidence_weights, settings, covers)
        briefing = Briefing(store, rules, recaller.negations, settings.briefing_candidates)

        told: Any = ReviewsTold()

        def clock() -> datetime:
            return NOW

        handlers = Handlers(
            MemoryHandlers(store),
            LifecycleHandlers(
                store, embedder, passes, briefing, rules, clock, write_id, told, settings.digests
            ),
            InspectionHandlers(store, rules, settings.health, clock, write_id),
            TrialHandlers(store, embedder, passes, rules, clock, write_id, settings.max_turn_bytes),
        )
        yield HandledStore(store, settings, handlers, told)
