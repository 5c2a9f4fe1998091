"""A user's memory over real workers on a real server, and all that it holds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import stamina
from temporalio.client import Client

from engram.agents.asking import thinker
from engram.client.local import direct_engine
from engram.client.memory import MemoryStore
from engram.domain.memories import (
    STORED_TYPES,
    AnyMemory,
)
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.embedding.choice import make_embedder
from engram.ports import Clock, MemoryRepository
from engram.system import new_id, system_clock
from engram.workflows.worker import running_workers
from tests.support.edge_stores import borrowed_store
from tests.support.stores import worker_settings

FIRST = datetime(2026, 1, 5, 9, tzinfo=UTC)


@asynccontextmanager
async def remembering(
    client: Client, clock: Clock = system_clock, **values: Any
) -> AsyncIterator[tuple[MemoryStore, MemoryRepository]]:
    """A user's memory over real parts, with these settings."""
    settings = worker_settings(namespace=f"n{new_id()[:8]}", **values)
    embedder, model = make_embedder(settings.embedder), thinker(settings.model)
    async with (
        borrowed_store() as repository,
        running_workers(client, repository, embedder, model, settings, new_write_id=new_id),
    ):
        engine = direct_engine(client, repository, embedder, settings, clock, ui_url=None)
        scope = Scope.of(settings.namespace, "ada")
        yield MemoryStore(engine, scope, settings, clock, new_id), repository
        await engine.close()


def said(text: str, day: int) -> Turn:
    """A turn of the user on a day."""
    return Turn(content=text, timestamp=FIRST + timedelta(days=day))


async def everything(repository: MemoryRepository, scope: Scope) -> dict[str, AnyMemory]:
    """All that is stored, whatever its status."""
    found: dict[str, AnyMemory] = {}
    for kind in STORED_TYPES:
        page = await repository.scroll(scope, kind, limit=500)
        found |= {memory.id: memory for memory in page.memories}
    return found


@stamina.retry(on=AssertionError, attempts=50, wait_initial=0.02, wait_max=0.2, timeout=20)
async def comes_true(look: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what a workflow does by itself."""
    assert await look()
