"""A memory engine made by hand: keeps what it is given, in the forms the Protocol promises."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TypeAlias
from uuid import NAMESPACE_URL, uuid5

from engram.client.engine import MemoryPage, MemoryStats, Receipt
from engram.contracts.consolidation import ConsolidationReport
from engram.contracts.session import EncodeCall, SessionSummary
from engram.domain.buffer import RememberedTurn, Signal
from engram.domain.memories import STORED_TYPES, AnyMemory, Episode, MemoryStatus, MemoryType
from engram.domain.scope import Scope
from engram.errors import ConflictingMessage, MemoryNotFound
from engram.operations.registry import Answer, Asked, Handlers, Operation
from engram.recall.request import RecallRequest
from engram.recall.results import RecallExplanation, RecallHit, ScorePart

MOMENT = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)

Listing: TypeAlias = tuple[tuple[MemoryType, ...], MemoryStatus | None, str | None]


class FakeEngine:
    """Implements :class:`engram.client.engine.MemoryEngine`.

    Attributes:
        kept: Episodes by scope.
        sessions: Remembered turns by scope and session.
        asked: Every recall request that arrived.
        most_at_once: The largest number of encodes that ran at the same time.
        listed: Types, status and cursor of every listing.
        delay: Seconds that everything takes.
        working: Set once something was asked.
        failure: Raised by everything when set.
        handlers: Carry out the operations.
    """

    def __init__(self) -> None:
        self.kept: dict[Scope, dict[str, Episode]] = {}
        self.sessions: dict[tuple[Scope, str], list[RememberedTurn]] = {}
        self.asked: list[tuple[Scope, RecallRequest]] = []
        self.listed: list[Listing] = []
        self.failure: Exception | None = None
        self.most_at_once = 0
        self.delay = 0.0
        self._running = 0
        self.handlers = Handlers()
        self.working = asyncio.Event()

    async def encode(self, scope: Scope, session_id: str, call: EncodeCall) -> Receipt:
        """Keep the turns, once per message id."""
        await self._work()
        ids = []
        for turn in call.turns:
            key = f"{scope.tenant}/{session_id}/{turn.message_id}"
            episode = Episode(
                id=str(uuid5(NAMESPACE_URL, key)),
                namespace=scope.namespace,
                user_id=scope.user_id,
                session_id=session_id,
                content=turn.content,
                role=turn.role,
                speaker=turn.speaker,
                timestamp=turn.timestamp,
                message_id=turn.message_id,
                known_at=turn.timestamp,
                created_at=MOMENT,
                metadata=turn.metadata,
                tags=turn.tags,
                is_test=call.is_test,
            )
            before = self.kept.setdefault(scope, {}).setdefault(episode.id, episode)
            if before.content != turn.content:
                raise ConflictingMessage(
                    "The message id was used before.",
                    allowed="a new id",
                    hint="Mint one.",
                    details={"message_id": turn.message_id},
                )
            ids.append(episode.id)
            if before is episode:
                self.sessions.setdefault((scope, session_id), []).append(
                    RememberedTurn(
                        episode_id=episode.id,
                        role=turn.role,
                        content=turn.content,
                        timestamp=turn.timestamp,
                        is_test=call.is_test,
                    )
                )
        return Receipt(
            episode_ids=tuple(ids),
            signal=Signal.HIGH,
            buffered=len(self.sessions[scope, session_id]),
            workflow_id=f"session/{scope.tenant}/{session_id}",
        )

    async def recall(self, scope: Scope, request: RecallRequest) -> list[RecallHit]:
        """Everything kept, explained."""
        await self._work()
        self.asked.append((scope, request))
        part = ScorePart(name="dense", raw=None, value=0.5, weight=1.0, contribution=0.5)
        return [
            RecallHit(
                memory=memory,
                score=0.5,
                sources=(memory,),
                explanation=RecallExplanation(parts=(part,), filters=("all",)),
            )
            for memory in self.kept.get(scope, {}).values()
        ][: request.limit]

    async def get(self, scope: Scope, memory_id: str) -> AnyMemory:
        """One of the kept."""
        await self._work()
        try:
            return self.kept[scope][memory_id]
        except KeyError:
            raise MemoryNotFound("No memory with this id.", details={"id": memory_id}) from None

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
        """A page of the kept; the cursor counts them."""
        await self._work()
        self.listed.append((tuple(memory_types), status, cursor))
        begin = int(cursor or 0)
        kept = self.kept.get(scope, {}).values()
        found = [memory for memory in kept if include_test or not memory.is_test]
        more = begin + limit < len(found)
        return MemoryPage(
            memories=tuple(found[begin : begin + limit]),
            cursor=str(begin + limit) if more else None,
        )

    async def history(self, scope: Scope, memory_id: str) -> list[AnyMemory]:
        """The memory itself."""
        return [await self.get(scope, memory_id)]

    async def stats(self, scope: Scope) -> MemoryStats:
        """How many are kept."""
        await self._work()
        counts = dict.fromkeys(STORED_TYPES, 0)
        counts[MemoryType.EPISODIC] = len(self.kept.get(scope, {}))
        return MemoryStats(counts=counts, active=counts, waiting=counts[MemoryType.EPISODIC])

    async def consolidate(
        self, scope: Scope, *, test_only: bool = False, dry_run: bool = False
    ) -> ConsolidationReport:
        """Counts the episodes."""
        await self._work()
        kept = [one for one in self.kept.get(scope, {}).values() if one.is_test is test_only]
        return ConsolidationReport(passes=1, dry_run=dry_run, episodes=len(kept), cost_usd=0.25)

    async def end_session(self, scope: Scope, session_id: str) -> SessionSummary | None:
        """Forget the session's working memory."""
        await self._work()
        turns = self.sessions.pop((scope, session_id), None)
        if turns is None:
            return None
        return SessionSummary(session_id=session_id, turns_accepted=len(turns), ended="asked")

    async def working_memory(
        self, scope: Scope, session_id: str, *, include_test: bool = False
    ) -> list[RememberedTurn]:
        """The session's turns."""
        await self._work()
        turns = self.sessions.get((scope, session_id), [])
        return [turn for turn in turns if include_test or not turn.is_test]

    async def perform(
        self, scope: Scope, operation: Operation[Asked, Answer], asked: Asked
    ) -> Answer:
        """Whatever the handlers make of it."""
        await self._work()
        return await self.handlers.perform(scope, operation, asked)

    def run_url(self, workflow_id: str, run_id: str | None = None) -> str | None:
        """An address in the manner of the Temporal UI."""
        base = f"http://ui.test:1/namespaces/default/workflows/{workflow_id}"
        return f"{base}/{run_id}/history" if run_id else base

    async def check(self) -> None:
        """Answers, or fails as everything does."""
        await self._work()

    async def close(self) -> None:
        """Nothing to let go of."""

    async def _work(self) -> None:
        if self.failure is not None:
            raise self.failure
        self._running += 1
        self.working.set()
        self.most_at_once = max(self.most_at_once, self._running)
        await asyncio.sleep(self.delay)
        self._running -= 1
