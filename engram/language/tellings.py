"""What a sentence tells of a value or a day that changes: how much, when, of whom.

"I weigh 86.4 kg" and, a month later, "the scale says I weigh 84.8" tell one measure; "my suitcase
weighs 23 kg", "I want to weigh 80" and "I'd weigh 80 if ..." do not. Two dates of one thing are a
former and a coming one. Nothing is concluded from it: it tells which of several answers is first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Final, NamedTuple

from engram.domain.kept import kept
from engram.language.calendar import MONTH, MONTH_NAME, SMALL, WEEKDAY, WORDS
from engram.language.dates import read
from engram.language.found import Masked
from engram.language.query import asks_only_of, tells_of_a_change
from engram.language.text import (
    BARE_WORDS,
    bare_stems,
    content_words,
    is_past,
    plain,
    split_sentences,
    stem,
    topic_stems,
)

# --- what is counted or measured: a number, and in what

_IN_ONE_UNIT: Final = (
    ("mass", "kg kgs kilo kilos kilogram kilograms lb lbs pound pounds stone"),
    ("grams", "g gram grams"),
    ("dose", "mg mcg µg iu ml milligrams micrograms unit units"),
    (
        "length",
        "km kms kilometres kilometers mile miles mi m metres meters cm mm inch inches ft feet",
    ),
    (
        "time",
        "second seconds sec secs minute minutes min mins hour hours h hrs day days week weeks",
    ),
    ("money", "euro euros eur dollar dollars usd bucks quid pounds gbp chf francs"),
    ("share", "percent percentage"),
)
_UNITS: Final[dict[str, frozenset[str]]] = {}
for _name, _words in _IN_ONE_UNIT:
    for _word in _words.split():
        _UNITS[_word] = _UNITS.get(_word, frozenset()) | {_name}
_PLAIN: Final = frozenset({"number"})
_NUMBER = re.compile(
    r"(?<![\w.,:/$€£-])(?P<sign>[$€£])?\s?(?:(?P<clock>\d{1,3}:\d\d(?::\d\d)?)"
    r"|(?P<digits>\d[\d,.']*(?<![,.'])))(?:\s?(?P<share>%))?"
    rf"(?:[\s-]?(?P<unit>[€$£]|[^\W\d_]+))?|\b(?P<word>{WORDS})\s(?P<counted>[^\W\d_]+)",
    re.IGNORECASE,
)
# Days, years, times of the day, ordinals, phones and the numbers of orders are no measures.
_NO_MEASURE = re.compile(
    r"(?:#|\b(?:no|nos|nr)\.? ?|\bnumber (?:is )?)\S*\d\S*|\+?\d+(?:[ /()-]+\d+)+"
    rf"|\b\d+(?:st|nd|rd|th)\b|\b\d{{4}}-\d\d-\d\d\b|\b{MONTH} \d{{1,2}}(?:st|nd|rd|th)?\b"
    rf"|\b\d{{1,2}}(?:st|nd|rd|th)?(?: of)? {MONTH}(?!\w)"
    r"|\b(?:in|since|of|from|until|by|before|after) (?:19|20)\d\d\b"
    r"|\b(?:at|until|till|by|from) \d{1,2}(?::\d\d)?(?! ?(?:[a-z%€$£]|\d))"
    r"|\b\d{1,2}(?::\d\d)? ?[ap]m\b",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"\d")
_COUNTED: Final = frozenset(stem(word) for word in SMALL if len(word) > len("an") and word != "one")


@kept(4096)
def may_count(text: str) -> bool:
    """Whether a text has a number at all; told from what is known of it anyway."""
    return _DIGIT.search(text) is not None or not _COUNTED.isdisjoint(bare_stems(text))


class ToldValue(NamedTuple):
    """A number as it stands, and in what it may be counted."""

    number: str
    kinds: frozenset[str]


def _values(sentence: str) -> frozenset[ToldValue]:
    found: set[ToldValue] = set()
    hidden = _NO_MEASURE.sub(" ", sentence)
    for match in _NUMBER.finditer(hidden):
        unit = (match["unit"] or match["counted"] or "").casefold()
        if match["clock"]:
            kinds = frozenset({"time"})
        elif match["share"]:
            kinds = frozenset({"share"})
        elif match["sign"] or unit in {"€", "$", "£"}:
            kinds = frozenset({"money"})
        else:
            kinds = _kinds(unit)
        number = match["clock"] or match["digits"] or match["word"].casefold()
        if kinds == _PLAIN and (match["word"] or _is_a_name(hidden, match.start(), number)):
            continue
        found.add(ToldValue(number, kinds))
    return frozenset(found)


def _kinds(unit: str) -> frozenset[str]:
    if unit in _UNITS:
        return _UNITS[unit]
    return frozenset({stem(unit)}) if unit and content_words(unit) else _PLAIN


def _is_a_name(sentence: str, start: int, number: str) -> bool:
    """Whether a bare number calls what stands before it: "bus 40", "room 3", "Postgres 17"."""
    before = _WORD_BEFORE.search(sentence, max(0, start - 40), start)
    return number.isdigit() and before is not None and _names(before[0].casefold())


_WORD_BEFORE = re.compile(r"[^\W\d_]+(?=\s\Z)")


def _names(word: str) -> bool:
    """Whether a word may be a thing: one with a meaning, and no verb in the past."""
    return bool(content_words(word)) and not is_past(word) and not word.endswith("ly")


# --- whether a sentence tells what is, and of whom

# What is wished, supposed, denied or called off tells nothing that holds.
_NOT_SO = re.compile(
    r"n't\b|\b(?:not|never|no longer|none|neither|if|unless|wish|wishe[sd]|want(?:s|ed)?|hopes?|"
    r"hoping|hoped|dreams?|someday|one day|eventually|should|would|could|might|maybe|perhaps|"
    r"suppose|imagine|ideally|rather|instead of|almost|nearly|cancel\w*|called off)\b|'d\b",
    re.IGNORECASE,
)
# Nor does a bound, an aim, what comes, what was, or one more beside what is, tell a value of now.
_NO_VALUE_OF_NOW = re.compile(
    r"\b(?:goals?|targets?|aim(?:s|ing)?|will|going to|gonna|plan(?:s|ning)?|limit|max(?:imum)?|"
    r"minimum|at (?:most|least)|under|below|above|over|more than|less than|used to|"
    r"back (?:in|then)|ago|originally|initially|formerly|previously|once|(?<!s )(?<!r )(?<!h )old|"
    r"last (?:week|month|year|spring|summer|autumn|fall|winter)|as a (?:kid|child|teenager)|"
    r"too|also|as well|another|first|second|additional(?:ly)?|extra|plus|on top|starting|"
    rf"(?:in|since|of|from|by|until) (?:19|20)\d\d|in {MONTH_NAME})\b|'ll\b",
    re.IGNORECASE,
)
_OVER_A_NUMBER = re.compile(r"\d over (?=\d)", re.IGNORECASE)
_OTHERS: Final = frozenset(
    "he she his her hers him their theirs mum mom mummy mommy mother dad daddy papa father "
    "parent parents brother sister sibling son daughter kid kids child children wife husband "
    "partner boyfriend girlfriend fiance fiancee aunt uncle cousin nephew niece grandma grandpa "
    "gran granny grandmother grandfather friend friends neighbour neighbor neighbours neighbors "
    "colleague colleagues coworker boss flatmate roommate ex somebody someone".split()
)
_OF_NOBODY: Final = frozenset("i i'm i've user user's today now still currently".split())
_TOKENS = re.compile(r"[^\W_]+(?:[.'-][^\W_]+)*|[.,;:!?()-]")
_NO_NAMES = re.compile(rf"(?:{MONTH}|{WEEKDAY}s?|i(?:'\w+)?)\Z", re.IGNORECASE)
_IS: Final = frozenset("is are was were".split())
_ITS_OBJECT: Final = frozenset("the a an my our his her their your this that".split())
_PARTS_OF_A_DAY: Final = (
    "morning breakfast",
    "noon lunch lunchtime midday",
    "evening night bedtime dinner supper",
)
_TIMES: Final = frozenset(" ".join(_PARTS_OF_A_DAY).split())
_RATE = re.compile(
    r"\b(?:an?|per|each|every) (hour|day|night|week|month|quarter|year)\b", re.IGNORECASE
)
_LONGEST = 300
_MOST_SENTENCES = 2


class ToldFrame(NamedTuple):
    """Of whom and of what a sentence tells what it tells.

    Attributes:
        people: Whom it names.
        beside: What stands right beside the words that are asked for: "resting" heart rate, rent
            "deposit", weigh "the parcel".
        begins: The first thing that it names before them; empty where it names none.
    """

    people: frozenset[str]
    beside: frozenset[str]
    begins: str


@dataclass(frozen=True, slots=True)
class ToldSentence:
    """A sentence: what it is about, which numbers it has, whether it tells what is.

    Attributes:
        text: Its words.
        stems: Of its content words.
        tokens: Its words in order, and the signs between them.
        values: What it counts or measures.
        real: Whether it tells what is so, or is to be.
        holds: Whether it tells what is so now.
        parts: Of the day, that it names.
        rates: "a month", "an hour".
    """

    text: str
    stems: frozenset[str]
    tokens: tuple[str, ...]
    values: frozenset[ToldValue]
    real: bool
    holds: bool
    parts: frozenset[str]
    rates: frozenset[str]

    def frame(self, about: frozenset[str]) -> ToldFrame:
        """What the words that it is ``about`` stand in."""
        people: set[str] = set()
        beside: set[str] = set()
        begins, untold = "", set(about)
        words = [token.casefold() for token in self.tokens]
        for place, token in enumerate(self.tokens):
            word, before = words[place], words[place - 1] if place else ""
            bare = word.removesuffix("'s")
            name = token[0].isupper() and before[:1].isalnum() and not _NO_NAMES.match(token)
            if bare in _OTHERS or name or (bare != word and bare not in _OF_NOBODY):
                people.add(_same(bare))
            if _same(bare) in untold:
                untold.discard(_same(bare))
                beside |= _beside(words, place)
            elif len(untold) == len(about) and not begins and _leads(word):
                begins = _same(bare)
        return ToldFrame(frozenset(people), frozenset(beside), begins if untold != about else "")


# What is done to a value, or shows one; any other deed before a number has one of its own.
_TELLS_A_VALUE: Final = frozenset(
    stem(word)
    for word in "hit reach pass clear measure test show read close double halve raise lower bump "
    "increase reduce rise drop fall climb set cut lose gain improve check average".split()
)


def _deeds(sentence: ToldSentence, about: frozenset[str]) -> frozenset[str]:
    """What somebody does in the clause of its numbers, before them: "sent the bill of 118"."""
    words = [token.casefold() for token in sentence.tokens]
    done: set[str] = set()
    clause: set[str] = set()
    for word in words:
        if not word[0].isalnum():
            clause = set()
        elif word[0].isdigit() or word in SMALL:
            done |= clause
        elif content_words(word) and (is_past(word) or (word.endswith("ing") and _leads(word))):
            clause.add(_same(word))
    return frozenset(done) - about - _TELLS_A_VALUE


def _beside(words: list[str], place: int) -> set[str]:
    """What stands right before a word and right behind it, and says of what it is."""
    before, after = words[place - 1] if place else "", words[place + 1 : place + 3]
    found = {before} if _leads(before) else set()
    if after and after[0] in _ITS_OBJECT:
        found |= {*after[1:]}
    elif after and _leads(after[0]) and (not after[0].endswith("s") or not _IS.isdisjoint(after)):
        found.add(after[0])
    return {_same(word.removesuffix("'s")) for word in found}


def _leads(word: str) -> bool:
    """Whether a word says of what something is."""
    small = word in _OF_NOBODY or word in SMALL or word in _TIMES
    return word[:1].isalpha() and not small and _names(word)


def _same(word: str) -> str:
    """The stem of a word, one for words that ask for the same."""
    found = stem(word)
    return _ALIKE.get(found, found)


@kept(4096)
def sentences_of(text: str) -> tuple[ToldSentence, ...]:
    """The plain sentences of a short text; none of one that asks, or says much."""
    if len(text) > _LONGEST or text.rstrip().endswith("?"):
        return ()
    found = tuple(_sentences(text))
    return found if len(found) <= _MOST_SENTENCES else ()


def _sentences(text: str) -> Iterator[ToldSentence]:
    text = plain(text)
    for piece in split_sentences(text, semicolons=True):
        words = text[piece.start : piece.end]
        if piece.mark == "?":
            continue
        real = _NOT_SO.search(words) is None
        low = frozenset(BARE_WORDS.findall(words.casefold()))
        yield ToldSentence(
            text=words,
            stems=_called_alike(topic_stems(words)),
            tokens=tuple(_TOKENS.findall(words)),
            values=_values(words),
            real=real,
            holds=real and _NO_VALUE_OF_NOW.search(_OVER_A_NUMBER.sub("", words)) is None,
            parts=frozenset(one for one in _PARTS_OF_A_DAY if not low.isdisjoint(one.split())),
            rates=frozenset(map(str.casefold, _RATE.findall(words))),
        )


# --- what is asked: of what, and the latest, the coming or the last one of it

# How much of something is asked for, or a time with somebody: what it is of stands beside it.
_HOW_MUCH: Final = frozenset(
    stem(word)
    for word in "dose dosage amount number level value current currently latest recent fast long "
    "high big heavy mileage measurement reading figure balance pay cost costs".split()
)
_A_TIME_WITH: Final = frozenset(
    stem(word) for word in "appointment date session visit booking slot booked scheduled".split()
)
_ALIKE: Final = {stem(word): stem(to) for word, to in (("weight", "weigh"), ("height", "tall"))}


def _called_alike(stems: frozenset[str]) -> frozenset[str]:
    return frozenset(_ALIKE.get(one, one) for one in stems)


class WhichTold(StrEnum):
    """Which of several tellings answers."""

    LATEST = "latest"
    COMING = "coming"
    LAST = "last"


_COMING = re.compile(
    r"\b(?:next|upcoming)\b(?! (?:week|month|year|weekend|door|to|time|step)\b)", re.IGNORECASE
)
_LAST = re.compile(
    r"\b(?:last|previous|most recent)\b(?! (?:week|month|year|weekend|night|time)\b)", re.IGNORECASE
)
_NEXT_OR_LAST = re.compile(r"\b(?:next|upcoming|last|previous|most recent)\b", re.IGNORECASE)
_WHEN = re.compile(r"\bwhen\b|\b(?:what|which) (?:date|day|time)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class AskedValue:
    """What a question asks for.

    Attributes:
        query: Its words.
        about: The stems of what it is about, without how much or when.
        loosely: Those of its words and their pieces: what has few of them is about something else.
        numbers: The numbers that it names.
        named: Every stem in it, of whomever.
        which: Which of several tellings answers.
    """

    query: str
    about: frozenset[str]
    loosely: frozenset[str]
    numbers: frozenset[str]
    named: frozenset[str]
    which: WhichTold

    def told_by(self, text: str) -> tuple[ToldSentence, ...]:
        """The sentences of a text that are plain and about most of what is asked."""
        if 2 * len(self.loosely & bare_stems(text)) <= len(self.about):
            return ()
        latest = self.which is WhichTold.LATEST
        return tuple(
            one
            for one in sentences_of(text)
            if (one.holds if latest else one.real)
            and 2 * len(self.about & one.stems) > len(self.about)
        )

    def covers(self, new: ToldSentence, old: ToldSentence) -> bool:
        """Whether a sentence is about all that another is about, and of the same."""
        both = self.about & old.stems
        if not both <= new.stems or (new.parts and old.parts and new.parts.isdisjoint(old.parts)):
            return False
        here, there = new.frame(both), old.frame(both)
        named = self.named | _HOW_MUCH | _A_TIME_WITH
        return (
            here.people - named <= there.people
            and here.beside - named == there.beside - named
            and (here.begins == there.begins or not (here.begins and there.begins))
            and not asks_only_of(self.query, old.text, new.text, reworded=True)
        )

    def measures_the_same(self, new: ToldSentence, old: ToldSentence) -> bool:
        """Whether one sentence tells another value of what the other tells."""
        later = {one.kinds for one in new.values - old.values if one.number not in self.numbers}
        earlier = {one.kinds for one in old.values - new.values if one.number not in self.numbers}
        alike = {one for one in later if any(one & other for other in earlier)}
        if not alike or (old.rates != new.rates and (new.rates or not tells_that_it_moved(new))):
            return False
        # "I have 2 cats" tells no more of "3 cats in the yard" than that both are cats.
        of = self.about & old.stems
        counted = of <= frozenset().union(*alike)
        if not _deeds(new, self.about) <= _deeds(old, self.about) | old.stems:
            return False
        return self.covers(new, old) and (not counted or _counts_alike(new, old, of))


def _counts_alike(new: ToldSentence, old: ToldSentence, counted: frozenset[str]) -> bool:
    """Whether the same word stands before the number of what both count."""
    return _before_the_count(new, counted) == _before_the_count(old, counted)


def _before_the_count(sentence: ToldSentence, counted: frozenset[str]) -> tuple[str, ...]:
    words = [_same(token.casefold()) for token in sentence.tokens]
    place = next((at for at, word in enumerate(words) if word in counted), 0)
    return tuple(words[max(0, place - 3) : max(0, place - 1)])


def may_ask_for_a_day(query: str) -> bool:
    """Whether it may ask for the next or the last of several."""
    return _NEXT_OR_LAST.search(query) is not None


@kept(2048)
def asked_for(query: str) -> AskedValue | None:
    """What is asked for, where it is a value or a day; None where it is about nothing."""
    timed = _WHEN.search(query) is not None
    if timed and _COMING.search(query):
        which = WhichTold.COMING
    elif timed and _LAST.search(query):
        which = WhichTold.LAST
    elif timed:
        return None
    else:
        which = WhichTold.LATEST
    of = _called_alike(topic_stems(query))
    about = of - (_HOW_MUCH if which is WhichTold.LATEST else _A_TIME_WITH) or of
    if not about:
        return None
    words = BARE_WORDS.findall(query.casefold())
    numbers = frozenset(re.findall(r"\d[\d.,:]*", query))
    loosely = {piece for one in about for piece in (one, *BARE_WORDS.findall(one))}
    loosely |= {one for one, other in _ALIKE.items() if other in about}
    loosely |= {stem(piece) for piece in loosely}
    return AskedValue(
        query, about, frozenset(loosely), numbers, frozenset(map(stem, words)) | of, which
    )


# --- the days that a sentence names


@kept(2048)
def days_of(sentence: str, said_at: datetime) -> tuple[date, ...]:
    """The single days that it names, as seen from when it was said."""
    named = (one.when for one in read(Masked(sentence), said_at))
    return tuple(sorted(when.day for when in named if when.unit == "day" and not when.until))


def tells_that_it_moved(sentence: ToldSentence) -> bool:
    """Whether it tells that what was told before is so no more."""
    return tells_of_a_change(sentence.text)
