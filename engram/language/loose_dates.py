"""Times that a question names loosely: weekends, seasons, quarters, "a few weeks ago", "5/3/24"."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from functools import cache
from typing import Final

from engram.language import calendar
from engram.language.calendar import DAYS, MONTH_NAME, WEEKDAY, WORDS, Tense, When, small_number
from engram.language.dates import DURATION, DateReader, DateRule, is_amount
from engram.language.vocabulary import Holiday, alternatives, holidays

# Nobody counts to the day: as much leeway as half of what was counted in.
MONTHS_IN_QUARTER = 3
MONTHS_IN_YEAR = 12
ORDINALS: Final = {
    "first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4,
    "last": 0, "final": 0, "latter": 0,
}  # fmt: skip

_L = r"(?<![\w./:@#$-])"
_R = r"(?![\w-])"
_WHICH = r"last|this\spast|past|previous|this\scoming|coming|this|next"
_BACK = frozenset({"last", "this past", "past", "previous"})
A_FEW = rf"a\sfew|few|several|some|(?:a\s)?couple(?:\sof)?|\d{{1,3}}|an?|{WORDS}"
# What "a few" and "several" mean: no fewer, no more.
_FEW = (2, 6)

_WEEKEND = re.compile(
    rf"{_L}(?:(?P<count>{A_FEW})\s(?:of\s)?weekends?\sago|(?:the\s)?weekend\s"
    rf"(?P<far>before\slast|after\snext)|(?:(?P<which>{_WHICH})|(?P<bare>(?:on|over|at|during)"
    rf"\s(?:the\s)?|the))\s?weekend(?!s|\sof\b)){_R}"
)
_SEASON = re.compile(
    rf"{_L}(?:(?:(?:in|over|during|of|for|since|by|until|before|after)\s)?(?:(?P<which>{_WHICH})\s"
    r"|(?P<year_of>last|this|next)\syear's\s|(?P<the>the\s))?)"
    r"(?P<season>spring|summer|autumn|fall|winter)"
    r"(?:(?:\sof|\sin|,)?\s(?:(?P<year>(?:19|20)\d\d)(?:[-/]\d\d)?|(?P<year_in>last|this|next)\syear)"
    rf"|\s(?P<far>before\slast|after\snext))?{_R}"
)
_QUARTER = re.compile(
    rf"{_L}(?:(?P<lead>in|during|for|of|since|by|until|before|after|from|to|and|this\syear's|our|my|the)\s"
    r"(?:the\s)?)?(?:(?P<year_first>(?:19|20)\d\d)[\s-]q(?P<n_last>[1-4])"
    r"|(?:(?P<word>first|second|third|fourth|last|1st|2nd|3rd|4th)\squarter"
    r"|(?P<kind>q|h)(?P<n>[1-4]))"
    r"(?:(?:\sof|,)?\s(?:(?P<year>(?:19|20)\d\d)|(?P<year_in>last|this|next)\syear|(?P<the_year>the\syear)))?)"
    rf"{_R}"
)
_WHICH_QUARTER = re.compile(
    rf"{_L}(?:(?P<which>{_WHICH})\squarter(?!\s(?:of|mile|pounder|century))"
    rf"|(?:the\s)?quarter\s(?P<far>before\slast|after\snext)){_R}"
)
_LOOSE_AGO = re.compile(
    rf"{_L}(?:about\s|around\s|some\s)?(?:(?P<count>{A_FEW})[\s-](?P<more>and\sa\shalf\s)?(?:of\s)?"
    r"(?P<unit>day|night|week|fortnight|month|year)s?(?P<half>\sand\sa\shalf)?\s(?:ago|back)(?!\w|\sfrom\b)"
    r"|(?P<half_year>half\sa\syear)\s(?:ago|back)(?!\w)|(?P<other>the\sother\s(?:day|night|evening))(?!\w))"
)
_LAST_YEAR_THEN = re.compile(
    rf"{_L}(?:(?:at\s)?this\stime\slast\s(?P<unit>week|month|year)"
    r"|(?:on\s|in\s)?this\s(?:same\s|very\s)?(?P<same>day|week|month)\slast\syear"
    rf"|(?P<count>\d{{1,2}}|an?|{WORDS})\s(?P<ago>week|month|year)s?\sago\stoday){_R}"
)
_WEEK_NUMBER = re.compile(
    rf"{_L}(?:(?P<year>(?:19|20)\d\d)-w(?P<week>\d\d)|(?:calendar\s)?week\s(?P<n>\d\d?)\s(?:of|in)\s"
    rf"(?P<of>(?:19|20)\d\d)){_R}"
)
_WHICH_MONTH = re.compile(rf"{_L}(?:in\s)?(?P<which>this|next)\s(?P<month>{MONTH_NAME}){_R}")
_SOON = re.compile(rf"{_L}(?P<word>tmrw|tmr|tomorow|tommorow|tommorrow|yday)(?!\w)")
_SEASON_AGO = re.compile(
    rf"{_L}(?P<count>{A_FEW})\s(?P<season>spring|summer|autumn|fall|winter|quarter)s\s(?:ago|back){_R}"
)
_WEEKDAY_AGO = re.compile(
    rf"{_L}(?:(?P<count>{A_FEW})\s(?P<weekday>{WEEKDAY})s?\sago"
    rf"|(?:the\s)?(?P<far_day>{WEEKDAY})\s(?P<far>before\slast|after\snext)){_R}"
)
_ROLLING = re.compile(
    rf"{_L}(?:(?:in|over|during|within|for|from)\s)?(?:the\s|these\s|my\s)?"
    rf"(?P<which>last|past|previous|next|coming)\s(?:(?P<count>{A_FEW})[\s-]"
    rf"(?P<unit>day|week|fortnight|month|year|weekend|night)s?|(?P<one>fortnight))"
    rf"{_R}(?!\s(?:from|ago|back)\b)"
)
# "In the coming weeks", "over the past days": as many as "a few".
_SOME = re.compile(
    rf"{_L}(?:in|over|during|within|for)\s(?:the\s|these\s)?"
    rf"(?P<which>last|past|recent|next|coming)\s(?P<unit>day|week|month|year)s{_R}(?!\sof\b)"
)
_LAST_DAY = re.compile(rf"{_L}(?:in|over|during|within)\sthe\s(?:last|past)\sday{_R}(?!\sof\b)")
_AHEAD = re.compile(
    rf"{_L}(?:in|(?P<within>within))\s(?:exactly\s|about\s)?(?P<count>{A_FEW})[\s-](?:of\s)?"
    r"(?P<unit>day|week|fortnight|month|year)s?(?P<timed>'?s?'?\stime)?(?![\w'-])"
)
_MUST = re.compile(
    r"\b(?:have|has|need|needs) to\b|\b(?:is|are|be|falls?|becomes?) due\b|\bexpires?\b"
)
_NIGHT_BEFORE_LAST = re.compile(
    rf"{_L}(?:the\s)?(?:day|night|evening|afternoon|morning)\s(?P<far>before\slast|after\snext){_R}"
)
_LAST_EVENING = re.compile(rf"{_L}last\sevening{_R}")
_WEEKS_FROM = re.compile(
    rf"{_L}(?P<count>\d{{1,2}}|an?|{WORDS})\s(?P<unit>week|fortnight)s?\s(?P<word>from|on)\s"
    rf"(?P<weekday>{WEEKDAY}){_R}"
)
# British: the Friday after the coming one.
_WEEKDAY_WEEK = re.compile(
    rf"{_L}(?:on\s)?(?P<weekday>{WEEKDAY})\sweek(?=\s*(?:\Z|[?.!,;])|\s(?:at|in|with|for|and|about"
    r"|when|from|to|or|i|we|he|she|they)\b)"
)
_PREVIOUS = re.compile(
    rf"{_L}(?:(?:in|on|during)\s)?(?:the\s)?(?P<which>previous|prior|coming|upcoming)\s"
    rf"(?P<unit>week|month|year){_R}"
)
_SLASHED = re.compile(
    r"(?<![\w./:@#$-])(?:(?P<y>(?:19|20)\d\d)(?P<m>[-/.])(?P<month>\d{1,2})(?P=m)(?P<day>\d{1,2})"
    r"|(?P<a>\d{1,2})(?P<mark>[-/])(?P<b>\d{1,2})(?P=mark)(?P<year>(?:19|20)?\d\d)"
    r"|(?P<lead>on|since|before|after|until|by)\s(?P<c>\d{1,2})/(?P<d>\d{1,2}))(?![\w/%]|[-.:]\d)"
)
_YEAR_MONTH = re.compile(
    rf"{_L}(?:(?:in|of|for|during|since|from|to|until|before|after|month)\s)"
    r"(?P<year>(?:19|20)\d\d)[-/](?P<month>0\d|1[0-2])(?![\w/%-]|[.:]\d)"
)
_DAY_OF_MONTH = re.compile(
    rf"{_L}on\sthe\s(?P<day>\d{{1,2}})(?:st|nd|rd|th)(?=\s*(?:[?.!,]|\Z)|\sof\s(?P<which>last|this|next)\smonth"
    # "On the 11th I gave up coffee", not "on the 11th floor".
    r"|\s(?:i|we|you|he|she|they|it|my|our|your|his|her|their|the|an?)\s)"
    r"(?:\sof\s(?:last|this|next)\smonth)?"
)
_DECADE = re.compile(rf"{_L}(?:(?:in|during|since|of|from)\s)?the\s(?P<year>(?:19|20)\d0)'?s{_R}")
_THIS_WEEKDAY = re.compile(rf"{_L}(?:on\s)?this\s(?P<weekday>{WEEKDAY}){_R}")
_WEEKDAY_SAID = re.compile(
    rf"{_L}(?:(?P<lead>for)\s)?(?P<weekday>{WEEKDAY})"
    r"(?='s\s[a-z]|\s*(?:\Z|[?.!,])|\s(?:morning|afternoon|evening|at|with|for|and|about|in|when)\b)"
)
_NOT_THAT_DAY = re.compile(
    r"\b(?:every|each|most|an?|any|the|my|our|black|good|ash|palm|holy|maundy|easter|cyber|fat|super|blue|"
    r"bloody|freaky|or|called|named)\s\Z"
)
# In a question a month or year needs no preposition: "the June trip", "the events of 2022".
_MONTH_SAID = re.compile(rf"{_L}(?P<month>{MONTH_NAME}){_R}")
_YEAR_SAID = re.compile(
    rf"{_L}(?:of|year|all|throughout|around|circa|(?:the|my|our|your|his|her|their|\w+'s))\s(?P<year>(?:19|20)\d\d)"
    r"(?![\w-]|[/.,:]\d|%|@)"
)
_NAMES_TOO = frozenset({"april", "may", "june", "august", "march"})
_ITS = re.compile(r"(?:\b(?:the|my|our|your|their|his|her|last|this|of|late|early)|'s)\s\Z")
_PLAIN_NOUN = re.compile(r"\s[a-z]|'s\s[a-z]")
_SEASON_MONTHS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_SEASON_LED = re.compile(r"\A(?:(?:in|over|during|of|for|since|by|until|before|after)\s)")
HOW_LONG = re.compile(
    r"\b(?:how (?:can|could|do|to|would|should|long|much|many)|can|could|possible|would|best"
    r"|finish|learn|lose|within|takes?)\b"
)


# --- holidays: "on Christmas", "last Halloween", "over Easter", "the Labor Day weekend"
#
# Without a word that leads to it, a name tells of no time: "do I like Christmas?". Nor does it
# before a noun of its own: "for the Christmas tree".


@cache
def _holidays() -> dict[str, Holiday]:
    """Each holiday by the name that it is called, without apostrophes."""
    return {name.replace("'", ""): one for one in holidays() for name in one.names}


# Their names, each with a word that stands wherever it does.
HOLIDAY_WORDS: Final = {
    name: max(re.findall(r"[a-z]+", name), key=len) for one in holidays() for name in one.names
}
HOLIDAY: Final = alternatives(frozenset(HOLIDAY_WORDS)).replace("'", "'?")
_ON_HOLIDAY = re.compile(
    rf"{_L}(?:(?:(?P<lead>on|at|over|during|for|around|of)\s)?(?:the\s(?!new\syear\b))?(?:(?P<which>{_WHICH})\s"
    rf"|(?P<year_of>last|this|next)\syear's\s)?)(?P<name>{HOLIDAY})(?P<weekend>\s(?:long\s)?weekend)?"
    r"(?:(?:\sof|\sin|,)?\s(?:(?P<year>(?:19|20)\d\d)|(?P<year_in>last|this|next)\syear)"
    rf"|\s(?P<far>before\slast|after\snext))?{_R}(?!'s\s)"
)
_NOUN_AFTER = re.compile(
    r"\s(?!(?:a|an|the|my|our|his|her|their|this|that|these|those|i|we|you|he|she|it|they|and|or|but|with"
    r"|without|at|in|on|of|for|from|to|by|as|than|before|after|since|until|about|again|alone|together"
    r"|did|do|does|is|are|was|were|will|would|can|could|should|have|has|had|what|when|where|who|why|how"
    r"|which|if|so|morning|afternoon|evening|night|dinner|lunch|breakfast)\b)[a-z]"
)
_IS_DOING = re.compile(r"(?:\b(?:am|is|are)|'(?:m|s|re))\s(?:\w+\s){0,3}\w+ing\b")


def _holiday(reader: DateReader, match: re.Match[str]) -> When | None:
    lead, which, year = match["lead"], match["which"], _of_year(match, reader.today)
    if not (lead or which or match["far"] or year) or _NOUN_AFTER.match(reader.after(match)):
        return None
    if which and match.start("which") and reader.capital(match, "which"):
        # "Which version of Last Christmas do I sing?"
        return None
    one = _holidays()[" ".join(match["name"].replace("'", "").split())]
    tense = reader.asked.tense if reader.asked else Tense.UNTOLD
    if year is not None:
        day = _in_year(one, year)
    elif match["far"] or which:
        day = _which_holiday(one, which, match["far"], reader.today, tense)
    elif tense is Tense.UNTOLD and _IS_DOING.search(reader.before(match, 60)):
        day = _nearest(one, reader.today, Tense.FUTURE)
    elif tense in {Tense.PAST, Tense.FUTURE}:
        day = _nearest(one, reader.today, tense)
    else:
        # "What do we eat on Christmas Eve?" asks for what is done each year.
        return None
    if day is None:
        return None
    return _weekend_of(one, day) if match["weekend"] else _meant(one, day, only=lead == "on")


def _in_year(one: Holiday, year: int) -> date | None:
    """The day it falls on; None in a year that does not have it."""
    if one.on is not None:
        return calendar.day_in_year(year, *one.on)
    if one.nth is not None:
        return calendar.nth_weekday(year, *one.nth) + timedelta(days=one.then)
    return calendar.easter_sunday(year) + timedelta(days=one.easter or 0)


def _nearest(one: Holiday, today: date, tense: Tense) -> date | None:
    return calendar.nearest_of(today, lambda year: _in_year(one, year), tense)


def _meant(one: Holiday, day: date, *, only: bool) -> When:
    """That day, or the days around it that are meant as well."""
    first, last = (0, 0) if only or one.around is None else one.around
    return calendar.stretch(day + timedelta(days=first), day + timedelta(days=last + 1))


def _weekend_of(one: Holiday, day: date) -> When:
    """The weekend nearest to it, with the day and what lies between."""
    around = _meant(one, day, only=False)
    # Monday and Tuesday come after theirs.
    saturday = calendar.weekday_in_week(day, 5, -1 if day.weekday() <= 1 else 0)
    first, until = min(around.day, saturday), max(around.after(), saturday + timedelta(days=2))
    return calendar.stretch(first, until)


def _which_holiday(
    one: Holiday, which: str | None, far: str | None, today: date, tense: Tense
) -> date | None:
    day = timedelta(days=1)
    back = which in _BACK or (which == "this" and tense is Tense.PAST)
    if far is not None:
        back = far.endswith("last")
    way, step = (Tense.PAST, -day) if back else (Tense.FUTURE, day)
    found = _nearest(one, today if which == "this" else today + step, way)
    return _nearest(one, found + step, way) if far and found else found


def few_of(word: str) -> tuple[int, int] | None:
    """From how many to how many a word of number means."""
    word = re.sub(r"\s", " ", word)
    if "couple" in word:
        return 2, 2
    if word in {"a few", "few", "several", "some"}:
        return _FEW
    count = small_number(word)
    return None if count is None else (count, count)


def _weekend(reader: DateReader, match: re.Match[str]) -> When | None:
    today, which = reader.today, match["which"]
    here = calendar.weekday_in_week(today, 5, 0)
    weeks = 0
    tense = reader.asked.tense if reader.asked else Tense.UNTOLD
    if match["far"]:
        weeks = -2 if match["far"].endswith("last") else 2
    elif match["count"]:
        few = few_of(match["count"])
        if few is None:
            return None
        first = here - timedelta(weeks=few[1])
        return calendar.stretch(first, here - timedelta(weeks=few[0]) + timedelta(days=2))
    elif which in _BACK:
        weeks = -1
    elif which == "next":
        weeks = 1
    elif which is None and tense is Tense.HABIT:
        return None
    elif which is None or (which == "this" and tense is Tense.PAST):
        ahead = tense is Tense.FUTURE or today >= here
        weeks = 0 if ahead else -1
    first = here + timedelta(weeks=weeks)
    return calendar.stretch(first, first + timedelta(days=2))


def _of_year(match: re.Match[str], today: date) -> int | None:
    """The year that is named beside a season or quarter; None where none is."""
    if match["year"]:
        return int(match["year"])
    said = match.groupdict()
    which = said.get("year_in") or said.get("year_of")
    if which is None:
        return today.year if said.get("the_year") else None
    return today.year + {"last": -1, "this": 0, "next": 1}[which]


def _one_of(
    begins: Callable[[int], date], months: int, today: date, which: str, far: str | None
) -> When:
    """A season or quarter of a year: the last, this or next of them, or the one beyond."""
    spans = [
        (begin, calendar.add_months(begin, months))
        for begin in (begins(year) for year in range(today.year - 3, today.year + 4))
    ]
    over = [span for span in spans if span[1] <= today]
    to_come = [span for span in spans if span[0] > today]
    begun = [span for span in spans if span[0] <= today]
    if far:
        return calendar.stretch(*(over[-2] if far.endswith("last") else to_come[1]))
    chosen = {
        "back": over[-1],
        "begun": begun[-1],
        "next": to_come[0],
        "ahead": next(span for span in spans if span[1] > today),
    }[which]
    return calendar.stretch(*chosen)


def _season(reader: DateReader, match: re.Match[str]) -> When | None:
    month, year = _SEASON_MONTHS[match["season"]], _of_year(match, reader.today)
    if year is not None:
        begin = date(year, month, 1)
        return calendar.stretch(begin, calendar.add_months(begin, MONTHS_IN_QUARTER))
    tense = reader.asked.tense if reader.asked else Tense.UNTOLD
    which = match["which"]
    if which is None and not match["far"]:
        # "The spring of my mattress", "did the fall hurt?", "does she like winter?"
        if not _SEASON_LED.match(match.group()) or tense is Tense.HABIT:
            return None
        if re.match(r"\s(?!(?:did|do|what|when|where|who|how|was|were|will|and|or|i|we)\b)[a-z]",
                    reader.after(match)):  # fmt: skip
            return None
    if which in _BACK:
        told = "back"
    elif which in {"next", "coming", "this coming"}:
        told = "next"
    elif which == "this":
        return _this_season(reader.today, month, tense)
    else:
        told = "ahead" if tense is Tense.FUTURE else "begun"
    return _one_of(
        lambda of: date(of, month, 1), MONTHS_IN_QUARTER, reader.today, told, match["far"]
    )


def _season_ago(reader: DateReader, match: re.Match[str]) -> When | None:
    few = few_of(match["count"])
    if few is None or few[0] != few[1]:
        return None
    if match["season"] == "quarter":
        return quarter_of(calendar.add_months(quarter_of(reader.today).day, -3 * few[0]))
    last = _one_of(
        lambda of: date(of, _SEASON_MONTHS[match["season"]], 1), 3, reader.today, "back", None
    )
    begin = calendar.add_months(last.day, -MONTHS_IN_YEAR * (few[0] - 1))
    return calendar.stretch(begin, calendar.add_months(begin, MONTHS_IN_QUARTER))


def _this_season(today: date, month: int, tense: Tense) -> When:
    begin = date(today.year, month, 1)
    # January lies in the winter that began last year.
    if today < calendar.add_months(begin, MONTHS_IN_QUARTER - MONTHS_IN_YEAR):
        begin = calendar.add_months(begin, -MONTHS_IN_YEAR)
    if tense is Tense.PAST and begin > today:
        begin = calendar.add_months(begin, -MONTHS_IN_YEAR)
    return calendar.stretch(begin, calendar.add_months(begin, MONTHS_IN_QUARTER))


def quarter_of(day: date) -> When:
    """The quarter that a day lies in."""
    begin = date(day.year, (day.month - 1) // 3 * 3 + 1, 1)
    return calendar.stretch(begin, calendar.add_months(begin, MONTHS_IN_QUARTER))


def _quarter(reader: DateReader, match: re.Match[str]) -> When | None:
    year = _of_year(match, reader.today)
    if match["year_first"]:
        year, number, months = int(match["year_first"]), int(match["n_last"]), 3
    elif match["word"]:
        # "The fourth quarter of the match", "last quarter".
        if match["word"] == "last" and year is None:
            return None
        if year is None and re.match(r"\s(?:of|in)\b", reader.after(match)):
            return None
        number, months = ORDINALS[match["word"]] or 4, 3
    else:
        number, months = int(match["n"]), 3 if match["kind"] == "q" else 6
        led = match["lead"] or re.match(
            r"\s(?:results?|reports?|goals?|numbers?|revenue|plan\w*|budget|targets?|okrs?|review)\b",
            reader.after(match),
        )
        if number * months > MONTHS_IN_YEAR or (year is None and not led):
            return None
    month = (number - 1) * months + 1
    if year is not None:
        begin = date(year, month, 1)
        return calendar.stretch(begin, calendar.add_months(begin, months))
    ahead = reader.tense(match) is Tense.FUTURE
    told = "ahead" if ahead else "begun"
    return _one_of(lambda of: date(of, month, 1), months, reader.today, told, None)


def _which_quarter(reader: DateReader, match: re.Match[str]) -> When | None:
    here, which = quarter_of(reader.today), match["which"]
    steps = {"this": 0, "next": 1, "coming": 1, "this coming": 1}.get(which, -1)
    if match["far"]:
        steps = -2 if match["far"].endswith("last") else 2
    begin = calendar.add_months(here.day, MONTHS_IN_QUARTER * steps)
    return quarter_of(begin)


def _loose_ago(reader: DateReader, match: re.Match[str]) -> When | None:
    if match["half_year"]:
        return replace(calendar.on_day(calendar.add_months(reader.today, -6)), counted="month")
    if match["other"]:
        day = timedelta(days=1)
        return calendar.stretch(reader.today - _FEW[1] * day, reader.today)
    few = few_of(match["count"])
    unit = {"night": "day", "fortnight": "week"}.get(match["unit"], match["unit"])
    if few is None:
        return None
    if match["unit"] == "fortnight":
        few = 2 * few[0], 2 * few[1]
    latest = calendar.shift(reader.today, -few[0], unit)
    if few[0] < few[1]:
        earliest = calendar.shift(reader.today, -few[1], unit)
        return calendar.stretch(earliest, latest + timedelta(days=1))
    if match["more"] or match["half"]:
        year = unit == "year"
        latest = calendar.add_months(latest, -6) if year else latest - timedelta(DAYS[unit] // 2)
    return replace(calendar.on_day(latest), counted=unit)


def _then(reader: DateReader, match: re.Match[str]) -> When | None:
    if match["same"]:
        year_ago = calendar.add_months(reader.today, -MONTHS_IN_YEAR)
        day = match["same"] == "day"
        return calendar.on_day(year_ago) if day else calendar.period(year_ago, 0, match["same"])
    if match["ago"]:
        count = small_number(match["count"]) or 0
        return calendar.on_day(calendar.shift(reader.today, -count, match["ago"]))
    then = calendar.shift(reader.today, -1, match["unit"])
    leeway = timedelta(days=DAYS[match["unit"]] // 24)
    return calendar.stretch(then - leeway, then + leeway + timedelta(days=1))


def _week_number(reader: DateReader, match: re.Match[str]) -> When | None:
    year, week = match["year"] or match["of"], match["week"] or match["n"]
    return calendar.in_week(date.fromisocalendar(int(year), int(week), 1))


def _which_month(reader: DateReader, match: re.Match[str]) -> When | None:
    number = calendar.month_number(match["month"])
    year = reader.today.year
    if match["which"] == "next":
        return calendar.in_month(year + (number <= reader.today.month), number)
    return calendar.in_month(year, number)


def _soon(reader: DateReader, match: re.Match[str]) -> When | None:
    ahead = 1 if match["word"].startswith("t") else -1
    return calendar.on_day(reader.today + timedelta(days=ahead))


def _weekday_ago(reader: DateReader, match: re.Match[str]) -> When | None:
    weekday = calendar.weekday_number(match["weekday"] or match["far_day"])
    if match["far"]:
        weeks = -1 if match["far"].endswith("last") else 1
        near = calendar.next_weekday if weeks > 0 else calendar.last_weekday
        return calendar.on_day(near(reader.today, weekday) + timedelta(weeks=weeks))
    few = few_of(match["count"])
    if few is None or few[0] != few[1]:
        return None
    last = calendar.last_weekday(reader.today, weekday)
    return calendar.on_day(last - timedelta(weeks=few[0] - 1))


def _rolling(reader: DateReader, match: re.Match[str]) -> When | None:
    few = few_of(match["count"] or "one")
    if few is None or match["count"] in {"a", "an"}:
        return None
    return _up_to(reader.today, match["which"], few[1], match["unit"] or match["one"])


def _up_to(today: date, which: str, most: int, unit: str) -> When:
    """So many days, weeks or months that end, or begin, today."""
    unit, each = {"night": ("day", 1), "weekend": ("week", 1), "fortnight": ("week", 2)}.get(
        unit, (unit, 1)
    )
    if which in {"next", "coming"}:
        return calendar.stretch(today, calendar.shift(today, most * each, unit) + timedelta(days=1))
    return calendar.stretch(calendar.shift(today, -most * each, unit), today + timedelta(days=1))


def _some(reader: DateReader, match: re.Match[str]) -> When | None:
    return _up_to(reader.today, match["which"], _FEW[1], match["unit"])


def _last_day(reader: DateReader, match: re.Match[str]) -> When | None:
    return _up_to(reader.today, "last", 1, "day")


def _night_before_last(reader: DateReader, match: re.Match[str]) -> When | None:
    if reader.named(match):
        return None
    return calendar.on_day(reader.today + timedelta(days=-2 if "before" in match["far"] else 2))


def _last_evening(reader: DateReader, match: re.Match[str]) -> When | None:
    # "My last evening class", "the last evening of the trip"
    if _ITS.search(reader.before(match)) or _NOUN_AFTER.match(reader.after(match)):
        return None
    return calendar.on_day(reader.today - timedelta(days=1))


def _weeks_from(reader: DateReader, match: re.Match[str]) -> When | None:
    weekday, count = calendar.weekday_number(match["weekday"]), small_number(match["count"])
    if count is None:
        return None
    if match["word"] == "on" and not _looks_ahead(reader):
        # "I had been away for a week on Friday": that was, and the week is how long.
        return calendar.on_day(calendar.last_weekday(reader.today, weekday))
    day = calendar.next_weekday(reader.today, weekday)
    return calendar.on_day(day + timedelta(weeks=count * (1 + (match["unit"] == "fortnight"))))


def _weekday_week(reader: DateReader, match: re.Match[str]) -> When | None:
    if not _looks_ahead(reader) or _NOT_THAT_DAY.search(reader.before(match)):
        return None
    day = calendar.next_weekday(reader.today, calendar.weekday_number(match["weekday"]))
    return calendar.on_day(day + timedelta(weeks=1))


def _looks_ahead(reader: DateReader) -> bool:
    """Whether what is asked for may lie ahead."""
    return reader.asked is not None and reader.asked.tense in {Tense.FUTURE, Tense.UNTOLD}


def _ahead(reader: DateReader, match: re.Match[str]) -> When | None:
    """In three days, or within them, unless it says how long something takes."""
    few, unit = few_of(match["count"]), match["unit"]
    if few is None or re.match(r"\s(?:of|to|or|in|at)\b", reader.after(match)):
        return None
    if match["timed"] is None and not _lies_ahead(reader, match):
        return None
    if unit == "fortnight":
        few, unit = (2 * few[0], 2 * few[1]), "week"
    if match["within"]:
        return _up_to(reader.today, "next", few[1], unit)
    if few[0] == few[1]:
        return calendar.on_day(calendar.shift(reader.today, few[0], unit))
    until = calendar.shift(reader.today, few[1], unit) + timedelta(days=1)
    return calendar.stretch(calendar.shift(reader.today, few[0], unit), until)


def _lies_ahead(reader: DateReader, match: re.Match[str]) -> bool:
    """Whether what is counted lies ahead, and is not how long something takes."""
    before, tense = reader.before(match, 200), reader.asked.tense if reader.asked else Tense.UNTOLD
    if DURATION.search(reader.before(match)) or HOW_LONG.search(before):
        return False
    # "Does it arrive within three days?" asks how long it takes.
    due = not match["within"] or tense is Tense.FUTURE or _MUST.search(before) is not None
    return due and tense not in {Tense.PAST, Tense.HABIT}


def _previous(reader: DateReader, match: re.Match[str]) -> When | None:
    step = 1 if match["which"].endswith("coming") else -1
    return calendar.period(reader.today, step, match["unit"])


def _slashed(reader: DateReader, match: re.Match[str]) -> When | None:
    if match["y"]:
        return calendar.on_day(date(int(match["y"]), int(match["month"]), int(match["day"])))
    first, second = int(match["a"] or match["c"]), int(match["b"] or match["d"])
    ahead = reader.tense(match) is Tense.FUTURE
    days = [
        day
        for month, day_of in ((first, second), (second, first))
        if (day := _day_in(reader, match["year"], month, day_of)) is not None
    ]
    likely = [day for day in days if (day >= reader.today) is ahead or day == reader.today]
    return calendar.on_day((likely or days)[0]) if days else None


def _day_in(reader: DateReader, year: str | None, month: int, day: int) -> date | None:
    if not 1 <= month <= MONTHS_IN_YEAR:
        return None
    if year is None:
        tense = Tense.FUTURE if reader.asked and reader.asked.tense is Tense.FUTURE else Tense.PAST
        return calendar.nearest_day(reader.today, month, day, tense)
    try:
        return date(int(year) if len(year) > 2 else 2000 + int(year), month, day)  # noqa: PLR2004 - "24" is 2024
    except ValueError:
        return None


def _year_month(reader: DateReader, match: re.Match[str]) -> When | None:
    return calendar.in_month(int(match["year"]), int(match["month"]))


def _day_of_month(reader: DateReader, match: re.Match[str]) -> When | None:
    month = reader.today.replace(day=1)
    day = timedelta(days=int(match["day"]) - 1)
    if match["which"]:
        month = calendar.shift(month, {"last": -1, "this": 0, "next": 1}[match["which"]], "month")
    elif reader.tense(match) is Tense.FUTURE:
        month = calendar.shift(month, int(month + day < reader.today), "month")
    else:
        month = calendar.shift(month, -int(month + day > reader.today), "month")
    named = month + day
    return calendar.on_day(named) if named.month == month.month else None


def _decade(reader: DateReader, match: re.Match[str]) -> When | None:
    year = int(match["year"])
    return calendar.stretch(date(year, 1, 1), date(year + 10, 1, 1))


def _weekday_said(reader: DateReader, match: re.Match[str]) -> When | None:
    tense = reader.asked.tense if reader.asked else Tense.UNTOLD
    if tense is Tense.UNTOLD and match["lead"]:
        tense = Tense.FUTURE
    if tense not in {Tense.PAST, Tense.FUTURE} or _NOT_THAT_DAY.search(reader.before(match)):
        return None
    if reader.named(match) or reader.titled(match) or re.match(r"\snights?\b", reader.after(match)):
        return None
    near = calendar.next_weekday if tense is Tense.FUTURE else calendar.last_weekday
    return calendar.on_day(near(reader.today, calendar.weekday_number(match["weekday"])))


def _this_weekday(reader: DateReader, match: re.Match[str]) -> When | None:
    """What was done "this Sunday" was done on the last one."""
    day = calendar.weekday_in_week(reader.today, calendar.weekday_number(match["weekday"]), 0)
    past = reader.asked is not None and reader.asked.tense is Tense.PAST
    return calendar.on_day(day - timedelta(weeks=1) if past and day > reader.today else day)


def _month_said(reader: DateReader, match: re.Match[str]) -> When | None:
    name = match["month"]
    # "Where may I park?", "What does June like?": without a word that tells, it is no month.
    if name in _NAMES_TOO and not (
        reader.capital(match, "month")
        and name != "may"
        and _ITS.search(reader.before(match))
        and _PLAIN_NOUN.match(reader.after(match))
    ):
        return None
    return calendar.nearest_month(reader.today, calendar.month_number(name), reader.tense(match))


def _year_said(reader: DateReader, match: re.Match[str]) -> When | None:
    if is_amount(reader, match):
        return None
    return calendar.in_year(int(match["year"]))


_YEARS = ("19", "20")
FIRST: Final[tuple[DateRule, ...]] = (
    (("/", "-", "."), _SLASHED, _slashed),
    (tuple(sorted(set(HOLIDAY_WORDS.values()))), _ON_HOLIDAY, _holiday),
    (("weekend",), _WEEKEND, _weekend),
    ((" ago", " back"), _SEASON_AGO, _season_ago),
    (tuple(_SEASON_MONTHS), _SEASON, _season),
    (("quarter",), _WHICH_QUARTER, _which_quarter),
    (("quarter", *(f"{kind}{n}" for kind in "qh" for n in range(1, 5))), _QUARTER, _quarter),
    (("this ", "ago today"), _LAST_YEAR_THEN, _then),
    ((" ago", " back", "the other"), _LOOSE_AGO, _loose_ago),
    (("-w", "week "), _WEEK_NUMBER, _week_number),
    (("this ", "next "), _WHICH_MONTH, _which_month),
    (("tmr", "tomor", "tommor", "yday"), _SOON, _soon),
    (("ago", "before last", "after next"), _WEEKDAY_AGO, _weekday_ago),
    (("from", " on "), _WEEKS_FROM, _weeks_from),
    (("day week",), _WEEKDAY_WEEK, _weekday_week),
    (("last", "past", "previous", "next", "coming"), _ROLLING, _rolling),
    (("last", "past", "recent", "next", "coming"), _SOME, _some),
    (("past day", "last day"), _LAST_DAY, _last_day),
    (("before last", "after next"), _NIGHT_BEFORE_LAST, _night_before_last),
    (("last evening",), _LAST_EVENING, _last_evening),
    (("in ",), _AHEAD, _ahead),
    (("previous", "prior", "coming"), _PREVIOUS, _previous),
    (("on the ",), _DAY_OF_MONTH, _day_of_month),
    (("0s", "0's"), _DECADE, _decade),
    (("this ",), _THIS_WEEKDAY, _this_weekday),
)
LAST: Final[tuple[DateRule, ...]] = (
    (_YEARS, _YEAR_MONTH, _year_month),
    (calendar.MONTHS, _MONTH_SAID, _month_said),
    (_YEARS, _YEAR_SAID, _year_said),
    (("day",), _WEEKDAY_SAID, _weekday_said),
)
