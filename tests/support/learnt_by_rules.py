"""What the language rules make of a few turns of one talk."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from engram.agents.requests import ExtractionRequest, TurnView
from engram.agents.rules import extract

SAID = datetime(2026, 1, 8, 10, tzinfo=UTC)


def learnt(*said: str) -> list[str]:
    """What the last of these turns of one talk is taken to say."""
    *before, last = (
        TurnView(
            alias=f"e{number}",
            role="user",
            speaker=None,
            said_at=SAID + timedelta(minutes=number),
            content=words,
        )
        for number, words in enumerate(said, start=1)
    )
    asked = ExtractionRequest(turns=(last,), before=tuple(before))
    return [one.content for one in extract(asked).statements]
