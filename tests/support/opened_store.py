"""A memory store over an engine made by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engram.client.memory import MemoryStore
from engram.domain.scope import Scope
from engram.settings import Settings
from engram.system import new_id, system_clock
from tests.support.fake_engine import FakeEngine


@asynccontextmanager
async def opening(left: list[str] | None = None) -> AsyncIterator[MemoryStore]:
    """A memory over an engine made by hand; notes in which task it is left."""
    entered = asyncio.current_task()
    store = MemoryStore(
        FakeEngine(), Scope.of("default", "ada"), Settings.load(), system_clock, new_id
    )
    try:
        yield store
    finally:
        if left is not None:
            left.append("same task" if asyncio.current_task() is entered else "other task")
