"""How callers' turns become updates: one in flight per session, what waits goes together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engram.contracts.sessions import AcceptedTurn, EncodeCall


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """What one update may carry: serialised bytes, and turns."""

    max_bytes: int
    max_turns: int


def wire_size(turn: AcceptedTurn) -> int:
    """Bytes of a turn as it crosses the wire; escapes can multiply its length."""
    return len(turn.model_dump_json().encode())


def split_call(call: EncodeCall, limits: BatchLimits) -> list[EncodeCall]:
    """A call in parts that each fit one update, order kept."""
    parts: list[list[AcceptedTurn]] = [[]]
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
    return _total(call.turns), len(call.turns)


def _total(turns: Sequence[AcceptedTurn]) -> int:
    return sum(wire_size(turn) for turn in turns)
