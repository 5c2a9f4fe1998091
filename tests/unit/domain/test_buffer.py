"""When a session's buffer is due, and what working memory holds."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from engram.domain.buffer import Buffer, BufferPolicy, RememberedTurn, Signal
from tests.support.clock import NOW

POLICY = BufferPolicy(
    turns=3,
    time=timedelta(minutes=5),
    idle_time=timedelta(minutes=30),
    working_memory_turns=4,
    working_memory_bytes=100,
)


def turn(name: str, content: str = "hello") -> RememberedTurn:
    """A turn with this id."""
    return RememberedTurn(episode_id=name, role="user", content=content, timestamp=NOW)


def test_a_session_that_nobody_configured_has_these_limits() -> None:
    """What docs/settings.md says of a buffer holds where a start by hand leaves it out, too."""
    assert BufferPolicy().model_dump() == {
        "turns": 10,
        "time": timedelta(minutes=5),
        "idle_time": timedelta(minutes=30),
        "working_memory_turns": 50,
        "working_memory_bytes": 262_144,
    }


def test_an_urgent_turn_is_due_at_once() -> None:
    """HIGH asks for extraction now; MEDIUM, LOW and NONE keep buffering."""
    for signal in Signal:
        buffer = Buffer().absorbed([turn("a")], signal, now=NOW, policy=POLICY)
        assert (buffer.due is not None) == (signal is Signal.HIGH)
        assert buffer.waiting == (0 if signal is Signal.HIGH else 1)
        assert buffer.due in {None, "an urgent turn"}


def test_signals_have_names_and_an_order() -> None:
    """They cross Temporal by name, and the strongest of several is the one of highest rank."""
    assert [signal.value for signal in Signal] == ["none", "low", "medium", "high"]
    assert [signal.rank for signal in Signal] == [0, 1, 2, 3]


def test_a_buffer_does_not_change_in_place() -> None:
    """A workflow keeps one and replaces it: nobody changes it behind its back."""
    with pytest.raises(ValidationError, match="frozen"):
        Buffer().waiting = 1  # type: ignore[misc]  # that is the point


def test_a_buffer_of_a_later_version_can_be_read() -> None:
    """A field that this version does not know is passed over; who spoke may be unknown."""
    said = {**turn("a").model_dump(exclude={"speaker"}), "mood": "merry"}
    held = Buffer.model_validate({"working_memory": [said], "colour": "blue"})
    assert held == Buffer(working_memory=(turn("a"),))
    assert held.working_memory[0].speaker is None


def test_nothing_waits_once_it_was_asked_for() -> None:
    """After extraction or the session's end was asked for, nothing becomes overdue any more."""
    waiting = Buffer().absorbed([turn("a")], Signal.LOW, now=NOW, policy=POLICY)
    for asked in (waiting.drained("overdue"), waiting.closing("session ended")):
        assert (asked.waiting, asked.waiting_since) == (0, None)
        assert not asked.overdue(NOW + timedelta(days=1), POLICY)


def test_forgotten_turns_leave_working_memory() -> None:
    """Exactly the named turns go, and what waits is still counted."""
    said = [turn("a"), turn("b")]
    buffer = Buffer().absorbed(said, Signal.LOW, now=NOW, policy=POLICY)
    after = buffer.without({"a", "x"})
    assert after.working_memory == (turn("b"),)
    assert after.waiting == 2


def test_expired_turns_leave_working_memory() -> None:
    """A session that goes on lets go of them, and they take no place of others; all are counted."""
    brief = turn("a").model_copy(update={"expires_at": NOW + timedelta(minutes=1)})
    buffer = Buffer().absorbed([brief, turn("b")], Signal.NONE, now=NOW, policy=POLICY)
    assert buffer.touched(NOW).working_memory == (brief, turn("b"))
    later = NOW + timedelta(minutes=1)
    assert buffer.touched(later).working_memory == (turn("b"),)
    after = buffer.absorbed([turn("c")], Signal.NONE, now=later, policy=POLICY)
    assert after.working_memory == (turn("b"), turn("c"))
    assert after.due == "3 turns wait"


def test_working_memory_holds_exactly_its_bytes() -> None:
    """Turns that fill the bound to the byte stay; one byte more, and the oldest goes."""
    full = [turn("a", "x" * 60), turn("b", "y" * 40)]
    held = Buffer().absorbed(full, Signal.NONE, now=NOW, policy=POLICY).working_memory
    assert [t.episode_id for t in held] == ["a", "b"]
    over = [turn("a", "x" * 61), turn("b", "y" * 40)]
    held = Buffer().absorbed(over, Signal.NONE, now=NOW, policy=POLICY).working_memory
    assert [t.episode_id for t in held] == ["b"]


