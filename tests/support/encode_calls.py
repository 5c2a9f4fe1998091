"""Calls that encode turns."""

from __future__ import annotations

from engram.contracts.session import EncodeCall
from engram.domain.turns import Turn
from tests.support.clock import NOW


def call_of(contents: list[str]) -> EncodeCall:
    """A call with these turns."""
    return EncodeCall(
        turns=tuple(
            Turn(message_id=str(n), role="user", content=text, timestamp=NOW)
            for n, text in enumerate(contents)
        ),
        extract_facts=False,
    )
