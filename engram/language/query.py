"""What a question asks for: about whom, what kind of thing, which time."""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from engram.language.text import BARE_WORDS, SMALL_WORDS

# --- the time that a question names: "in May 2023", "last week", "3 days ago", "on 5 July"

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


# --- what a question asks for: of whom, for what kind of thing, of which time
#
# Rules of English, none of them needed: what they do not see changes no order.

_FIRST_PERSON = frozenset({"i", "me", "my", "mine", "myself", "we", "us", "our", "ours"})
_SECOND_PERSON = frozenset({"you", "your", "yours", "yourself"})
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
    words = set(BARE_WORDS.findall(query.casefold()))
    if words & _FIRST_PERSON:
        words.add(_USER)
    if words & _SECOND_PERSON:
        words.add(_ASSISTANT)
    kinds = {Asked.TIME: _TIME, Asked.NUMBER: _NUMBER, Asked.NAME: _NAME}
    return Analysis(
        subjects=frozenset(words - SMALL_WORDS),
        asked=frozenset(kind for kind, pattern in kinds.items() if pattern.search(query)),
        period=period_named(query, now),
    )


# --- whether a text holds the kind of thing that is asked for, by its looks

_TIME_CUE = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|ago|last|next|since|recently|just|days?|weeks?|weekend"
    r"|months?|years?|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|june"
    r"|july|august|september|october|november|december|(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_NUMBER_CUE = re.compile(
    r"\b(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|once|twice|several|couple|dozen)\b",
    re.IGNORECASE,
)
# A capital that does not begin a sentence, or words in quotation marks.
_NAME_CUE = re.compile(r"(?<=[^\W\d_A-Z,;] |[a-z,;] )[A-Z][a-z]+|[\"\u201c][^\"\u201d]+[\"\u201d]")
_PATTERNS = {Asked.TIME: _TIME_CUE, Asked.NUMBER: _NUMBER_CUE, Asked.NAME: _NAME_CUE}


def holds_cue(text: str, asked: frozenset[Asked]) -> bool:
    """Whether ``text`` holds a thing of one of the kinds."""
    return any(_PATTERNS[kind].search(text) for kind in asked)
