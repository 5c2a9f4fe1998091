"""Keeping something open in a task of its own, for those who come and go in other tasks."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

Kept = TypeVar("Kept")


class Keeper(Generic[Kept]):
    """Enters a context manager in one task and leaves it in the same one.

    Whoever opens and whoever closes may be different tasks, which many context
    managers do not allow.

    Args:
        context: What is kept open.
    """

    def __init__(self, context: AbstractAsyncContextManager[Kept]) -> None:
        self._context = context
        self._leave = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> Kept:
        """Enter, once; raises what entering raises."""
        opened: asyncio.Future[Kept] = asyncio.get_running_loop().create_future()
        holding = self._task = asyncio.create_task(self._hold(opened))
        try:
            await asyncio.wait((opened, holding), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            holding.cancel()
            await asyncio.wait((holding,))
            raise
        if not opened.done():
            await holding
        return opened.result()

    async def close(self) -> None:
        """Leave, and wait for it; raises what leaving raises. A second time does nothing."""
        self._leave.set()
        holding, self._task = self._task, None
        if holding is not None:
            await asyncio.shield(holding)

    async def _hold(self, opened: asyncio.Future[Kept]) -> None:
        async with self._context as kept:
            opened.set_result(kept)
            await self._leave.wait()
