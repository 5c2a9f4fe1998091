"""Whether the words around a date speak of the past or of what is to come."""

from __future__ import annotations

import re
from enum import Enum

from engram.domain.word_forms import IRREGULAR_PARTICIPLES, is_past


class Tense(Enum):
    """What the verb nearest to a date says."""

    PAST = "past"
    PERFECT = "perfect"
    FUTURE = "future"
    HABIT = "habit"
    UNTOLD = "untold"


_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_CLAUSE_END = re.compile(
    r"[.!?;:\n()]|,|\s-\s|\b(?:and|but|because|so|then|which|when|while|or|"
    r"although|though)\b"
)
_SENTENCE_END = re.compile(r"[.!?;\n]")
_FUTURE = frozenset(
    "will shall won't gonna tomorrow let's must should may might can can't cannot could "
    "need plan plans planning hope hopes hoping want wants due until".split()
)
_PAST = frozenset("was were wasn't weren't did didn't had hadn't ago".split())
_PRESENT_BE = frozenset(
    "is are am be being i'm it's he's she's that's there's isn't aren't get gets".split()
)
_HAVE = frozenset("have has haven't hasn't".split())
_HABIT = frozenset(
    "usually always every often normally typically generally sometimes each never rarely "
    "most".split()
)
_REACH = 160


def tense_at(low: str, start: int, end: int) -> Tense:
    """The tense of the verb nearest to ``low[start:end]``, before it rather than after.

    The clause is looked at first, then the sentence.
    """
    for boundary in (_CLAUSE_END, _SENTENCE_END):
        before, after = _around(low, start, end, boundary)
        habits = _HABIT.intersection(before) | _HABIT.intersection(after)
        if habits:
            return Tense.HABIT
        found = _last(before) or _first(after)
        if found is not None:
            return found
    return Tense.UNTOLD


def _around(
    low: str, start: int, end: int, boundary: re.Pattern[str]
) -> tuple[list[str], list[str]]:
    head = low[max(0, start - _REACH) : start]
    begin = max((match.end() for match in boundary.finditer(head)), default=0)
    tail = low[end : end + _REACH]
    stop = boundary.search(tail)
    return _WORD.findall(head[begin:]), _WORD.findall(tail[: stop.start() if stop else None])


def _last(words: list[str]) -> Tense | None:
    for index in range(len(words) - 1, -1, -1):
        if (found := _mark(words, index)) is not None:
            return found
    return None


def _first(words: list[str]) -> Tense | None:
    for index in range(len(words)):
        if (found := _mark(words, index)) is not None:
            return found
    return None


def _mark(words: list[str], index: int) -> Tense | None:
    word = words[index]
    before = words[max(0, index - 2) : index]
    going_to = word == "going" and words[index + 1 : index + 2] == ["to"]
    if word in _FUTURE or word.endswith("'ll") or going_to:
        return Tense.FUTURE
    if word in _PAST:
        return Tense.PAST
    if is_past(word) or (word in IRREGULAR_PARTICIPLES and _has_have(before)):
        return _participle(before)
    arranged = word.endswith("ing") and _has_be(before, ("'re", "'m", "'s"))
    return Tense.FUTURE if arranged else None


def _participle(before: list[str]) -> Tense:
    if _has_have(before):
        return Tense.PERFECT
    # "It's scheduled for Friday" lies ahead.
    return Tense.FUTURE if _has_be(before, ("'re", "'m")) else Tense.PAST


def _has_be(words: list[str], endings: tuple[str, ...]) -> bool:
    return any(word in _PRESENT_BE or word.endswith(endings) for word in words)


def _has_have(words: list[str]) -> bool:
    return any(word in _HAVE or word.endswith("'ve") for word in words)
