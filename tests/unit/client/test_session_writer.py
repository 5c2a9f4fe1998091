"""One update in flight per session; what waits goes together; nobody is left waiting."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from engram.contracts.session import CallOutcome, EncodeCall, EncodeReply, EncodeRequest
from engram.errors import TemporalUnavailable
from engram.operations.session_writer import BatchLimits, SessionWriter, TurnIntake
from tests.support.clock import NOW
from tests.support.encode_calls import call_of

LIMITS = BatchLimits(max_bytes=100_000, max_turns=6)


class Server:
    """Answers updates when told to, and watches how many are in flight."""

    def __init__(self) -> None:
        self.requests: list[EncodeRequest] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.gate = asyncio.Event()
        self.failure: Exception | None = None

    async def send(self, request: EncodeRequest) -> EncodeReply:
        """Take an update."""
        self.requests.append(request)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        await self.gate.wait()
        self.in_flight -= 1
        if self.failure is not None:
            raise self.failure
        outcomes = tuple(
            CallOutcome(error={"code": "x", "message": call.turns[0].content})
            for call in request.calls
        )
        return EncodeReply(outcomes=outcomes, buffered=len(self.requests))


def named(text: str) -> EncodeCall:
    """A call of one turn."""
    return call_of([text])


def test_a_clock_that_was_years_ahead_dates_no_turn_once_it_is_right() -> None:
    """Turns of one call keep their order; a step back of a second is followed, years are not."""
    present = NOW
    intake = TurnIntake(lambda: present, lambda: "id", max_bytes=100)
    present = NOW + timedelta(days=3650)
    intake.accept(["said too late"], namespace="default")
    present = NOW
    first, second = (one.timestamp for one in intake.accept(["one", "two"], namespace="default"))
    assert first == NOW
    assert second is not None
    assert first < second
    present = NOW - timedelta(seconds=1)
    (third,) = (one.timestamp for one in intake.accept(["three"], namespace="default"))
    assert third is not None
    assert second < third < NOW + timedelta(seconds=1)


async def test_waiting_calls_share_the_next_update() -> None:
    """While one update runs the others wait, then go together, each with its own answer."""
    server, idle = Server(), asyncio.Event()
    writer = SessionWriter(server.send, LIMITS, on_idle=idle.set)
    futures = [writer.submit(named(str(n))) for n in range(10)]
    server.gate.set()
    answers = await asyncio.gather(*futures)
    said = [a.outcome.error["message"] if a.outcome.error else "" for a in answers]
    assert said == [str(n) for n in range(10)]
    assert server.most_in_flight == 1
    assert [len(r.calls) for r in server.requests] == [6, 4]
    assert idle.is_set()


async def test_a_failed_update_fails_its_callers_and_nobody_else() -> None:
    """An error reaches those whose turns were in it; the writer goes on."""
    server = Server()
    writer = SessionWriter(server.send, LIMITS, on_idle=lambda: None)
    server.gate.set()
    server.failure = TemporalUnavailable("down")
    with pytest.raises(TemporalUnavailable):
        await writer.submit(named("a"))
    server.failure = None
    assert (await writer.submit(named("b"))).buffered == 2


async def test_a_caller_that_gives_up_before_its_turn_is_not_sent() -> None:
    """A call that was cancelled while waiting never reaches the server."""
    server = Server()
    writer = SessionWriter(server.send, LIMITS, on_idle=lambda: None)
    first = writer.submit(named("first"))
    await asyncio.sleep(0)
    abandoned, last = writer.submit(named("abandoned")), writer.submit(named("last"))
    abandoned.cancel()
    server.gate.set()
    await asyncio.gather(first, last)
    sent = [call.turns[0].content for request in server.requests for call in request.calls]
    assert sent == ["first", "last"]


async def test_closing_waits_for_what_was_submitted() -> None:
    """After close, every submitted call has its answer."""
    server = Server()
    writer = SessionWriter(server.send, LIMITS, on_idle=lambda: None)
    future = writer.submit(named("a"))
    server.gate.set()
    await writer.close(patience=5)
    assert future.done()


async def test_closing_does_not_wait_for_ever() -> None:
    """An answer that does not come in time fails its caller instead of holding the exit."""
    server = Server()
    writer = SessionWriter(server.send, LIMITS, on_idle=lambda: None)
    future = writer.submit(named("a"))
    await writer.close(patience=0.05)
    assert future.cancelled()