def test_a_full_buffer_is_due() -> None:
    """The N-th waiting turn asks for extraction, and nothing waits after it."""
    buffer = Buffer()
    for count, name in enumerate("abc", start=1):
        buffer = buffer.absorbed([turn(name)], Signal.LOW, now=NOW, policy=POLICY)
        assert (buffer.due is None) == (count < 3)
    assert buffer.waiting == 0


def test_waiting_is_counted_from_the_first_turn() -> None:
    """The buffer is overdue T after the first waiting turn, however many follow."""
    buffer = Buffer().absorbed([turn("a")], Signal.LOW, now=NOW, policy=POLICY)
    later = NOW + timedelta(minutes=4)
    buffer = buffer.absorbed([turn("b")], Signal.LOW, now=later, policy=POLICY)
    assert buffer.deadline(POLICY) == NOW + POLICY.time
    assert not buffer.overdue(later, POLICY)
    assert buffer.overdue(NOW + POLICY.time, POLICY)


def test_a_turn_sent_again_waits_once() -> None:
    """A turn that working memory holds already changes nothing but the idle clock."""
    buffer = Buffer().absorbed([turn("a")], Signal.LOW, now=NOW, policy=POLICY)
    later = NOW + timedelta(minutes=1)
    again = buffer.absorbed([turn("a")], Signal.HIGH, now=later, policy=POLICY)
    assert again == buffer.touched(later)


def test_closing_asks_once_per_conversation() -> None:
    """A session's end asks for consolidation even if nothing waits, but not twice."""
    assert Buffer().closing("session ended").due is None
    spoken = Buffer().absorbed([turn("a")], Signal.HIGH, now=NOW, policy=POLICY).dispatched()
    closed = spoken.closing("session ended")
    assert closed.due == "session ended"
    assert closed.dispatched().closing("session idle").due is None


def test_idle_counts_from_the_last_touch() -> None:
    """A session is idle when nothing touched it for the idle time."""
    buffer = Buffer().touched(NOW)
    assert not buffer.idle(NOW + timedelta(minutes=29), POLICY)
    assert buffer.idle(NOW + timedelta(minutes=30), POLICY)
    assert buffer.deadline(POLICY) == NOW + POLICY.idle_time
    assert Buffer().deadline(POLICY) is None


def test_test_turns_wait_for_nothing_and_take_no_place() -> None:
    """They are held in mind beside the others; none is due, and no other is pushed out."""
    buffer = Buffer().absorbed([turn("a"), turn("b")], Signal.LOW, now=NOW, policy=POLICY)
    later = NOW + timedelta(minutes=1)
    tests = [turn(f"t{n}").model_copy(update={"is_test": True}) for n in range(9)]
    mixed = buffer.absorbed(tests, Signal.HIGH, now=later, policy=POLICY)
    assert (mixed.waiting, mixed.waiting_since, mixed.due) == (2, NOW, None)
    assert mixed.touched_at == later
    held = [t.episode_id for t in mixed.working_memory]
    assert held == ["a", "b", "t5", "t6", "t7", "t8"]
    only = Buffer().absorbed(tests, Signal.NONE, now=NOW, policy=POLICY)
    assert only.closing("session ended").due is None


@given(st.lists(st.tuples(st.integers(0, 50), st.text(max_size=60)), max_size=40))
def test_working_memory_is_bounded_and_keeps_the_latest(said: list[tuple[int, str]]) -> None:
    """Whatever is said, working memory stays in its bounds and ends with the last fresh turn."""
    buffer = Buffer()
    for number, content in said:
        before = {t.episode_id for t in buffer.working_memory}
        buffer = buffer.absorbed([turn(str(number), content)], Signal.NONE, now=NOW, policy=POLICY)
        held = buffer.working_memory
        assert len(held) <= POLICY.working_memory_turns
        size = sum(len(t.content.encode()) for t in held)
        assert size <= POLICY.working_memory_bytes or len(held) == 1
        if str(number) not in before:
            assert held[-1].episode_id == str(number)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("turns", [0]),
        ("time", [timedelta(0)]),
        ("idle_time", [timedelta(0)]),
        ("working_memory_turns", [0, 501]),
        ("working_memory_bytes", [0, 256 * 1024 + 1]),
    ],
)
def test_a_bound_that_would_hold_nothing_or_too_much_is_refused(
    field: str, values: list[object]
) -> None:
    """Whoever starts a session by hand is told which it is."""
    for value in values:
        with pytest.raises(ValidationError) as refused:
            BufferPolicy.model_validate({field: value})
        assert [error["loc"] for error in refused.value.errors()] == [(field,)]


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("turns", [1]),
        ("working_memory_turns", [1, 500]),
        ("working_memory_bytes", [1, 256 * 1024]),
    ],
)
def test_the_least_and_the_most_that_a_buffer_holds_are_accepted(
    field: str, values: list[int]
) -> None:
    """A session may keep a single turn in mind, and as much as the bounds name."""
    for value in values:
        assert getattr(BufferPolicy.model_validate({field: value}), field) == value
