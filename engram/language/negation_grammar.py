"""Sentences, objects and subjects as the negation rules see them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from engram.domain.slots import USER
from engram.language.calendar import small_number
from engram.language.text import QUOTED, WORDS_AND_SIGNS, fold, split_sentences
from engram.language.vocabulary import expression, load, words

# --- sentences, clauses and words, as the negation rules see them

BOUNDARIES = frozenset(f',:;()-{QUOTED}"[]{{}}|*>')
# Longer than any spoken sentence: a list, a log, or an attack.
MOST_WORDS = 160
MOST_SENTENCES = 400


class Word(NamedTuple):
    """One word or sign, in lower case, with its offsets in the turn."""

    low: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class WordedSentence:
    """A sentence: its words, and whether it ends as a question."""

    text: str
    words: tuple[Word, ...]
    question: bool

    def low(self, index: int) -> str:
        """The word at ``index``; empty beyond either end."""
        return self.words[index].low if 0 <= index < len(self.words) else ""

    def is_boundary(self, index: int) -> bool:
        """Whether a clause ends at ``index``: punctuation, or an end of the sentence."""
        return not 0 <= index < len(self.words) or self.words[index].low in BOUNDARIES

    def capital(self, index: int) -> bool:
        """Whether the word is written with a capital."""
        return 0 <= index < len(self.words) and self.text[self.words[index].start].isupper()

    def verbatim(self, begin: int, end: int) -> str:
        """The words from ``begin`` up to ``end``, as written."""
        if begin >= end:
            return ""
        return self.text[self.words[begin].start : self.words[end - 1].end]


def sentences(text: str, worth: re.Pattern[str]) -> Iterator[WordedSentence]:
    """The sentences of ``text`` that match ``worth`` and are not beyond measure.

    Args:
        text: A turn, in plain form, without quoted speech.
        worth: What a sentence must hold, in lower case, to be looked at.
    """
    count = 0
    for piece in split_sentences(text, semicolons=True):
        low = fold(text[piece.start : piece.end])
        if worth.search(low):
            count += 1
            if count > MOST_SENTENCES:
                return
            words = tuple(
                Word(match.group(), piece.start + match.start(), piece.start + match.end())
                for match in WORDS_AND_SIGNS.finditer(low)
            )
            if len(words) <= MOST_WORDS:
                yield WordedSentence(text, words, "?" in piece.mark)


# --- what a negated verb governs: where the object begins and ends, and what it is called

_ARTICLE_WORDS = frozenset(
    "a an the any my our your his her its their some another such no".split()
)
# "People that lie" are not all people.
_NARROWING = frozenset("that who which whom where".split())
_POINTERS = frozenset("that this it".split())
# "Not very well", "not much": some of it remains.
_DEGREES = frozenset(
    "well much often enough lot properly fluently regularly daily left halfway".split()
)
SHORTEST_GERUND = 5
_MOST_WORDS = 8
_SOME = frozenset(
    "about around over almost nearly roughly just few couple of several some many".split()
)
_UNITS = frozenset("minute hour day week month year decade".split())


class Span(NamedTuple):
    """Words of a sentence, from ``begin`` up to ``end``."""

    begin: int
    end: int


def vocabulary(key: str) -> frozenset[str]:
    """A word list of the negation vocabulary."""
    return words("negations", key)


@cache
def _phrases(key: str) -> dict[str, list[tuple[str, ...]]]:
    """Those of the vocabulary, by their first word."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for phrase in load("negations")[key]:
        first, *others = phrase.split()
        found.setdefault(first, []).append((first, *others))
    return found


def starts_with_phrase(sentence: WordedSentence, at: int, key: str) -> int:
    """How many words of a phrase of the vocabulary stand at ``at``; 0 for none."""
    for phrase in _phrases(key).get(sentence.low(at), ()):
        if all(sentence.low(at + offset) == word for offset, word in enumerate(phrase)):
            return len(phrase)
    return 0


def object_at(sentence: WordedSentence, begin: int) -> Span:
    """The object that begins at ``begin``: up to the end of its clause or a remark about time."""
    at = begin
    while at < len(sentence.words) and at - begin < _MOST_WORDS:
        word = sentence.low(at)
        if word == "-" and sentence.words[at].start == sentence.words[at - 1].end:
            at += 1
            continue
        if sentence.is_boundary(at) or word in vocabulary("time_words"):
            break
        if starts_with_phrase(sentence, at, "time_starts") or _is_year(sentence, at):
            break
        if _is_ago(sentence, at):
            break
        if word == "and" and at > begin and starts_with_phrase(sentence, at - 1, "compounds"):
            at += 2
            continue
        if word in vocabulary("clause_words") or (word in {"or", "nor"}):
            break
        at += 1
    return Span(begin, at)


def _is_year(sentence: WordedSentence, at: int) -> bool:
    year = sentence.low(at + 1)
    return (
        sentence.low(at) in {"in", "until", "till"} and len(year) == len("2019") and year.isdigit()
    )


