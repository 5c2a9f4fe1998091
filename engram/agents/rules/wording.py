"""Statements as sentences: from "I live in Lisbon" to "The user lives in Lisbon."."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from engram.agents.rules.stated import Stated
from engram.agents.rules.wordings import predicates
from engram.domain.memories import Category

_THIRD_PERSON: Mapping[str, str] = MappingProxyType(
    {
        "my": "their",
        "our": "their",
        "mine": "theirs",
        "ours": "theirs",
        "me": "them",
        "us": "them",
        "i": "they",
        "we": "they",
        "i'm": "they are",
        "myself": "themselves",
        "ourselves": "themselves",
    }
)
_FIRST_PERSON = re.compile(rf"\b(?:{'|'.join(_THIRD_PERSON)})\b(?!-)", re.I)
_ARTICLE = re.compile(r"(?:a|an|the|my|our|his|her|their|one|two|some)\s", re.I)


_CORRECTION, _PREFERENCE = 0.7, 0.6
# Endings that name nothing: "I quit my job".
_WITHOUT_OBJECT: Mapping[str, str] = MappingProxyType(
    {"works at": "has left their job", "is married to": "is no longer married"}
)
_NOT_SO: Mapping[str, str] = MappingProxyType(
    {"is": "is not", "has": "does not have", "was": "was not"}
)
_FAVOURITE = "favourite "


def weight(stated: Stated) -> tuple[Category, float]:
    """Category and importance of a statement."""
    if stated.corrects:
        return Category.CORRECTION, _CORRECTION
    if stated.predicate.startswith(_FAVOURITE):
        return Category.PREFERENCE, _PREFERENCE
    predicate = predicates()[stated.predicate]
    return predicate.category, predicate.importance


def sentence(who: str, stated: Stated) -> str:
    """The statement in the third person.

    Args:
        who: "The user", or a name.
        stated: What is stated.
    """
    predicate, what = stated.predicate, in_third_person(stated.thing.phrase)
    if not what:
        return f"{who} {_WITHOUT_OBJECT[predicate]}."
    if predicate.startswith(_FAVOURITE):
        verb = "is" if stated.holds else "is no longer"
        return f"{who}'s {predicate} {verb} {what}."
    if predicate == "works as" and not _ARTICLE.match(what):
        what = f"{'an' if what[:1].lower() in 'aeiou' else 'a'} {what}"
    if predicate == "promised to":
        return f"{who} promised{_promised_to(stated.said)} to {what}."
    if predicate == "was born":
        return f"{who} was born {what}."
    return f"{who} {_verb(stated)} {what}."


def _verb(stated: Stated) -> str:
    """The predicate, or its negation."""
    if stated.holds:
        return stated.predicate
    verb, _, rest = stated.predicate.partition(" ")
    if stated.denied:
        return f"{_NOT_SO.get(verb) or f'does not {_base(verb)}'} {rest}".strip()
    return f"is no longer {rest}" if verb == "is" else f"no longer {stated.predicate}"


def _base(verb: str) -> str:
    """The verb without its third person: "lives" is "live"."""
    if verb.endswith("ies"):
        return f"{verb[:-3]}y"
    return verb[:-1] if verb.endswith("s") else verb


def in_third_person(text: str) -> str:
    """The words with "their car" for "my car"."""
    return _FIRST_PERSON.sub(lambda found: _THIRD_PERSON[found.group().lower()], text)


def _promised_to(said: str) -> str:
    found = re.search(
        r"(?:promised?|gave|told|assured)\s+((?:[\w']+\s+){1,4}?)(?:my\s+word\s+)?(?:that\s+)?(?:to|i)\b",
        said,
        re.I,
    )
    whom = found.group(1).strip() if found else ""
    return "" if not whom or whom.lower() == "that" else f" {in_third_person(whom)}"
