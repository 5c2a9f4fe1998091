"""Whether a text holds the kind of thing that is asked for, by its looks."""

from __future__ import annotations

import re

from engram.recall.analysis import Asked

_TIME = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|last|next|since|recently|just|days?|weeks?|weekend"
    r"|months?|years?|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june"
    r"|july|august|september|october|november|december|(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"\b(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|once|twice|several|couple|dozen)\b",
    re.IGNORECASE,
)
# A capital that does not begin a sentence, or words in quotation marks.
_NAME = re.compile(r"(?<=[^\W\d_A-Z,;] |[a-z,;] )[A-Z][a-z]+|[\"\u201c][^\"\u201d]+[\"\u201d]")
_PATTERNS = {Asked.TIME: _TIME, Asked.NUMBER: _NUMBER, Asked.NAME: _NAME}


def holds_cue(text: str, asked: frozenset[Asked]) -> bool:
    """Whether ``text`` holds a thing of one of the kinds."""
    return any(_PATTERNS[kind].search(text) for kind in asked)
