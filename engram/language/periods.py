"""The time that a question names: "the weekend before last", "since early March", "Q3 2023"."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from typing import Final, NamedTuple

from engram.errors import InvalidInput
from engram.language import calendar
from engram.language.calendar import MONTH, MONTH_NAME, WEEKDAY, WORDS, Tense, When, small_number
from engram.language.dates import (
    AMOUNT_BEFORE,
    DateReader,
    DateRule,
    QuestionRules,
    is_amount,
    read,
)
from engram.language.found import Masked
from engram.language.text import SPOKEN_WORDS, is_past


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of time.

    Attributes:
        begin: Its first moment, aware; None where it has always been going on.
        end: The first moment after it, aware; None where no end is named.
    """

    begin: datetime | None
    end: datetime | None

    def holds(self, moment: datetime) -> bool:
        """Whether the moment, aware, lies within."""
        begun = self.begin is None or self.begin <= moment
        return begun and (self.end is None or moment < self.end)

    def __str__(self) -> str:
        """For people: the days from the first to the last, "2024-05-06 to 2024-05-12"."""
        last = None if self.end is None else (self.end - timedelta(microseconds=1)).date()
        if self.begin is None:
            return "any time" if last is None else f"until {last}"
        if last is None:
            return f"from {self.begin.date()} on"
        return f"{self.begin.date()} to {last}"


# Nobody counts to the day: as much leeway as half of what was counted in.
_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
# What follows a word of a period: it, and no more than that, is read on its own.
_REACH = 48
# A question that names more of them is a text; the first tell what it is about.
_MOST_LEADS = 8
_TENSE_REACH = 1_000


def period_named(text: str, now: datetime) -> Period | None:
    """Read the time that a question names. Reads English; costs microseconds, asks no model.

    Turns are read by the same grammar, but a question is read more loosely: "the June
    trip", "a few weeks ago", "late 2022", "05/03/2024" (month first, unless only the other
    order has been). One that does not say which way it looks looks back, so that "in
    March" is the last March that has begun. Seasons are those of the northern half of the
    Earth, and begin with a month; "early", "mid" and "late" are thirds; "3 weeks ago" has
    leeway of half a week on both sides. Days are those of the zone of ``now``.

    Args:
        text: The question.
        now: When it is asked, aware.

    Returns:
        The period; None where it names none.

    Raises:
        InvalidInput: ``now`` has no zone.

    Example:
        >>> now = datetime.fromisoformat("2024-05-15T12:00:00+00:00")
        >>> str(period_named("Whom did I meet the week before last?", now))
        '2024-04-29 to 2024-05-05'
    """
    if now.tzinfo is None:
        raise InvalidInput("now has no time zone.", allowed="an aware datetime")
    turn = Masked(text)
    if not _ANY.search(turn.low):
        return None
    reading = _Reading(now, QuestionRules(_tense(turn.low), _FIRST, _LAST))
    try:
        return reading.composed(turn) or reading.plain(turn)
    except (ValueError, OverflowError):
        # Beyond the calendar: then it is no time.
        return None


# No time is named without one of these; most questions have none of them.
_ANY = re.compile(
    rf"\d|day|week|month|year|night|morning|afternoon|evening|tomorrow|quarter|\b{MONTH}"
    r"|spring|summer|autumn|fall|winter"
)

# --- which way a question looks

_ASKS_AHEAD = re.compile(
    r"\b(?:will|shall|gonna|going to|upcoming|coming up)\b|'ll\b"
    r"|\b(?:is|are|am|do|does|have|has|what's|anything|'s|'re|'m)\s(?:\w+\s){0,4}"
    r"(?:planned|scheduled|booked|due|happening)\b"
)
# "I was thinking about this weekend" looks back at nothing but a thought.
_THOUGHT = re.compile(
    r"\b(?:was|were|been)\s(?:thinking|wondering|planning|hoping|considering|looking)\b"
)
_ASKS_WHAT_TO_DO = re.compile(
    r"\b(?:can|could|should|may (?:i|we|my)|might|must|would|needs?|wants?|plan|planning|ideas"
    r"|tips|recommend|suggest|suggestions|excited)\b"
)
_DONE = frozenset("did didn't was were wasn't weren't had hadn't ago happened".split())
_HABITS = re.compile(
    r"\b(?:usually|typically|normally|generally|always|every|each|tend|tends)\b"
    r"|\b(?:do|does) (?:i|we|they|he|she) (?:like|love|hate|prefer|enjoy)\b"
)


