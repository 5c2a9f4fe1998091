"""A memory engine made by hand: keeps what it is given, in the forms the Protocol promises."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TypeAlias

from engram.contracts.consolidation import ConsolidationReport
from engram.contracts.session import SessionSummary
from engram.domain.buffer import RememberedTurn, Signal
from engram.domain.deeds import Actor
from engram.domain.identity import episode_id
from engram.domain.memories import STORED_TYPES, AnyMemory, Episode, MemoryStatus, MemoryType
from engram.domain.scope import Scope
from engram.errors import ConflictingMessage, EngramError, MemoryNotFound, TemporalUnavailable
from engram.operations.audit import who_acts
from engram.operations.memories import (
    GET_MEMORY,
    HISTORY,
    LIST_MEMORIES,
    STATS,
    ListMemories,
    MemoryPage,
    MemoryStats,
)
from engram.operations.recall import CONTEXT, RECALL, ContextBlock, ContextRequest
from engram.operations.registry import (
    AboutMemory,
    Answer,
    Asked,
    Handlers,
    Operation,
    Question,
    handles,
)
from engram.operations.session_writer import TurnDating
from engram.operations.turns import (
    CONSOLIDATE,
    ENCODE,
    END_SESSION,
    WORKING_MEMORY,
    AboutSession,
    Consolidate,
    Encode,
    Receipt,
    WorkingMemory,
)
from engram.ports import Clock
from engram.recall.context import block_of, without_said
from engram.recall.request import RecallRequest
from engram.recall.results import RecallExplanation, RecallHit, ScorePart
from engram.system import system_clock

MOMENT = datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC)

Listing: TypeAlias = tuple[tuple[MemoryType, ...] | None, MemoryStatus | None, str | None]


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
        refusals: What doors refused: who, whose memory, which operation, with which code.
        handlers: Carry out the operations.
    """

    def __init__(self, clock: Clock = system_clock) -> None:
        self.kept: dict[Scope, dict[str, Episode]] = {}
        self.sessions: dict[tuple[Scope, str], list[RememberedTurn]] = {}
        self.asked: list[tuple[Scope, RecallRequest]] = []
        self.listed: list[Listing] = []
        self.failure: Exception | None = None
        self.refusals: list[tuple[Actor, Scope, str, str]] = []
        self.most_at_once = 0
        self.delay = 0.0
        self._running = 0
        self.handlers = Handlers(self)
        self._dating = TurnDating(clock)
        self.working = asyncio.Event()

    @handles(ENCODE)
    async def encode(self, scope: Scope, asked: Encode) -> Receipt:
        """Keep the turns, once per message id."""
        ids = []
        session_id = asked.session_id
        for turn in self._dating.dated(scope, session_id, asked.turns):
            assert turn.timestamp is not None, "dated above"
            assert turn.message_id is not None, "settled before it comes here"
            episode = Episode(
                id=episode_id(scope, session_id, turn.message_id),
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
                importance=0.5 if turn.importance is None else turn.importance,
                summary=turn.summary,
                expires_at=turn.expires_at,
                is_test=asked.is_test,
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
                        is_test=asked.is_test,
                    )
                )
        return Receipt(
            episode_ids=tuple(ids),
            signal=Signal.HIGH,
            buffered=len(self.sessions[scope, session_id]),
            workflow_id=f"session/{scope.tenant}/{session_id}",
        )

    @handles(CONTEXT)
    async def context(self, scope: Scope, asked: ContextRequest) -> ContextBlock:
        """What recall brings, as a block."""
        hits = without_said(await self.recall(scope, asked), asked.already)
        return ContextBlock(context=block_of(hits, tokens=asked.tokens, zone=asked.zone))

    @handles(RECALL)
    async def recall(self, scope: Scope, asked: RecallRequest) -> list[RecallHit]:
        """Everything kept, explained."""
        self.asked.append((scope, asked))
        part = ScorePart(name="dense", raw=None, value=0.5, weight=1.0, contribution=0.5)
        return [
            RecallHit(
                memory=memory,
                score=0.5,
                sources=(memory,),
                explanation=RecallExplanation(parts=(part,), filters=("all",)),
            )
            for memory in self.kept.get(scope, {}).values()
        ][: asked.limit]

    @handles(GET_MEMORY)
    async def get(self, scope: Scope, asked: AboutMemory) -> AnyMemory:
        """One of the kept."""
        memory_id = asked.memory_id
        try:
            return self.kept[scope][memory_id]
        except KeyError:
            raise MemoryNotFound("No memory with this id.", details={"id": memory_id}) from None

    @handles(LIST_MEMORIES)
    async def list_memories(self, scope: Scope, asked: ListMemories) -> MemoryPage:
        """A page of the kept; the cursor counts them."""
        self.listed.append((asked.memory_type, asked.status, asked.cursor))
        begin = int(asked.cursor or 0)
        kept = self.kept.get(scope, {}).values()
        found = [
            memory
            for memory in kept
            if (asked.include_test or not memory.is_test)
            and asked.run_id in {None, memory.provenance.run_id}
            and not (asked.form and getattr(memory, "form", asked.form[0]) not in asked.form)
        ]
        more = begin + asked.limit < len(found)
        return MemoryPage(
            memories=tuple(found[begin : begin + asked.limit]),
            cursor=str(begin + asked.limit) if more else None,
        )

    @handles(HISTORY)
    async def history(self, scope: Scope, asked: AboutMemory) -> list[AnyMemory]:
        """The memory itself."""
        return [await self.get(scope, asked)]

    @handles(STATS)
    async def stats(self, scope: Scope, _: Question) -> MemoryStats:
        """How many are kept."""
        counts = dict.fromkeys(STORED_TYPES, 0)
        counts[MemoryType.EPISODIC] = len(self.kept.get(scope, {}))
        return MemoryStats(counts=counts, active=counts, waiting=counts[MemoryType.EPISODIC])

    @handles(CONSOLIDATE)
    async def consolidate(self, scope: Scope, asked: Consolidate) -> ConsolidationReport:
        """Counts the episodes."""
        kept = [one for one in self.kept.get(scope, {}).values() if one.is_test is asked.test_only]
        return ConsolidationReport(
            passes=1, dry_run=asked.dry_run, episodes=len(kept), cost_usd=0.25
        )

    @handles(END_SESSION)
    async def end_session(self, scope: Scope, asked: AboutSession) -> SessionSummary | None:
        """Forget the session's working memory."""
        turns = self.sessions.pop((scope, asked.session_id), None)
        if turns is None:
            return None
        return SessionSummary(session_id=asked.session_id, turns_accepted=len(turns), ended="asked")

    @handles(WORKING_MEMORY)
    async def working_memory(self, scope: Scope, asked: WorkingMemory) -> list[RememberedTurn]:
        """The session's turns."""
        turns = self.sessions.get((scope, asked.session_id), [])
        return [turn for turn in turns if asked.include_test or not turn.is_test]

    async def call(
        self, scope: Scope, operation: Operation[Asked, Answer], request: Asked
    ) -> Answer:
        """Whatever the handlers make of it."""
        await self._work()
        return await self.handlers.call(scope, operation, request)

    def refused(self, scope: Scope, action: str, error: EngramError) -> None:
        """Kept in :attr:`refusals`."""
        self.refusals.append((who_acts(), scope, action, error.code))

    def run_url(self, workflow_id: str, run_id: str | None = None) -> str | None:
        """An address in the manner of the Temporal UI."""
        base = f"http://ui.test:1/namespaces/default/workflows/{workflow_id}"
        return f"{base}/{run_id}/history" if run_id else base

    async def check(self, *, store_only: bool = False) -> None:
        """Answers, or fails as everything does; the store alone where Temporal is away."""
        if not (store_only and isinstance(self.failure, TemporalUnavailable)):
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
