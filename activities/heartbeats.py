"""Heartbeats for activities that wait for others longer than a dead worker may go unnoticed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from temporalio import activity

_INTERVAL = 4.0
"""Seconds; well under the heartbeat timeout that workflows set."""


@asynccontextmanager
async def beating() -> AsyncIterator[None]:
    """Heartbeat until the block ends."""
    task = asyncio.create_task(_beat())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _beat() -> None:
    while True:
        activity.heartbeat()
        await asyncio.sleep(_INTERVAL)
