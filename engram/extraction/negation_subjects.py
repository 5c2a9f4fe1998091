"""Whom a denial is about, and whether it is the speaker's own statement."""

from __future__ import annotations

from dataclasses import dataclass

from engram.extraction.negation_objects import vocabulary
from engram.extraction.negation_tokens import Sentence

_SPEAKER = frozenset("i we".split())
_THIRD = frozenset("he she they".split())
_POSSESSIVE = frozenset("my our".split())
_DETERMINERS = frozenset("my our his her their".split())
_OWN_REPORT = frozenset("said told mentioned say tell".split())
_PLACE_LEADS = frozenset("at in on for these since as by from during after with".split())
_LONGEST = 5
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


USER = "user"


def user(begin: int) -> Subject:
    """The speaker."""
    return Subject(USER, "The user", begin)


def subject_ending(
    sentence: Sentence, last: int, *, user_name: str | None, plural: bool = False
) -> Subject | None:
    """The subject whose last word is at ``last``, if a statement of the speaker begins there."""
    last = skip_back(sentence, last)
    word = sentence.low(last).partition("'")[0]
    if word in _SPEAKER:
        return user(last) if _opens(sentence, last) else None
    if word in _THIRD:
        found = Subject(word, word.capitalize(), last, word == "they")
        return found if _opens(sentence, last) else None
    return _noun_phrase(sentence, last, word, user_name, plural=plural)


def skip_back(sentence: Sentence, index: int) -> int:
    """The nearest word at or before ``index`` that is no adverb."""
    while index > 0 and (
        sentence.low(index) in vocabulary("adverbs") or sentence.low(index) == "just"
    ):
        index -= 1
    return index


def skip_on(sentence: Sentence, index: int) -> int:
    """The nearest word at or after ``index`` that is no adverb."""
    while sentence.low(index) in vocabulary("adverbs"):
        index += 1
    return index


def _noun_phrase(
    sentence: Sentence, last: int, word: str, user_name: str | None, *, plural: bool
) -> Subject | None:
    begin = last
    while last - begin <= _LONGEST and not _before_phrase(sentence, begin - 1):
        begin -= 1
    while begin < last and sentence.low(begin) in vocabulary("lead_ins"):
        begin += 1
    if last - begin >= _LONGEST or word in vocabulary("not_subjects"):
        return None
    inside = [sentence.low(index) for index in range(begin, last)] + [word]
    first = inside[0]
    if any(part in vocabulary("reporting") or part in _SPEAKER | _THIRD for part in inside):
        return None
    name = " ".join(inside)
    if user_name is not None and name == user_name.casefold():
        return user(begin)
    if not _is_somebody(sentence, begin, inside, plural=plural) or not _opens(sentence, begin):
        return None
    return Subject(name, _shown(sentence, begin, last, first, word), begin, plural)


def _before_phrase(sentence: Sentence, index: int) -> bool:
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


def _is_somebody(sentence: Sentence, begin: int, inside: list[str], *, plural: bool) -> bool:
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


def _shown(sentence: Sentence, begin: int, last: int, first: str, word: str) -> str:
    written = sentence.verbatim(begin, last) + (" " if last > begin else "")
    final = sentence.words[last]
    written += sentence.text[final.start : final.start + len(word)]
    if first in _POSSESSIVE:
        return f"The user's {written.split(' ', 1)[1]}" if " " in written else "The user's"
    return written[0].upper() + written[1:]


def _opens(sentence: Sentence, begin: int) -> bool:
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


def _reported(sentence: Sentence, end: int) -> bool:
    for index in range(max(0, end)):
        word = sentence.low(index)
        if word in vocabulary("reporting") and sentence.low(skip_back(sentence, index - 1)) not in {
            "i",
            "i'm",
        }:
            return True
    return False


def _by_oneself(sentence: Sentence, at: int) -> bool:
    for index in range(max(0, at - 3), at + 1):
        if sentence.low(index) in _OWN_REPORT:
            return sentence.low(skip_back(sentence, index - 1)) in {"i", "i've"}
    return False


def _after_place(sentence: Sentence, before: int) -> bool:
    begin = before
    while not sentence.is_boundary(begin - 1):
        begin -= 1
    if sentence.low(begin) not in _PLACE_LEADS or before - begin >= _LONGEST_LEAD:
        return False
    return not any(
        sentence.low(index) in vocabulary("reporting") | vocabulary("hypothetical")
        for index in range(begin, before + 1)
    )
