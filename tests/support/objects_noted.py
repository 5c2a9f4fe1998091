"""Turns with what is liked, planned or used, as whole phrases: tests/data/objects.*.txt."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, Literal, TypeAlias

from tests.support.slot_labels import answered
from tests.support.statement_labels import DATA

Verdict: TypeAlias = Literal["right", "part", "wrong", "missed"]
_Phrase: TypeAlias = tuple[str, ...]

_PREDICATES: Final = frozenset(
    {"likes", "dislikes", "prefers", "plans to", "promised to", "uses", "has", "studies"}
)
_SUBJECT: Final = re.compile(r"(?:The user|[A-Z]\w+) ")
# The user's own words and the statement's differ in whom they are about.
_PERSONS: Final = (
    (re.compile(r"\b(?:my|our)\b"), "their"),
    (re.compile(r"\b(?:myself|ourselves|themselves)\b"), "oneself"),
    (re.compile(r"\b(?:i'm|we're)\b"), "they are"),
    (re.compile(r"\b(?:i|we)\b"), "they"),
    (re.compile(r"\b(?:me|us)\b"), "them"),
    (re.compile(r"\bfavorite\b"), "favourite"),
)
_FIRST: Final = re.compile(r"(?:(?:to|the|an?|some|both|their) )+")


def verdicts(name: str) -> Counter[Verdict]:
    """How many predicates of all turns were noted how."""
    found: Counter[Verdict] = Counter()
    for line in (DATA / name).read_text("utf-8").splitlines():
        if not line.startswith("#"):
            turn, labels = line.split("\t")
            found.update(_judged(_noted(turn), _wanted(labels)))
    return found


def _judged(
    noted: Mapping[str, list[_Phrase]], wanted: Mapping[str, list[list[_Phrase]]]
) -> Iterator[Verdict]:
    """One verdict for each predicate: wrong is any object that no accepted reading has."""
    for predicate in noted.keys() | wanted.keys():
        said, readings = noted.get(predicate, []), wanted.get(predicate, [])
        accepted = {phrase for reading in readings for phrase in reading}
        if not said:
            yield "missed"
        elif any(sorted(reading) == sorted(said) for reading in readings):
            yield "right"
        else:
            yield "part" if accepted.issuperset(said) else "wrong"


def _noted(turn: str) -> dict[str, list[_Phrase]]:
    noted: dict[str, list[_Phrase]] = {}
    for one in answered({"text": turn}):
        if one.predicate in _PREDICATES and one.holds:
            said = _SUBJECT.sub("", one.content, count=1).removeprefix(f"{one.predicate} ")
            noted.setdefault(one.predicate, []).append(_phrase(said))
    return noted


def _wanted(labels: str) -> dict[str, list[list[_Phrase]]]:
    """The accepted readings of each predicate: "likes: jazz + tea / jazz and tea; has: a cat"."""
    wanted: dict[str, list[list[_Phrase]]] = {}
    for label in labels.split("; ") if labels.strip() != "-" else ():
        predicate, _, readings = label.partition(":")
        wanted[predicate.strip()] = [
            [_phrase(one) for one in reading.split(" + ")] for reading in readings.split(" / ")
        ]
    return wanted


def _phrase(said: str) -> _Phrase:
    text = said.casefold().replace("’", "'").strip(" .")
    for person, third in _PERSONS:
        text = person.sub(third, text)
    return tuple(re.sub(r"[^\w' ]+", " ", _FIRST.sub("", text, count=1)).split())
