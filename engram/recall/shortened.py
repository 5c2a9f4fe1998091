"""A text in the room that there is: what of it bears on a question, and a mark where it is cut."""

from __future__ import annotations

from itertools import islice
from unicodedata import category

from engram.language.text import BARE_WORDS, bare_stems, split_sentences, stem

_CUT = "..."
_MARKS = len(f"{_CUT} ") + len(f" {_CUT}")
# What is longer than this is cut inside a word.
_LONGEST_WORD = 24
# Of a text without sentences, so many of the words asked for are looked at.
_MOST_PLACES = 100
_JOINER = "\u200d"
# Marks, modifiers of an emoji, and tags belong to what stands before them.
_BELONGS_TO_THE_LAST = frozenset({"Mn", "Mc", "Me"})
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_TAGS = range(0xE0020, 0xE0080)
# Two of them are one flag.
_FLAG_LETTERS = range(0x1F1E6, 0x1F200)


def shortened(text: str, most: int, asked: frozenset[str]) -> str:
    """``text`` in at most ``most`` characters, dots where it is cut.

    Args:
        text: On one line.
        most: More than the dots take.
        asked: Stems: what is kept is around the sentence with the most of them, or the beginning.
    """
    if len(text) <= most:
        return text
    room = most - _MARKS
    first, last = _place_of(text, room, asked)
    begin = max(0, min(first - (room - (last - first)) // 2, len(text) - room))
    end = begin + room
    begin, end = _at_a_word(text, begin, first), _at_a_word(text, end, last)
    before = f"{_CUT} " if begin > 0 else ""
    behind = f" {_CUT}" if end < len(text) else ""
    return f"{before}{text[begin:end].strip()}{behind}"


def _place_of(text: str, room: int, asked: frozenset[str]) -> tuple[int, int]:
    """Where that sentence stands, or what of it there is room for."""
    most, place = 0, (0, 0)
    for one in split_sentences(text):
        shared = len(asked & bare_stems(text[one.start : one.end]))
        if shared > most:
            most, place = shared, (one.start, one.end + len(one.mark.rstrip()))
    first, last = place
    return place if last - first <= room else _inside(text, first, last, room, asked)


def _inside(text: str, first: int, last: int, room: int, asked: frozenset[str]) -> tuple[int, int]:
    """Where within a sentence the most of what is asked for stands together."""
    words = BARE_WORDS.finditer(text, first, last)
    named = ((word.start(), stem(word[0].casefold())) for word in words)
    places = list(islice((one for one in named if one[1] in asked), _MOST_PLACES))
    reach = room // 2

    def named_from(start: int) -> int:
        return len({word for at, word in places if start <= at < start + reach})

    start = max((at for at, _ in places), key=named_from, default=first)
    return start, min(start + reach, last)


def _at_a_word(text: str, at: int, kept: int) -> int:
    """The end of a word next to ``at`` on the way to ``kept``, or of what is seen as one sign."""
    if not 0 < at < len(text):
        return at
    step = 1 if kept > at else -1
    for moved in range(at, at + step * min(abs(kept - at), _LONGEST_WORD), step):
        if text[moved - 1].isspace() or text[moved].isspace():
            return moved
    while 0 < at < len(text) and _is_one_sign(text, at):
        at += step
    return at


def _is_one_sign(text: str, at: int) -> bool:
    """Whether what stands before a place and what stands there are seen as one."""
    here, before = text[at], text[at - 1]
    if category(here) in _BELONGS_TO_THE_LAST or _JOINER in (here, before):
        return True
    if ord(here) in _SKIN_TONES or ord(here) in _TAGS:
        return True
    letters = 0
    while letters < at and ord(text[at - 1 - letters]) in _FLAG_LETTERS:
        letters += 1
    return ord(here) in _FLAG_LETTERS and letters % 2 == 1
