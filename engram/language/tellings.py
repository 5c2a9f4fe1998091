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
from functools import cache
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
from engram.language.vocabulary import expression, expression_text, word_groups, word_lines

# --- what is counted or measured: a number, and in what

_TABLE: Final = "tellings"
_PLAIN: Final = frozenset({"number"})


@cache
def _units() -> dict[str, frozenset[str]]:
    """What each unit may count: "pounds" are a mass and money."""
    found: dict[str, frozenset[str]] = {}
    for line in word_lines(_TABLE, "units"):
        kind, _, units = line.partition(" : ")
        for unit in units.split():
            found[unit] = found.get(unit, frozenset()) | {kind}
    return found


_NUMBER = re.compile(
    r"(?<![\w.,:/$€£-])(?P<sign>[$€£])?\s?(?:(?P<clock>\d{1,3}:\d\d(?::\d\d)?)"
    r"|(?P<digits>\d[\d,.']*(?<![,.'])))(?:\s?(?P<share>%))?"
    rf"(?:[\s-]?(?P<unit>[€$£]|[^\W\d_]+))?|\b(?P<word>{WORDS})\s(?P<counted>[^\W\d_]+)",
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


@cache
def _no_measure() -> re.Pattern[str]:
    """Days, years, times of the day, ordinals, phones and the numbers of orders."""
    named = expression_text(_TABLE, "no_measure").replace("MONTH", MONTH)
    return re.compile(named, re.IGNORECASE)


def _values(sentence: str) -> frozenset[ToldValue]:
    found: set[ToldValue] = set()
    hidden = _no_measure().sub(" ", sentence)
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
    return _units().get(unit) or (
        frozenset({stem(unit)}) if unit and content_words(unit) else _PLAIN
    )


def _is_a_name(sentence: str, start: int, number: str) -> bool:
    """Whether a bare number calls what stands before it: "bus 40", "room 3", "Postgres 17"."""
    before = sentence[max(0, start - _LONGEST_NAME) : start]
    word = _NO_LETTERS.split(before[:-1])[-1] if before[-1:].isspace() else ""
    return number.isdigit() and bool(word) and _names(word.casefold())


_LONGEST_NAME = 40
_NO_LETTERS = re.compile(r"[\W\d_]")


def _names(word: str) -> bool:
    """Whether a word may be a thing: one with a meaning, and no verb in the past."""
    return bool(content_words(word)) and not is_past(word) and not word.endswith("ly")


# --- whether a sentence tells what is, and of whom

_OVER_A_NUMBER = re.compile(r"\d over (?=\d)", re.IGNORECASE)
_TOKENS = re.compile(r"[^\W_]+(?:[.'-][^\W_]+)*|[.,;:!?()-]")
_NO_NAMES = re.compile(rf"(?:{MONTH}|{WEEKDAY}s?|i(?:'\w+)?)\Z", re.IGNORECASE)
_LONGEST = 300
_MOST_SENTENCES = 2


@cache
def _words(name: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset().union(*word_groups(_TABLE, name))


@cache
def _stems(name: str) -> frozenset[str]:
    """Their stems."""
    return frozenset(map(stem, _words(name)))


@cache
def _not_of_now() -> re.Pattern[str]:
    """What tells no value of now: a bound, an aim, what comes, what was, one more beside it."""
    named = expression_text(_TABLE, "not_of_now").replace("MONTH_NAME", MONTH_NAME)
    return re.compile(named, re.IGNORECASE)


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
            if (
                bare in _words("others")
                or name
                or (bare != word and bare not in _words("of_nobody"))
            ):
                people.add(_same(bare))
            if _same(bare) in untold:
                untold.discard(_same(bare))
                beside |= _beside(words, place)
            elif len(untold) == len(about) and not begins and _leads(word):
                begins = _same(bare)
        return ToldFrame(frozenset(people), frozenset(beside), begins if untold != about else "")


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
    return frozenset(done) - about - _stems("tells_a_value")


def _beside(words: list[str], place: int) -> set[str]:
    """What stands right before a word and right behind it, and says of what it is."""
    before, after = words[place - 1] if place else "", words[place + 1 : place + 3]
    found = {before} if _leads(before) else set()
    if after and after[0] in _words("its_object"):
        found |= {*after[1:]}
    elif (
        after
        and _leads(after[0])
        and (not after[0].endswith("s") or not _words("is").isdisjoint(after))
    ):
        found.add(after[0])
    return {_same(word.removesuffix("'s")) for word in found}


def _leads(word: str) -> bool:
    """Whether a word says of what something is."""
    small = word in _words("of_nobody") or word in SMALL or word in _words("parts_of_a_day")
    return word[:1].isalpha() and not small and _names(word)


def _same(word: str) -> str:
    """The stem of a word, one for words that ask for the same."""
    found = stem(word)
    return _alike().get(found, found)


@kept(1024)
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
        real = expression(_TABLE, "not_so").search(words) is None
        low = frozenset(BARE_WORDS.findall(words.casefold()))
        yield ToldSentence(
            text=words,
            stems=_called_alike(topic_stems(words)),
            tokens=tuple(_TOKENS.findall(words)),
            values=_values(words),
            real=real,
            holds=real and _not_of_now().search(_OVER_A_NUMBER.sub("", words)) is None,
            parts=frozenset(
                min(part) for part in word_groups(_TABLE, "parts_of_a_day") if part & low
            ),
            rates=frozenset(map(str.casefold, expression(_TABLE, "rate").findall(words))),
        )


# --- what is asked: of what, and the latest, the coming or the last one of it


@cache
def _alike() -> dict[str, str]:
    """Stems that ask for the same: "weight" and "weigh"."""
    lines = (line.partition(" : ") for line in word_lines(_TABLE, "alike"))
    return {stem(one): stem(other) for one, _, other in lines}


def _called_alike(stems: frozenset[str]) -> frozenset[str]:
    return frozenset(_alike().get(one, one) for one in stems)


class WhichTold(StrEnum):
    """Which of several tellings answers."""

    LATEST = "latest"
    COMING = "coming"
    LAST = "last"


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
        named = self.named | _stems("how_much") | _stems("a_time_with")
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
        if not alike or (old.rates != new.rates and (new.rates or not tells_of_a_change(new.text))):
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
    return expression(_TABLE, "next_or_last").search(query) is not None


@kept(64)
def asked_for(query: str) -> AskedValue | None:
    """What is asked for, where it is a value or a day; None where it is about nothing."""
    timed = expression(_TABLE, "when").search(query) is not None
    if timed and expression(_TABLE, "coming").search(query):
        which = WhichTold.COMING
    elif timed and expression(_TABLE, "last").search(query):
        which = WhichTold.LAST
    elif timed:
        return None
    else:
        which = WhichTold.LATEST
    of = _called_alike(topic_stems(query))
    about = of - _stems("how_much" if which is WhichTold.LATEST else "a_time_with") or of
    if not about:
        return None
    words = BARE_WORDS.findall(query.casefold())
    numbers = frozenset(re.findall(r"\d[\d.,:]*", query))
    loosely = {piece for one in about for piece in (one, *BARE_WORDS.findall(one))}
    loosely |= {one for one, other in _alike().items() if other in about}
    loosely |= {stem(piece) for piece in loosely}
    return AskedValue(
        query, about, frozenset(loosely), numbers, frozenset(map(stem, words)) | of, which
    )


# --- the days that a sentence names


@kept(512)
def days_of(sentence: str, said_at: datetime) -> tuple[date, ...]:
    """The single days that it names, as seen from when it was said."""
    named = (one.when for one in read(Masked(sentence), said_at))
    return tuple(sorted(when.day for when in named if when.unit == "day" and not when.until))
