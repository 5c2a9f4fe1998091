"""One update in flight per session; what waits goes together; nobody is left waiting."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest
from structlog.testing import capture_logs

from engram.contracts.session import CallOutcome, EncodeCall, EncodeReply, EncodeRequest
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.errors import TemporalUnavailable
from engram.operations.session_writer import BatchLimits, SessionWriter, TurnDating
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


class Said:
    """Turns without a time, as they are dated; the clock is set from outside."""

    def __init__(self) -> None:
        self.now = NOW
        self._dating = TurnDating(lambda: self.now)

    def __call__(self, *texts: str, session_id: str = "s1", user: str = "ada") -> list[datetime]:
        """Their times."""
        turns = tuple(Turn(content=text) for text in texts)
        dated = self._dating.dated(Scope.of("default", user), session_id, turns)
        return [one.timestamp for one in dated if one.timestamp is not None]


def test_a_clock_that_was_years_ahead_dates_no_turn_once_it_is_right() -> None:
    """Turns of one call keep their order; a step back of a second is followed, years are not."""
    said = Said()
    said.now = NOW + timedelta(days=3650)
    said("said too late")
    said.now = NOW
    first, second = said("one", "two")
    assert first == NOW
    assert first < second
    said.now = NOW - timedelta(seconds=1)
    (third,) = said("three", session_id="s2")
    assert second < third < NOW + timedelta(seconds=1)


def test_a_turn_is_never_older_than_the_one_before_it_in_its_session() -> None:
    """After an hour back, every session goes on where it was; a new one, or another's, is now."""
    said = Said()
    (first,) = said("I live in Porto.")
    (aside,) = said("I like tea.", session_id="s2")
    said.now = NOW - timedelta(hours=1)
    second, third = said("I moved to Lisbon.", "I like it.")
    assert first < second < third < first + timedelta(seconds=1)
    assert said("Hello.", user="bob") == [said.now]
    assert aside < said("I like coffee, too.", session_id="s2")[0]
    assert third < said("It rains.")[0] < first + timedelta(seconds=1)


def test_a_time_of_its_own_is_kept() -> None:
    """It is what the application says, and moves no turn that has none."""
    dating, scope = TurnDating(lambda: NOW), Scope.of("default", "ada")
    given = NOW + timedelta(hours=3)
    turns = (Turn(content="one", timestamp=given), Turn(content="two"))
    assert [one.timestamp for one in dating.dated(scope, "s1", turns)] == [given, NOW]


def test_a_clock_that_was_set_back_is_told_of_once() -> None:
    """With how far; a step of a second is no news."""
    said = Said()
    with capture_logs() as lines:
        for back in (0, 1, 3600, 3600):
            said.now = NOW - timedelta(seconds=back)
            said("I like tea.")
    assert [(line["log_level"], line["seconds"]) for line in lines] == [("warning", 3599)]


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
