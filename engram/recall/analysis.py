"""What a question asks for: of whom, for what kind of thing, of which time.

Rules of English, none of them needed: what they do not see changes no order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from engram.recall.periods import Period, period_named

_WORD = re.compile(r"[^\W_]+")
_FIRST_PERSON = frozenset({"i", "me", "my", "mine", "myself", "we", "us", "our", "ours"})
_SECOND_PERSON = frozenset({"you", "your", "yours", "yourself"})
_NO_SUBJECT = frozenset(
    "a an the is are was were do does did has have had what who where when which how why of in on "
    "at to for with and or".split()
)
_USER, _ASSISTANT = "user", "assistant"
_TIME = re.compile(
    r"\b(when|how long|since when|what (?:date|day|month|year|time)"
    r"|which (?:date|day|week|month|year))\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\bhow (?:many|much|old|often|far|big|tall)\b", re.IGNORECASE)
_NAME = re.compile(r"\b(who|whom|whose|where|which|names?|named|called|titles?)\b", re.IGNORECASE)


class Asked(StrEnum):
    """A kind of thing that can be asked for."""

    TIME = "time"
    NUMBER = "number"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Analysis:
    """A question, understood as far as it goes.

    Attributes:
        subjects: Words that may name whom or what it is about, in lower case, with
            "user" for whoever asks of himself.
        asked: The kinds of thing it asks for.
        period: The time it names; None if it names none.
    """

    subjects: frozenset[str]
    asked: frozenset[Asked]
    period: Period | None


def analyse(query: str, now: datetime) -> Analysis:
    """What ``query`` asks for, asked at ``now``."""
    words = set(_WORD.findall(query.casefold()))
    if words & _FIRST_PERSON:
        words.add(_USER)
    if words & _SECOND_PERSON:
        words.add(_ASSISTANT)
    kinds = {Asked.TIME: _TIME, Asked.NUMBER: _NUMBER, Asked.NAME: _NAME}
    return Analysis(
        subjects=frozenset(words - _NO_SUBJECT),
        asked=frozenset(kind for kind, pattern in kinds.items() if pattern.search(query)),
        period=period_named(query, now),
    )
