"""Sending turns to one session, batched, in order, one update at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from engram.client.batching import BatchLimits, call_size, take_batch
from engram.contracts.sessions import CallOutcome, EncodeCall, EncodeReply, EncodeRequest

Send = Callable[[EncodeRequest], Awaitable[EncodeReply]]


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """One call's outcome, and how many turns of the session wait for extraction."""

    outcome: CallOutcome
    buffered: int


@dataclass(slots=True)
class _Waiting:
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

    def __init__(self, send: Send, limits: BatchLimits, on_idle: Callable[[], None]) -> None:
        self._send = send
        self._limits = limits
        self._on_idle = on_idle
        self._queue: deque[_Waiting] = deque()
        self._task: asyncio.Task[None] | None = None

    def submit(self, call: EncodeCall) -> asyncio.Future[Acknowledged]:
        """Queue a call; the future resolves when it is acknowledged or refused."""
        done: asyncio.Future[Acknowledged] = asyncio.get_running_loop().create_future()
        self._queue.append(_Waiting(call, call_size(call), done))
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
            except BaseException as error:
                _fail(batch, error)
                if not isinstance(error, Exception):
                    _fail(self._queue, error)
                    self._task = None
                    raise
            else:
                _answer(batch, reply)
        self._task = None
        self._on_idle()

    def _take(self) -> list[_Waiting]:
        """The next batch, without callers that gave up before their turn."""
        count = take_batch((item.size for item in self._queue), self._limits)
        taken = [self._queue.popleft() for _ in range(count)]
        return [item for item in taken if not item.done.cancelled()]


def _answer(batch: list[_Waiting], reply: EncodeReply) -> None:
    for item, outcome in zip(batch, reply.outcomes, strict=True):
        if not item.done.done():
            item.done.set_result(Acknowledged(outcome, reply.buffered))


def _fail(batch: list[_Waiting] | deque[_Waiting], error: BaseException) -> None:
    for item in batch:
        if item.done.done():
            continue
        if isinstance(error, asyncio.CancelledError):
            item.done.cancel()
        else:
            item.done.set_exception(error)
