"""Dates and times in a turn, resolved against its timestamp."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

from engram.domain.values import Period
from engram.language import calendar
from engram.language.calendar import (
    MONTH,
    WEEKDAY,
    WORDS,
    Tense,
    When,
    moment_of,
    names_event,
    small_number,
    tense_at,
)
from engram.language.found import FoundSpan, Masked

# --- the expressions that name a date, as regular expressions over lower-case text

_SHORT_WEEKDAY = r"(?:mon|tues|tue|wed|thurs|thur|thu|fri|sat|sun)"
_COUNT = rf"(?:\d{{1,3}}|an?|{WORDS})"
_UNIT = r"(?P<unit>day|week|month|year)s?"
_LEFT = r"(?<![\w./:@#$-])"
_RIGHT = r"(?![\w]|[-/]\w|\.\d|@)"
_PREPOSITION = r"(?:(?:on|in|at|since)\s)?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)"

GATE = re.compile(
    rf"\b(?:(?:{'|'.join(calendar.MONTHS)})[a-z]*|(?:19|20)\d\d|"
    r"(?:mon|tue|tues|wed|wednes|thu|thur|thurs|fri|sat|satur|sun)(?:day)?|"
    r"today|tonight|tomorrow|yesterday|ago|in (?:\w+[ -]){1,2}(?:day|week|month|year)s?|"
    r"(?:next|last|past|this) (?:day|week|month|year|night|morning|afternoon|evening)|"
    r"from now|(?:week|month|year) (?:before last|after next)|\d\d?[./]\d\d?[./]\d{4})\b"
)

ISO = re.compile(
    rf"{_PREPOSITION}(?<![\w./:@#$-])(?P<year>\d{{4}})(?P<mark>[-/])(?P<month>\d\d)(?P=mark)(?P<day>\d\d)"
    r"(?:(?:t|,?\s(?:at\s)?)(?P<hour>\d\d):(?P<minute>\d\d)(?::\d\d(?:\.\d{1,9})?)?"
    r"(?:z|[+-]\d\d:?\d\d)?)?(?![\w/]|-\d|\.\d|:\d)"
)
NUMERIC = re.compile(
    rf"{_PREPOSITION}{_LEFT}(?P<first>\d{{1,2}})(?P<mark>[./])(?P<second>\d{{1,2}})(?P=mark)"
    rf"{_YEAR}{_RIGHT}"
)
DAY_MONTH = re.compile(
    rf"{_PREPOSITION}{_LEFT}(?:(?P<weekday>{WEEKDAY}|{_SHORT_WEEKDAY}),?\s)?(?:the\s)?{_DAY}(?:\sof)?\s"
    rf"(?P<month>{MONTH})(?:,?\s{_YEAR})?{_RIGHT}"
)
MONTH_DAY = re.compile(
    rf"{_PREPOSITION}{_LEFT}(?:(?P<weekday>{WEEKDAY}|{_SHORT_WEEKDAY}),?\s)?(?P<month>{MONTH})\s(?:the\s)?"
    rf"{_DAY}(?:(?:,\s?|\s){_YEAR})?(?![\w]|[:.,%/]\d|\s?(?:am|pm|percent|people|times)\b|@)"
)
MONTH_YEAR = re.compile(rf"{_PREPOSITION}{_LEFT}(?P<month>{MONTH}),?\s(?:of\s)?{_YEAR}{_RIGHT}")
DAY_WORD = re.compile(
    rf"{_LEFT}(?:(?:the\s)?(?P<around>day\s(?:before\syesterday|after\stomorrow))"
    r"|(?P<word>today|tonight|tomorrow|yesterday|last night|this (?:morning|afternoon|evening)))"
    r"(?![\w@]|-\w|/\w)"
)
AGO = re.compile(
    rf"{_LEFT}(?P<count>{_COUNT})[\s-]{_UNIT}\sago(?:\s(?P<from>today|yesterday))?(?!\w)"
)
AHEAD = re.compile(
    rf"{_LEFT}in\s(?:exactly\s)?(?P<count>{_COUNT})[\s-]{_UNIT}(?:'\stime|s'\stime|'s\stime)?(?![\w'-])"
)
FROM_NOW = re.compile(
    rf"{_LEFT}(?:in\s)?(?P<count>{_COUNT})[\s-]{_UNIT}\sfrom\s(?P<from>now|today|tomorrow)(?!\w)"
)
PERIOD = re.compile(
    rf"{_LEFT}{_PREPOSITION}(?:(?:the\s)(?P<far>(?P<far_unit>week|month|year)\s(?:before\slast|after\snext))|"
    r"(?P<which>next|last|past|this)\s(?P<unit>week|month|year))(?![\w-])"
)
WEEKDAY_OF_WEEK = re.compile(
    rf"{_LEFT}(?:on\s)?(?:(?P<weekday>{WEEKDAY}),?\s(?:of\s)?(?P<which>next|last|this)\sweek"
    rf"|(?P<which_first>next|last|this)\sweek(?:,|\son)?\s(?P<weekday_last>{WEEKDAY}))(?![\w-])"
)
WHICH_WEEKDAY = re.compile(
    rf"{_LEFT}(?:on\s)?(?P<which>next|last|this coming|(?:the\s)?(?:up)?coming|this past|this)\s"
    rf"(?P<weekday>{WEEKDAY}|{_SHORT_WEEKDAY}\b\.?)(?![\w-])"
)
ON_WEEKDAY = re.compile(
    rf"{_LEFT}(?P<lead>on|by|until|till|since|before|see (?:you|u|ya)(?: on)?)\s"
    rf"(?P<weekday>{WEEKDAY}|(?:mon|tues|tue|wed|thurs|thur|thu|fri)\b\.?)(?![\w-])"
)
TIMED_WEEKDAY = re.compile(
    rf"{_LEFT}(?P<weekday>{WEEKDAY})(?=,?\s(?:(?:morning|afternoon|evening|night)\s)?(?:at|@)\s?\d)"
)
MONTH_ALONE = re.compile(
    rf"{_LEFT}(?P<lead>in|since|last|this past|until|till|by)\s(?:early\s|mid-?\s?|late\s)?"
    rf"(?P<month>{MONTH})(?![\w'-]|\s\d)"
)
YEAR = re.compile(
    rf"{_LEFT}(?P<lead>in|since|until|till|by|before|after|back in|(?:spring|summer|autumn|"
    rf"fall|winter|"
    rf"class|year|end|start|beginning|middle)(?: of)?|during|early|late|mid)[\s-](?:early\s|"
    rf"late\s)?{_YEAR}"
    r"(?![\w-]|[/.,:]\d|%|@)"
)

NOT_A_DAY_AFTER = re.compile(
    r"\s(?:before last|after next|week\b|the \d|nights|mornings|evenings|afternoons|"
    r"by the beatles|by the)"
)
UNIT_AFTER_YEAR = re.compile(
    r"\s(?:words?|steps?|people|lines?|pieces?|met(?:er|re)s?|miles?|kilomet(?:er|re)s?|km|m|kg|g|cal\w*|"
    r"kcal|dollars?|euros?|pounds?|users?|rows?|items?|pages?|games?|hours?|minutes?|seconds?|days?|weeks?|"
    r"months?|years?|points?|votes?|calls?|requests?|tokens?|characters?|files?|times|bc|bce|feet|ft|watts?|"
    r"rpm|mah|square|units?|copies|members|employees|customers|attempts|repetitions|reps|tries|others)\b"
)

AMOUNT_BEFORE = re.compile(
    r"\b(?:total|sum|budget|limits?|max|maximum|minimum|min|price|cost|salary|rent|number|count|amount|size|"
    r"context|window|balance|score|distance|population|value|rate|capacity|length|port|password|code|pin|"
    r"version|room|deposit|fee|income|bill|payment|bonus|resolution|width|height|weight|speed|batch|threshold|"
    r"average|goal|target|intake|mileage|elevation|increased?|decreased?|raised?|grow|grew|reduced?|exceed|"
    r"divided?|multipl\w+|cut|up|more|less|minus|plus|times)\s(?:\w+\s)?\Z"
)
_AMOUNT_AFTER = re.compile(
    r"\s(?:(?!was|is|has|does|as|this|us|its|his|always|perhaps|besides|across|christmas|paris|texas|"
    r"olympics|news|plus|holidays|taxes)[a-z-]+\s)?"
    r"(?!was\b|is\b|has\b|does\b|as\b|this\b|us\b|its\b|his\b|always\b|perhaps\b|besides\b|across\b|versus\b|"
    r"christmas|olympics|news|holidays|taxes|elections|results|goals|plans|resolutions|photos|pictures|vs\b)"
    r"[a-z-]{2,}s\b"
)

# --- dates and times, resolved against the turn's own timestamp
#
# The expression is found by pattern, never by searching the open text; a date
# written out in full is read as it stands, a relative one reckoned from the
# calendar. What could mean two days ("12/05/2025", "last summer") is left alone.

# A turn with more dates than this is a table; what it says is not about days.
_MOST_DATES = 40
_STEP = {"next": 1, "last": -1, "this": 0}
_NOT_AROUND = re.compile(r"\b(?:over|almost|nearly|more than|less than|under|or|up to)\s\Z")
_OR = re.compile(r"\s(?:or\s(?!so\b)|and a half\b|of\b|to\b|into\b)|-\d")
DURATION = re.compile(
    r"\b(?:times|once|twice|day|days|first|only|best|worst|all|ever|night|month|done|finish|learn|read)"
    r"(?:\s\w+)?\s\Z"
)
_SPAN = re.compile(r"\b(?:the|every|each|any)\s(?:very\s)?\Z")
_TITLE_DAYS = re.compile(
    r"\b(?:ruby|black|good|ash|palm|easter|cyber|fat|super|blue|freaky|bloody)\s\Z"
)
_TITLE_AFTER = re.compile(r"\sby\s(?!\d|(?:noon|then|the\s(?:end|latest)|[a-z]*day)\b)")
_TITLE_IS = re.compile(
    r"\s(?:is|was)\s(?:an?|the|my)\s(?:\w+\s){0,4}(?:songs?|film|movie|book|novel|band|album|show|paper"
    r"|episode|series)\b"
)
_NAME_GOES_ON = re.compile(r"'s(?:\s[A-Z][\w']*)+")
_TITLE = re.compile(r"[A-Z][a-z]+(?:\s[A-Z][a-z]+){2}")
_LOOKS_AHEAD = re.compile(r"'(?:ll|d)\b|\b(?:will|shall|would|gonna|going to|owe|owes)\b")
_BIRTH = re.compile(r"\bborn\b")
_NAME_AFTER = re.compile(r"'s\s(?:youth|world|society|kids|standards|technology)\b")
_AMBIGUOUS_IN_LOWER_CASE = ("may", "mar", "march", "jan", "sun", "sat")

# What its pattern needs to stand in the text, the pattern, and what a match comes to. A rule
# runs only where one of its needles stands: many patterns over a long turn add up.
DateRule = tuple[
    tuple[str, ...], re.Pattern[str], Callable[["DateReader", re.Match[str]], When | None]
]


class QuestionRules(NamedTuple):
    """How a question is read, which names times more loosely than a turn.

    Attributes:
        tense: Which way it looks; it looks back where that is untold.
        first: Rules that come before those for turns.
        last: Rules that come after them.
    """

    tense: Tense
    first: tuple[DateRule, ...]
    last: tuple[DateRule, ...]


class Dated(NamedTuple):
    """A date in a text: from where to where, and when that is."""

    start: int
    end: int
    when: When


def find(turn: Masked, timestamp: datetime) -> Iterator[FoundSpan]:
    """Dates in the order of certainty of their patterns; each stretch is read once."""
    for start, end, when in read(turn, timestamp):
        yield FoundSpan(start, end, when.value, when.begins(timestamp.tzinfo))


def read(
    turn: Masked,
    timestamp: datetime,
    *,
    untold: Tense = Tense.UNTOLD,
    asked: QuestionRules | None = None,
) -> Iterator[Dated]:
    """The same, not yet put into words.

    Args:
        turn: The text; what was read is hidden in it.
        timestamp: When it was said, aware; dates are resolved against it.
        untold: What a day or month without a year counts as where no verb tells.
        asked: How a question is read; None for what is told.
    """
    if asked is None and not GATE.search(turn.low):
        return
    reader = DateReader(turn, timestamp, asked=asked, untold=untold)
    rules = _DATE_RULES if asked is None else (*asked.first, *_DATE_RULES, *asked.last)
    for needles, pattern, rule in rules:
        if not any(needle in turn.low for needle in needles):
            continue
        hidden: list[FoundSpan] = []
        for count, match in enumerate(pattern.finditer(turn.low)):
            if count >= _MOST_DATES:
                break
            found = reader.read(match, rule)
            if found is not None:
                yield found
            # What was recognised and then refused must not be read in part by a later rule.
            start, end = (found.start, found.end) if found else match.span()
            hidden.append(FoundSpan(start, end, ""))
        turn.hide(hidden)


class Start(NamedTuple):
    """When something began, by the words of one sentence.

    Attributes:
        at: Days and weeks keep the time of day at which it was said, a month or year stands for
            its first day, and so does "2 months ago" for that of that month.
        within: The days that the words leave open; None where they only bound it ("before 2020").
    """

    at: datetime
    within: Period | None


# What was before a time, or after it, was not in it.
_BOUNDS = re.compile(r"\b(?:before|by|until|till|til|after)\s(?:the\s)?\Z")


def starts(sentence: str, said_at: datetime) -> list[Start]:
    """The times that a sentence names for what began, as far as they are past.

    A month or year that is named comes before a day. People who count back are off by half of
    what they count in, as where a question names it, and so is who says "last week".
    """
    turn = Masked(sentence)
    # "I assured them we'd ship on Wednesday": what began is told, not what is to come.
    if _LOOKS_AHEAD.search(turn.low):
        return []
    named = read(turn, said_at, untold=Tense.PAST)
    found = (
        Start(
            _moment(one.when, said_at),
            None if _BOUNDS.search(turn.low, 0, one.start) else _days(one.when),
        )
        for one in sorted(named, key=lambda one: _widest_first(one.when))
    )
    return [start for start in found if start.at <= said_at]


def _widest_first(when: When) -> int:
    return ("month", "year").index(when.unit) if when.unit in {"month", "year"} else 2


def _moment(when: When, said_at: datetime) -> datetime:
    first = when.day.replace(day=1) if when.counted in {"month", "year"} else when.day
    if when.clock or when.unit in {"month", "year"} or first != when.day:
        return moment_of(first, when.clock, said_at.tzinfo)
    here = said_at.date()
    if when.unit == "week":
        here -= timedelta(days=here.weekday())
    there = (said_at - (here - first)).replace(tzinfo=UTC)
    # In zones east of UTC its day has begun sooner.
    return there if first > here else min(there, said_at)


def _days(when: When) -> Period:
    loose = when.counted or ("week" if when.unit == "week" else "day")
    leeway = timedelta(days=calendar.DAYS[loose] // 2)
    first, after = (moment_of(day, None, UTC) for day in (when.day - leeway, when.after() + leeway))
    return Period(first, after)


# "They moved it to January 20" was done; the day that it names is still to come.
_ARRANGED = re.compile(
    r"\b(?:(?:moved|rescheduled|postponed|pushed|delayed|shifted|put off|brought forward|extended|"
    r"booked|reserved|scheduled|arranged|registered|signed up|planned|invited)\b[^.;!?]{0,60}"
    r"\b(?:to|until|till|for|from|starting)|meant(?: to say)?(?: the)?)\s\Z"
)

# What was done so that something is on that day, or done by it; told before that day or after it.
_GIVEN = r"(?:gave|given|got|gotten|offered|found)"
_TIMED = (
    r"(?:slots?|appointments?|interviews?|viewings?|bookings?|reservations?|check-?ups?|scans?)"
)
_MEANT = re.compile(
    r"\b(?:(?:rebooked|(?:had|needed|wanted|decided) to (?:move|reschedule|postpone|push|delay|"
    r"shift|put|rebook|bring|extend))\b[^.;!?]{0,60}\b(?:to|until|till|for)"
    rf"|(?:{_GIVEN}|made)\s[^.,;!?]{{0,30}}\b(?:{_TIMED}|tickets)\sfor"
    r"|(?:wanted|needed|expected|required|demanded|requested)\s[^.,;!?]{0,40}\bby"
    r"|gave\s(?:me|us|him|her|them)\s(?:until|till)"
    r")\s(?:the\s)?\Z"
)
# "A slot on Monday" was on the last one, if it was had; "on 14 April" is seldom a year ago.
_GIVEN_ON = re.compile(
    rf"\b{_GIVEN}\s[^.,;!?]{{0,30}}\b(?:slot|appointment|interview|viewing)(?:\son)?\s(?:the\s)?\Z"
)
_AGREED = re.compile(r"\b(?:agreed|settled|decided)\s(?:on\s)?\Z")
_AGREED_FOR = re.compile(
    r"\s(?:for\s(?:the|our|my|his|her|their|an?)\s(?!(?:first|second|last|most|sake|time|while|long|"
    r"few|change|good|better|best|reasons?|same|following|simple)\b)\w"
    r"|as\s(?:the|our)\s(?:new\s)?(?:date|day|deadline|launch|start))"
)
# It was done, and is told after that day.
_AND_DID = re.compile(
    r"[^.!?;\n]{0,40}?(?:\b(?:and|so|but|which)|,)\s(?:(?:i|we|they|he|she|it|that)\s)?"
    r"(?:did|didn't|went|came|had\s(?!to\b)|waited|passed|failed|bombed|missed|couldn't)(?!\w)"
)


# "The invoice of October 1st": what is spoken of by its day was there on it. The sum that may
# stand between was read before, and masked.
_SUM = r"(?: of \ufffc+)?"
_CHARGED = "charge|transaction|purchase|withdrawal|debit"
_OF_ITS_DAY = re.compile(
    rf"\b(?:(?:{_CHARGED}|invoice|bill|receipt|order|payment|transfer|refund|statement|delivery|"
    rf"shipment|parcel|package|letter|e-?mail|message|call){_SUM} (?:of|from|dated)|"
    rf"(?:{_CHARGED}){_SUM}) \Z"
)


class DateReader:
    """Reads the matches of one turn.

    Attributes:
        asked: How a question is read; None for what is told.
        today: The day on which it was said.
        low: The text in lower case, without what was read of it.
    """

    def __init__(
        self, turn: Masked, timestamp: datetime, *, asked: QuestionRules | None, untold: Tense
    ) -> None:
        self._turn = turn
        self.untold = untold
        self.asked = asked
        self.today = timestamp.date()
        self.low = turn.low

    def read(
        self,
        match: re.Match[str],
        rule: Callable[[DateReader, re.Match[str]], When | None],
    ) -> Dated | None:
        """The date that a rule makes of a match; None where it makes none."""
        self.low = self._turn.low
        try:
            when = rule(self, match)
            if when is None:
                return None
            start, end = match.span()
            if when.clock is None and when.until is None and when.unit == "day":
                part = _part_of_day(match)
                beside = calendar.beside(self.low, start, end, part=part)
                start, end = beside.start, beside.end
                when = replace(calendar.on_day(when.day, beside.at), counted=when.counted)
            return Dated(start, end, when)
        except (ValueError, OverflowError):
            # No such day (31 June), or beyond the calendar: then it is no date.
            return None

    def tense(self, match: re.Match[str], *, numbered: bool = False) -> Tense:
        """Which way the words around a match look.

        Args:
            match: What stands for a day.
            numbered: Whether it has a day and a month. As a weekday comes every week, what was
                asked for or agreed on one is told of the last.
        """
        if self.asked is None and _ARRANGED.search(self.before(match, 80)):
            return Tense.FUTURE
        done = _AND_DID.match(self.after(match, 80)) is not None
        if self.asked is None and not done and self._is_meant(match, numbered=numbered):
            return Tense.INTENDED
        if self.asked is None:
            return tense_at(self.low, *match.span(), bidden=numbered and not done)
        told = self.asked.tense
        return told if told in {Tense.FUTURE, Tense.HABIT} else Tense.PAST

    def _is_meant(self, match: re.Match[str], *, numbered: bool) -> bool:
        """Whether something was put on that day: "gave me a slot on", "agreed on ... for it"."""
        before, after = self.before(match, 100), self.after(match)
        if after.startswith(" last year"):
            return False
        if _MEANT.search(before) is not None:
            return True
        agreed = _AGREED.search(before) is not None and _AGREED_FOR.match(after) is not None
        return numbered and (agreed or _GIVEN_ON.search(before) is not None)

    def names_event(self, match: re.Match[str]) -> bool:
        """Whether the clause of a match says what is on that day, and has no verb of its own."""
        return self.asked is None and names_event(self.low, *match.span())

    def of_its_day(self, match: re.Match[str]) -> bool:
        """Whether something is spoken of by its day: an invoice, an order, a charge."""
        return self.asked is None and _OF_ITS_DAY.search(self.before(match, 60)) is not None

    def before(self, match: re.Match[str], reach: int = 30) -> str:
        """What stands before a match, in lower case."""
        return self.low[max(0, match.start() - reach) : match.start()]

    def after(self, match: re.Match[str], reach: int = 30) -> str:
        """What stands after a match, in lower case."""
        return self.low[match.end() : match.end() + reach]

    def after_name(self, match: re.Match[str]) -> str:
        """What stands after a match and the name that it begins: "Yesterday's Jam"."""
        name = _NAME_GOES_ON.match(self._turn.text, match.end())
        end = name.end() if name else match.end()
        return self.low[end : end + 30]

    def titled(self, match: re.Match[str]) -> bool:
        """Whether it begins a title: "Tomorrow Never Dies", every word with a capital."""
        return _TITLE.match(self._turn.text, match.start()) is not None

    def named(self, match: re.Match[str]) -> bool:
        """Whether it is written as a name inside a sentence: "a band called Last Tuesday"."""
        words = match.group().split()
        written = self._turn.text[match.start() : match.end()].split()
        inside = self.low[: match.start()].rstrip()[-1:].isalpha()
        return inside and len(words) > 1 and all(word[0].isupper() for word in written)

    def titled_inside(self, match: re.Match[str]) -> bool:
        """Whether it is one word with a capital after another word: "the Today programme"."""
        inside = self.low[: match.start()].rstrip()[-1:].isalpha()
        one = self._turn.text[match.start() : match.end()]
        return inside and one[0].isupper() and not one.isupper() and " " not in one

    def capital(self, match: re.Match[str], group: str) -> bool:
        """Whether it is written as a name."""
        return self._turn.text[match.start(group)].isupper()


def _part_of_day(match: re.Match[str]) -> str | None:
    words = match.group().split()
    if words[-1] == "tonight":
        return "night"
    return words[-1] if words[-1] in {"morning", "afternoon", "evening", "night"} else None


def _iso(reader: DateReader, match: re.Match[str]) -> When | None:
    day = date(int(match["year"]), int(match["month"]), int(match["day"]))
    if match["hour"] is None:
        return calendar.on_day(day)
    return calendar.on_day(day, time(int(match["hour"]), int(match["minute"])))


def _numeric(reader: DateReader, match: re.Match[str]) -> When | None:
    first, second = int(match["first"]), int(match["second"])
    day_first = match["mark"] == "." or first > 12  # noqa: PLR2004 - no month beyond December
    if not day_first and second <= 12 and first != second:  # noqa: PLR2004 - same
        return None
    day, month = (first, second) if day_first else (second, first)
    return calendar.on_day(date(int(match["year"]), month, day))


def _day_and_month(reader: DateReader, match: re.Match[str]) -> When | None:
    name = match["month"].rstrip(".")
    ordinal = re.search(r"\d(?:st|nd|rd|th)", match.group()) is not None
    led = match.group().startswith(("on ", "since ")) or match["year"] is not None
    # Who asks seldom writes capitals; but "where may 10 people sit?" names no day.
    plain = reader.asked is not None and name != "may"
    if name in _AMBIGUOUS_IN_LOWER_CASE and not (
        plain or reader.capital(match, "month") or ordinal or led
    ):
        return None
    if match["year"]:
        month = calendar.month_number(name)
        return calendar.on_day(date(int(match["year"]), month, int(match["day"])))
    if reader.of_its_day(match):
        return calendar.on_day(
            calendar.closest_day(reader.today, calendar.month_number(name), int(match["day"]))
        )
    tense = reader.tense(match, numbered=True)
    if tense is Tense.PAST and not reader.asked and _BIRTH.search(reader.before(match, 60)):
        return None
    if tense is Tense.UNTOLD:
        tense = reader.untold
    month, number = calendar.month_number(name), int(match["day"])
    day = calendar.nearest_day(reader.today, month, number, tense)
    if tense in {Tense.PAST, Tense.PERFECT} and reader.names_event(match):
        # A year ago is further away than what is spoken of: "bought the dress, wedding 24 October".
        day = calendar.coming_day(reader.today, month, number) or day
    return None if day is None else calendar.on_day(day)


def _month_and_year(reader: DateReader, match: re.Match[str]) -> When | None:
    if UNIT_AFTER_YEAR.match(reader.after(match)):
        return None
    return calendar.in_month(int(match["year"]), calendar.month_number(match["month"]))


_DAY_WORDS = {
    "today": 0, "tonight": 0, "this morning": 0, "this afternoon": 0, "this evening": 0,
    "tomorrow": 1, "yesterday": -1, "last night": -1,
    "day before yesterday": -2, "day after tomorrow": 2,
}  # fmt: skip


def _day_word(reader: DateReader, match: re.Match[str]) -> When | None:
    after = reader.after(match)
    if _TITLE_AFTER.match(after) or _NAME_AFTER.match(after) or reader.titled(match):
        return None
    if _TITLE_IS.match(reader.after_name(match)) or reader.titled_inside(match):
        return None
    word = re.sub(r"\s+", " ", match["around"] or match["word"])
    return calendar.on_day(reader.today + timedelta(days=_DAY_WORDS[word]))


def _ago(reader: DateReader, match: re.Match[str]) -> When | None:
    count = small_number(match["count"])
    if count is None or (reader.asked is None and _NOT_AROUND.search(reader.before(match))):
        return None
    base = reader.today - timedelta(days=match["from"] == "yesterday")
    day = calendar.shift(base, -count, match["unit"])
    return replace(calendar.on_day(day), counted=match["unit"])


def _ahead(reader: DateReader, match: re.Match[str]) -> When | None:
    count = small_number(match["count"])
    if count is None or _OR.match(reader.after(match)):
        return None
    timed = match.group().endswith("time")
    if not timed:
        if DURATION.search(reader.before(match)):
            return None
        if reader.tense(match) in {Tense.PAST, Tense.PERFECT, Tense.HABIT}:
            return None
    return calendar.on_day(calendar.shift(reader.today, count, match["unit"]))


def _from_now(reader: DateReader, match: re.Match[str]) -> When | None:
    count = small_number(match["count"])
    if count is None or _NOT_AROUND.search(reader.before(match)):
        return None
    base = reader.today + timedelta(days=match["from"] == "tomorrow")
    return calendar.on_day(calendar.shift(base, count, match["unit"]))


def _period(reader: DateReader, match: re.Match[str]) -> When | None:
    if match["far"]:
        step = -2 if match["far"].endswith("last") else 2
        return calendar.period(reader.today, step, match["far_unit"])
    loose = (
        match["which"] == "past"
        or _SPAN.search(reader.before(match))
        or re.match(r"\sof\b|\sor\s", reader.after(match))
    )
    if loose and reader.asked is None:
        return None
    if match["which"] == "past":
        # The month that ends now, as with "the past two weeks"; "last month" is the one before.
        begin = calendar.shift(reader.today, -1, match["unit"])
        return calendar.stretch(begin, reader.today + timedelta(days=1))
    return calendar.period(reader.today, _STEP[match["which"]], match["unit"])


def _weekday_of_week(reader: DateReader, match: re.Match[str]) -> When | None:
    weekday = calendar.weekday_number(match["weekday"] or match["weekday_last"])
    step = _STEP[match["which"] or match["which_first"]]
    return calendar.on_day(calendar.weekday_in_week(reader.today, weekday, step))


def _which_weekday(reader: DateReader, match: re.Match[str]) -> When | None:
    if _SPAN.search(reader.before(match)) or _not_a_day(reader, match) or reader.named(match):
        return None
    weekday = calendar.weekday_number(match["weekday"])
    which = match["which"]
    if which in {"last", "this past"}:
        return calendar.on_day(calendar.last_weekday(reader.today, weekday))
    if which.endswith("coming"):
        return calendar.on_day(calendar.next_weekday(reader.today, weekday))
    return calendar.on_day(calendar.weekday_in_week(reader.today, weekday, _STEP[which]))


def _on_weekday(reader: DateReader, match: re.Match[str]) -> When | None:
    if _not_a_day(reader, match) or re.search(
        r"\b(?:ago|from now|week|weeks)\s\Z", reader.before(match)
    ):
        return None
    weekday = calendar.weekday_number(match["weekday"])
    tense = reader.tense(match)
    if tense is Tense.HABIT:
        return None
    lead = match["lead"]
    past = lead == "since" or (tense in {Tense.PAST, Tense.PERFECT} and lead == "on")
    if not past and tense in {Tense.PAST, Tense.PERFECT} and not lead.startswith("see"):
        return None
    day = (calendar.last_weekday if past else calendar.next_weekday)(reader.today, weekday)
    return calendar.on_day(day)


def _timed_weekday(reader: DateReader, match: re.Match[str]) -> When | None:
    if _TITLE_DAYS.search(reader.before(match)):
        return None
    tense = reader.tense(match)
    if tense is Tense.HABIT or re.search(r"\b(?:every|each|most|a)\s\Z", reader.before(match)):
        return None
    past = tense in {Tense.PAST, Tense.PERFECT}
    weekday = calendar.weekday_number(match["weekday"])
    day = (calendar.last_weekday if past else calendar.next_weekday)(reader.today, weekday)
    return calendar.on_day(day)


def _not_a_day(reader: DateReader, match: re.Match[str]) -> bool:
    short = len(match["weekday"].rstrip(".")) < len("friday") - 1
    if short and not reader.capital(match, "weekday"):
        return True
    return NOT_A_DAY_AFTER.match(reader.after(match)) is not None


def _month_alone(reader: DateReader, match: re.Match[str]) -> When | None:
    name = match["month"].rstrip(".")
    written = reader.asked is not None or reader.capital(match, "month")
    if not written and name in _AMBIGUOUS_IN_LOWER_CASE:
        return None
    tense = reader.tense(match)
    if match["lead"] in {"since", "last", "this past"}:
        tense = Tense.PAST
    elif match["lead"] in {"by", "until", "till"} and tense is Tense.UNTOLD:
        tense = Tense.FUTURE
    elif tense is Tense.UNTOLD:
        tense = reader.untold
    return calendar.nearest_month(reader.today, calendar.month_number(name), tense)


def is_amount(reader: DateReader, match: re.Match[str]) -> bool:
    """Whether what looks like a year counts something: "in 2000 tokens", "a limit of 2048"."""
    after = reader.after(match)
    return bool(
        UNIT_AFTER_YEAR.match(after)
        or _AMOUNT_AFTER.match(after)
        or AMOUNT_BEFORE.search(reader.before(match))
    )


def _year(reader: DateReader, match: re.Match[str]) -> When | None:
    if is_amount(reader, match):
        return None
    return calendar.in_year(int(match["year"]))


_WEEKDAY_NEEDLES = ("day", *calendar.WEEKDAYS)
_DATE_RULES: tuple[DateRule, ...] = (
    (("-", "/"), ISO, _iso),
    ((".", "/"), NUMERIC, _numeric),
    (calendar.MONTHS, DAY_MONTH, _day_and_month),
    (calendar.MONTHS, MONTH_DAY, _day_and_month),
    (calendar.MONTHS, MONTH_YEAR, _month_and_year),
    ((" from ",), FROM_NOW, _from_now),
    ((" ago",), AGO, _ago),
    (("in ",), AHEAD, _ahead),
    (("day", "ton", "tom", "last", "this"), DAY_WORD, _day_word),
    ((" week",), WEEKDAY_OF_WEEK, _weekday_of_week),
    ((" week", " month", " year", "week ", "month ", "year "), PERIOD, _period),
    (("next", "last", "coming", "this"), WHICH_WEEKDAY, _which_weekday),
    (_WEEKDAY_NEEDLES, ON_WEEKDAY, _on_weekday),
    ((" at ", "@"), TIMED_WEEKDAY, _timed_weekday),
    (calendar.MONTHS, MONTH_ALONE, _month_alone),
    (("19", "20"), YEAR, _year),
)
