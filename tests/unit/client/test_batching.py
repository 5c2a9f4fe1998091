"""Updates stay within the server's limits, whatever callers hand over."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from engram.contracts.session import EncodeCall
from engram.domain.turns import Turn
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
        Turn(message_id="m", role="user", content=c * 100, timestamp=NOW) for c in ("a", "\x01")
    )
    assert wire_size(escaped) == wire_size(plain) + 500


WIRE: dict[str, Any] = {
    "message_id": "m",
    "role": "user",
    "content": "hi",
    "speaker": None,
    "timestamp": "2026-03-01T12:00:00Z",
    "metadata": {},
    "tags": [],
    "importance": None,
}
"""A turn as clients and workers of every version write it."""


def test_a_turn_crosses_the_wire_with_the_fields_that_it_always_had() -> None:
    """What older workers read is what is sent, and what older clients sent is read."""
    call = EncodeCall.model_validate_json(json.dumps({"turns": [WIRE]}))
    assert call.model_dump(mode="json")["turns"] == [WIRE]
    assert call.turns == (Turn.model_validate_json(json.dumps(WIRE)),)


def test_a_worker_reads_past_a_field_of_a_turn_that_a_newer_client_sent() -> None:
    """The worker leaves it out; an application that misspells a field is told."""
    newer = json.dumps({**WIRE, "mood": "glad"})
    assert EncodeCall.model_validate_json(f'{{"turns": [{newer}]}}').turns[0].content == "hi"
    with pytest.raises(ValidationError, match="mood"):
        Turn.model_validate_json(newer)


@pytest.mark.parametrize("missing", ["message_id", "timestamp"])
def test_no_turn_is_sent_without_an_id_or_a_time(missing: str) -> None:
    """What is open is filled in before anything is sent, so that sent twice is stored once."""
    turn = Turn.model_validate_json(json.dumps({**WIRE, missing: None}))
    with pytest.raises(ValidationError, match="a message id and a timestamp"):
        EncodeCall(turns=(turn,))


@pytest.mark.parametrize("missing", ["message_id", "timestamp", "role", "content"])
def test_no_turn_is_read_that_leaves_something_open(missing: str) -> None:
    """Nobody is taken for the user because nothing says who speaks."""
    given = {name: value for name, value in WIRE.items() if name != missing}
    with pytest.raises(ValidationError, match=missing.replace("_", " ")):
        EncodeCall.model_validate_json(json.dumps({"turns": [given]}))
