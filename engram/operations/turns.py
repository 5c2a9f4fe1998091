"""Operations on conversations: storing turns, what a session has in mind, ending it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, cast

from pydantic import BeforeValidator, Field

from engram.contracts.consolidation import ConsolidationReport
from engram.contracts.messages import Population
from engram.contracts.session import (
    ConsolidationRequest,
    EncodeCall,
    EncodeReply,
    EncodeRequest,
    SessionSummary,
)
from engram.domain.access import Access
from engram.domain.buffer import RememberedTurn, Signal
from engram.domain.memories import RunLink
from engram.domain.scope import Scope, check_identifier
from engram.domain.turns import Turn
from engram.errors import InvalidTurn, error_from_dict
from engram.giving_way import awaited, wanted
from engram.language.guarding import PersonalDataGuard
from engram.operations.registry import (
    Answered,
    Http,
    Intake,
    Operation,
    Question,
    RunningQuota,
    handles,
)
from engram.operations.session_writer import (
    Acknowledged,
    BatchLimits,
    SessionWriter,
    TurnDating,
    TurnIntake,
    split_call,
)
from engram.ports import Clock, MemoryRepository
from engram.settings import Settings

if TYPE_CHECKING:
    # Who only asks for an operation needs nothing of what carries it out.
    from engram.temporal.gateway import WorkflowGateway

# --- what is asked of a session, and what it answers

# Seconds; what is not acknowledged by then is not, and its callers are told.
_CLOSING_PATIENCE = 10.0


def _session_id(given: object) -> str:
    return check_identifier(given, "session id")


SessionId = Annotated[str, BeforeValidator(_session_id)]
"""Names a conversation; raises InvalidScope for what cannot."""


class AboutSession(Question):
    """A question about one session.

    Attributes:
        session_id: The conversation.
    """

    session_id: SessionId


class Encode(AboutSession):
    """Turns of one session; all of them are stored, or none.

    Attributes:
        turns: In the order in which they were said. A turn without a timestamp was said
            now; one without a message id is stored anew whenever it is sent.
        extract_facts: Whether e-mails, dates and the like are taken out at once.
        is_test: Whether they are test turns, which no real recall brings.
    """

    turns: tuple[Turn, ...] = Field(min_length=1)
    extract_facts: bool = True
    is_test: bool = False


class WorkingMemory(AboutSession):
    """A question about the recent turns of a session."""

    include_test: bool = Field(default=False, description="Bring test memories too.")


class Consolidate(Question):
    """Which turns are consolidated; ``dry_run``: only tried."""

    test_only: bool = Field(default=False, description="Test turns only, instead of others.")
    dry_run: bool = Field(default=False, description="Write nothing; say what would change.")

    @property
    def population(self) -> Population:
        """Which turns are meant."""
        return Population.TEST if self.test_only else Population.REAL


class Receipt(Answered):
    """What ``encode`` acknowledges: stored, searchable, and surviving a crash.

    Attributes:
        episode_ids: One per turn, in order.
        forgotten_ids: Those of them that are not stored: the user had this very turn forgotten.
            What is said again in a new turn, with another message id, is kept.
        fact_ids: Pattern facts that the turns state, new or known before.
        negation_ids: What the turns say is not true; of one turn, 50 facts and negations at most.
        ids_left_out: How many more facts and negations there are; ``list`` brings them.
        signal: The strongest signal among the turns.
        buffered: Turns of the session that wait for extraction.
        workflow_id: The session's workflow, as the Temporal UI names it.
        run: The same with the run that stored the last of the turns, and its address.
    """

    episode_ids: tuple[str, ...]
    fact_ids: tuple[str, ...] = ()
    negation_ids: tuple[str, ...] = ()
    ids_left_out: int = 0
    signal: Signal = Signal.NONE
    buffered: int = 0
    workflow_id: str
    forgotten_ids: tuple[str, ...] = ()
    run: RunLink | None = None


def _settled(asked: Encode, intake: Intake) -> Encode:
    """Every turn checked, with an id: sent twice, it is stored once."""
    most = intake.settings.max_turns_per_call
    if len(asked.turns) > most:
        raise InvalidTurn(
            f"There are {len(asked.turns)} turns to encode.",
            allowed=f"up to {most} at once",
            hint="Send fewer at once, or import them; ENGRAM_MAX_TURNS_PER_CALL is the bound.",
            details={"turns": len(asked.turns), "limit": most},
        )
    settling = TurnIntake(
        intake.clock,
        intake.new_id,
        max_bytes=intake.settings.max_turn_bytes,
        guard=PersonalDataGuard.of(intake.settings),
    )
    turns = settling.accept(asked.turns, namespace=intake.namespace)
    return asked.model_copy(update={"turns": turns})


ENCODE: Final = Operation(
    "encode",
    Encode,
    Receipt,
    "Answers when they are stored and searchable; a message id that is known stores nothing.",
    access=Access.WRITE,
    http=Http(
        path="sessions/{session_id}/turns", body="EncodeBody", summary="Store turns", tag="memory"
    ),
    accept=_settled,
)
END_SESSION: Final = Operation(
    "end-session",
    AboutSession,
    # A union is no type to mypy, but is one to Pydantic.
    cast("type[SessionSummary | None]", SessionSummary | None),
    "Its consolidation follows in the background; null if it was not running.",
    access=Access.WRITE,
    http=Http(path="sessions/{session_id}/end", summary="End a session", tag="memory"),
)
WORKING_MEMORY: Final = Operation(
    "working-memory",
    WorkingMemory,
    list[RememberedTurn],
    "The recent turns of a running session, oldest first; empty if it does not run.",
    access=Access.READ,
    http=Http(
        "GET",
        "sessions/{session_id}/working-memory{?include_test}",
        summary="Recent turns",
        tag="memory",
    ),
)
CONSOLIDATE: Final = Operation(
    "consolidate",
    Consolidate,
    ConsolidationReport,
    "Answers when it is done.",
    access=Access.ADMIN,
    http=Http(summary="Consolidate now", tag="memory"),
)


# --- who carries it out


class TurnHandlers:
    """Writes turns through their session's workflow, one update at a time, and has them read.

    Args:
        gateway: Reaches the workflows.
        repository: Says whether the user was erased.
        settings: Limits of what one update carries.
        clock: The present.
        embedder: Identity of the store's embedder; workers of another store refuse the turns.
        run_url: Where the Temporal UI shows a run.
        ready: Loads what storing needs in this process: the store is given seconds for it.

    Attributes:
        running: Counts sessions.
    """

    def __init__(
        self,
        gateway: WorkflowGateway,
        repository: MemoryRepository,
        settings: Settings,
        clock: Clock,
        embedder: str | None = None,
        run_url: Callable[[str, str | None], str | None] = lambda *_: None,
        ready: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._ready = ready
        self._gateway = gateway
        self._clock = clock
        self._dating = TurnDating(clock)
        self._run_url = run_url
        self._repository = repository
        self._embedder = embedder
        self._limits = BatchLimits(settings.max_batch_bytes, settings.max_turns_per_update)
        self._writers: dict[tuple[Scope, str], SessionWriter] = {}
        self.running = RunningQuota(
            "sessions",
            settings.max_running_sessions,
            timedelta(minutes=settings.session_idle_minutes),
            "End sessions that are over; one that is idle ends by itself.",
        )

    @handles(ENCODE)
    async def encode(self, scope: Scope, asked: Encode) -> Receipt:
        """Store turns; returns when they are stored and searchable.

        Raises:
            ConflictingMessage: a message id was used before with other content.
            TemporalUnavailable: no acknowledgement came in time.
            TooManyRequests: too many sessions of this user may be running.
        """
        self.running.admit(scope, asked.session_id)
        # Before anything is waited for: in the order in which they came.
        turns = self._dating.dated(scope, asked.session_id, asked.turns)
        if self._ready is not None:
            await self._ready()
        call = EncodeCall(
            turns=turns,
            extract_facts=asked.extract_facts,
            is_test=asked.is_test,
            embedder=self._embedder,
        )
        answers: list[Acknowledged] = []
        # Part after part: what follows a part that is refused is not stored either.
        for part in split_call(call, self._limits):
            with awaited():
                answer = await self._writer(scope, asked.session_id).submit(part)
            if answer.outcome.error is not None:
                raise error_from_dict(answer.outcome.error)
            answers.append(answer)
        workflow_id = self._gateway.session_id(scope, asked.session_id)
        run_id = answers[-1].run_id
        url = self._run_url(workflow_id, run_id)
        return _receipt(answers, RunLink(workflow_id=workflow_id, run_id=run_id, url=url))

    @handles(END_SESSION)
    async def end_session(self, scope: Scope, asked: AboutSession) -> SessionSummary | None:
        """End a session; None if it was not running."""
        self.running.ended(scope, asked.session_id)
        return await self._gateway.end_session(scope, asked.session_id)

    @handles(WORKING_MEMORY)
    async def working_memory(self, scope: Scope, asked: WorkingMemory) -> list[RememberedTurn]:
        """The recent turns of a running session that have not expired; empty if it does not run."""
        held = await self._gateway.working_memory(
            scope, asked.session_id, include_test=asked.include_test
        )
        now = self._clock()
        return [turn for turn in held if not turn.has_expired(now)]

    @handles(CONSOLIDATE)
    async def consolidate(self, scope: Scope, asked: Consolidate) -> ConsolidationReport:
        """Run consolidation now and wait for it, or say what it would do."""
        request = ConsolidationRequest(reason="asked for", population=asked.population)
        with wanted():
            return await self._gateway.consolidate(scope, request, dry_run=asked.dry_run)

    async def close(self) -> None:
        """Wait a few seconds for what was submitted."""
        writers = list(self._writers.values())
        await asyncio.gather(*(writer.close(_CLOSING_PATIENCE) for writer in writers))

    def _writer(self, scope: Scope, session_id: str) -> SessionWriter:
        key = (scope, session_id)
        if key not in self._writers:

            async def send(request: EncodeRequest) -> EncodeReply:
                # Read once: what is sent again after the user was erased is still of before.
                epoch = await self._repository.epoch(scope)
                sent = request.model_copy(update={"epoch": epoch})
                return await self._gateway.encode(scope, session_id, sent)

            self._writers[key] = SessionWriter(
                send, self._limits, on_idle=partial(self._forget_writer, key)
            )
        return self._writers[key]

    def _forget_writer(self, key: tuple[Scope, str]) -> None:
        self._writers.pop(key, None)


def _receipt(answers: Sequence[Acknowledged], run: RunLink) -> Receipt:
    turns = [turn for answer in answers for turn in answer.outcome.turns]
    return Receipt(
        episode_ids=tuple(turn.episode_id for turn in turns),
        fact_ids=tuple(dict.fromkeys(key for turn in turns for key in turn.fact_ids)),
        negation_ids=tuple(dict.fromkeys(key for turn in turns for key in turn.negation_ids)),
        ids_left_out=sum(turn.ids_left_out for turn in turns),
        signal=max((turn.signal for turn in turns), key=lambda s: s.rank, default=Signal.NONE),
        buffered=answers[-1].buffered,
        workflow_id=run.workflow_id,
        run=run,
        forgotten_ids=tuple(turn.episode_id for turn in turns if turn.forgotten),
    )
