"""Times of day that stand beside a date."""

from __future__ import annotations

import re
from datetime import time
from typing import NamedTuple

_TIME = (
    r"(?:(?P<hour>\d{1,2})(?:[:.](?P<minute>\d{2}))?\s?(?P<half>am|pm|a\.m\.?|p\.m\.?)(?!\w)"
    r"|(?P<hour24>\d{1,2}):(?P<minute24>\d{2})(?::\d{2})?(?![\w:])"
    r"|(?P<noon>noon|midday)\b"
    r"|(?P<bare>\d{1,2})(?:\s?o'clock)?(?![\w:%]|[.,]\d|-\d|"
    r"\s?(?:st|nd|rd|th|people|of us|euros|dollars|percent|degrees|km|miles)\b))"
)
_AFTER = re.compile(rf"(?:,?\s(?:at|@)\s?|,?\s|\sat about\s){_TIME}")
_BEFORE = re.compile(rf"(?:\bat\s|@\s?|\b){_TIME},?\s(?:on\s)?\Z")
_PART = re.compile(r"\s(?P<part>morning|afternoon|evening|night|lunchtime|lunch)(?!\w)")
_NOON, _HOURS = 12, 24
_MINUTES = 60
_EARLIEST_MORNING_GUESS = 8
_REACH = 24


class Clock(NamedTuple):
    """A time of day and the stretch of text it was taken from."""

    at: time | None
    start: int
    end: int


def beside(low: str, start: int, end: int, *, part: str | None = None) -> Clock:
    """The time of day next to ``low[start:end]``, with the stretch widened over it.

    A bare "at 7" counts only where a part of the day says which half it is.
    """
    words = _PART.match(low, end)
    if words is not None:
        part = words["part"]
        end = words.end()
    after = _AFTER.match(low, end)
    # "on Friday 8" names no hour, "on Friday evening at 8" does.
    named = after is not None and (not after["bare"] or " at" in after.group() or "@" in after[0])
    if after is not None and named and (at := _time(after, part)) is not None:
        return Clock(at, start, after.end())
    window = max(0, start - _REACH)
    before = _BEFORE.search(low[window:start])
    if before is not None and not before["bare"]:
        at = _time(before, part)
        if at is not None:
            return Clock(at, window + before.start(), end)
    return Clock(None, start, end)


def _time(match: re.Match[str], part: str | None) -> time | None:
    if match["noon"]:
        return time(_NOON)
    if match["half"]:
        hour = int(match["hour"])
        if not 1 <= hour <= _NOON:
            return None
        return _valid(hour % _NOON + (_NOON if match["half"][0] == "p" else 0), match["minute"])
    hour = int(match["hour24"] or match["bare"])
    minute = match["minute24"]
    if part is not None and 1 <= hour <= _NOON:
        late = part in {"afternoon", "evening", "night"}
        return _valid(hour % _NOON + _NOON if late and hour != _NOON else hour, minute)
    if match["bare"]:
        return None
    # "9:30" without am or pm is read as a 24-hour clock; "7:30" could be either.
    told = hour >= _EARLIEST_MORNING_GUESS or match["hour24"].startswith("0")
    return _valid(hour, minute) if told else None


def _valid(hour: int, minute: str | None) -> time | None:
    minutes = int(minute or 0)
    return time(hour, minutes) if hour < _HOURS and minutes < _MINUTES else None
