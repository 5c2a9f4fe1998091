"""What a memory store needs underneath: the one seam between in-process and attached use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from engram.client.models import MemoryPage, MemoryStats, Receipt
from engram.client.operations.operation import Answer, Asked, Operation
from engram.contracts.consolidation import ConsolidationReport
from engram.contracts.sessions import EncodeCall, RememberedTurn, SessionSummary
from engram.domain.memories import AnyMemory, MemoryStatus, MemoryType
from engram.domain.scope import Scope
from engram.recall.models import RecallHit
from engram.recall.request import RecallRequest


class MemoryEngine(Protocol):
    """Every operation of a store, for any scope.

    Implemented in process (:class:`engram.client.direct.DirectEngine`) and over
    HTTP (:class:`engram.client.attached.AttachedEngine`).
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
