"""What passes between clients, the session workflow and its activities."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field

from engram.contracts.messages import Message, Population, ScopedMessage, TimedMessage, Timeout
from engram.domain.buffer import Buffer, BufferPolicy, Signal
from engram.domain.turns import Turn

_TURN_FIELDS = frozenset(Turn.model_fields)


def _nothing_open(given: object) -> object:
    """A turn that says all that is needed, without what only a newer version knows of it."""
    needed: tuple[object, ...]
    match given:
        case Turn():
            needed = (given.message_id, given.timestamp)
            lasting = given.expires_in
        case dict():
            needed = (given.get("message_id"), given.get("timestamp"), given.get("role"))
            lasting = given.get("expires_in")
        case _:
            return given
    if None in needed:
        raise ValueError("a turn is sent with its role, a message id and a timestamp")
    if lasting is not None:
        raise ValueError("a turn is sent with the moment at which it ends")
    if isinstance(given, dict) and not _TURN_FIELDS.issuperset(given):
        return {name: value for name, value in given.items() if name in _TURN_FIELDS}
    return given


SettledTurn: TypeAlias = Annotated[Turn, BeforeValidator(_nothing_open)]
"""A turn as it crosses Temporal: sent again, it has the same id and the same time.

Like all messages it may come from a newer version; an application may not misspell a field.
"""


class EncodeCall(Message):
    """What one caller handed over, or a part of it: all of its turns are stored, or none.

    Attributes:
        embedder: Identity of the embedder of the caller's store; None if it does not say.
    """

    turns: tuple[SettledTurn, ...] = Field(min_length=1)
    extract_facts: bool = True
    is_test: bool = False
    embedder: str | None = None


class EncodeRequest(Message):
    """One update of a session: the calls that were waiting, in order.

    Attributes:
        epoch: The user's when the callers handed over; see
            :meth:`engram.ports.MemoryRepository.epoch`.
    """

    calls: tuple[EncodeCall, ...] = Field(min_length=1)
    epoch: int | None = None


class StoredTurn(Message):
    """The receipt of one turn. Storing it again gives the same.

    Attributes:
        ids_left_out: Facts and negations that it does not name, because there are too many.
        forgotten: Whether the user had this very turn forgotten: it is not stored again.
    """

    episode_id: str
    message_id: str
    signal: Signal
    fact_ids: tuple[str, ...] = ()
    negation_ids: tuple[str, ...] = ()
    ids_left_out: int = 0
    new: bool = True
    timestamp: datetime
    forgotten: bool = False


class CallOutcome(Message):
    """What became of one call: its turns' receipts, or the typed error as data."""

    turns: tuple[StoredTurn, ...] = ()
    error: dict[str, Any] | None = None


class EncodeReply(Message):
    """What the session answers to an update, one outcome per call.

    Attributes:
        run_id: The run that stored them; None from an older worker.
    """

    outcomes: tuple[CallOutcome, ...]
    buffered: int
    run_id: str | None = None


class StoreTurnsInput(TimedMessage):
    """Input of the storing activity.

    Attributes:
        first_sequence: Number of the first turn in its session.
        epoch: See :class:`EncodeRequest`.
        after: The turn that was said just before them; None: whoever stores them looks it up.
    """

    session_id: str
    calls: tuple[EncodeCall, ...]
    first_sequence: int
    workflow_id: str
    run_id: str
    epoch: int | None = None
    after: str | None = None


class StoreTurnsOutput(Message):
    """Output of the storing activity, one outcome per call."""

    outcomes: tuple[CallOutcome, ...]


class SessionPolicy(Message):
    """The numbers a session runs by, fixed when it starts so that replays agree.

    Engram's clients send those of their settings; whoever starts one by hand may leave them out.
    """

    buffer: BufferPolicy = BufferPolicy()
    updates_per_run: int = Field(default=500, ge=1, le=1500)
    store_timeout: Timeout = timedelta(seconds=30)


class SessionState(ScopedMessage):
    """All that a session workflow knows; carried whole over continue-as-new."""

    session_id: str
    policy: SessionPolicy = SessionPolicy()
    buffer: Buffer = Buffer()
    turns_accepted: int = 0
    ending: str | None = None
    runs: int = 1


class SessionSummary(Message):
    """What a session leaves in the Temporal UI when it ends."""

    session_id: str
    turns_accepted: int
    ended: str


class ConsolidationRequest(Message):
    """Why a user's memory should be consolidated.

    Attributes:
        population: Whether test turns are meant, or all others: never both.
    """

    reason: str
    session_id: str | None = None
    population: Population = Population.REAL


class RequestConsolidationInput(ScopedMessage):
    """Input of the activity that reaches the user's consolidation by signal-with-start."""

    request: ConsolidationRequest


class EndSession(Message):
    """A caller ends a session."""

    reason: str = "ended by the application"
