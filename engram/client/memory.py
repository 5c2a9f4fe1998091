"""What applications hold: one user's memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from engram.client.engine import MemoryEngine
from engram.client.methods import (
    CommitmentMethods,
    DigestMethods,
    ForgettingMethods,
    KnowledgeMethods,
    LifecycleMethods,
    OperatingMethods,
    UsageMethods,
    about,
    status_member,
    type_members,
)
from engram.client.transfer import TransferMethods
from engram.contracts.consolidation import ConsolidationReport
from engram.contracts.session import SessionSummary
from engram.domain.buffer import RememberedTurn
from engram.domain.memories import (
    AnyMemory,
    MemoryStatus,
    MemoryType,
)
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.errors import InvalidQuery, MemoryClosed
from engram.language.guarding import PersonalDataGuard
from engram.operations.memories import (
    GET_MEMORY,
    HISTORY,
    LIST_MEMORIES,
    STATS,
    ListMemories,
    MemoryPage,
    MemoryStats,
)
from engram.operations.recall import RECALL
from engram.operations.registry import (
    Answer,
    Asked,
    Operation,
    Question,
    typed_refusals,
)
from engram.operations.session_writer import TurnIntake
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
from engram.recall.context import block_of
from engram.recall.request import RecallRequest
from engram.recall.results import RecallHit
from engram.settings import Settings

# --- what a memory store gives to a prompt

LEAST_TOKENS = 32
_MOST_HITS = 50
# A line has hardly fewer than so many tokens, so more hits than this never fit.
_TOKENS_OF_A_LINE = 15


async def context_of(
    recall: Callable[..., Awaitable[Sequence[RecallHit]]],
    query: str,
    tokens: object,
    options: Mapping[str, Any],
) -> str:
    """See :meth:`engram.MemoryStore.context`."""
    if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < LEAST_TOKENS:
        raise InvalidQuery(
            "The number of tokens is out of range.",
            allowed=f"a whole number from {LEAST_TOKENS} on",
        )
    asked = {
        "limit": min(_MOST_HITS, max(1, tokens // _TOKENS_OF_A_LINE)),
        "include_sources": True,
        **options,
    }
    return block_of(await recall(query, **asked), tokens=tokens)


# --- what applications hold: one user's memory


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
        self._guard = PersonalDataGuard.of(settings)
        self._intake = TurnIntake(
            clock, new_id, max_bytes=settings.max_turn_bytes, guard=self._guard
        )
        self._closed = False
        self._parent_is_closed = is_closed or (lambda: False)

    @property
    def scope(self) -> Scope:
        """Whose memory this is."""
        return self._scope

    def for_user(self, user_id: str, *, namespace: str | None = None) -> MemoryStore:
        """Give the memory of another user, over the same connections.

        Args:
            user_id: Of the other user: 1 to 80 ASCII letters, digits and ``. _ @ + : = | ~ -``.
            namespace: The other user's; this store's if None.

        Returns:
            A store that is closed when this one is.

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

        Returns:
            The ids of what was stored, the most urgent signal, and how many turns wait for
            consolidation.

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
        with typed_refusals():
            asked = Encode(
                session_id=session_id,
                turns=self._intake.accept(turns, namespace=self._scope.namespace),
                extract_facts=extract_facts,
                is_test=is_test,
            )
        return await self._call(ENCODE, asked)

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
        context: str | None = None,
    ) -> Sequence[RecallHit]:
        """The memories that answer ``query``, best first.

        Args:
            query: A question, or a few words.
            limit: How many answers at most.
            memory_types: episodic, factual, semantic, procedural, negation; all if None.
            min_confidence: Leave out conclusions below this effective confidence, 0 to 1.
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
            context: Circumstances, in words; habits bound to others come further behind.

        Returns:
            At most ``limit`` answers, best first; scores compare within one answer only.

        Raises:
            InvalidQuery: an argument is out of range.
        """
        # Each argument is a field of the request; nothing else is a local variable yet.
        given = {name: value for name, value in locals().items() if name != "self"}
        request = RecallRequest.of(**given, settings=self._settings)
        return await self._call(RECALL, request)

    async def recall_at(
        self, query: str, *, as_of: datetime, **options: Any
    ) -> Sequence[RecallHit]:
        """Recall with what was known at a moment: :meth:`recall` with ``as_of``.

        Args:
            query: A question, or a few words.
            as_of: The moment, with a timezone.
            options: Those of :meth:`recall`.

        Returns:
            The memories that answered then, best first.

        Raises:
            InvalidQuery: an argument is out of range.
        """
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

        Returns:
            The block, at most about ``tokens`` long; empty if nothing answers.

        Raises:
            InvalidQuery: an argument is out of range.
        """
        return await context_of(self.recall, query, tokens, options)

    async def get(self, memory_id: str) -> AnyMemory:
        """Read one memory by id.

        Args:
            memory_id: Of a memory of this user.

        Returns:
            The memory, whatever its status.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        return await self._call(GET_MEMORY, about(memory_id))

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

        Returns:
            The page, with a cursor if there is more.

        Raises:
            InvalidQuery: an unknown type or status, a limit out of range, or a
                cursor of another listing.
        """
        with typed_refusals():
            asked = ListMemories(
                memory_type=type_members(memory_types),
                status=status_member(status),
                limit=limit,
                cursor=cursor,
                include_test=include_test,
            )
        return await self._call(LIST_MEMORIES, asked)

    async def history(self, memory_id: str) -> Sequence[AnyMemory]:
        """Follow what a memory replaced and what replaced it.

        Args:
            memory_id: Of a memory of this user.

        Returns:
            All versions, oldest known first; the memory itself is one of them.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        return await self._call(HISTORY, about(memory_id))

    async def stats(self) -> MemoryStats:
        """Count what is kept for this user, without test memories.

        Returns:
            All and active memories by type, and the turns that wait for consolidation.

        Raises:
            StorageUnavailable: the store does not answer; asking again is safe.
        """
        return await self._call(STATS, Question())

    async def consolidate(
        self, *, test_only: bool = False, dry_run: bool = False
    ) -> ConsolidationReport:
        """Consolidate now, and wait for the report.

        Args:
            test_only: Read test turns only; without it, all others. Test turns are
                consolidated in no other way, and what they say is a test memory too.
            dry_run: Write nothing; read up to 20 batches of what waits, and say in
                ``changes`` what would come of them. A language model is asked, and paid.

        Returns:
            What was read, stored, confirmed, replaced and left, in numbers.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
            EngramError: what stopped the pass; what it left is still due.
        """
        asked = Consolidate(test_only=test_only, dry_run=dry_run)
        return await self._call(CONSOLIDATE, asked)

    async def end_session(self, session_id: str) -> SessionSummary | None:
        """End a session; its consolidation follows in the background.

        Args:
            session_id: The conversation.

        Returns:
            What the session came to; None if it did not run.

        Raises:
            InvalidScope: the session id has a form that is refused.
            TemporalUnavailable: no answer came in time; asking again is safe.
        """
        with typed_refusals():
            asked = AboutSession(session_id=session_id)
        return await self._call(END_SESSION, asked)

    async def working_memory(
        self, session_id: str, *, include_test: bool = False
    ) -> Sequence[RememberedTurn]:
        """Read the recent turns of a running session.

        Args:
            session_id: The conversation.
            include_test: Bring test turns too.

        Returns:
            Oldest first; empty when the session does not run.

        Raises:
            InvalidScope: the session id has a form that is refused.
            TemporalUnavailable: no answer came in time; asking again is safe.
        """
        with typed_refusals():
            asked = WorkingMemory(session_id=session_id, include_test=include_test)
        return await self._call(WORKING_MEMORY, asked)

    async def _call(self, operation: Operation[Asked, Answer], request: Asked) -> Answer:
        self._check_open()
        return await self._engine.call(self._scope, operation, request)

    def run_url(self, memory: AnyMemory) -> str | None:
        """Say where the Temporal UI shows the run that wrote a memory.

        Args:
            memory: As a method of this store returned it.

        Returns:
            The address; None where there is no UI, or no run wrote it.
        """
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