def _is_ago(sentence: WordedSentence, at: int) -> bool:
    """Whether "three weeks ago" or "about a month ago" stands there."""
    while sentence.low(at) in _SOME or small_number(sentence.low(at)) is not None:
        at += 1
    return sentence.low(at).removesuffix("s") in _UNITS and sentence.low(at + 1) == "ago"


def ended_cleanly(sentence: WordedSentence, span: Span) -> bool:
    """Whether the object ended by itself, not because it grew too long, and nothing limits it.

    "Not allergic to nuts when they are roasted" leaves the allergy as it is.
    """
    if span.end - span.begin >= _MOST_WORDS:
        return False
    if span.begin == span.end:
        return True
    after = sentence.text[sentence.words[span.end - 1].end :]
    return expression("statements", "limited_by").match(after) is None


def core(sentence: WordedSentence, span: Span) -> Span:
    """``span`` without leading preposition, article or possessive."""
    begin = span.begin
    if sentence.low(begin) in vocabulary("prepositions") and begin + 1 < span.end:
        begin += 1
    while begin < span.end and sentence.low(begin) in _ARTICLE_WORDS:
        begin += 1
    return Span(begin, span.end)


def spoken(sentence: WordedSentence, span: Span) -> str:
    """The words of ``span``, in lower case."""
    return " ".join(sentence.low(index) for index in range(span.begin, span.end))


def is_telling(sentence: WordedSentence, span: Span, *, led: bool) -> bool:
    """Whether the object says what is meant: not "it", "what you mean", "all of them"."""
    inner = core(sentence, span)
    if inner.begin >= inner.end:
        return False
    first = sentence.low(span.begin)
    head = sentence.low(inner.begin)
    if head in vocabulary("third_objects"):
        return led
    which = sentence.verbatim(inner.begin, inner.end)
    spoken_of = expression("statements", "spoken_of").fullmatch(which)
    if head in vocabulary("vague_objects") or first in vocabulary("partial") or spoken_of:
        return False
    if first in {"your", "another"} or sentence.low(span.end) in _NARROWING:
        return False
    if sentence.low(span.end - 1) in _POINTERS or any(
        sentence.low(index) in _DEGREES for index in range(inner.begin, inner.end)
    ):
        return False
    # "A problem with that" is as empty as "a problem"; "problem solving" is not.
    alone = inner.end - inner.begin == 1 or sentence.low(inner.begin + 1) in vocabulary(
        "prepositions"
    )
    return not (alone and (head in vocabulary("empty_objects") or not head[0].isalnum()))


def alternatives(sentence: WordedSentence, span: Span) -> list[Span]:
    """The objects of a list "X, Y or Z" that begins with ``span``; only "or" denies each."""
    found = [span]
    at = span.end
    while at < len(sentence.words):
        word = sentence.low(at)
        if word in {"or", "nor"} or (word == "," and sentence.low(at + 1) in {"or", "nor"}):
            step = 1 if word != "," else 2
        elif word == "," and _list_goes_on(sentence, at + 1):
            step = 1
        else:
            break
        more = object_at(sentence, at + step)
        if more.begin >= more.end:
            break
        found.append(more)
        at = more.end
    return found


def _list_goes_on(sentence: WordedSentence, at: int) -> bool:
    item = object_at(sentence, at)
    short = 0 < item.end - item.begin <= 2  # noqa: PLR2004 - items of a spoken list are short
    after = sentence.low(item.end)
    return short and (after == "or" or (after == "," and sentence.low(item.end + 1) == "or"))


# --- whom a denial is about, and whether it is the speaker's own statement

