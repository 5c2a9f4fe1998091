"""Calendar arithmetic: number words, clock times, tense, and what relative dates come to."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from enum import Enum
from typing import NamedTuple

from engram.language.text import (
    CLAUSE_END,
    IRREGULAR_PARTICIPLES,
    SPOKEN_WORDS,
    STATEMENT_END,
    is_past,
)

# --- numbers written as words

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
SMALL: dict[str, int] = {
    **{word: value for value, word in enumerate(_UNITS)},
    **{word: 10 * (value + 2) for value, word in enumerate(_TENS)},
    **{
        f"{tens}-{unit}": 10 * (ten + 2) + one
        for ten, tens in enumerate(_TENS)
        for one, unit in enumerate(_UNITS[1:10], start=1)
    },
}
SCALES: dict[str, int] = {
    "hundred": 100,
    "thousand": 1_000,
    "million": 1_000_000,
    "billion": 1_000_000_000,
}
# Longest first, so that a regular expression does not stop at "six" in "sixteen".
WORDS = "|".join(sorted(SMALL, key=len, reverse=True))


def small_number(word: str) -> int | None:
    """The value of "7", "a", "an", "seven" or "twenty-one"; None for anything else."""
    if word in {"a", "an"}:
        return 1
    if word.isascii() and word.isdigit():
        return int(word)
    return SMALL.get(word.replace(" ", "-"))


# --- times of day that stand beside a date

_TIME_OF_DAY = (
    r"(?:(?P<hour>\d{1,2})(?:[:.](?P<minute>\d{2}))?\s?(?P<half>am|pm|a\.m\.?|p\.m\.?)(?!\w)"
    r"|(?P<hour24>\d{1,2}):(?P<minute24>\d{2})(?::\d{2})?(?![\w:])"
    r"|(?P<noon>noon|midday)\b"
    r"|(?P<bare>\d{1,2})(?:\s?o'clock)?(?![\w:%]|[.,]\d|-\d|"
    r"\s?(?:st|nd|rd|th|people|of us|euros|dollars|percent|degrees|km|miles)\b))"
)
_AFTER = re.compile(rf"(?:,?\s(?:at|@)\s?|,?\s|\sat about\s){_TIME_OF_DAY}")
_BEFORE = re.compile(rf"(?:\bat\s|@\s?|\b){_TIME_OF_DAY},?\s(?:on\s)?\Z")
_PART_OF_DAY = re.compile(r"\s(?P<part>morning|afternoon|evening|night|lunchtime|lunch)(?!\w)")
_NOON, _HOURS = 12, 24
_MINUTES = 60
_EARLIEST_MORNING_GUESS = 8
_CLOCK_REACH = 24


class TimeOfDay(NamedTuple):
    """A time of day and the stretch of text it was taken from."""

    at: time | None
    start: int
    end: int


def beside(low: str, start: int, end: int, *, part: str | None = None) -> TimeOfDay:
    """The time of day next to ``low[start:end]``, with the stretch widened over it.

    A bare "at 7" counts only where a part of the day says which half it is.
    """
    words = _PART_OF_DAY.match(low, end)
    if words is not None:
        part = words["part"]
        end = words.end()
    after = _AFTER.match(low, end)
    # "on Friday 8" names no hour, "on Friday evening at 8" does.
    named = after is not None and (not after["bare"] or " at" in after.group() or "@" in after[0])
    if after is not None and named and (at := _time(after, part)) is not None:
        return TimeOfDay(at, start, after.end())
    window = max(0, start - _CLOCK_REACH)
    before = _BEFORE.search(low[window:start])
    if before is not None and not before["bare"]:
        at = _time(before, part)
        if at is not None:
            return TimeOfDay(at, window + before.start(), end)
    return TimeOfDay(None, start, end)


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


# --- whether the words around a date speak of the past or of what is to come


class Tense(Enum):
    """What the verb nearest to a date says.

    INTENDED is the future of what is past: "we agreed to meet on May 3" may be told before that
    day or after it.
    """

    PAST = "past"
    PERFECT = "perfect"
    FUTURE = "future"
    INTENDED = "intended"
    HABIT = "habit"
    UNTOLD = "untold"


_FUTURE_WORDS = frozenset(
    "will shall won't gonna tomorrow let's must should may might can can't cannot could "
    "need plan plans planning hope hopes hoping want wants due until".split()
)
_PAST = frozenset("was were wasn't weren't did didn't had hadn't ago".split())
_PRESENT_BE = frozenset(
    "is are am be being i'm it's he's she's that's there's isn't aren't get gets".split()
)
_HAVE = frozenset("have has haven't hasn't".split())
_HABIT_WORDS = frozenset(
    "usually always every often normally typically generally sometimes each never rarely "
    "most".split()
)
_BEGINS = frozenset("starts begins opens ends finishes closes arrives leaves".split())
_BEFORE_DATES = frozenset("on in from at by for the day a scheduled".split())
_GETS = frozenset("get gets being be".split())
_UNREAL = frozenset("if wish imagine suppose".split())
_UNREAL_REACH = 3
_TENSE_REACH = 160
# "I promised Tom to call on Friday" was said; what was promised lay ahead.
_RESOLVED = frozenset(
    "promised agreed decided planned arranged offered volunteered vowed pledged swore".split()
)
# "Claire told the driver to come on 2 April", "she wanted to see me"; not "I wanted to cry".
_BADE = frozenset("asked told invited reminded urged advised instructed".split())
_US = frozenset("me us".split())
_TO_REACH = 3
# "I agreed to a loan", "I was offered a place to live": nothing was to be done on that day.
_ARTICLES = frozenset("a an the".split())
_NO_VERB = _ARTICLES | set("this that these those it my our your his her its their".split())
# Who "asked me to marry him on May 3", or "to be his girlfriend", did so on that day.
_DONE_AT_ONCE = frozenset("marry dance kiss stop".split())


def tense_at(low: str, start: int, end: int, *, bidden: bool = False) -> Tense:
    """The tense of the verb nearest to ``low[start:end]``, before it rather than after.

    The clause is looked at first, then the sentence. With ``bidden``, what somebody was told to do
    on that day was meant to be done then, as what was promised is.
    """
    for boundary in (CLAUSE_END, STATEMENT_END):
        before, after = _around(low, start, end, boundary)
        if before[-1:] == ["each"] and low.startswith("on ", start):
            # "$90 each on May 3" tells a price, "each May 3" a habit.
            del before[-1]
        habits = _HABIT_WORDS.intersection(before) | _HABIT_WORDS.intersection(after)
        if habits:
            return Tense.HABIT
        found = _dated(before) or _last(before, bidden=bidden) or _first(after)
        if found is not None:
            return found
    return Tense.UNTOLD


# Nothing that a day could be of, and what is never said of a day to come.
_NO_EVENT = _BEFORE_DATES | frozenset(
    "of to and early late morning afternoon evening night around about mid this that mon tue wed "
    "thu fri sat sun monday tuesday wednesday thursday friday saturday sunday".split()
)
_BEHIND = frozenset("since last previous dated back again".split())


def names_event(low: str, start: int, end: int) -> bool:
    """Whether the clause of a date says what is on that day, and has no verb of its own.

    So it is in "the vet called, surgery 12 October", where "called" tells nothing of the surgery.
    """
    before, after = _around(low, start, end, CLAUSE_END)
    told = _dated(before) or _last(before) or _first(after)
    plain = told is None and _BEHIND.isdisjoint(before)
    return plain and not _NO_EVENT.issuperset(before)


def _dated(before: list[str]) -> Tense | None:
    """What a verb in the present says that the date is the date of, whatever was done earlier.

    "I signed up for it, it's on May 3", "we hired her, she starts in June".
    """
    verb = next((word for word in reversed(before) if word not in _BEFORE_DATES), "")
    if verb in _BEGINS:
        return Tense.FUTURE
    return Tense.UNTOLD if verb in _PRESENT_BE and verb not in _GETS else None


def _around(
    low: str, start: int, end: int, boundary: re.Pattern[str]
) -> tuple[list[str], list[str]]:
    head = low[max(0, start - _TENSE_REACH) : start]
    begin = max((match.end() for match in boundary.finditer(head)), default=0)
    tail = low[end : end + _TENSE_REACH]
    stop = boundary.search(tail)
    return SPOKEN_WORDS.findall(head[begin:]), SPOKEN_WORDS.findall(
        tail[: stop.start() if stop else None]
    )


def _last(words: list[str], *, bidden: bool = False) -> Tense | None:
    for index in range(len(words) - 1, -1, -1):
        if (found := _mark(words, index)) is not None:
            said = words[index:]
            if not (_resolves_to_do(said) or (bidden and _bids_to_do(said))):
                return found
            return Tense.FUTURE if found is Tense.PERFECT else Tense.INTENDED
    return None


def _resolves_to_do(words: list[str]) -> bool:
    """Whether they tell what somebody meant to do: "promised Tom to call"."""
    resolved, *whom = words[: _TO_REACH + 1]
    if resolved not in _RESOLVED or "to" not in whom:
        return False
    to = words.index("to")
    return _ARTICLES.isdisjoint(words[:to]) and _NO_VERB.isdisjoint(words[to + 1 : to + 2])


def _bids_to_do(words: list[str]) -> bool:
    """Whether they tell what others were to do: "told the driver to come", "wanted to see me"."""
    bade, *whom = words[: _TO_REACH + 1]
    if "to" not in whom:
        return False
    to = words.index("to")
    verb, *more = words[to + 1 : to + 3] or [""]
    wanted = bade == "wanted" and not _US.isdisjoint(words[1 : to + 3])
    at_once = verb in _DONE_AT_ONCE or (verb == "be" and not _NO_VERB.isdisjoint(more))
    return (wanted or bade in _BADE) and verb not in _NO_VERB and not at_once


def _first(words: list[str]) -> Tense | None:
    for index in range(len(words)):
        if (found := _mark(words, index)) is not None:
            return found
    return None


def _mark(words: list[str], index: int) -> Tense | None:
    word = words[index]
    before = words[max(0, index - 2) : index]
    going_to = word == "going" and words[index + 1 : index + 2] == ["to"]
    if word in _FUTURE_WORDS or word.endswith("'ll") or going_to:
        return Tense.FUTURE
    # "If I ran it in October" tells of nothing that was.
    unreal = not _UNREAL.isdisjoint(words[max(0, index - _UNREAL_REACH) : index])
    if unreal and (word in _PAST or is_past(word)):
        return Tense.UNTOLD
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


# --- calendar arithmetic behind relative dates: what a day, week, month or year comes to

MONTH_NAMES = (
    "january february march april may june july august september october november december"
).split()
MONTHS = tuple(name[:3] for name in MONTH_NAMES)
# As regular expressions over lower-case text; the short ones end as words do.
MONTH_NAME = rf"(?:{'|'.join(MONTH_NAMES)})"
_SHORT = "|".join(["sept", *(name for name in MONTHS if name not in MONTH_NAMES)])
MONTH = rf"(?:{MONTH_NAME}|(?:{_SHORT})\b\.?)"
WEEKDAY = r"(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAYS_IN_WEEK = 7
_MONTHS_IN_YEAR = 12
_SOON = timedelta(days=92)


@dataclass(frozen=True, slots=True)
class When:
    """A resolved date.

    Attributes:
        value: Canonical, from "2024" to "2024-05-03T18:30".
        day: The day it begins on.
        clock: The time of that day, where one is named.
        until: The day after the last one; None where the value itself says how long it is.
        counted: The unit that it was counted in, "3 weeks ago"; None for any other date.
    """

    value: str
    day: date
    clock: time | None = None
    counted: str | None = None
    until: date | None = None

    @property
    def unit(self) -> str:
        """How long it is: "day" for all that is no week, month or year."""
        if "W" in self.value:
            return "week"
        return {0: "year", 1: "month"}.get(self.value.count("-"), "day")

    def begins(self, zone: tzinfo | None) -> datetime:
        """The first moment of it: of a minute in ``zone``, of a day in UTC, as days are kept."""
        return moment_of(self.day, self.clock, zone)

    def after(self) -> date:
        """The day after the last one of it."""
        return self.until or shift(self.day, 1, self.unit)


def moment_of(day: date, clock: time | None, zone: tzinfo | None) -> datetime:
    """A minute of a day in ``zone``; the day by itself as that day in UTC.

    All times are kept in UTC: a day that began in another zone would be kept as two halves.
    """
    return datetime.combine(day, clock or time(), tzinfo=UTC if clock is None else zone)


def on_day(day: date, clock: time | None = None) -> When:
    """A day, or a minute of it."""
    if clock is None:
        return When(day.isoformat(), day)
    return When(f"{day.isoformat()}T{clock:%H:%M}", day, clock)


def in_week(day: date) -> When:
    """The ISO week that ``day`` lies in."""
    iso = day.isocalendar()
    return When(f"{iso.year:04d}-W{iso.week:02d}", day - timedelta(days=day.weekday()))


def in_month(year: int, month: int) -> When:
    """A month, 1 to 12."""
    return When(f"{year:04d}-{month:02d}", date(year, month, 1))


def in_year(year: int) -> When:
    """A year."""
    return When(f"{year:04d}", date(year, 1, 1))


def stretch(begin: date, until: date) -> When:
    """From one day on, before another: what is no day, week, month or year."""
    last = until - timedelta(days=1)
    return When(f"{begin.isoformat()}/{last.isoformat()}", begin, until=until)


def weekday_number(name: str) -> int:
    """0 for Monday, from a full or short lower-case name."""
    return WEEKDAYS.index(name[:3])


def month_number(name: str) -> int:
    """1 for January, from a full or short lower-case name."""
    return MONTHS.index(name[:3]) + 1


def add_months(day: date, months: int) -> date:
    """The same day of another month; the last one where that month is shorter."""
    index = day.year * _MONTHS_IN_YEAR + day.month - 1 + months
    year, month = divmod(index, _MONTHS_IN_YEAR)
    month += 1
    return date(year, month, min(day.day, monthrange(year, month)[1]))


# About how many days each unit has in which people count back.
DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}


def shift(day: date, count: int, unit: str) -> date:
    """``day`` moved by ``count`` days, weeks, months or years."""
    if unit == "day":
        return day + timedelta(days=count)
    if unit == "week":
        return day + timedelta(weeks=count)
    return add_months(day, count * (_MONTHS_IN_YEAR if unit == "year" else 1))


def period(day: date, count: int, unit: str) -> When:
    """The week, month or year that lies ``count`` of them from the one of ``day``."""
    if unit == "week":
        return in_week(day + timedelta(weeks=count))
    if unit == "month":
        moved = add_months(day.replace(day=1), count)
        return in_month(moved.year, moved.month)
    return in_year(day.year + count)


def weekday_in_week(day: date, weekday: int, weeks: int) -> date:
    """That weekday of the ISO week ``weeks`` away from the one of ``day``."""
    return day + timedelta(days=weekday - day.weekday(), weeks=weeks)


def next_weekday(day: date, weekday: int) -> date:
    """The first such weekday strictly after ``day``."""
    return day + timedelta(days=(weekday - day.weekday() - 1) % _DAYS_IN_WEEK + 1)


def last_weekday(day: date, weekday: int) -> date:
    """The last such weekday strictly before ``day``."""
    return day - timedelta(days=(day.weekday() - weekday - 1) % _DAYS_IN_WEEK + 1)


def nearest_day(today: date, month: int, day: int, tense: Tense) -> date | None:
    """A day and month without a year: the next one, or the latest for what is past.

    Of what somebody meant to do, the one that is fewest days away.

    Raises:
        ValueError: there is no such day near, of what somebody meant to do.
    """
    if tense is Tense.INTENDED:
        return closest_day(today, month, day)
    return nearest_of(today, lambda year: day_in_year(year, month, day), tense)


def coming_day(today: date, month: int, day: int) -> date | None:
    """A day and month without a year, where it comes soon: within the next three months."""
    day_to_come = nearest_of(today, lambda year: day_in_year(year, month, day), Tense.FUTURE)
    soon = day_to_come is not None and day_to_come - today <= _SOON
    return day_to_come if soon else None


def closest_day(today: date, month: int, day: int) -> date:
    """A day and month without a year: the fewest days away, whichever way.

    Raises:
        ValueError: there is no such day near, as a 29th of February may be.
    """
    years = (today.year - 1, today.year, today.year + 1)
    found = (one for year in years if (one := day_in_year(year, month, day)) is not None)
    return min(found, key=lambda one: abs((one - today).days))


def nearest_of(today: date, in_year: Callable[[int], date | None], tense: Tense) -> date | None:
    """A day of each year that has it: the next one, or the latest for what is past."""
    past = tense in {Tense.PAST, Tense.PERFECT}
    # Eight years reach over any gap between two 29ths of February.
    for offset in range(9):
        found = in_year(today.year - offset if past else today.year + offset)
        if found is not None and ((found <= today) if past else (found >= today)):
            return found
    return None


def day_in_year(year: int, month: int, day: int) -> date | None:
    """A day of a year; None for a 29th of February that it has not."""
    try:
        return date(year, month, day)
    except ValueError:
        return None


def easter_sunday(year: int) -> date:
    """Easter Sunday of the western churches, by the rule of Meeus, Jones and Butcher."""
    golden, (century, of_century) = year % 19, divmod(year, 100)
    leap_centuries, rest = divmod(century, 4)
    correction = century - leap_centuries - (8 * century + 13) // 25
    moon = (19 * golden + correction + 15) % 30
    leap_years, left = divmod(of_century, 4)
    to_sunday = (32 + 2 * rest + 2 * leap_years - moon - left) % 7
    late = (golden + 11 * moon + 22 * to_sunday) // 451
    month, day = divmod(moon + to_sunday - 7 * late + 114, 31)
    return date(year, month, day + 1)


def nth_weekday(year: int, month: int, weekday: int, nth: int) -> date:
    """The first, second, … or last (-1) of a weekday in a month."""
    first = date(year, month, 1)
    if nth < 0:
        return last_weekday(add_months(first, 1), weekday)
    return next_weekday(first - timedelta(days=1), weekday) + timedelta(weeks=nth - 1)


def nearest_month(today: date, month: int, tense: Tense) -> When | None:
    """A month without a year; only where the wording says which way to look."""
    if tense is Tense.INTENDED:
        near = closest_day(today.replace(day=1), month, 1)
        return in_month(near.year, month)
    if tense in {Tense.PAST, Tense.PERFECT}:
        return in_month(today.year - (month > today.month), month)
    if tense is Tense.FUTURE:
        return in_month(today.year + (month < today.month), month)
    return None
