"""Sentences, clauses and words, as the negation rules see them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from engram.extraction.patterns.found import fold, plain

_WORD = re.compile(r"[^\W_]+(?:[.+#&/'-]+[^\W_]+)*(?:\+\+|#|\+)?|[^\w\s]")
_SENTENCE_END = re.compile(r"[.!?\u2026]+(?=[\s\"')\]]|\Z)|[;\n]")
_ABBREVIATION = re.compile(
    r"(?:\b(?:st|mr|mrs|ms|dr|prof|vs|e\.g|i\.e|etc|no|nr|approx|u\.s|u\.k)|\b\w)\Z"
)
_QUOTED = re.compile(r"\"[^\"\n]{1,600}\"")
_SINGLE_QUOTED = re.compile(r"(?<!\w)'(?=[A-Za-z])[^\n\"]{1,300}?[.,!?\w]'(?!\w)")
_MOST_SINGLE_QUOTES = 20
_SPEECH = re.compile(r"\b(?:i|we|he|she|it|they|you|i'm|i've|my)\b", re.IGNORECASE)
_HIDDEN = "\u00a4"
BOUNDARIES = frozenset(',:;()-\u00a4"[]{}|*>')
# Longer than any spoken sentence: a list, a log, or an attack.
MOST_WORDS = 160
MOST_SENTENCES = 400


class Word(NamedTuple):
    """One word or sign, in lower case, with its offsets in the turn."""

    low: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Sentence:
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


def without_quotes(text: str) -> str:
    """``text`` in plain form, with quoted speech hidden; same length."""
    clean = plain(text)
    if '"' not in clean and "'" not in clean:
        return clean
    hidden = _QUOTED.sub(_hide_speech, clean)
    # Each sign could open a quotation, so a text full of them is left as it is.
    if hidden.count(" '") + hidden.startswith("'") <= _MOST_SINGLE_QUOTES:
        hidden = _SINGLE_QUOTED.sub(_hide_speech, hidden)
    return hidden


def _hide_speech(match: re.Match[str]) -> str:
    quoted = match.group()
    return _HIDDEN * len(quoted) if _SPEECH.search(quoted) else quoted


def sentences(text: str, worth: re.Pattern[str]) -> Iterator[Sentence]:
    """The sentences of ``text`` that match ``worth`` and are not beyond measure."""
    start = 0
    count = 0
    ends = [*_SENTENCE_END.finditer(text), None]
    for end in ends:
        stop = end.start() if end else len(text)
        sign = end.group() if end else ""
        if sign == "." and _ABBREVIATION.search(text[max(start, stop - 8) : stop].lower()):
            continue
        piece = fold(text[start:stop])
        if worth.search(piece):
            count += 1
            if count > MOST_SENTENCES:
                return
            words = tuple(
                Word(match.group(), start + match.start(), start + match.end())
                for match in _WORD.finditer(piece)
            )
            if len(words) <= MOST_WORDS:
                yield Sentence(text, words, "?" in sign)
        start = end.end() if end else stop
