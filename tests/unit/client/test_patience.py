"""Asking again what met a run that was just ending."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
import stamina
from structlog.testing import capture_logs
from temporalio.client import WorkflowQueryFailedError
from temporalio.service import RPCError, RPCStatusCode

from engram.errors import RunEnded, TemporalUnavailable
from engram.temporal.retry import HeldUp, asked_again, retry_until_answered

ENDED = "Workflow execution closed before WorkflowTaskStarted event"


def ended() -> RPCError:
    """What the server answers when the run ends before its first task."""
    return RPCError(ENDED, RPCStatusCode.FAILED_PRECONDITION, b"")


@pytest.mark.parametrize("failure", [ended(), WorkflowQueryFailedError("evicted")])
async def test_a_run_that_just_ends_is_asked_again(failure: Exception) -> None:
    """The next attempt meets what is there then, and its answer is the answer."""
    failures = [failure, failure]

    async def attempt() -> str:
        if failures:
            raise failures.pop()
        return "there is none"

    assert await asked_again(attempt) == "there is none"
    assert failures == []


async def test_runs_that_keep_ending_are_a_typed_error() -> None:
    """After five attempts the caller hears of it, as something to try again."""
    attempts = 0

    async def attempt() -> None:
        nonlocal attempts
        attempts += 1
        raise ended()

    with pytest.raises(RunEnded):
        await asked_again(attempt)
    assert attempts == 5


async def test_other_failures_are_not_asked_again() -> None:
    """A server that is away is for the caller to wait for."""
    attempts = 0

    async def attempt() -> None:
        nonlocal attempts
        attempts += 1
        raise RPCError("away", RPCStatusCode.UNAVAILABLE, b"")

    with pytest.raises(TemporalUnavailable) as caught:
        await asked_again(attempt)
    assert not isinstance(caught.value, RunEnded)
    assert attempts == 1


PATIENCE = timedelta(minutes=5)


@pytest.mark.parametrize(("to_the_end", "seconds"), [(False, 5), (True, 60)])
async def test_a_wait_is_told_of_when_it_is_unusual(
    to_the_end: bool, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer within a limit is missed after 5 seconds; work without one takes a minute first."""
    later: dict[float, Callable[[], None]] = {}
    loop = asyncio.get_running_loop()

    def call_later(delay: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        later[delay] = callback
        return loop.call_at(loop.time() + delay, callback)

    monkeypatch.setattr(loop, "call_later", call_later)

    async def attempt() -> str:
        later[seconds]()
        return "answered"

    with capture_logs() as told:
        answer = await retry_until_answered(attempt, "session/1", PATIENCE, to_the_end=to_the_end)
    assert answer == "answered"
    assert [one["workflow_id"] for one in told if one["log_level"] == "warning"] == ["session/1"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """What time it is for whoever waits; nobody waits between attempts."""
    now = [1000.0]
    monkeypatch.setattr("engram.temporal.retry.time.monotonic", lambda: now[0])
    with stamina.set_testing(True, attempts=1_000_000):
        yield now


async def test_work_is_not_waited_for_where_nobody_listens(clock: list[float]) -> None:
    """Temporal that cannot be reached for so long is an error, although work may take any time."""
    attempts = 0

    async def attempt() -> None:
        nonlocal attempts
        attempts += 1
        clock[0] += 10
        raise RPCError("away", RPCStatusCode.UNAVAILABLE, b"")

    with pytest.raises(TemporalUnavailable):
        await retry_until_answered(attempt, "erasure/1", PATIENCE, to_the_end=True)
    assert attempts == PATIENCE.total_seconds() / 10


async def test_work_is_waited_for_while_temporal_comes_back(clock: list[float]) -> None:
    """Longer than the limit in all, with outages that are shorter: each is counted by itself."""
    waited = [240.0, 10.0, 10.0, 1000.0, 10.0, 280.0]

    async def attempt() -> str:
        if not waited:
            return "done"
        clock[0] += waited.pop(0)
        raise RPCError("away", RPCStatusCode.UNAVAILABLE, b"")

    answer = await retry_until_answered(attempt, "erasure/1", PATIENCE, to_the_end=True)
    assert answer == "done"


async def test_work_is_waited_for_while_temporal_has_no_room(clock: list[float]) -> None:
    """Who is put off, as the eleventh who waits for a pass is, was answered: that is no outage."""
    waited = [10.0] * 100

    async def attempt() -> str:
        if not waited:
            return "done"
        clock[0] += waited.pop()
        raise RPCError("ten wait already", RPCStatusCode.RESOURCE_EXHAUSTED, b"")

    answer = await retry_until_answered(attempt, "consolidation/1", PATIENCE, to_the_end=True)
    assert answer == "done"


def polled(minute: int | None) -> HeldUp:
    """That a task waits, and when a worker last asked for one."""
    at = None if minute is None else datetime(2025, 1, 1, 12, minute, tzinfo=UTC)
    return HeldUp(TemporalUnavailable("No worker."), polled_at=at)


@pytest.mark.parametrize(
    "looks",
    [
        [polled(1), polled(2), polled(3), polled(4)],
        [polled(None), polled(1), None, polled(1)],
    ],
)
async def test_work_is_waited_for_while_workers_ask_for_it(looks: list[HeldUp | None]) -> None:
    """Behind much other work a task may wait for longer than the limit."""
    told, done = iter(looks), asyncio.Event()

    async def held_up_by() -> HeldUp | None:
        try:
            return next(told)
        except StopIteration:
            done.set()
            return None

    async def attempt() -> str:
        await done.wait()
        return "done"

    answer = await retry_until_answered(
        attempt,
        "consolidation/1",
        timedelta(seconds=0.02),
        to_the_end=True,
        held_up_by=held_up_by,
    )
    assert answer == "done"


async def test_an_update_is_sent_again_until_it_is_answered() -> None:
    """Whoever does not answer twice answers the third time; nothing is told of it."""
    asked = 0

    async def attempt() -> str:
        nonlocal asked
        asked += 1
        if asked < 3:
            raise TemporalUnavailable("It starts.")
        return "answered"

    with capture_logs() as told:
        assert await retry_until_answered(attempt, "session/1", timedelta(seconds=30)) == "answered"
    assert asked == 3
    assert not [one for one in told if one["event"].startswith("waiting")]