_SPEAKER_WORDS = frozenset("i we".split())
_THIRD = frozenset("he she they".split())
_POSSESSIVE_WORDS = frozenset("my our".split())
_DETERMINERS = frozenset("my our his her their".split())
_OWN_REPORT = frozenset("said told mentioned say tell".split())
_PLACE_LEADS = frozenset("at in on for these since as by from during after with".split())
_LONGEST_SUBJECT = 5
_LONGEST_LEAD = 4


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of a denial.

    Attributes:
        name: "user", or the noun phrase in lower case.
        shown: As a sentence about the user begins: "The user's sister".
        begin: Index of its first word.
        plural: Whether its verb is plural.
    """

    name: str
    shown: str
    begin: int
    plural: bool = False


def user(begin: int) -> Subject:
    """The speaker."""
    return Subject(USER, "The user", begin)


def subject_ending(
    sentence: WordedSentence, last: int, *, user_name: str | None, plural: bool = False
) -> Subject | None:
    """The subject whose last word is at ``last``, if a statement of the speaker begins there."""
    last = skip_back(sentence, last)
    word = sentence.low(last).partition("'")[0]
    if word in _SPEAKER_WORDS:
        return user(last) if _opens(sentence, last) else None
    if word in _THIRD:
        found = Subject(word, word.capitalize(), last, word == "they")
        return found if _opens(sentence, last) else None
    return _noun_phrase(sentence, last, word, user_name, plural=plural)


def skip_back(sentence: WordedSentence, index: int) -> int:
    """The nearest word at or before ``index`` that is no adverb."""
    while index > 0 and (
        sentence.low(index) in vocabulary("adverbs") or sentence.low(index) == "just"
    ):
        index -= 1
    return index


def skip_on(sentence: WordedSentence, index: int) -> int:
    """The nearest word at or after ``index`` that is no adverb."""
    while sentence.low(index) in vocabulary("adverbs"):
        index += 1
    return index


def _noun_phrase(
    sentence: WordedSentence, last: int, word: str, user_name: str | None, *, plural: bool
) -> Subject | None:
    begin = last
    while last - begin <= _LONGEST_SUBJECT and not _before_phrase(sentence, begin - 1):
        begin -= 1
    while begin < last and sentence.low(begin) in vocabulary("lead_ins"):
        begin += 1
    if last - begin >= _LONGEST_SUBJECT or word in vocabulary("not_subjects"):
        return None
    inside = [sentence.low(index) for index in range(begin, last)] + [word]
    first = inside[0]
    if any(part in vocabulary("reporting") or part in _SPEAKER_WORDS | _THIRD for part in inside):
        return None
    name = " ".join(inside)
    if user_name is not None and name == user_name.casefold():
        return user(begin)
    if not _is_somebody(sentence, begin, inside, plural=plural) or not _opens(sentence, begin):
        return None
    return Subject(name, _shown(sentence, begin, last, first, word), begin, plural)


def _before_phrase(sentence: WordedSentence, index: int) -> bool:
    word = sentence.low(index)
    return sentence.is_boundary(index) or word in {
        "and",
        "but",
        "so",
        "because",
        "since",
        "that",
        "as",
    }


def _is_somebody(sentence: WordedSentence, begin: int, inside: list[str], *, plural: bool) -> bool:
    first = inside[0]
    if first in _DETERMINERS:
        return len(inside) > 1
    if first == "the":
        return len(inside) == 2 and inside[1] in vocabulary("close_ones")  # noqa: PLR2004 - article and noun
    capitals = all(sentence.capital(begin + offset) for offset in range(len(inside)))
    if not capitals or first in vocabulary("not_subjects") | vocabulary("generic_subjects"):
        return False
    if first in vocabulary("tools"):
        return False
    # "Cats don't fly" begins with a capital too, and says nothing about anybody.
    starts_sentence = begin == 0
    return len(inside) <= 3 and not (starts_sentence and (plural or inside[0] in _STARTERS))  # noqa: PLR2004 - name


_STARTERS = frozenset("maybe perhaps please still also even today just".split())


def _shown(sentence: WordedSentence, begin: int, last: int, first: str, word: str) -> str:
    written = sentence.verbatim(begin, last) + (" " if last > begin else "")
    final = sentence.words[last]
    written += sentence.text[final.start : final.start + len(word)]
    if first in _POSSESSIVE_WORDS:
        return f"The user's {written.split(' ', 1)[1]}" if " " in written else "The user's"
    return written[0].upper() + written[1:]


def _opens(sentence: WordedSentence, begin: int) -> bool:
    """Whether a statement begins at ``begin``, and not somebody else's or a subordinate one."""
    before = begin - 1
    if sentence.is_boundary(before):
        return not _reported(sentence, before)
    word = sentence.low(before)
    if word in vocabulary("lead_ins"):
        return not _reported(sentence, before)
    if word == "afraid":
        return sentence.low(before - 1) == "i'm"
    if word == "that" or word in vocabulary("reporting") or word in {"you", "them"}:
        return _by_oneself(sentence, before)
    return _after_place(sentence, before)


def _reported(sentence: WordedSentence, end: int) -> bool:
    for index in range(max(0, end)):
        word = sentence.low(index)
        if word in vocabulary("reporting") and sentence.low(skip_back(sentence, index - 1)) not in {
            "i",
            "i'm",
        }:
            return True
    return False


def _by_oneself(sentence: WordedSentence, at: int) -> bool:
    for index in range(max(0, at - 3), at + 1):
        if sentence.low(index) in _OWN_REPORT:
            return sentence.low(skip_back(sentence, index - 1)) in {"i", "i've"}
    return False


def _after_place(sentence: WordedSentence, before: int) -> bool:
    begin = before
    while not sentence.is_boundary(begin - 1):
        begin -= 1
    if sentence.low(begin) not in _PLACE_LEADS or before - begin >= _LONGEST_LEAD:
        return False
    return not any(
        sentence.low(index) in vocabulary("reporting") | vocabulary("hypothetical")
        for index in range(begin, before + 1)
    )
