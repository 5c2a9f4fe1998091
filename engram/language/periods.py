"""The time that a question names: "the weekend before last", "since early March", "Q3 2023"."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Final, NamedTuple

from engram.domain.values import Period
from engram.errors import InvalidInput
from engram.language import calendar
from engram.language.calendar import DAYS, MONTH, WEEKDAY, WORDS, Tense, small_number
from engram.language.dates import (
    AMOUNT_BEFORE,
    Dated,
    QuestionRules,
    Start,
    read,
    starts,
)
from engram.language.found import Masked
from engram.language.loose_dates import (
    A_FEW,
    FIRST,
    HOLIDAY,
    HOLIDAY_WORDS,
    HOW_LONG,
    LAST,
    MONTHS_IN_QUARTER,
    MONTHS_IN_YEAR,
    ORDINALS,
    few_of,
    quarter_of,
)
from engram.language.text import SPOKEN_WORDS, is_past

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
    leeway of half a week on both sides, "9 days ago" is that day. Days are those of the
    zone of ``now``.

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
    turn = Masked(_with_years(text, now.year))
    if not _ANY.search(turn.low) and not any(word in turn.low for word in _HOLIDAYS):
        return None
    reading = _Reading(now, QuestionRules(_tense(turn.low), FIRST, LAST))
    try:
        return reading.hours(turn.low) or reading.composed(turn) or reading.plain(turn)
    except (ValueError, OverflowError):
        # Beyond the calendar: then it is no time.
        return None


# No time is named without one of these; most questions have none of them.
_ANY = re.compile(
    rf"\d|day|week|month|year|hour|minute|night|morning|afternoon|evening|quarter|\b{MONTH}"
    r"|tomorrow|tmrw|tmr\b|tomorow|tommor"
    r"|spring|summer|autumn|fall|winter"
)
# Nor a holiday without one of these, which those do not find.
_HOLIDAYS: Final = sorted({word for name, word in HOLIDAY_WORDS.items() if not _ANY.search(name)})

_YEAR_BESIDE = re.compile(
    rf"\b(?P<month>{MONTH}(?:\s\d{{1,2}}(?:st|nd|rd|th)?)?),?\s(?:of\s|in\s)?(?P<which>last|this|next)\syear\b",
    re.I,
)


# What lies behind whoever says it; "this summer" may be still to come.
_SEASON_PAST: Final = re.compile(
    r"\blast (?:spring|summer|autumn|fall|winter|christmas|easter|new year|thanksgiving)\b"
    r"|\b(?:two|three|four|five|\d+) (?:springs|summers|autumns|falls|winters) ago\b"
    r"|\b(?:spring|summer|autumn|fall|winter)(?: of)? (?:19|20)\d\d\b",
    re.I,
)


def starts_told(sentence: str, said_at: datetime) -> list[Start]:
    """The times in which what a sentence tells began, seasons too: "last summer".

    Args:
        sentence: What was said.
        said_at: When.

    Returns:
        Those that are past. The first is the one that is meant: a season, else as
        :func:`engram.language.dates.starts` has them.
    """
    found = starts(sentence, said_at)
    if _SEASON_PAST.search(sentence):
        period = period_named(sentence, said_at.replace(tzinfo=UTC))
        if period is not None and period.begin is not None and period.begin <= said_at:
            found.insert(0, Start(period.begin, period))
    return found


# Right behind the thing, or behind who is there, too: of "at Acme on probation until May" it is the
# probation that ends. Nor does "for three weeks in summer" say when something is over.
_END_TOLD: Final = re.compile(
    r"(?:\swith(?:\s(?!until\b|till\b|for\b|this\b)[\w'’-]+){1,2})?,?\s(?:"
    r"(?P<until>(?:until|till|'?til)\s(?!i\b|we\b)[^.;!?()]{1,40})|(?P<now>this (?:week|month))"
    rf"|for (?:the next |another )?(?P<span>(?:\d{{1,3}}|an?|{WORDS}) (?:day|week|month)s?))"
    r"(?(until)|(?=\s*(?:[,.;:!?)]|\Z|(?:and|but|so|while|because|since|then|or)\b)))"
    r"(?!,? (?:now|already|so far|by now)\b)"
)
_AGAIN_AND_AGAIN: Final = re.compile(
    r"\b(?:every|each|per|always|usually|normally)\b|(?:day|week|month)s? an? \w"
)
_GOING_ON: Final = re.compile(r"(?:\bam|\bis|\bare|['’](?:m|s|re)) (?:\w+ )?\w+ing\b")
_BEGINNING: Final = re.compile(
    r"\b(?:mov|start|join|beginn|switch|chang|gett|buy|adopt|marry|leav|tak|turn|relocat|becom|quitt"
    r"|sign|return|go|com)ing\b"
)
_OVER_OR_NOT: Final = re.compile(
    r"\b(?:have|has|had|been|was|were|did|not|never|cannot)\b|['’]ve\b|n['’]t\b"
)


def end_told(sentence: str, thing: str, said_at: datetime) -> datetime | None:
    """From when on what a sentence says of a thing is over: "until May", "for three weeks".

    An end is read behind the thing, and as late as its words leave open: "until May" is the first
    of June. "This week" ends what is going on ("I'm using a rental car"), and neither what begins
    nor anything else.

    Args:
        sentence: What was said.
        thing: What it is said of, as in "in Oslo"; its last word has to stand in the sentence.
        said_at: When.

    Returns:
        The moment; None where no end is named, it is none of a calendar, or it is past.
    """
    low, last = sentence.casefold(), thing.casefold().split()[-1:]
    place = re.search(rf"\b{re.escape(last[0])}(?!\w)", low) if last else None
    found = _END_TOLD.match(low, place.end()) if place else None
    if place is None or found is None or _AGAIN_AND_AGAIN.search(low):
        return None
    before = low[: place.start()]
    if _OVER_OR_NOT.search(before) or any(map(is_past, before.split())):
        return None
    if found["now"] and (not _GOING_ON.search(before) or _BEGINNING.search(before)):
        return None
    end = found["until"] or found["now"] or f"for the next {found['span']}"
    period = period_named(f"I will be there {end}", said_at)
    if period is None or period.end is None or (found["until"] and period.begin is not None):
        return None
    return period.end if period.end > said_at else None


def _with_years(text: str, year: int) -> str:
    """The text with the year itself in "in June last year"."""
    if " year" not in text:
        return text
    step = {"last": -1, "this": 0, "next": 1}
    return _YEAR_BESIDE.sub(
        lambda said: f"{said['month']} {year + step[said['which'].lower()]}", text
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
_TELLS = re.compile(
    r"\A(?!\s*(?:what|who|whom|which|where|when|how|why|do|does|is|are|am|show|list|find|tell|give)\b)"
    r".{0,80}\b(?:i|we|he|she|they)\s(?!have\b|has\b)[a-z]+"
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
    if _HABITS.search(low):
        return Tense.HABIT
    # "At the weekend we fly to Malta": what is told in the present tense, not asked, lies ahead.
    return Tense.FUTURE if "?" not in low and _TELLS.search(low) else Tense.UNTOLD


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
        if months >= MONTHS_IN_QUARTER:
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
_MOST_DEPTH = 2
_NTH = "|".join(ORDINALS)
_LEAD = re.compile(
    r"(?<![\w-])(?:"
    rf"(?:the\s)?(?P<nth>{_NTH})\s(?P<what>half|week|weekend|day|{WEEKDAY})\s(?:of|in)\s"
    rf"|(?:the\s|on\s|(?:an?|(?P<count>\d{{1,2}}|{WORDS}))\s){{0,3}}(?P<beside>day|week|month|year|weekend|"
    rf"{WEEKDAY})s?\s(?P<side>before|after|of)\s(?!the\sweek\b)"
    r"|(?:(?:at|in|during|around|towards?)\s)?(?:the\s)?(?:very\s)?"
    r"(?:(?P<early>early(?:\son)?(?:\sin)?|(?:start|beginning)\sof)"
    r"|(?P<mid>mid|(?:the\s)?middle\sof)|(?P<late>late(?:\sin)?|end\sof)"
    r"|(?P<so_far>earlier)|(?P<rest>later|rest\sof))[\s-]"
    r"|(?P<range>between|(?<!day\s)(?<!days\s)(?<!week\s)(?<!weeks\s)(?<!months\s)(?<!years\s)from)\s"
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
    (re.compile(rf"(?:the\s)?{HOLIDAY}(?!\w)"), "on "),
    (re.compile(r"\d{1,2}/\d"), "on "),
)
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


def _months(begin: date, until: date) -> int:
    """How many whole months lie between two days; 0 unless they are whole."""
    if begin.day != 1 or until.day != 1:
        return 0
    return (until.year - begin.year) * MONTHS_IN_YEAR + until.month - begin.month


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
        if one.when.counted is not None and not self._is_that_day(one, turn.low):
            middle = self._now - (self._today - one.when.day)
            leeway = timedelta(days=max(1.0, DAYS[one.when.counted] / 2))
            return Period(middle - leeway, middle + leeway)
        span = _Stretch(one.when.day, one.when.after(), one.end)
        hours = self._of_day(turn, one) if one.when.after() - one.when.day == _ONE_DAY else None
        if hours is not None:
            return hours
        dash = _DASH.match(text, one.end)
        # "May 3 to 10", "June - August 2023"; not "Monday to me".
        to = dash and self._second(text, dash.end(), span, 0, text[one.start : one.end])
        return self._period(to or span)

    def _is_that_day(self, one: Dated, low: str) -> bool:
        """Whether days were counted, few and plainly enough to mean the one day."""
        counted = (self._today - one.when.day).days
        loosely = _LOOSELY.search(low[one.start : one.end])
        return one.when.counted == "day" and counted in _DAYS_COUNTED and not loosely

    def hours(self, low: str) -> Period | None:
        """Hours or minutes that are counted from now: "two hours ago", "the last 20 minutes"."""
        found = _HOURS.search(low) if "hour" in low or "minute" in low else None
        few = few_of(found["count"] or found["some"] or "a") if found else None
        if found is None or few is None:
            return None
        unit = timedelta(hours=1) if found["unit"] == "hour" else timedelta(minutes=1)
        least, most, now = few[0] * unit, few[1] * unit, timedelta()
        if found["which"]:
            ahead = found["which"] in {"next", "coming"}
            return self._from_now(now, most) if ahead else self._from_now(-most, now)
        half = timedelta(minutes=30)
        if found["back"]:
            return self._from_now(-most - half, half - least)
        if not found["ahead"] or self._asked.tense is Tense.PAST or HOW_LONG.search(low):
            return None
        return self._from_now(least - half, most + half)

    def _from_now(self, first: timedelta, last: timedelta) -> Period:
        """Between two amounts of time that pass, also where the clocks of the zone change."""
        now, zone = self._now.astimezone(UTC), self._now.tzinfo
        return Period((now + first).astimezone(zone), (now + last).astimezone(zone))

    def _of_day(self, turn: Masked, one: Dated) -> Period | None:
        """The hours of a day that is named with them: "yesterday at 7 pm", "this morning"."""
        day = datetime.combine(one.when.day, time(), tzinfo=self._now.tzinfo)
        hour = timedelta(hours=1)
        low = turn.low
        start, end = max(0, one.start - _CLOCK_REACH), one.end + _CLOCK_REACH
        for clocks in _CLOCKS.finditer(low, start, end):
            half = clocks["half_last"]
            first = _clock(clocks["first"], clocks["half"] or half)
            last = _clock(clocks["last"], half)
            if first is not None and last is not None and first < last:
                return Period(day + first, day + last)
        if one.when.clock is not None:
            begin = datetime.combine(one.when.day, one.when.clock, tzinfo=self._now.tzinfo)
            return Period(begin, begin + hour)
        said = (_PARTS.get(word) for word in low[one.start : one.end].split())
        part = next(filter(None, said), None)
        return Period(day + part[0] * hour, day + part[1] * hour) if part else None

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
        if kind in _BOUNDS and (_counts(text, lead) or _in_a_title(text, lead.start(kind))):
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
            return _nth(inner, ORDINALS[lead["nth"]], lead["what"])
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
            when = quarter_of(self._today) if this["unit"] == "quarter" else None
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


_ONE_DAY = timedelta(days=1)
# "Nine days ago" is that day; of two nobody counts the nights, and of a month nobody the days.
_DAYS_COUNTED = range(3, 14)
_LOOSELY = re.compile(r"\A(?:about|around|some)\s|\bhalf\b")
# From which hour of a day to which; what is done at night goes on after midnight.
_PARTS: Final = {
    "morning": (5, 12), "lunchtime": (11, 15), "lunch": (11, 15), "afternoon": (12, 18),
    "evening": (17, 24), "night": (18, 30), "tonight": (18, 30),
}  # fmt: skip
_CLOCK_REACH = 40
_CLOCKS = re.compile(
    r"(?:between|from)\s(?P<first>\d{1,2}(?:[:.]\d\d)?)\s?(?P<half>[ap])?\.?(?:m\b\.?)?\s?(?:and|to|until|till|-)\s?"
    r"(?P<last>\d{1,2}(?:[:.]\d\d)?)(?:\s?(?P<half_last>[ap])\.?m\b)?(?!\w|[:.]\d)"
)


_HOURS = re.compile(
    rf"(?<![\w-])(?:(?P<which>last|past|next|coming)\s(?:(?P<some>{A_FEW})\s)?|(?P<ahead>in\s)?"
    rf"(?P<count>{A_FEW})\s)(?P<unit>hour|minute)s?(?P<back>\s(?:ago|back))?(?![\w-])"
)


def _clock(said: str, half: str | None) -> timedelta | None:
    """The time of day that "8:30" or "8" and "p" for "pm" come to; None past midnight."""
    hour, _, minute = said.replace(".", ":").partition(":")
    hours = int(hour) % 12 + 12 * (half == "p") if half else int(hour)
    return timedelta(hours=hours, minutes=int(minute or 0)) if hours <= 24 else None  # noqa: PLR2004 - a day


_THIRDS: Final = {"early": 0, "mid": 1, "late": 2}
# What bounds amounts as well, and stands in titles; "the second half of 2021" does not.
_BOUNDS: Final = frozenset({"range", "since", "after", "until", "before"})


def _counts(text: str, lead: re.Match[str]) -> bool:
    """Whether what looks like a year is an amount: "a limit between 2000 and 2100"."""
    before = text[max(0, lead.start() - 30) : lead.start()].lower()
    return bool(_BARE_YEAR.match(text, lead.end()) and AMOUNT_BEFORE.search(before))


def _in_a_title(text: str, at: int) -> bool:
    """Whether a word has a capital that no sentence begins with: "A Nightmare Before Christmas"."""
    inside = text[:at].rstrip()[-1:].isalpha()
    return inside and text[at].isupper() and not text.isupper()


def _in_year(day: date, year: int) -> date:
    return calendar.add_months(day, MONTHS_IN_YEAR * (year - day.year))


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
        later = _Stretch(middle, until, span.end)
        return {1: _Stretch(begin, middle, span.end), 2: later, 0: later}.get(nth)
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
    if counted is not None and unit in DAYS:
        count = small_number(counted) or 0
        middle = calendar.shift(begin, -count if side == "before" else count, unit)
        leeway = timedelta(days=DAYS[unit] // 2)
        return _Stretch(middle - leeway, middle + leeway + timedelta(days=1), end)
    if unit not in DAYS:
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
