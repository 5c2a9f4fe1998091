"""What becomes of calls that run when a store is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from engram.client.local import RunningCalls
from engram.errors import MemoryClosed


class Called:
    """Calls over a store, each a task, as an application makes them."""

    def __init__(self) -> None:
        self.calls = RunningCalls()
        self.begun = asyncio.Event()

    async def call(self, work: Awaitable[object]) -> object:
        """One call that does this."""
        async with self.calls.one():
            self.begun.set()
            return await work

    async def running(self, work: Awaitable[object]) -> asyncio.Task[object]:
        """A call that has begun."""
        task = asyncio.create_task(self.call(work))
        await self.begun.wait()
        return task


async def test_what_takes_longer_than_closing_waits_is_told_that_the_store_is_closed() -> None:
    """When close returns nothing runs any more, and the hint says what goes on by itself."""
    called = Called()
    task = await called.running(asyncio.Event().wait())
    called.calls.refuse_more()
    await called.calls.close(patience=0.01)
    with pytest.raises(MemoryClosed, match="while this was running") as closed:
        await task
    assert "goes on by itself" in str(closed.value.hint)
    with pytest.raises(MemoryClosed, match="is closed"):
        await called.call(asyncio.Future())


async def test_what_is_done_while_closing_waits_has_its_answer() -> None:
    """Closing returns with the last of the calls."""
    called, answer = Called(), asyncio.get_running_loop().create_future()
    task = await called.running(answer)
    closing = asyncio.create_task(called.calls.close(patience=60))
    await asyncio.sleep(0)
    assert not closing.done()
    answer.set_result("answered")
    assert await task == "answered"
    await closing


async def test_a_turn_that_nobody_acknowledged_is_told_that_the_store_is_closed() -> None:
    """Its future is cancelled, and its caller, whom nobody cancelled, is told why."""
    called, acknowledged = Called(), asyncio.get_running_loop().create_future()
    task = await called.running(acknowledged)
    called.calls.refuse_more()
    acknowledged.cancel()
    with pytest.raises(MemoryClosed, match="while this was running"):
        await task


async def test_a_cancelled_caller_is_cancelled_also_while_the_store_closes() -> None:
    """What the application cancels itself is no failure of the store."""
    called = Called()
    task = await called.running(asyncio.Event().wait())
    called.calls.refuse_more()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_calls_own_timeout_stays_one() -> None:
    """Only what closing ends is told so."""

    async def slow() -> None:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await Called().call(slow())
