"""Heartbeats for activities that wait for others longer than a dead worker may go unnoticed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from temporalio import activity

_INTERVAL = 4.0
"""Seconds; well under the heartbeat timeout that workflows set."""


@asynccontextmanager
async def beating(tell: Callable[[], Any] | None = None) -> AsyncIterator[None]:
    """Heartbeat until the block ends.

    Args:
        tell: Asked with each heartbeat for what the next attempt shall know of this one.
    """
    task = asyncio.create_task(_beat(tell))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _beat(tell: Callable[[], Any] | None) -> None:
    silence = activity.info().heartbeat_timeout
    interval = min(_INTERVAL, silence.total_seconds() / 3) if silence else _INTERVAL
    while True:
        activity.heartbeat(*(() if tell is None else (tell(),)))
        await asyncio.sleep(interval)
