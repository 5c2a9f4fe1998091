"""Statements as sentences: from "I live in Lisbon" to "The user lives in Lisbon."."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

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
_PLURAL_OR_MASS = re.compile(r"\w+s\Z", re.I)
_ARTICLE = re.compile(r"(?:a|an|the|my|our|his|her|their|one|two|some)\s", re.I)


def sentence(who: str, predicate: str, phrase: str, *, holds: bool, said: str = "") -> str:
    """The statement in the third person.

    Args:
        who: "The user", or a name.
        predicate: One of those in ``wordings.toml``.
        phrase: The object, as it was said.
        holds: False for what is no longer so.
        said: The words before the object; a promise names in them whom it was made to.
    """
    what = in_third_person(phrase)
    if predicate == "works as" and not _ARTICLE.match(what):
        what = f"{'an' if what[:1].lower() in 'aeiou' else 'a'} {what}"
    if predicate == "promised to":
        return f"{who} promised{_promised_to(said)} to {what}."
    if predicate == "was born":
        return f"{who} was born {what}."
    if holds:
        return f"{who} {predicate} {what}."
    verb, _, rest = predicate.partition(" ")
    if verb == "is":
        return f"{who} is no longer {rest} {what}."
    return f"{who} no longer {predicate} {what}."


def in_third_person(text: str) -> str:
    """The words with "their car" for "my car"."""
    return _FIRST_PERSON.sub(lambda found: _THIRD_PERSON[found.group().lower()], text)


def _promised_to(said: str) -> str:
    found = re.search(
        r"(?:promised?|gave)\s+((?:[\w']+\s+){1,4}?)(?:my\s+word\s+)?(?:that\s+)?(?:to|i)\b",
        said,
        re.I,
    )
    whom = found.group(1).strip() if found else ""
    return "" if not whom or whom.lower() == "that" else f" {in_third_person(whom)}"
