"""Calendar arithmetic behind relative dates: what a day, week, month or year comes to."""

from __future__ import annotations

from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo

from engram.extraction.patterns.tense import Tense

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAYS_IN_WEEK = 7
_MONTHS_IN_YEAR = 12


@dataclass(frozen=True, slots=True)
class When:
    """A resolved date: canonical value, and the day it begins on."""

    value: str
    day: date
    clock: time | None = None

    def begins(self, zone: tzinfo | None) -> datetime:
        """The first moment of it, in ``zone``."""
        return datetime.combine(self.day, self.clock or time(), tzinfo=zone)


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
    """A day and month without a year: the next one, or the latest for what is past."""
    past = tense in {Tense.PAST, Tense.PERFECT}
    # Eight years reach over any gap between two 29ths of February.
    for offset in range(9):
        year = today.year - offset if past else today.year + offset
        try:
            found = date(year, month, day)
        except ValueError:
            continue
        if (found <= today) if past else (found >= today):
            return found
    return None


def nearest_month(today: date, month: int, tense: Tense) -> When | None:
    """A month without a year; only where the wording says which way to look."""
    if tense in {Tense.PAST, Tense.PERFECT}:
        return in_month(today.year - (month > today.month), month)
    if tense is Tense.FUTURE:
        return in_month(today.year + (month < today.month), month)
    return None