def _tense(low: str) -> Tense:
    if _ASKS_AHEAD.search(low):
        return Tense.FUTURE
    low = _THOUGHT.sub("", low[:_TENSE_REACH])
    if any(word in _DONE or is_past(word) for word in SPOKEN_WORDS.findall(low)):
        return Tense.PAST
    if _ASKS_WHAT_TO_DO.search(low):
        return Tense.FUTURE
    return Tense.HABIT if _HABITS.search(low) else Tense.UNTOLD


# --- days from one on, before another, and how words before a time change it


class _Stretch(NamedTuple):
    """Days: the first, the one after the last, and how much of the text says so."""

    begin: date | None
    until: date | None
    end: int

    def third(self, which: int) -> _Stretch:
        """The first (0), second or third third of it; of a day, the day."""
        if self.begin is None or self.until is None:
            return self
        months = _months(self.begin, self.until)
        if months >= _MONTHS_IN_QUARTER:
            third = months // 3
            begin = calendar.add_months(self.begin, third * which)
            return _Stretch(begin, calendar.add_months(begin, third), self.end)
        days = (self.until - self.begin).days
        if days < _DAYS_IN_WEEK:
            return self
        # The thirds of a month begin on the 1st, the 11th and the 21st, however long it is.
        step = days / 3 if not months else 10
        cuts = [self.begin + timedelta(days=int(step * n)) for n in (0, 1, 2)]
        return _Stretch(cuts[which], (*cuts, self.until)[which + 1], self.end)


_DAYS_IN_WEEK = 7
_MONTHS_IN_QUARTER = 3
_MONTHS_IN_YEAR = 12
_MOST_DEPTH = 2
_ORDINALS: Final = {
    "first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4,
    "last": 0, "final": 0,
}  # fmt: skip
_NTH = "|".join(_ORDINALS)
_LEAD = re.compile(
    r"(?<![\w-])(?:"
    rf"(?:the\s)?(?P<nth>{_NTH})\s(?P<what>half|week|weekend|day|{WEEKDAY})\s(?:of|in)\s"
    rf"|(?:the\s|on\s|(?:an?|(?P<count>\d{{1,2}}|{WORDS}))\s)*(?P<beside>day|week|month|year|weekend|"
    rf"{WEEKDAY})s?\s(?P<side>before|after|of)\s(?!the\sweek\b)"
    r"|(?:(?:at|in|during|around|towards?)\s)?(?:the\s)?(?:very\s)?"
    r"(?:(?P<early>early(?:\son)?(?:\sin)?|(?:start|beginning)\sof)"
    r"|(?P<mid>mid|(?:the\s)?middle\sof)|(?P<late>late(?:\sin)?|end\sof)"
    r"|(?P<so_far>earlier)|(?P<rest>later|rest\sof))[\s-]"
    r"|(?P<range>between|from)\s"
    r"|(?P<since>(?:ever\s)?since)\s|(?P<after>after|later\sthan|following)\s"
    r"|(?P<until>until|till|up\sto|up\suntil|through|by)\s"
    r"|(?P<before>before|prior\sto|earlier\sthan)\s)"
)
_NEEDLES = (
    "before", "after", "since", "between", "from", "until", "till", "by ", "early", "earlier",
    "mid", "late", "start", "begin", "end", "prior", "up to", "through", "following", "rest",
    "half", "of ",
)  # fmt: skip
_STOP = re.compile(r"[?!;\n]")
_JOINT = re.compile(r"\s?(?:and|to|till|until|through|thru|-)\s?(?:the\s)?")
_DASH = re.compile(
    rf"\s?(?:-|to\s|through\s|until\s|till\s)\s?(?:the\s)?|\sand\s(?={MONTH}(?!\w))", re.I
)
_DAY_ALONE = re.compile(r"(?:the\s)?(?P<day>\d{1,2})(?:st|nd|rd|th)?(?![\w:./%])")
_ONWARD = re.compile(r"\s(?:on|onwards?|forward)\b")
_THIS = re.compile(r"(?:the|this)\s(?P<unit>week|month|year|quarter)\b(?!\s(?:before|after|of))")
_BARE_YEAR = re.compile(r"(?:19|20)\d\d(?!\w|[/.,:-]\d)")
_BARE: Final = (
    (re.compile(rf"(?:the\s)?{MONTH}(?!\w)"), "in "),
    (_BARE_YEAR, "in "),
    (re.compile(rf"{WEEKDAY}(?!\w)"), "on "),
    (re.compile(r"\d{1,2}/\d"), "on "),
)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def _months(begin: date, until: date) -> int:
    """How many whole months lie between two days; 0 unless they are whole."""
    if begin.day != 1 or until.day != 1:
        return 0
    return (until.year - begin.year) * _MONTHS_IN_YEAR + until.month - begin.month


