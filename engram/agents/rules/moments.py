"""When something began, as far as a sentence says so plainly."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import cache

from engram.agents.rules.vocabulary import alternatives, vocabulary

_YEAR = re.compile(r"\b(?:in|since|back\s+in)\s+(?:early\s+|late\s+|mid-?)?(19\d\d|20\d\d)\b", re.I)
_LAST = re.compile(r"\b(?:last)\s+(year|month|week)\b|\byesterday\b", re.I)
_AGO = re.compile(
    r"\b(a|an|one|two|three|four|five|six|seven|eight|nine|ten|\d{1,2})\s+"
    r"(day|week|month|year)s?\s+ago\b",
    re.I,
)
_NUMBERS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
}
_DAYS = {"day": 1, "week": 7}


def began(sentence: str, said_at: datetime) -> datetime | None:
    """The moment, in the turn's own offset; None if the sentence names none.

    A month without a year is the latest one that has begun. Months and years
    stand for their first day.
    """
    return _in_month(sentence, said_at) or _in_year(sentence, said_at) or _ago(sentence, said_at)


def _in_month(sentence: str, said_at: datetime) -> datetime | None:
    found = _month().search(sentence)
    if found is None:
        return None
    number = vocabulary().months.index(found.group(1).casefold()) + 1
    # Only "May" is also a verb, and never after "in".
    year = int(found.group(2)) if found.group(2) else said_at.year
    if not found.group(2) and number > said_at.month:
        year -= 1
    return _past(_first(said_at, year, number), said_at)


def _in_year(sentence: str, said_at: datetime) -> datetime | None:
    found = _YEAR.search(sentence)
    return _past(_first(said_at, int(found.group(1)), 1), said_at) if found else None


def _ago(sentence: str, said_at: datetime) -> datetime | None:
    found = _AGO.search(sentence)
    if found:
        count = _NUMBERS.get(found.group(1).casefold()) or int(found.group(1))
        return _back(said_at, count, found.group(2).casefold())
    last = _LAST.search(sentence)
    if last is None:
        return None
    unit = (last.group(1) or "day").casefold()
    if unit == "year":
        return _first(said_at, said_at.year - 1, 1)
    return _back(said_at, 1, unit)


def _back(said_at: datetime, count: int, unit: str) -> datetime:
    if unit in _DAYS:
        return said_at - timedelta(days=count * _DAYS[unit])
    months = said_at.year * 12 + said_at.month - 1 - count * (12 if unit == "year" else 1)
    return _first(said_at, months // 12, months % 12 + 1)


def _first(said_at: datetime, year: int, month: int) -> datetime:
    return datetime(year, month, 1, tzinfo=said_at.tzinfo)


def _past(moment: datetime, said_at: datetime) -> datetime | None:
    return moment if moment <= said_at else None


@cache
def _month() -> re.Pattern[str]:
    months = alternatives(vocabulary().months)
    return re.compile(
        rf"\b(?:in|since|last|back\s+in|this\s+past)\s+(?:early\s+|late\s+|mid-?)?({months})\b(?:,?\s+(?:of\s+)?(\d{{4}}))?",
        re.I,
    )
