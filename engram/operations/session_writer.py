"""Turns on their way to a session: checked, batched, sent in order, one update at a time."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import ValidationError

from engram.contracts.session import (
    CallOutcome,
    EncodeCall,
    EncodeReply,
    EncodeRequest,
)
from engram.domain.scope import Scope
from engram.domain.turns import CLOCK_SKEW_ALLOWED, Turn, check_turn, end_of
from engram.errors import InvalidTurn
from engram.language.guarding import UNGUARDED, PersonalDataGuard
from engram.logging import get_logger
from engram.ports import Clock

_log = get_logger("engram.operations")

# --- turns as applications give them, on their way to being stored


class TurnIntake:
    """Checks turns before anything is sent, and gives each an id. Who stores them dates them.

    Args:
        clock: The present.
        new_id: Makes an id for a turn that has none.
        max_bytes: Longest content.
        guard: Masks personal data, where a namespace wants that.
    """

    def __init__(
        self,
        clock: Clock,
        new_id: Callable[[], str],
        *,
        max_bytes: int,
        guard: PersonalDataGuard = UNGUARDED,
    ) -> None:
        self._clock = clock
        self._new_id = new_id
        self._max_bytes = max_bytes
        self._guard = guard

    def accept(
        self, given: str | Turn | Sequence[str | Turn], *, namespace: str
    ) -> tuple[Turn, ...]:
        """The turns as they go to ``namespace``, each with an id.

        Raises:
            InvalidTurn: one of them cannot be kept, or there is none.
        """
        turns = _as_turns(given)
        if not turns:
            raise InvalidTurn("There is no turn to encode.", allowed="at least one turn")
        now = self._clock()
        turns = [_ending(turn, now) for turn in turns]
        for turn in turns:
            check_turn(turn, now=now, max_bytes=self._max_bytes)
        turns = [self._masked(turn, now, namespace) for turn in turns]
        return tuple(self._named(turn) for turn in turns)

    def _masked(self, turn: Turn, now: datetime, namespace: str) -> Turn:
        changes = self._guard.masked(namespace, turn)
        if not changes:
            return turn
        masked = turn.model_copy(update=changes)
        # A token may be longer than what it stands for.
        check_turn(masked, now=now, max_bytes=self._max_bytes)
        return masked

    def _named(self, turn: Turn) -> Turn:
        if turn.message_id:
            return turn
        return turn.model_copy(update={"message_id": self._new_id()})


def _ending(turn: Turn, now: datetime) -> Turn:
    """The turn with the moment at which it ends, so that sent later it ends no later."""
    if turn.expires_in is None:
        return turn
    return turn.model_copy(update={"expires_at": end_of(turn, now), "expires_in": None})


def _as_turns(turns: str | Turn | Sequence[str | Turn]) -> list[Turn]:
    # What is no list is one turn, or none that can be: then it is named as what it is.
    one = isinstance(turns, str | bytes | Turn) or not isinstance(turns, Iterable)
    given: Iterable[object] = [turns] if one else turns
    return [turn if isinstance(turn, Turn) else _user_turn(turn) for turn in given]


def _user_turn(content: object) -> Turn:
    if not isinstance(content, str):
        raise InvalidTurn(
            f"A turn was given as {type(content).__name__}.",
            allowed="a string, an engram.Turn, or a list of these",
        )
    try:
        return Turn(content=content)
    except ValidationError as error:
        raise InvalidTurn(
            "The content of a turn is not valid Unicode text.",
            allowed="text that can be encoded as UTF-8",
            hint="Decode the original bytes with errors='replace'.",
        ) from error


# --- turns that came without a time of their own

_TICK = timedelta(microseconds=1)
# How far a clock that is set back is followed with ticks, so that turns keep their order. One that
# was far ahead and is set right must not date turns for ever.
_FOLLOWED = timedelta(minutes=1)
# Within a session the later statement counts. Workers, whose clock may be behind, refuse what
# lies a day ahead.
_FOLLOWED_IN_A_SESSION = CLOCK_SKEW_ALLOWED - timedelta(hours=1)
_WORTH_A_LINE = timedelta(seconds=5)
_MOST_SESSIONS = 10_000


class TurnDating:
    """Dates turns that have no time of their own, in the order in which they come.

    Args:
        clock: The present.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._read: datetime | None = None
        self._last: datetime | None = None
        self._sessions: OrderedDict[tuple[Scope, str], datetime] = OrderedDict()

    def dated(self, scope: Scope, session_id: str, turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
        """The turns, each with a time: its own, or now.

        A turn that is dated here is later than those of its session that were before it, also
        where the clock was set back meanwhile, by up to 23 hours.
        """
        if all(turn.timestamp is not None for turn in turns):
            return turns
        now, session = self._present(), (scope, session_id)
        return tuple(
            turn
            if turn.timestamp is not None
            else turn.model_copy(update={"timestamp": self._next(now, session)})
            for turn in turns
        )

    def _next(self, now: datetime, session: tuple[Scope, str]) -> datetime:
        before = (
            (self._last, _FOLLOWED),
            (self._sessions.pop(session, None), _FOLLOWED_IN_A_SESSION),
        )
        ahead = [last for last, most in before if last is not None and now <= last <= now + most]
        following = max(ahead) + _TICK if ahead else now
        self._last = self._sessions[session] = following
        while len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return following

    def _present(self) -> datetime:
        now = self._clock()
        if self._read is not None and now < self._read - _WORTH_A_LINE:
            _log.warning(
                "the clock was set back; turns without a time of their own keep their order "
                "within a session, for up to 23 hours",
                seconds=round((self._read - now).total_seconds()),
            )
        self._read = now
        return now


# --- how callers' turns become updates: one in flight per session, what waits goes together


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What one update may carry: serialised bytes, and turns."""

    max_bytes: int
    max_turns: int


def wire_size(turn: Turn) -> int:
    """Bytes of a turn as it crosses the wire; escapes can multiply its length."""
    return len(turn.model_dump_json().encode())


def split_call(call: EncodeCall, limits: BatchLimits) -> list[EncodeCall]:
    """A call in parts that each fit one update, order kept."""
    parts: list[list[Turn]] = [[]]
    size = 0
    for turn in call.turns:
        turn_size = wire_size(turn)
        full = size + turn_size > limits.max_bytes or len(parts[-1]) >= limits.max_turns
        if parts[-1] and full:
            parts.append([])
            size = 0
        parts[-1].append(turn)
        size += turn_size
    return [call.model_copy(update={"turns": tuple(part)}) for part in parts]


def take_batch(sizes: Iterable[tuple[int, int]], limits: BatchLimits) -> int:
    """How many of the waiting calls, given as (bytes, turns), fit one update; at least one."""
    total_bytes = total_turns = count = 0
    for call_bytes, call_turns in sizes:
        total_bytes += call_bytes
        total_turns += call_turns
        if count and (total_bytes > limits.max_bytes or total_turns > limits.max_turns):
            break
        count += 1
    return count


def call_size(call: EncodeCall) -> tuple[int, int]:
    """Bytes and turns of a call."""
    return sum(map(wire_size, call.turns)), len(call.turns)


# --- sending turns to one session, batched, in order, one update at a time

SendUpdate = Callable[[EncodeRequest], Awaitable[EncodeReply]]


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """One call's outcome, how many turns of the session wait for extraction, and in which run."""

    outcome: CallOutcome
    buffered: int
    run_id: str | None = None


@dataclass(slots=True)
class _WaitingCall:
    call: EncodeCall
    size: tuple[int, int]
    done: asyncio.Future[Acknowledged]


class SessionWriter:
    """Keeps at most one update of a session in flight (the server refuses past ten).

    Args:
        send: Makes one update and returns its reply; retries as it sees fit.
        limits: What one update may carry.
        on_idle: Called when nothing waits any more, so that the owner can let go.
    """

    def __init__(self, send: SendUpdate, limits: BatchLimits, on_idle: Callable[[], None]) -> None:
        self._send = send
        self._limits = limits
        self._on_idle = on_idle
        self._queue: deque[_WaitingCall] = deque()
        self._task: asyncio.Task[None] | None = None

    def submit(self, call: EncodeCall) -> asyncio.Future[Acknowledged]:
        """Queue a call; the future resolves when it is acknowledged or refused."""
        done: asyncio.Future[Acknowledged] = asyncio.get_running_loop().create_future()
        self._queue.append(_WaitingCall(call, call_size(call), done))
        if self._task is None:
            self._task = asyncio.create_task(self._drain())
        return done

    async def close(self, patience: float) -> None:
        """Wait until what was submitted is answered; give up after ``patience`` seconds."""
        if self._task is None:
            return
        _, late = await asyncio.wait([self._task], timeout=patience)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late)

    async def _drain(self) -> None:
        while self._queue:
            batch = self._take()
            if not batch:
                continue
            try:
                reply = await self._send(EncodeRequest(calls=tuple(item.call for item in batch)))
                _answer(batch, reply)
            except BaseException as error:
                _fail(batch, error)
                if not isinstance(error, Exception):
                    _fail(self._queue, error)
                    self._task = None
                    raise
        self._task = None
        self._on_idle()

    def _take(self) -> list[_WaitingCall]:
        """The next batch, without callers that gave up before their turn."""
        count = take_batch((item.size for item in self._queue), self._limits)
        taken = [self._queue.popleft() for _ in range(count)]
        return [item for item in taken if not item.done.cancelled()]


def _answer(batch: list[_WaitingCall], reply: EncodeReply) -> None:
    for item, outcome in zip(batch, reply.outcomes, strict=True):
        if not item.done.done():
            item.done.set_result(Acknowledged(outcome, reply.buffered, reply.run_id))


def _fail(batch: list[_WaitingCall] | deque[_WaitingCall], error: BaseException) -> None:
    for item in batch:
        if item.done.done():
            continue
        if isinstance(error, asyncio.CancelledError):
            item.done.cancel()
        else:
            item.done.set_exception(error)
