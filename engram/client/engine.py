"""The engine protocol underneath a memory store, and what its callers share."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar

from engram.domain.scope import Scope
from engram.errors import EngramError
from engram.operations.registry import Answer, Asked, Operation

# --- what a memory store needs underneath: the one seam between in-process and attached use


class MemoryEngine(Protocol):
    """Carries operations out, for any scope.

    Implemented in process (:class:`engram.client.local.DirectEngine`) and over
    HTTP (:class:`engram.client.http.AttachedEngine`).
    """

    async def call(
        self, scope: Scope, operation: Operation[Asked, Answer], request: Asked
    ) -> Answer:
        """Carry an operation out for one user; raises what its handler raises."""
        ...

    def refused(self, scope: Scope, action: str, error: EngramError) -> None:
        """Note in the audit trail that a door refused an operation, by its name."""
        ...

    def run_url(self, workflow_id: str, run_id: str | None = None) -> str | None:
        """Where the Temporal UI shows a run, when there is a UI."""
        ...

    async def check(self, *, store_only: bool = False) -> None:
        """Ask what is behind whether it answers; raises what is wrong with it.

        Args:
            store_only: Ask the store alone, which is what reading memories needs.
        """
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


# --- what the groups of methods of a memory store share


class StoreMethods(ABC):
    """A group of methods that ask operations of one user's memory."""

    @abstractmethod
    async def _call(self, operation: Operation[Asked, Answer], request: Asked) -> Answer:
        """Ask for an operation, for the user of this store."""


Group = TypeVar("Group")
Given = ParamSpec("Given")


class WaitingStore:
    """What the methods of a memory store without ``await`` need.

    Args:
        memory: Its methods do the work.
        run: Runs the work, and returns when it is done.
    """

    def __init__(self, memory: Any, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._memory = memory
        self._run = run


def waiting(
    method: Callable[Concatenate[Group, Given], Coroutine[Any, Any, Answer]],
) -> Callable[Concatenate[WaitingStore, Given], Answer]:
    """The same method, that returns when its work is done."""

    @wraps(method)
    def wait(self: WaitingStore, /, *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        done: Answer = self._run(method(self._memory, *args, **kwargs))
        return done

    return wait


# --- keeping something open in a task of its own, for those who come and go in other tasks

Kept = TypeVar("Kept")


class TaskBoundContext(Generic[Kept]):
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
