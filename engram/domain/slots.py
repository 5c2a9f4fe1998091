"""Slots: what a piece of knowledge is about, normalised so that two wordings meet."""

from __future__ import annotations

from engram.domain.identity import normalise
from engram.domain.memories import Slot

USER = "user"
_NO_LONGER = "no longer "
_USER_WORDS = frozenset({"", "i", "me", "we", "user", "the user", "speaker", "the speaker"})
_LEADING_ARTICLES = ("a ", "an ", "the ", "my ", "our ", "his ", "her ", "their ")

# One value at a time: the newest event wins.
_FUNCTIONAL = frozenset(
    {
        *("lives in", "works at", "works as", "is called", "is married to", "is from"),
        *("was born in", "was born on"),
    }
)
# A person keeps several of these at once, whatever the object is called.
_FUNCTIONAL_PREFIXES = ("favourite ",)
# What was so from the beginning: the latest word about it counts, not the earliest date.
_TIMELESS = frozenset({"was born in", "was born on", "is called", "is from"})
# Where and when are two things that one is born with.
_BORN = frozenset({"was born", "was born in", "was born on", "was born at"})
# Two predicates of which at most one can hold for the same object.
_OPPOSED = {"dislikes": "likes"}
_SYNONYMS = {
    "live in": "lives in",
    "resides in": "lives in",
    "is based in": "lives in",
    "lives at": "lives in",
    "works for": "works at",
    "is employed by": "works at",
    "is employed at": "works at",
    "has job": "works as",
    "has job title": "works as",
    "is named": "is called",
    "has name": "is called",
    "name is": "is called",
    "married to": "is married to",
    "comes from": "is from",
    "loves": "likes",
    "enjoys": "likes",
    "hates": "dislikes",
    "allergic to": "is allergic to",
    "intends to": "plans to",
    "is studying": "studies",
    "is using": "uses",
}


def slot_of(
    subject: str | None, predicate: str | None, what: str | None, *, holds: bool = True
) -> Slot | None:
    """The slot of a statement, or None where it has no predicate.

    An ending has a slot of its own, "no longer" before the predicate, so that it
    can be told from what it ends and can itself be replaced.
    """
    relation = _predicate(predicate or "")
    if not relation:
        return None
    if relation in _BORN:
        relation = "was born on" if any(c.isdigit() for c in what or "") else "was born in"
    about = normalise(subject or "")
    if holds:
        named = relation
    else:
        named = relation if relation.startswith(_NO_LONGER) else _NO_LONGER + relation
    return Slot(
        subject=USER if about in _USER_WORDS else about,
        predicate=named,
        object=_bare(normalise(what or "")),
    )


def ends_something(slot: Slot) -> bool:
    """Whether the slot says that something is no longer so."""
    return slot.predicate.startswith(_NO_LONGER)


def held_predicate(slot: Slot) -> str:
    """The predicate without "no longer"."""
    return slot.predicate.removeprefix(_NO_LONGER)


def is_functional(slot: Slot) -> bool:
    """Whether one subject has at most one current value here."""
    held = held_predicate(slot)
    return held in _FUNCTIONAL or held.startswith(_FUNCTIONAL_PREFIXES)


def is_timeless(slot: Slot) -> bool:
    """Whether being said later, rather than happening later, decides."""
    return held_predicate(slot) in _TIMELESS


def timeline_key(slot: Slot) -> tuple[str, ...]:
    """What two memories share if one can replace the other."""
    held = held_predicate(slot)
    family = _OPPOSED.get(held, held)
    if is_functional(slot):
        return slot.subject, family
    return slot.subject, family, slot.object


def related_predicates(slot: Slot) -> tuple[str, ...]:
    """Every stored predicate that can share a timeline with this slot."""
    held = held_predicate(slot)
    family = _OPPOSED.get(held, held)
    names = [family, *(one for one, other in _OPPOSED.items() if other == family)]
    return tuple(prefix + name for name in names for prefix in ("", _NO_LONGER))


def _predicate(text: str) -> str:
    words = normalise(text.replace("_", " "))
    held = words.removeprefix(_NO_LONGER)
    prefix = words[: len(words) - len(held)]
    if held.startswith("favorite "):
        held = "favourite " + held.removeprefix("favorite ")
    return prefix + _SYNONYMS.get(held, held)


def _bare(text: str) -> str:
    for article in _LEADING_ARTICLES:
        if text.startswith(article) and len(text) > len(article):
            return text[len(article) :]
    return text
