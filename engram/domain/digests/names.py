"""Names in a text: where they stand, and of what parts they consist."""

from __future__ import annotations

import re
from dataclasses import dataclass

from engram.domain.digests.vocabulary import (
    CONNECTORS,
    FAMILY_TITLES,
    FEMALE,
    FORMAL_TITLES,
    MALE,
    SENIORITY,
    STARTERS,
)
from engram.domain.normalisation import normalise

_TOKEN = re.compile(r"[^\W_](?:[\w&’'-]*[^\W_])?")
_POSSESSIVE = re.compile(r"['’]s?\Z")
_SENTENCE_END = re.compile(r"(?:\A|[.!?:]\s+|\n\s*|[\"“(]\s*)\Z")
_ABBREVIATED = FORMAL_TITLES | frozenset("jr sr st mt".split())


@dataclass(frozen=True, slots=True)
class Found:
    """A name in a text.

    Attributes:
        name: As it is written, without a possessive ending.
        start: Where it begins.
        end: Where it ends; a possessive ending comes after.
        prefix: A word of kinship or age before it, lower case ("aunt", "old").
    """

    name: str
    start: int
    end: int
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Parts:
    """A name taken for a person's.

    Attributes:
        title: "dr", "mrs"; empty for none.
        given: First given name or initial.
        family: Family name.
        seniority: "senior", "junior" or a numeral.
    """

    title: str = ""
    given: str = ""
    family: str = ""
    seniority: str = ""


def names_in(text: str) -> list[Found]:
    """Every name, in order. Prefers missing one to inventing one."""
    found: list[Found] = []
    run: list[re.Match[str]] = []
    for token in _TOKEN.finditer(text):
        if run and not _continues(text, run[-1], token):
            found += _named(text, run)
            run = []
        if _is_capital(token.group()) or (run and token.group() in CONNECTORS):
            run.append(token)
    return found + _named(text, run)


def name_key(name: str) -> str:
    """The form under which two spellings are one name."""
    return " ".join(word.rstrip(".") for word in normalise(name).split())


def parts_of(name: str) -> Parts:
    """The parts of a person's name."""
    words = name_key(name).split()
    title = ""
    while words and words[0] in FORMAL_TITLES:
        title, words = words[0], words[1:]
    seniority = SENIORITY.get(words[-1], "") if len(words) > 1 else ""
    if seniority:
        words = words[:-1]
    if not words:
        return Parts(title=title)
    if len(words) == 1:
        only = words[0]
        return Parts(title, "" if title else only, only if title else "", seniority)
    return Parts(title, words[0], words[-1], seniority)


def agree(first: Parts, second: Parts) -> bool:
    """Whether one person can bear both names: nothing in them contradicts."""
    return (
        not ({first.title, second.title} & MALE and {first.title, second.title} & FEMALE)
        and _given_agree(first.given, second.given)
        and (not first.family or not second.family or first.family == second.family)
        and (first.seniority == second.seniority)
    )


def _given_agree(first: str, second: str) -> bool:
    if not first or not second or first == second:
        return True
    short, long = sorted((first, second), key=len)
    return len(short) == 1 and long.startswith(short)


def _is_capital(word: str) -> bool:
    return word[0].isupper()


def _continues(text: str, before: re.Match[str], token: re.Match[str]) -> bool:
    between = text[before.end() : token.start()]
    if _POSSESSIVE.search(before.group()):
        return False
    if between == " ":
        return True
    abbreviated = before.group().casefold() in _ABBREVIATED or len(before.group()) == 1
    return between in (". ", ".") and abbreviated


def _named(text: str, run: list[re.Match[str]]) -> list[Found]:
    tokens = list(run)
    while tokens and tokens[-1].group() in CONNECTORS:
        tokens.pop()
    while tokens and tokens[0].group().casefold() in STARTERS:
        tokens.pop(0)
    if not tokens or (len(tokens) == 1 and tokens[0].group().casefold() in FORMAL_TITLES):
        return []
    prefix = _word_before(text, tokens[0].start())
    prefix = prefix if prefix in FAMILY_TITLES else ""
    if len(tokens) > 1 and tokens[0].group().casefold() in FAMILY_TITLES - {"big", "little"}:
        prefix = tokens.pop(0).group().casefold()
    last = tokens[-1]
    end = last.end() - len(_ending(last.group()))
    return [Found(text[tokens[0].start() : end], tokens[0].start(), end, prefix)]


def _ending(word: str) -> str:
    ending = _POSSESSIVE.search(word)
    return ending.group() if ending else ""


def _word_before(text: str, start: int) -> str:
    word = re.search(r"([\w-]+)\s+\Z", text[:start])
    return word.group(1).casefold() if word else ""
