"""How urgently a turn wants to be consolidated, told by local rules."""

from __future__ import annotations

import re
from functools import cache

from engram.domain.buffer import Signal
from engram.language.text import fold, plain
from engram.language.vocabulary import load

# What decides stands early in a turn; past this a turn is a document.
_READ = 4000
_PIECE = re.compile(r"[.!?,;:\n\u2026]+\s*|\s-\s|[\U0001f300-\U0001faff\u2600-\u27bf\ufe0f]+")
_MOST_PIECES = 6
_WORD_CHARACTER = re.compile(r"\w")


@cache
def _any_of(level: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{expression})" for expression in load("signals")[level]))


def scan(turn_text: str, role: str) -> Signal:
    """The signal of one turn.

    HIGH: corrections, requests to remember, identity, decisions, what ended.
    MEDIUM: preferences, facts about the user and theirs, plans, contact details.
    LOW: some content. NONE: small talk, and whatever is not said by the user:
    an assistant's words do not ask for consolidation.

    Args:
        turn_text: The turn; of a long one the beginning counts.
        role: user, assistant, system or tool.
    """
    if role != "user":
        return Signal.NONE
    if is_small_talk(turn_text):
        return Signal.NONE
    low = _low(turn_text)
    asked = low.endswith("?") and not re.search(r"[.!]\s", low)
    if not asked and _any_of("high").search(low):
        return Signal.HIGH
    if _any_of("medium").search(low):
        return Signal.MEDIUM
    return Signal.LOW


def is_small_talk(text: str) -> bool:
    """Whether a turn is all greeting, thanks or agreement: "Okay, thanks a lot!"."""
    low = _low(text)
    pieces = [piece.strip() for piece in _PIECE.split(low) if _WORD_CHARACTER.search(piece)]
    if len(pieces) > _MOST_PIECES:
        return False
    return all(_small_talk().fullmatch(piece) for piece in pieces)


def _low(text: str) -> str:
    return " ".join(fold(plain(text[:_READ])).split())


@cache
def _small_talk() -> re.Pattern[str]:
    one = _any_of("small_talk").pattern
    return re.compile(f"(?:{one})(?: (?:{one})){{0,2}}")