class _Reading:
    """Reads one question."""

    def __init__(self, now: datetime, asked: QuestionRules) -> None:
        self._now = now
        self._today = now.date()
        self._asked = asked

    def plain(self, turn: Masked) -> Period | None:
        """The first time that stands for itself."""
        text = turn.text
        one = next(read(turn, self._now, asked=self._asked), None)
        if one is None:
            return None
        if one.when.counted is not None:
            middle = self._now - (self._today - one.when.day)
            leeway = timedelta(days=max(1.0, _DAYS[one.when.counted] / 2))
            return Period(middle - leeway, middle + leeway)
        span = _Stretch(one.when.day, one.when.after(), one.end)
        dash = _DASH.match(text, one.end)
        # "May 3 to 10", "June - August 2023"; not "Monday to me".
        to = dash and self._second(text, dash.end(), span, 0, text[one.start : one.end])
        return self._period(to or span)

    def composed(self, turn: Masked) -> Period | None:
        """The first time that other words narrow, widen or join to another."""
        if not any(needle in turn.low for needle in _NEEDLES):
            return None
        for count, lead in enumerate(_LEAD.finditer(turn.low)):
            if count >= _MOST_LEADS:
                break
            span = self._led(lead, turn.text, 0)
            if span is not None:
                return self._period(span)
        return None

    def _period(self, span: _Stretch) -> Period:
        return Period(*(
            None if day is None else datetime.combine(day, time(), tzinfo=self._now.tzinfo)
            for day in (span.begin, span.until)
        ))  # fmt: skip

    def _led(self, lead: re.Match[str], text: str, depth: int) -> _Stretch | None:
        """What the words of a lead make of the time that follows them."""
        kind = lead.lastgroup or ""
        number = _BARE_YEAR.match(text, lead.end())
        if number and AMOUNT_BEFORE.search(text[max(0, lead.start() - 30) : lead.start()].lower()):
            return None
        if lead["range"]:
            return self._range(lead["range"], text, lead.end(), depth)
        tense = self._asked.tense
        if lead["since"]:
            tense = Tense.PAST
        elif lead["until"] and tense is Tense.UNTOLD:
            tense = Tense.FUTURE
        inner = self._edge(text, lead.end(), depth, tense)
        if inner is None or inner.begin is None or inner.until is None:
            return None
        if lead["nth"]:
            return _nth(inner, _ORDINALS[lead["nth"]], lead["what"])
        if lead["beside"]:
            return _beside(inner, lead["beside"], lead["side"], lead["count"])
        return self._part(kind, inner, inner.begin, inner.until)

    def _part(self, kind: str, inner: _Stretch, begin: date, until: date) -> _Stretch | None:
        """A third of a time, or what begins or ends with it."""
        if kind in _THIRDS:
            return inner.third(_THIRDS[kind])
        tomorrow = self._today + timedelta(days=1)
        made: dict[str, tuple[date | None, date | None]] = {
            "so_far": (begin, min(until, tomorrow)),
            "rest": (max(begin, self._today), until),
            "since": (begin, tomorrow if begin < tomorrow else None),
            "after": (until, tomorrow if until < tomorrow else None),
            "until": (None, until),
            "before": (None, begin),
        }
        since, to = made[kind]
        return _Stretch(since, to, inner.end) if since is None or to is None or since < to else None

    def _edge(self, text: str, at: int, depth: int, tense: Tense) -> _Stretch | None:
        """The time that the words from ``at`` on begin with."""
        piece = _STOP.split(text[at : at + _REACH], maxsplit=1)[0]
        low = piece.lower()
        lead = _LEAD.match(low)
        if lead is not None and not lead["range"] and depth < _MOST_DEPTH:
            inner = self._led(lead, piece, depth + 1)
            if inner is not None:
                return inner._replace(end=at + inner.end)
        this = _THIS.match(low)
        if this is not None:
            when = _quarter_of(self._today) if this["unit"] == "quarter" else None
            when = when or calendar.period(self._today, 0, this["unit"])
            return _Stretch(when.day, when.after(), at + this.end())
        return self._named(piece, low, at, tense)

    def _named(self, piece: str, low: str, at: int, tense: Tense) -> _Stretch | None:
        bare = next((lead for pattern, lead in _BARE if pattern.match(low)), "")
        if bare and low.startswith("the "):
            piece, at = piece[4:], at + 4
        reach = len(bare) + (4 if low.startswith("the ") else 0)
        asked = self._asked._replace(tense=tense)
        found = [
            one
            for one in read(Masked(bare + piece), self._now, asked=asked)
            if one.start <= reach and one.end > len(bare)
        ]
        if not found:
            return None
        one = max(found, key=lambda one: one.end)
        return _Stretch(one.when.day, one.when.after(), at + one.end - len(bare))

    def _range(self, word: str, text: str, at: int, depth: int) -> _Stretch | None:
        """Read what follows "between" or "from": two times, and all that lies between them."""
        number = _DAY_ALONE.match(text, at)
        joint = _JOINT.match(text, number.end()) if number else None
        if number and joint:
            last = self._edge(text, joint.end(), depth, self._asked.tense)
            if last is not None and last.begin is not None:
                begin = last.begin.replace(day=int(number["day"]))
                return last._replace(begin=begin) if begin <= last.begin else None
        first = self._edge(text, at, depth, self._asked.tense)
        if first is None:
            return None
        joint = _JOINT.match(text, first.end)
        both = joint and self._second(text, joint.end(), first, depth, text[at : first.end])
        if both or word == "between":
            return both
        on = _ONWARD.match(text, first.end)
        if on and first.begin is not None:
            return _Stretch(first.begin, self._today + timedelta(days=1), on.end())
        return first

    def _second(
        self, text: str, at: int, first: _Stretch, depth: int, said: str
    ) -> _Stretch | None:
        """From ``first``, whose words are ``said``, to the time that stands at ``at``."""
        begin = first.begin
        if begin is None or first.until is None:
            return None
        day = _DAY_ALONE.match(text, at)
        if day is not None and (first.until - begin).days == 1:
            last = begin.replace(day=int(day["day"]))
            return _Stretch(begin, last + timedelta(days=1), day.end()) if last > begin else None
        last_one = self._edge(text, at, depth, self._asked.tense)
        if last_one is None or last_one.begin is None or last_one.until is None:
            return None
        end, until = last_one.begin, last_one.until
        years = _YEAR.search(said), _YEAR.search(text, at, last_one.end)
        if years[1] and not years[0]:
            # "From March to May 2022"
            begin = _in_year(begin, int(years[1].group()))
        elif years[0] and not years[1]:
            later = int(years[0].group()) - end.year
            later += _in_year(end, int(years[0].group())) < begin
            end, until = (calendar.add_months(day, 12 * later) for day in (end, until))
        if begin > end:
            # "Between November and February", "from Friday to Monday"
            near = (begin - end).days < _DAYS_IN_WEEK
            begin = begin - timedelta(weeks=1) if near else calendar.add_months(begin, -12)
        return _Stretch(begin, until, last_one.end) if begin < until else None


