"""How many runs of workflows a worker keeps between their steps."""

from __future__ import annotations

import gc
from types import FunctionType

import pytest
from temporalio.client import Client

from engram.workflows import worker
from engram.workflows.session import SessionWorkflow
from tests.support.remembering import comes_true, remembering

KEPT, SESSIONS = 2, 8


def loaded() -> int:
    """How often the session's workflow is loaded; once it is for all who do not run it."""
    gc.collect()
    return sum(
        # Not by isinstance: what stands in for a module in the sandbox answers for it.
        type(each) is FunctionType and each.__qualname__ == SessionWorkflow.run.__qualname__
        for each in gc.get_objects()
    )


async def test_memory_does_not_grow_with_the_number_of_sessions(
    temporal_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of more open sessions than are kept the rest is let go, and goes on where it is asked."""
    monkeypatch.setattr(worker, "_CACHED", KEPT)
    before = loaded()

    async def bounded() -> bool:
        return loaded() <= before + KEPT

    async with remembering(temporal_client) as (memory, _):
        for number in range(SESSIONS):
            await memory.encode("Tea for two.", session_id=f"s{number}")
        await comes_true(bounded)
        assert (await memory.encode("And cake.", session_id="s0")).episode_ids
