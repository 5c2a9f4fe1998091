"""What a negated verb governs: where the object begins and ends, and what it is called."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from engram.extraction.negation_tokens import Sentence
from engram.extraction.vocabulary import load, words

_ARTICLES = frozenset("a an the any my our your his her its their some another such no".split())
# "People that lie" are not all people.
_NARROWING = frozenset("that who which whom where".split())
_POINTERS = frozenset("that this it".split())
# "Not very well", "not much": some of it remains.
_DEGREES = frozenset(
    "well much often enough lot properly fluently regularly daily left halfway".split()
)
_MOST_WORDS = 8


class Span(NamedTuple):
    """Words of a sentence, from ``begin`` up to ``end``."""

    begin: int
    end: int


def vocabulary(key: str) -> frozenset[str]:
    """A word list of the negation vocabulary."""
    return words("negations", key)


@cache
def _phrases(key: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(phrase.split()) for phrase in load("negations")[key])


def starts_with_phrase(sentence: Sentence, at: int, key: str) -> int:
    """How many words of a phrase of the vocabulary stand at ``at``; 0 for none."""
    for phrase in _phrases(key):
        if all(sentence.low(at + offset) == word for offset, word in enumerate(phrase)):
            return len(phrase)
    return 0


def object_at(sentence: Sentence, begin: int) -> Span:
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
        if word == "and" and at > begin and starts_with_phrase(sentence, at - 1, "compounds"):
            at += 2
            continue
        if word in vocabulary("clause_words") or (word in {"or", "nor"}):
            break
        at += 1
    return Span(begin, at)


def _is_year(sentence: Sentence, at: int) -> bool:
    year = sentence.low(at + 1)
    return (
        sentence.low(at) in {"in", "until", "till"} and len(year) == len("2019") and year.isdigit()
    )


def ended_cleanly(sentence: Sentence, span: Span) -> bool:
    """Whether the object ended by itself and not because it grew too long."""
    return span.end - span.begin < _MOST_WORDS


def core(sentence: Sentence, span: Span) -> Span:
    """``span`` without leading preposition, article or possessive."""
    begin = span.begin
    if sentence.low(begin) in vocabulary("prepositions") and begin + 1 < span.end:
        begin += 1
    while begin < span.end and sentence.low(begin) in _ARTICLES:
        begin += 1
    return Span(begin, span.end)


def spoken(sentence: Sentence, span: Span) -> str:
    """The words of ``span``, in lower case."""
    return " ".join(sentence.low(index) for index in range(span.begin, span.end))


def is_telling(sentence: Sentence, span: Span, *, led: bool) -> bool:
    """Whether the object says what is meant: not "it", "what you mean", "all of them"."""
    inner = core(sentence, span)
    if inner.begin >= inner.end:
        return False
    first = sentence.low(span.begin)
    head = sentence.low(inner.begin)
    if head in vocabulary("third_objects"):
        return led
    if head in vocabulary("vague_objects") or first in vocabulary("partial"):
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


def alternatives(sentence: Sentence, span: Span) -> list[Span]:
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


def _list_goes_on(sentence: Sentence, at: int) -> bool:
    item = object_at(sentence, at)
    short = 0 < item.end - item.begin <= 2  # noqa: PLR2004 - items of a spoken list are short
    after = sentence.low(item.end)
    return short and (after == "or" or (after == "," and sentence.low(item.end + 1) == "or"))
