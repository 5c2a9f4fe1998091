"""Asking again what met a run that was just ending."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from structlog.testing import capture_logs
from temporalio.service import RPCError, RPCStatusCode

from engram.errors import RunEnded, TemporalUnavailable
from engram.temporal.retry import asked_again, retry_until_answered

ENDED = "Workflow execution closed before WorkflowTaskStarted event"


def ended() -> RPCError:
    """What the server answers when the run ends before its first task."""
    return RPCError(ENDED, RPCStatusCode.FAILED_PRECONDITION, b"")


async def test_a_run_that_just_ends_is_asked_again() -> None:
    """The next attempt meets what is there then, and its answer is the answer."""
    failures = [ended(), ended()]

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


@pytest.mark.parametrize(("patience", "seconds"), [(timedelta(minutes=5), 5), (None, 60)])
async def test_a_wait_is_told_of_when_it_is_unusual(
    patience: timedelta | None, seconds: float, monkeypatch: pytest.MonkeyPatch
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
        assert await retry_until_answered(attempt, "session/1", patience) == "answered"
    assert [one["workflow_id"] for one in told if one["log_level"] == "warning"] == ["session/1"]


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
