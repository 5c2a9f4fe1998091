"""Updates stay within the server's limits, whatever callers hand over."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engram.contracts.session import AcceptedTurn
from engram.operations.session_writer import (
    BatchLimits,
    call_size,
    split_call,
    take_batch,
    wire_size,
)
from tests.support.clock import NOW
from tests.support.encode_calls import call_of

CONTENTS = st.lists(st.text(min_size=1, max_size=300), min_size=1, max_size=30)


@given(CONTENTS, st.integers(200, 3000), st.integers(1, 10))
def test_a_split_call_keeps_every_turn_in_order(
    contents: list[str], max_bytes: int, max_turns: int
) -> None:
    """Parts put together are the call; each fits unless a single turn does not."""
    call = call_of(contents)
    parts = split_call(call, BatchLimits(max_bytes, max_turns))
    assert [turn for part in parts for turn in part.turns] == list(call.turns)
    for part in parts:
        size, count = call_size(part)
        assert part.extract_facts is False
        assert count <= max_turns
        assert size <= max_bytes or count == 1


@given(st.lists(st.tuples(st.integers(1, 100), st.integers(1, 5)), min_size=1), st.integers(1, 300))
def test_a_batch_takes_as_many_as_fit_and_at_least_one(
    sizes: list[tuple[int, int]], max_bytes: int
) -> None:
    """What is taken fits, and the next call would not have fitted."""
    limits = BatchLimits(max_bytes, 12)

    def fits(count: int) -> bool:
        taken = sizes[:count]
        return sum(b for b, _ in taken) <= max_bytes and sum(t for _, t in taken) <= 12

    count = take_batch(sizes, limits)
    assert count >= 1
    assert count == 1 or fits(count)
    assert count == len(sizes) or not fits(count + 1)


def test_escapes_count_with_their_real_size() -> None:
    """A control character takes six bytes on the wire, and is counted as six."""
    plain, escaped = (
        AcceptedTurn(message_id="m", role="user", content=c * 100, timestamp=NOW)
        for c in ("a", "\x01")
    )
    assert wire_size(escaped) == wire_size(plain) + 500
