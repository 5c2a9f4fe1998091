"""How often may be asked at the Nexus door; that of HTTP is in tests/http."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from nexusrpc import HandlerError, HandlerErrorType

from engram.activities.calls import Calls
from engram.contracts.calls import RecallArgs
from engram.domain.scope import Scope
from engram.settings import Settings
from engram.workflows.nexus import MemoryServiceHandler


@pytest.mark.asyncio
async def test_a_user_for_whom_is_asked_too_often_is_refused_for_a_while_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nexus is told to ask again later; other users, and none where no limit is set, notice."""

    async def nothing(self: Calls, asked: RecallArgs) -> list[Any]:
        del self, asked
        return []

    monkeypatch.setattr(Calls, "recall", nothing)
    memory: Any = SimpleNamespace(scope=Scope.of("default", "nexus"))
    context: Any = None
    ada, bob = (RecallArgs(user_id=user, query="tea") for user in ("ada", "bob"))
    door = MemoryServiceHandler(memory, Settings.load(nexus_requests_per_second=1))
    await door.recall(context, ada)
    with pytest.raises(HandlerError) as refused:
        # Three: a second may begin between two.
        await asyncio.gather(*(door.recall(context, ada) for _ in range(3)))
    assert refused.value.type is HandlerErrorType.RESOURCE_EXHAUSTED
    assert refused.value.retryable
    await door.recall(context, bob)
    unlimited = MemoryServiceHandler(memory, Settings.load(nexus_requests_per_second=0))
    for _ in range(9):
        await unlimited.recall(context, ada)
