"""The engine protocol underneath a memory store, and what its callers share."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict

from engram.contracts.consolidation import ConsolidationReport
from engram.contracts.session import EncodeCall, SessionSummary
from engram.domain.buffer import RememberedTurn, Signal
from engram.domain.memories import AnyMemory, MemoryStatus, MemoryType
from engram.domain.scope import Scope
from engram.operations.registry import Answer, Asked, Operation
from engram.recall.request import RecallRequest
from engram.recall.results import RecallHit

# --- what a memory store answers


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Receipt(_Answer):
    """What ``encode`` acknowledges: stored, searchable, and surviving a crash.

    Attributes:
        episode_ids: One per turn, in order.
        fact_ids: Pattern facts that the turns state, new or known before.
        negation_ids: What the turns say is not true.
        signal: The strongest signal among the turns.
        buffered: Turns of the session that wait for extraction.
        workflow_id: The session's workflow, as the Temporal UI names it.
    """

    episode_ids: tuple[str, ...]
    fact_ids: tuple[str, ...] = ()
    negation_ids: tuple[str, ...] = ()
    signal: Signal = Signal.NONE
    buffered: int = 0
    workflow_id: str


class MemoryPage(_Answer):
    """A stretch of a listing, oldest known first; ``cursor`` continues it."""

    memories: tuple[AnyMemory, ...]
    cursor: str | None = None


class MemoryStats(_Answer):
    """How much is kept for one user.

    Attributes:
        counts: Memories by type, whatever their status.
        active: Those of them that answer by default.
        waiting: Episodes that consolidation has not seen yet.
    """

    counts: Mapping[MemoryType, int]
    active: Mapping[MemoryType, int]
    waiting: int


# --- what a memory store needs underneath: the one seam between in-process and attached use


class MemoryEngine(Protocol):
    """Every operation of a store, for any scope.

    Implemented in process (:class:`engram.client.local.DirectEngine`) and over
    HTTP (:class:`engram.client.http.AttachedEngine`).
    """

    async def encode(self, scope: Scope, session_id: str, call: EncodeCall) -> Receipt:
        """Store turns; returns when they are stored and searchable."""
        ...

    async def recall(self, scope: Scope, request: RecallRequest) -> list[RecallHit]:
        """The memories that answer, best first."""
        ...

    async def get(self, scope: Scope, memory_id: str) -> AnyMemory:
        """One memory; raises MemoryNotFound."""
        ...

    async def list_memories(
        self,
        scope: Scope,
        *,
        memory_types: Sequence[MemoryType],
        status: MemoryStatus | None,
        limit: int,
        cursor: str | None,
        include_test: bool = False,
    ) -> MemoryPage:
        """Memories type by type, each in the order in which they became known."""
        ...

    async def history(self, scope: Scope, memory_id: str) -> list[AnyMemory]:
        """What a memory replaced and what replaced it, oldest first."""
        ...

    async def stats(self, scope: Scope) -> MemoryStats:
        """How much is kept."""
        ...

    async def consolidate(
        self, scope: Scope, *, test_only: bool = False, dry_run: bool = False
    ) -> ConsolidationReport:
        """Run consolidation now and wait for it, or say what it would read."""
        ...

    async def end_session(self, scope: Scope, session_id: str) -> SessionSummary | None:
        """End a session; None if it was not running."""
        ...

    async def working_memory(
        self, scope: Scope, session_id: str, *, include_test: bool = False
    ) -> list[RememberedTurn]:
        """The recent turns of a running session; empty if it is not running."""
        ...

    async def perform(
        self, scope: Scope, operation: Operation[Asked, Answer], asked: Asked
    ) -> Answer:
        """Carry out an operation."""
        ...

    def run_url(self, workflow_id: str, run_id: str | None = None) -> str | None:
        """Where the Temporal UI shows a run, when there is a UI."""
        ...

    async def check(self) -> None:
        """Ask what is behind whether it answers; raises what is wrong with it."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


# --- what the groups of methods of a memory store share


class StoreMethods(ABC):
    """A group of methods that ask operations of one user's memory."""

    @abstractmethod
    async def _perform(self, operation: Operation[Asked, Answer], asked: Asked) -> Answer:
        """Ask for an operation, for the user of this store."""


# --- keeping something open in a task of its own, for those who come and go in other tasks

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
