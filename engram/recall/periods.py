"""The time that a question names: "in May 2023", "last week", "3 days ago", "on 5 July"."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_MONTHS |= {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name}
_MONTH = "|".join(sorted((m for m in _MONTHS if m != "may"), key=len, reverse=True))
_DATE = re.compile(
    rf"(?:\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?"
    rf"\b(?P<month>{_MONTH}|(?<=\bin )may|(?<=\bof )may|(?<=\d )may|may(?=,? \d))\b\.?"
    rf"(?:\s+(?P<day_after>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d))?"
    rf"(?:,?\s+(?P<year>\d{{4}})\b)?",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\b(?:in|during|since|of|year)\s+(?P<year>(?:19|20)\d\d)\b", re.IGNORECASE)
_AGO = re.compile(
    r"\b(?P<count>\d{1,3}|a|an|one|two|three|four|five|six)\s+"
    r"(?P<unit>day|week|month|year)s?\s+ago\b",
    re.IGNORECASE,
)
_NEAR = re.compile(
    r"\b(?P<word>today|yesterday|(?P<which>this|last|past)\s+(?P<unit>week|month|year))\b",
    re.IGNORECASE,
)
_COUNTS = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6}
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}


@dataclass(frozen=True, slots=True)
class Period:
    """From ``begin`` on, before ``end``."""

    begin: datetime
    end: datetime

    def holds(self, moment: datetime) -> bool:
        """Whether the moment lies within."""
        return self.begin <= moment < self.end


def period_named(text: str, now: datetime) -> Period | None:
    """The first time that ``text`` names, seen from ``now``; None if it names none.

    A month without a year is the last one that has begun.
    """
    return _near(text, now) or _ago(text, now) or _dated(text, now) or _of_year(text, now)


def _near(text: str, now: datetime) -> Period | None:
    found = _NEAR.search(text)
    if found is None:
        return None
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    if found["which"] is None:
        begin = today if found["word"].lower() == "today" else today - timedelta(days=1)
        return Period(begin, begin + timedelta(days=1))
    unit, earlier = found["unit"].lower(), found["which"].lower() != "this"
    if unit == "week":
        begin = today - timedelta(days=today.weekday() + (7 if earlier else 0))
        return Period(begin, begin + timedelta(days=7))
    if unit == "month":
        year, month = (now.year, now.month)
        if earlier:
            year, month = (year - 1, 12) if month == 1 else (year, month - 1)
        return _month(year, month, now)
    return _year(now.year - (1 if earlier else 0), now)


def _ago(text: str, now: datetime) -> Period | None:
    found = _AGO.search(text)
    if found is None:
        return None
    word, unit = found["count"].lower(), found["unit"].lower()
    days = (_COUNTS[word] if word in _COUNTS else int(word)) * _DAYS[unit]
    # Nobody counts such times to the day: as much leeway as the unit is long.
    leeway = timedelta(days=max(1.0, _DAYS[unit] / 2))
    try:
        middle = now - timedelta(days=days)
        return Period(middle - leeway, middle + leeway)
    except OverflowError:
        return None


def _dated(text: str, now: datetime) -> Period | None:
    found = _DATE.search(text)
    if found is None:
        return None
    month = _MONTHS[found["month"].lower()]
    year = int(found["year"]) if found["year"] else now.year - (1 if month > now.month else 0)
    day = found["day"] or found["day_after"]
    if day is not None:
        try:
            begin = _midnight(year, month, int(day), now)
            return Period(begin, begin + timedelta(days=1))
        except (ValueError, OverflowError):
            return None
    return _month(year, month, now)


def _of_year(text: str, now: datetime) -> Period | None:
    found = _YEAR.search(text)
    return None if found is None else _year(int(found["year"]), now)


def _month(year: int, month: int, now: datetime) -> Period | None:
    following = (year + 1, 1) if month == _MONTHS["december"] else (year, month + 1)
    try:
        return Period(_midnight(year, month, 1, now), _midnight(*following, 1, now))
    except ValueError:
        return None


def _year(year: int, now: datetime) -> Period | None:
    try:
        return Period(_midnight(year, 1, 1, now), _midnight(year + 1, 1, 1, now))
    except ValueError:
        return None


def _midnight(year: int, month: int, day: int, now: datetime) -> datetime:
    return datetime(year, month, day, tzinfo=now.tzinfo)