_THIRDS: Final = {"early": 0, "mid": 1, "late": 2}


def _in_year(day: date, year: int) -> date:
    return calendar.add_months(day, _MONTHS_IN_YEAR * (year - day.year))


def _nth(span: _Stretch, nth: int, what: str) -> _Stretch | None:
    """The second half, the last week, the first Monday of a period."""
    begin, until = span.begin, span.until
    if begin is None or until is None:
        return None
    day = timedelta(days=1)
    if what == "half":
        months = _months(begin, until)
        middle = begin + (until - begin) / 2
        if months and months % 2 == 0:
            middle = calendar.add_months(begin, months // 2)
        return {1: _Stretch(begin, middle, span.end), 2: _Stretch(middle, until, span.end)}.get(nth)
    if what in {"week", "day"}:
        size = timedelta(weeks=1) if what == "week" else day
        first = begin + size * (nth - 1) if nth else until - size
        return _Stretch(first, min(first + size, until), span.end) if first < until else None
    weekday = 5 if what == "weekend" else calendar.weekday_number(what)
    first = calendar.next_weekday(begin - day, weekday) + timedelta(weeks=nth - 1)
    if not nth:
        first = calendar.last_weekday(until, weekday)
    last = first + (2 * day if what == "weekend" else day)
    return _Stretch(first, last, span.end) if begin <= first < until else None


def _beside(span: _Stretch, unit: str, side: str, counted: str | None) -> _Stretch | None:
    """The day, week, weekend or Monday before, after or of a time; or so many days before."""
    begin, until, end = span
    if begin is None or until is None:
        return None
    if counted is not None and unit in _DAYS:
        count = small_number(counted) or 0
        middle = calendar.shift(begin, -count if side == "before" else count, unit)
        leeway = timedelta(days=_DAYS[unit] // 2)
        return _Stretch(middle - leeway, middle + leeway + timedelta(days=1), end)
    if unit not in _DAYS:
        weekday = 5 if unit == "weekend" else calendar.weekday_number(unit)
        first = {
            "of": calendar.weekday_in_week(begin, weekday, 0),
            "before": calendar.last_weekday(begin, weekday),
            "after": calendar.next_weekday(until - timedelta(days=1), weekday),
        }[side]
        return _Stretch(first, first + timedelta(days=1 + (unit == "weekend")), end)
    if side == "of":
        week = calendar.in_week(begin)
        return _Stretch(week.day, week.after(), end) if unit == "week" else span
    if side == "before":
        return _Stretch(calendar.shift(begin, -1, unit), begin, end)
    return _Stretch(until, calendar.shift(until, 1, unit), end)


# --- times that only a question names so loosely

_L = r"(?<![\w./:@#$-])"
_R = r"(?![\w-])"
_WHICH = r"last|this\spast|past|previous|this\scoming|coming|this|next"
_BACK = frozenset({"last", "this past", "past", "previous"})
_A_FEW = rf"a\sfew|few|several|some|(?:a\s)?couple(?:\sof)?|\d{{1,3}}|an?|{WORDS}"
# What "a few" and "several" mean: no fewer, no more.
_FEW = (2, 6)

_WEEKEND = re.compile(
    rf"{_L}(?:(?P<count>{_A_FEW})\s(?:of\s)?weekends?\sago|(?:the\s)?weekend\s"
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
    rf"{_L}(?:about\s|around\s|some\s)?(?:(?P<count>a\sfew|few|several|(?:a\s)?couple(?:\sof)?)"
    r"[\s-](?:of\s)?(?P<unit>day|week|month|year)s?|(?P<half>half\sa\syear|six\smonths)"
    rf"|(?P<night>(?:a\scouple\sof|two|three|a\sfew)\snights))\sago(?!\w)"
)
_WEEKDAY_AGO = re.compile(
    rf"{_L}(?:(?P<count>{_A_FEW})\s(?P<weekday>{WEEKDAY})s?\sago"
    rf"|(?:the\s)?(?P<far_day>{WEEKDAY})\s(?P<far>before\slast|after\snext)){_R}"
)
_ROLLING = re.compile(
    rf"{_L}(?:(?:in|over|during|within|for|from)\s)?(?:the\s|these\s|my\s)?"
    rf"(?P<which>last|past|previous|next|coming)\s(?P<count>{_A_FEW})[\s-]"
    rf"(?P<unit>hour|day|week|month|year|weekend|night)s?{_R}"
)
_AHEAD = re.compile(
    rf"{_L}in\s(?:exactly\s|about\s)?(?P<count>{_A_FEW})[\s-](?:of\s)?"
    r"(?P<unit>day|week|month|year)s?(?P<timed>'?s?'?\stime)?(?![\w'-])"
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
    rf"{_L}on\sthe\s(?P<day>\d{{1,2}})(?:st|nd|rd|th)(?=\s*(?:[?.!,]|\Z)|\sof\s(?P<which>last|this|next)\smonth)"
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
    rf"{_L}(?:(?P<of>of|year)|(?:the|my|our|your|his|her|their|\w+'s))\s(?P<year>(?:19|20)\d\d)"
    r"(?![\w-]|[/.,:]\d|%|@)"
)
_NAMES_TOO = frozenset({"april", "may", "june", "august", "march"})
_ITS = re.compile(r"(?:\b(?:the|my|our|your|their|his|her|last|this|of|late|early)|'s)\s\Z")
_PLAIN_NOUN = re.compile(r"\s[a-z]|'s\s[a-z]")
_SEASON_MONTHS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_SEASON_LED = re.compile(r"\A(?:(?:in|over|during|of|for|since|by|until|before|after)\s)")
_HOW_LONG = re.compile(
    r"\b(?:how (?:can|could|do|to|would|should|long|much|many)|can|could|possible|would|best"
    r"|finish|learn|lose|within)\b"
)
_LIES_AHEAD = re.compile(
    r"\b(?:due|happens?|happening|have|planned|scheduled|booked|on|coming|up|starts?|ends?|begins?|arriv\w+"
    r"|leav\w+|return\w*|appointments?|meetings?|deadlines?|expires?|be|do|flying|travell?ing|moving)\b"
)
_THE = re.compile(r"\b(?:the|these)\s\Z")


def _few(word: str) -> tuple[int, int] | None:
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
        few = _few(match["count"])
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
        return calendar.stretch(begin, calendar.add_months(begin, _MONTHS_IN_QUARTER))
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
        lambda of: date(of, month, 1), _MONTHS_IN_QUARTER, reader.today, told, match["far"]
    )


def _this_season(today: date, month: int, tense: Tense) -> When:
    begin = date(today.year, month, 1)
    # January lies in the winter that began last year.
    if today < calendar.add_months(begin, _MONTHS_IN_QUARTER - _MONTHS_IN_YEAR):
        begin = calendar.add_months(begin, -_MONTHS_IN_YEAR)
    if tense is Tense.PAST and begin > today:
        begin = calendar.add_months(begin, -_MONTHS_IN_YEAR)
    return calendar.stretch(begin, calendar.add_months(begin, _MONTHS_IN_QUARTER))


def _quarter_of(day: date) -> When:
    """The quarter that a day lies in."""
    begin = date(day.year, (day.month - 1) // 3 * 3 + 1, 1)
    return calendar.stretch(begin, calendar.add_months(begin, _MONTHS_IN_QUARTER))


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
        number, months = _ORDINALS[match["word"]] or 4, 3
    else:
        number, months = int(match["n"]), 3 if match["kind"] == "q" else 6
        led = match["lead"] or re.match(
            r"\s(?:results?|reports?|goals?|numbers?|revenue|plan\w*|budget|targets?|okrs?|review)\b",
            reader.after(match),
        )
        if number * months > _MONTHS_IN_YEAR or (year is None and not led):
            return None
    month = (number - 1) * months + 1
    if year is not None:
        begin = date(year, month, 1)
        return calendar.stretch(begin, calendar.add_months(begin, months))
    ahead = reader.tense(match) is Tense.FUTURE
    told = "ahead" if ahead else "begun"
    return _one_of(lambda of: date(of, month, 1), months, reader.today, told, None)


def _which_quarter(reader: DateReader, match: re.Match[str]) -> When | None:
    here, which = _quarter_of(reader.today), match["which"]
    steps = {"this": 0, "next": 1, "coming": 1, "this coming": 1}.get(which, -1)
    if match["far"]:
        steps = -2 if match["far"].endswith("last") else 2
    begin = calendar.add_months(here.day, _MONTHS_IN_QUARTER * steps)
    return _quarter_of(begin)


def _loose_ago(reader: DateReader, match: re.Match[str]) -> When | None:
    if match["half"]:
        day = calendar.add_months(reader.today, -6)
        return replace(calendar.on_day(day), counted="month")
    few = _few(match["count"] or match["night"].removesuffix(" nights"))
    unit = match["unit"] or "day"
    if few is None:
        return None
    if few[0] == few[1]:
        day = calendar.shift(reader.today, -few[0], unit)
        return replace(calendar.on_day(day), counted=unit)
    latest = calendar.shift(reader.today, -few[0], unit)
    return calendar.stretch(calendar.shift(reader.today, -few[1], unit), latest + timedelta(days=1))


def _weekday_ago(reader: DateReader, match: re.Match[str]) -> When | None:
    weekday = calendar.weekday_number(match["weekday"] or match["far_day"])
    if match["far"]:
        weeks = -1 if match["far"].endswith("last") else 1
        near = calendar.next_weekday if weeks > 0 else calendar.last_weekday
        return calendar.on_day(near(reader.today, weekday) + timedelta(weeks=weeks))
    few = _few(match["count"])
    if few is None or few[0] != few[1]:
        return None
    last = calendar.last_weekday(reader.today, weekday)
    return calendar.on_day(last - timedelta(weeks=few[0] - 1))


def _rolling(reader: DateReader, match: re.Match[str]) -> When | None:
    few = _few(match["count"])
    if few is None or match["count"] in {"a", "an"}:
        return None
    most, unit = few[1], match["unit"]
    ahead = match["which"] in {"next", "coming"}
    if unit == "hour":
        most, unit = -(-most // 24), "day"
    unit = {"night": "day", "weekend": "week"}.get(unit, unit)
    if ahead:
        return calendar.stretch(
            reader.today, calendar.shift(reader.today, most, unit) + timedelta(days=1)
        )
    return calendar.stretch(
        calendar.shift(reader.today, -most, unit), reader.today + timedelta(days=1)
    )


def _ahead(reader: DateReader, match: re.Match[str]) -> When | None:
    """In three days, unless it says how long something takes."""
    few, tense = _few(match["count"]), reader.asked.tense if reader.asked else Tense.UNTOLD
    if few is None or re.match(r"\s(?:of|to|or|in|at)\b", reader.after(match)):
        return None
    if match["timed"] is None:
        start = reader.before(match, 200)
        told = tense is Tense.FUTURE or _LIES_AHEAD.search(start)
        if tense is Tense.PAST or _HOW_LONG.search(start) or not told:
            return None
    unit = match["unit"]
    if few[0] == few[1]:
        return calendar.on_day(calendar.shift(reader.today, few[0], unit))
    until = calendar.shift(reader.today, few[1], unit) + timedelta(days=1)
    return calendar.stretch(calendar.shift(reader.today, few[0], unit), until)


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
    if not 1 <= month <= _MONTHS_IN_YEAR:
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
_FIRST: Final[tuple[DateRule, ...]] = (
    (("/", "-", "."), _SLASHED, _slashed),
    (("weekend",), _WEEKEND, _weekend),
    (tuple(_SEASON_MONTHS), _SEASON, _season),
    (("quarter",), _WHICH_QUARTER, _which_quarter),
    (("quarter", *(f"{kind}{n}" for kind in "qh" for n in range(1, 5))), _QUARTER, _quarter),
    ((" ago",), _LOOSE_AGO, _loose_ago),
    (("ago", "before last", "after next"), _WEEKDAY_AGO, _weekday_ago),
    (("last", "past", "previous", "next", "coming"), _ROLLING, _rolling),
    (("in ",), _AHEAD, _ahead),
    (("previous", "prior", "coming"), _PREVIOUS, _previous),
    (("on the ",), _DAY_OF_MONTH, _day_of_month),
    (("0s", "0's"), _DECADE, _decade),
    (("this ",), _THIS_WEEKDAY, _this_weekday),
)
_LAST: Final[tuple[DateRule, ...]] = (
    (_YEARS, _YEAR_MONTH, _year_month),
    (calendar.MONTHS, _MONTH_SAID, _month_said),
    (_YEARS, _YEAR_SAID, _year_said),
    (("day",), _WEEKDAY_SAID, _weekday_said),
)
