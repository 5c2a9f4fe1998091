"""What applications hold: one user's memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Unpack

from engram import operations
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
from engram.contracts.refusals import typed_refusals
from engram.domain.memories import AnyMemory, MemoryForm, MemoryStatus, MemoryType, RunLink
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.errors import InvalidQuery, MemoryClosed
from engram.language.guarding import PersonalDataGuard
from engram.operations.registry import Answer, Asked, Operation, Question
from engram.recall.request import (
    RecallArguments,
    RecallAtArguments,
    RecallFilters,
    RecallRequest,
    names_of,
    tags_of,
)
from engram.settings import Settings

if TYPE_CHECKING:
    from engram.contracts.consolidation import ConsolidationReport
    from engram.contracts.session import SessionSummary
    from engram.domain.buffer import RememberedTurn
    from engram.operations.audit import AuditPage
    from engram.operations.memories import MemoryPage, MemoryStats
    from engram.operations.progress import Stage, TurnProgress
    from engram.operations.session_writer import TurnIntake
    from engram.operations.turns import Receipt
    from engram.ports import Clock
    from engram.recall.results import RecallHit

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

    @cached_property
    def _intake(self) -> TurnIntake:
        # Loads what encoding is asked with; a store that is only read needs none of it.
        from engram.operations.session_writer import TurnIntake  # noqa: PLC0415 - see above

        return TurnIntake(
            self._clock, self._new_id, max_bytes=self._settings.max_turn_bytes, guard=self._guard
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
            ConflictingMessage: a message id was used with other content, or with another
                ``is_test``; none of the call was stored. A call too large for one update
                (512 KB or 64 turns by default) is stored part by part: then the parts
                before the conflict are stored, and nothing after it.
            TemporalUnavailable: no acknowledgement came in time. Sending the same
                turns again is safe if they carry message ids.
        """
        self._check_open()
        with typed_refusals():
            asked = operations.turns.Encode(
                session_id=session_id,
                turns=self._intake.accept(turns, namespace=self._scope.namespace),
                extract_facts=extract_facts,
                is_test=is_test,
            )
        return await self._call(operations.turns.ENCODE, asked)

    async def wait_until(
        self,
        receipt: Receipt | Sequence[str],
        stage: Literal["stored", "extracted", "linked"] | Stage = "linked",
        *,
        within: float = 60.0,
        ask: bool = True,
    ) -> TurnProgress:
        """Wait until turns are as far as that: read, and what is concluded from them linked.

        Consolidation comes to turns by itself; this is for whoever needs to know. A receipt
        that was kept (``model_dump_json``), or its ids alone, can be waited for by any process,
        and after anything was restarted.

        Args:
            receipt: What :meth:`encode` answered, or ids of turns.
            stage: ``stored``, ``extracted`` or ``linked``.
            within: Seconds after which it gives up; 0 for looking once.
            ask: Have the turns consolidated now, rather than wait until it is time.

        Returns:
            Where the turns stand. Those that were forgotten meanwhile are waited for no longer.

        Raises:
            StageNotReached: the time is over, or consolidation left turns out; its details say
                how many turns are stored, extracted, linked, refused. Waiting again is safe.
            MemoryNotFound: none of the turns is there.
            InvalidQuery: no turn, too many, or an unknown stage.
            TemporalUnavailable: consolidation could not be asked for.
        """
        ids = (
            receipt.episode_ids if isinstance(receipt, operations.turns.Receipt) else tuple(receipt)
        )
        if not within >= 0:
            raise InvalidQuery("The time to wait is out of range.", allowed="0 seconds or more")
        clock = asyncio.get_running_loop().time
        deadline = clock() + within
        while True:
            left = max(0.0, deadline - clock())
            with typed_refusals():
                asked = operations.progress.WaitUntil(
                    episode_ids=ids,
                    stage=operations.progress.stage_of(stage),
                    wait=min(left, operations.progress.LONGEST_WAIT),
                    ask=ask,
                )
            progress = await self._call(operations.progress.WAIT_UNTIL, asked)
            if progress.reached:
                return progress
            if not progress.may_come or left <= operations.progress.LONGEST_WAIT:
                raise operations.progress.not_reached(progress)
            # It was asked for; each further request only looks.
            ask = False

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
        explain: bool = False,
        **filters: Unpack[RecallFilters],
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
            explain: Explain every answer.
            filters: ``session_id``, ``tags``, ``without_tags``, ``roles``, ``metadata``,
                ``forms``, ``min_score``, ``include_stale``, ``context``, ``timezone``; see
                :class:`engram.recall.request.RecallFilters`.

        Returns:
            At most ``limit`` answers, best first; scores compare within one answer only.

        Raises:
            InvalidQuery: an argument is out of range.
        """
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
            explain=explain,
            **filters,
        )
        return await self._call(operations.recall.RECALL, request)

    async def recall_at(
        self, query: str, *, as_of: datetime, **options: Unpack[RecallAtArguments]
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

    async def context(
        self,
        query: str,
        *,
        tokens: int = 1000,
        already: Iterable[str] = (),
        **options: Unpack[RecallArguments],
    ) -> str:
        """What answers ``query``, as a fenced block of text for a prompt; empty if nothing does.

        Every line has a date and a source; what holds now comes first, then what is
        explicitly not so, then turns as they were said; of a long one the part that bears on
        ``query``, with dots where it is cut. A turn that quotes the block teaches Engram nothing.

        Args:
            query: A question, or a few words.
            tokens: The most it may have, estimated as a quarter of its characters.
            already: Texts that the prompt has anyway, such as the conversation so far, up to
                256: turns with these words are left out, and make room for others.
            options: Those of :meth:`recall`.

        Returns:
            The block, at most about ``tokens`` long; empty if nothing answers.

        Raises:
            InvalidQuery: an argument is out of range.
        """
        given = {**options, "already": names_of(already) or ()}
        asked = operations.recall.ContextRequest.within(query, tokens, self._settings, given)
        return (await self._call(operations.recall.CONTEXT, asked)).context

    async def get(self, memory_id: str) -> AnyMemory:
        """Read one memory by id.

        Args:
            memory_id: Of a memory of this user.

        Returns:
            The memory, whatever its status.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        return await self._call(operations.memories.GET_MEMORY, about(memory_id))

    async def list(
        self,
        *,
        memory_types: Iterable[MemoryType | str] | None = None,
        status: MemoryStatus | str | None = None,
        limit: int = 100,
        cursor: str | None = None,
        include_test: bool = False,
        forms: Iterable[MemoryForm | str] | MemoryForm | str | None = None,
        roles: Iterable[str] | str | None = None,
        session_id: str | None = None,
        tags: Sequence[str] | None = None,
        without_tags: Sequence[str] | None = None,
        run_id: str | None = None,
    ) -> MemoryPage:
        """A page of memories: type by type, oldest known first.

        Args:
            memory_types: episodic, factual, semantic, procedural, negation; all if None.
            status: active, superseded, archived, expired; any if None.
            limit: How many at most, 1 to 1,000.
            cursor: Of the page before, with the same arguments.
            include_test: List test memories too.
            forms: Of semantic memories, only these: statement, artifact, summary, profile,
                topic, box, guideline; all if None.
            roles: Of turns, only those of these: user, assistant, system, tool; all if None.
            session_id: Only memories of this session.
            tags: Only memories that carry at least one of these.
            without_tags: Leave out memories that carry any of these.
            run_id: Only what this run of a workflow wrote first, as ``provenance.run_id`` and
                the Temporal UI name it.

        Returns:
            The page, with a cursor if there is more.

        Raises:
            InvalidQuery: an unknown type, status, form or role, a limit out of range, a
                cursor of another listing, or a run's id that is none.
            InvalidScope: the session id has a form that is refused.
        """
        with typed_refusals():
            asked = operations.memories.ListMemories(
                memory_type=type_members(memory_types),
                status=status_member(status),
                limit=limit,
                cursor=cursor,
                include_test=include_test,
                form=names_of(forms),
                role=names_of(roles),
                session_id=session_id,
                tag=tags_of(tags),
                without_tag=tags_of(without_tags),
                run_id=run_id,
            )
        return await self._call(operations.memories.LIST_MEMORIES, asked)

    async def history(self, memory_id: str) -> Sequence[AnyMemory]:
        """Follow what a memory replaced and what replaced it.

        Args:
            memory_id: Of a memory of this user.

        Returns:
            All versions, oldest known first; the memory itself is one of them.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        return await self._call(operations.memories.HISTORY, about(memory_id))

    async def stats(self) -> MemoryStats:
        """Count what is kept for this user, without test memories.

        Returns:
            All and active memories by type, and the turns that wait for consolidation.

        Raises:
            StorageUnavailable: the store does not answer; asking again is safe.
        """
        return await self._call(operations.memories.STATS, Question())

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
        with typed_refusals():
            asked = operations.turns.Consolidate(test_only=test_only, dry_run=dry_run)
        return await self._call(operations.turns.CONSOLIDATE, asked)

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
            asked = operations.turns.AboutSession(session_id=session_id)
        return await self._call(operations.turns.END_SESSION, asked)

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
            asked = operations.turns.WorkingMemory(session_id=session_id, include_test=include_test)
        return await self._call(operations.turns.WORKING_MEMORY, asked)

    async def audit(
        self,
        *,
        everybody: bool = False,
        action: str | None = None,
        key_id: str | None = None,
        memory_id: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> AuditPage:
        """Read the audit trail: who read, changed or removed what, by id and never by content.

        For who owns the data folder, or the folder of the trail; no API key allows it.

        Args:
            everybody: Of every user of every namespace, instead of this one.
            action: Of this operation only: ``recall``, ``forget``, ``erase`` and so on.
            key_id: Of this API key only.
            memory_id: About this memory only.
            since: From then on; with a time zone.
            until: Before that; with a time zone.
            limit: 1 to 1000 entries.
            cursor: That of the page before.

        Returns:
            Entries, the newest first, and where the trail is not as it was written.

        Raises:
            InvalidInput: something asked for is out of range.
            InvalidQuery: no trail is kept, or the cursor is none.
            AccessDenied: an API key asks.
        """
        with typed_refusals():
            asked = operations.audit.AskAudit(
                everybody=everybody,
                action=action,
                key_id=key_id,
                memory_id=memory_id,
                since=since,
                until=until,
                limit=limit,
                cursor=cursor,
            )
        return await self._call(operations.audit.AUDIT, asked)

    async def _call(self, operation: Operation[Asked, Answer], request: Asked) -> Answer:
        self._check_open()
        return await self._engine.call(self._scope, operation, request)

    def run_of(self, memory: AnyMemory) -> RunLink | None:
        """Say which run wrote a memory, and where the Temporal UI shows it.

        Args:
            memory: As a method of this store returned it.

        Returns:
            The run, with its address where a UI is known; None of a memory that no run wrote.
        """
        origin = memory.provenance
        if origin.workflow_id is None:
            return None
        url = self._engine.run_url(origin.workflow_id, origin.run_id)
        return RunLink(workflow_id=origin.workflow_id, run_id=origin.run_id, url=url)

    def run_url(self, memory: AnyMemory) -> str | None:
        """Say where the Temporal UI shows the run that wrote a memory.

        Args:
            memory: As a method of this store returned it.

        Returns:
            The address; None where there is no UI, or no run wrote it.
        """
        run = self.run_of(memory)
        return None if run is None else run.url

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
