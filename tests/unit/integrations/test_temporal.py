"""The activities of other people's workers."""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

import pytest
from temporalio.testing import ActivityEnvironment

from engram.activities.calls import CallActivities
from engram.contracts.calls import (
    ConsolidateArgs,
    ContextArgs,
    EncodeArgs,
    ForgetArgs,
    RecallArgs,
)

CALLS = {
    "encode": EncodeArgs(user_id="ada", session_id="s1", turns=[{"content": "Hello."}]),
    "recall": RecallArgs(user_id="ada", query="Who?"),
    "context": ContextArgs(user_id="ada", query="Who?", tokens=100),
    "forget": ForgetArgs(user_id="ada", memory_id="1"),
    "consolidate": ConsolidateArgs(user_id="ada"),
}


class Slow:
    """A memory that answers nothing before its activity was heard of."""

    def __init__(self) -> None:
        self.heard = asyncio.Event()

    def for_user(self, user_id: str, *, namespace: str | None) -> Slow:
        """Nobody's, so anybody's."""
        return self

    def __getattr__(self, call: str) -> Any:
        async def answer(*_: object, **__: object) -> NoReturn:
            await self.heard.wait()
            raise InterruptedError

        return answer


@pytest.mark.parametrize("call", CALLS)
async def test_every_call_heartbeats(call: str) -> None:
    """A `heartbeat_timeout` may be given for all calls: none is silent while it waits."""
    memory, worker = Slow(), ActivityEnvironment()
    worker.on_heartbeat = lambda *_: memory.heard.set()
    activity = getattr(CallActivities(memory), call)  # type: ignore[arg-type] # all that is asked of it
    async with asyncio.timeout(5):
        with pytest.raises(InterruptedError):
            await worker.run(activity, CALLS[call])


async def test_a_call_for_context_takes_every_option_of_it() -> None:
    """What the prompt has already reaches the memory with the rest, in the memory's own types."""
    asked: dict[str, Any] = {}

    class Asked:
        def for_user(self, user_id: str, *, namespace: str | None) -> Asked:
            return self

        async def context(self, query: str, **options: Any) -> str:
            asked.update(options)
            return ""

    activity = CallActivities(Asked()).context  # type: ignore[arg-type] # all that is asked of it
    call = ContextArgs(
        user_id="ada",
        query="Who?",
        tokens=100,
        options={"already": ["Hello."], "limit": 3, "timezone": "Asia/Tokyo"},
    )
    await ActivityEnvironment().run(activity, call)
    assert asked == {
        "tokens": 100,
        "already": ("Hello.",),
        "limit": 3,
        "timezone": "Asia/Tokyo",
    }
