"""What applications hold: one user's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

from engram.client.engine import MemoryEngine
from engram.client.facade.commitments import CommitmentMethods
from engram.client.facade.context import context_of
from engram.client.facade.digests import DigestMethods
from engram.client.facade.forgetting import ForgettingMethods
from engram.client.facade.knowledge import KnowledgeMethods
from engram.client.facade.lifecycle import LifecycleMethods
from engram.client.facade.operating import OperatingMethods
from engram.client.facade.transfer import TransferMethods
from engram.client.facade.usage import UsageMethods
from engram.client.intake import TurnIntake
from engram.client.models import MemoryPage, MemoryStats, Receipt
from engram.client.operations.operation import Answer, Asked, Operation
from engram.contracts.consolidation import ConsolidationReport
from engram.contracts.sessions import EncodeCall, RememberedTurn, SessionSummary
from engram.domain.memories import STORED_TYPES, AnyMemory, MemoryStatus, MemoryType
from engram.domain.scope import Scope, check_identifier
from engram.domain.turns import Turn
from engram.errors import InvalidQuery, MemoryClosed
from engram.ports import Clock
from engram.recall.models import RecallHit
from engram.recall.request import RecallRequest
from engram.settings import Settings


class MemoryStore(
    KnowledgeMethods,
    CommitmentMethods,
    DigestMethods,
    LifecycleMethods,
    OperatingMethods,
    ForgettingMethods,
    UsageMethods,
    TransferMethods,
):
    """One user's memory: encode turns, recall what answers.

    Get one from :func:`engram.open` or :func:`engram.connect`. Safe for use by
    many tasks at once; not for use from several event loops.
    """

    def __init__(
        self,
        engine: MemoryEngine,
        scope: Scope,
        settings: Settings,
        clock: Clock,
        new_id: Callable[[], str],
        *,
        is_closed: Callable[[], bool] | None = None,
    ) -> None:
        self._engine = engine
        self._scope = scope
        self._settings = settings
        self._clock = clock
        self._new_id = new_id
        self._intake = TurnIntake(clock, new_id, max_bytes=settings.max_turn_bytes)
        self._closed = False
        self._parent_is_closed = is_closed or (lambda: False)

    @property
    def scope(self) -> Scope:
        """Whose memory this is."""
        return self._scope

    def for_user(self, user_id: str, *, namespace: str | None = None) -> MemoryStore:
        """The memory of another user, over the same connections; closed when this one is.

        Raises:
            InvalidScope: the user id or namespace has a form that is refused.
        """
        self._check_open()
        scope = Scope.of(namespace or self._scope.namespace, user_id)
        return MemoryStore(
            self._engine,
            scope,
            self._settings,
            self._clock,
            self._new_id,
            is_closed=self._is_closed,
        )

    async def encode(
        self,
        turns: str | Turn | Sequence[str | Turn],
        *,
        session_id: str,
        extract_facts: bool = True,
        is_test: bool = False,
    ) -> Receipt:
        """Keep conversation turns.

        When this returns, the turns are stored verbatim, searchable, and survive
        the death of any process. Facts and negations that patterns find in them
        are stored too; consolidation follows in the background.

        Args:
            turns: One turn or several; a plain string is a turn of the user.
            session_id: The conversation they belong to.
            extract_facts: Whether to look for pattern facts and negations.
            is_test: Keeps the turns, and all drawn from them, out of real answers.

        Raises:
            InvalidTurn: a turn cannot be kept; none of the call was stored, however large.
            InvalidScope: the session id has a form that is refused.
            ConflictingMessage: a message id was used with other content; none of
                the call was stored. A call too large for one update (512 KB or 64
                turns by default) is stored part by part: then the parts before the
                conflict are stored, and nothing after it.
            TemporalUnavailable: no acknowledgement came in time. Sending the same
                turns again is safe if they carry message ids.
        """
        self._check_open()
        check_identifier(session_id, "session id")
        call = EncodeCall(
            turns=self._intake.accept(turns), extract_facts=extract_facts, is_test=is_test
        )
        return await self._engine.encode(self._scope, session_id, call)

    async def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        memory_types: Iterable[MemoryType | str] | MemoryType | str | None = None,
        min_confidence: float | None = None,
        min_selectivity: float | None = None,
        include_sources: bool = False,
        follow_links: bool = False,
        as_of: datetime | None = None,
        valid_at: datetime | None = None,
        include_archived: bool = False,
        include_test: bool = False,
        session_id: str | None = None,
        tags: Sequence[str] | None = None,
        explain: bool = False,
    ) -> Sequence[RecallHit]:
        """The memories that answer ``query``, best first.

        Args:
            query: A question, or a few words.
            limit: How many answers at most.
            memory_types: episodic, factual, semantic, procedural, negation; all if None.
            min_confidence: Leave out conclusions below this composite confidence, 0 to 1.
            min_selectivity: Leave out semantic memories below this selectivity, 0 to 1.
            include_sources: Bring the turns that each answer was concluded from.
            follow_links: Bring also what the answers are linked to.
            as_of: Answer from what was known then, by the conversation's own dates.
            valid_at: Answer with what was true then.
            include_archived: Bring archived memories too.
            include_test: Bring test memories too.
            session_id: Only memories of this session.
            tags: Only memories that carry at least one of these.
            explain: Explain every answer.

        Raises:
            InvalidQuery: an argument is out of range.
        """
        self._check_open()
        request = RecallRequest.of(
            query,
            settings=self._settings,
            limit=limit,
            memory_types=memory_types,
            min_confidence=min_confidence,
            min_selectivity=min_selectivity,
            include_sources=include_sources,
            follow_links=follow_links,
            as_of=as_of,
            valid_at=valid_at,
            include_archived=include_archived,
            include_test=include_test,
            session_id=session_id,
            tags=tags,
            explain=explain,
        )
        return await self._engine.recall(self._scope, request)

    async def recall_at(
        self, query: str, *, as_of: datetime, **options: Any
    ) -> Sequence[RecallHit]:
        """:meth:`recall` with what was known at ``as_of``."""
        return await self.recall(query, as_of=as_of, **options)

    async def context(self, query: str, *, tokens: int = 1000, **options: Any) -> str:
        """What answers ``query``, as a fenced block of text for a prompt; empty if nothing does.

        Every line has a date and a source; what holds now comes first, then what is
        explicitly not so, then turns as they were said. A turn that quotes the block
        teaches Engram nothing.

        Args:
            query: A question, or a few words.
            tokens: The most it may have, estimated as a quarter of its characters.
            options: Those of :meth:`recall`.

        Raises:
            InvalidQuery: an argument is out of range.
        """
        return await context_of(self.recall, query, tokens, options)

    async def get(self, memory_id: str) -> AnyMemory:
        """One memory by id.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        self._check_open()
        return await self._engine.get(self._scope, memory_id)

    async def list(
        self,
        *,
        memory_types: Iterable[MemoryType | str] | None = None,
        status: MemoryStatus | str | None = None,
        limit: int = 100,
        cursor: str | None = None,
        include_test: bool = False,
    ) -> MemoryPage:
        """A page of memories: type by type, oldest known first.

        Args:
            memory_types: episodic, factual, semantic, procedural, negation; all if None.
            status: active, superseded, archived, expired; any if None.
            limit: How many at most, 1 to 1,000.
            cursor: Of the page before, with the same arguments.
            include_test: List test memories too.

        Raises:
            InvalidQuery: an unknown type or status, a limit out of range, or a
                cursor of another listing.
        """
        self._check_open()
        return await self._engine.list_memories(
            self._scope,
            memory_types=_types(memory_types),
            status=_status(status),
            limit=limit,
            cursor=cursor,
            include_test=include_test,
        )

    async def history(self, memory_id: str) -> Sequence[AnyMemory]:
        """What a memory replaced and what replaced it, oldest first.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        self._check_open()
        return await self._engine.history(self._scope, memory_id)

    async def stats(self) -> MemoryStats:
        """How much is kept for this user, without test memories; :meth:`status` tells of those."""
        self._check_open()
        return await self._engine.stats(self._scope)

    async def consolidate(
        self, *, test_only: bool = False, dry_run: bool = False
    ) -> ConsolidationReport:
        """Consolidate now, and wait for the report.

        Args:
            test_only: Read test turns only; without it, all others. Test turns are
                consolidated in no other way, and what they say is a test memory too.
            dry_run: Ask no model and write nothing; say how many turns wait.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
            EngramError: what stopped the pass; what it left is still due.
        """
        self._check_open()
        return await self._engine.consolidate(self._scope, test_only=test_only, dry_run=dry_run)

    async def end_session(self, session_id: str) -> SessionSummary | None:
        """End a session; its consolidation follows in the background. None if it did not run."""
        self._check_open()
        check_identifier(session_id, "session id")
        return await self._engine.end_session(self._scope, session_id)

    async def working_memory(
        self, session_id: str, *, include_test: bool = False
    ) -> Sequence[RememberedTurn]:
        """The recent turns of a running session, oldest first; empty when it does not run.

        Args:
            session_id: The conversation.
            include_test: Bring test turns too.
        """
        self._check_open()
        check_identifier(session_id, "session id")
        return await self._engine.working_memory(self._scope, session_id, include_test=include_test)

    async def _perform(self, operation: Operation[Asked, Answer], asked: Asked) -> Answer:
        self._check_open()
        return await self._engine.perform(self._scope, operation, asked)

    def run_url(self, memory: AnyMemory) -> str | None:
        """Where the Temporal UI shows the run that wrote this memory, when there is a UI."""
        origin = memory.provenance
        if origin.workflow_id is None:
            return None
        return self._engine.run_url(origin.workflow_id, origin.run_id)

    def close(self) -> None:
        """Refuse further use; the context manager that made this store calls it."""
        self._closed = True

    def _is_closed(self) -> bool:
        return self._closed or self._parent_is_closed()

    def _check_open(self) -> None:
        if self._is_closed():
            raise MemoryClosed(
                "This memory store is closed.", hint="Use it inside its `async with` block."
            )


def _types(given: Iterable[MemoryType | str] | None) -> tuple[MemoryType, ...]:
    if given is None:
        return STORED_TYPES
    return tuple(dict.fromkeys(_member(MemoryType, kind, "memory type") for kind in given))


def _status(given: MemoryStatus | str | None) -> MemoryStatus | None:
    return None if given is None else _member(MemoryStatus, given, "status")


def _member(kind: Any, value: object, what: str) -> Any:
    try:
        return kind(value)
    except ValueError as error:
        raise InvalidQuery(
            f"The {what} is unknown.", allowed=", ".join(str(member) for member in kind)
        ) from error
