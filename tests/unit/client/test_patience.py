"""Asking again what met a run that was just ending."""

from __future__ import annotations

import pytest
from temporalio.service import RPCError, RPCStatusCode

from engram.errors import RunEnded, TemporalUnavailable
from engram.temporal.retry import asked_again

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
