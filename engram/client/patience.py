"""Asking a workflow until it answers: failures typed, waits announced, cancellation kept."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

import stamina
import structlog
from temporalio.exceptions import TemporalError
from temporalio.service import RPCError

from engram.client.failures import typed
from engram.errors import RunEnded, TemporalUnavailable

_SLOW = timedelta(seconds=5)

Answer = TypeVar("Answer")
_log = structlog.get_logger("engram.client")


async def patiently(
    attempt: Callable[[], Awaitable[Answer]], workflow_id: str, patience: timedelta | None
) -> Answer:
    """Repeat an update until it is answered; ids make that safe.

    Raises:
        TemporalUnavailable: when ``patience`` is over.
        EngramError: what the workflow answered, when trying again cannot help.
    """
    async with _said_when_slow(workflow_id):
        try:
            async with asyncio.timeout(patience.total_seconds() if patience else None):
                async for retrying in stamina.retry_context(
                    on=TemporalUnavailable,
                    attempts=None,
                    timeout=None,
                    wait_initial=0.05,
                    wait_max=2.0,
                    wait_jitter=0.1,
                ):
                    with retrying:
                        return await _typed(attempt)
        except TimeoutError as error:
            raise TemporalUnavailable(
                "No acknowledgement came in time.",
                hint=(
                    "Is a worker running and is Temporal reachable? Sending the same "
                    "turns again with the same message ids is safe."
                ),
            ) from error
    raise TemporalUnavailable("No attempt was made.")


async def asked_again(attempt: Callable[[], Awaitable[Answer]]) -> Answer:
    """Ask once more whatever met a run that was just ending: what is there then answers.

    Raises:
        EngramError: what else went wrong, or runs that keep ending.
    """
    async for retrying in stamina.retry_context(
        on=RunEnded, attempts=5, timeout=None, wait_initial=0.02, wait_max=0.5
    ):
        with retrying:
            return await _typed(attempt)
    raise TemporalUnavailable("No attempt was made.")


async def _typed(attempt: Callable[[], Awaitable[Answer]]) -> Answer:
    try:
        return await attempt()
    except (RPCError, TemporalError) as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            # Temporal's client turns our caller's cancellation into an error of its own.
            raise asyncio.CancelledError from error
        raise typed(error) from error


@contextlib.asynccontextmanager
async def _said_when_slow(workflow_id: str) -> AsyncIterator[None]:
    """Say what is being waited for, once, when an answer takes unusually long."""

    async def say() -> None:
        await asyncio.sleep(_SLOW.total_seconds())
        _log.warning(
            "waiting for an answer; is a worker running and Temporal reachable?",
            workflow_id=workflow_id,
        )

    saying = asyncio.create_task(say())
    try:
        yield
    finally:
        saying.cancel()
