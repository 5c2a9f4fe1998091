"""A scheduler that stops several pieces of work at each call of the store, and picks who goes on.

What runs is the real code over the real engine; only the order in which its calls reach the
engine is chosen, by dice with a seed.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any

from engram.errors import EngramError
from engram.storage.edge import EdgeRepository

_CALLS = ("_insert", "_overwrite", "_by_id", "_retrieve", "_by_time", "_rank", "_count", "_delete")
_ATTEMPTS = 20
_actor: ContextVar[str | None] = ContextVar("actor", default=None)


class Interleaving:
    """Lets pieces of work take turns at a store.

    Args:
        repository: Its engine calls are stopped at, while work of this scheduler makes them.
    """

    def __init__(self, repository: EdgeRepository) -> None:
        self._waiting: dict[str, deque[asyncio.Event]] = {}
        self._arrived = asyncio.Event()
        for name in _CALLS:
            setattr(repository, name, self._stopping(getattr(repository, name)))

    async def run(
        self, seed: int, work: Mapping[str, Callable[[], Awaitable[object]]]
    ) -> list[str]:
        """Run all of it to its end; who went on at each step.

        Raises:
            Exception: what a piece of work raised.
        """
        dice, order = random.Random(seed), list[str]()  # noqa: S311 - chooses an order, guards nothing
        self._waiting = {name: deque() for name in work}
        tasks = {name: asyncio.create_task(self._started(name, one)) for name, one in work.items()}
        while True:
            for name, task in tasks.items():
                while not self._waiting[name] and not task.done():
                    self._arrived.clear()
                    arriving = asyncio.create_task(self._arrived.wait())
                    await asyncio.wait({arriving, task}, return_when=asyncio.FIRST_COMPLETED)
                    arriving.cancel()
            stopped = [name for name in tasks if self._waiting[name]]
            if not stopped:
                break
            chosen = dice.choice(stopped)
            order.append(chosen)
            self._waiting[chosen].popleft().set()
            await asyncio.sleep(0)
        for task in tasks.values():
            await task
        return order

    async def _started(self, name: str, work: Callable[[], Awaitable[object]]) -> None:
        _actor.set(name)
        await work()

    def _stopping(self, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def stopped(*args: Any, **named: Any) -> Any:
            name = _actor.get()
            if name is not None:
                turn = asyncio.Event()
                self._waiting[name].append(turn)
                self._arrived.set()
                await turn.wait()
            return await call(*args, **named)

        return stopped


async def retried(step: Callable[[], Awaitable[Any]]) -> Any:
    """A step, again and again while it fails with what passes: as Temporal does."""
    for attempt in range(_ATTEMPTS):
        try:
            return await step()
        except EngramError as error:
            if not error.retryable or attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError
