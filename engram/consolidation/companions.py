"""What is over with the people and animals of somebody: who died, who is with whom."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from engram.consolidation.standing import (
    INFERRED,
    SAYS_ITS_NAME,
    KnownToHold,
    SlottedStatement,
    and_over,
    name_of,
    no_longer,
    of_subject,
    only_one,
    words_of,
)
from engram.domain.memories import MemoryKind
from engram.domain.plan import Statement
from engram.domain.slots import (
    IS_CALLED,
    IS_THE_USERS,
    OF_THE_USER,
    POSSESSING,
    USER,
    ends_something,
    slot_of,
)
from engram.language.calendar import SMALL
from engram.language.vocabulary import expression, words

DIED: Final = "died"
MARRIED: Final = "is married to"
ENGAGED: Final = "is engaged to"
_BROKEN_UP = " have broken up."
_SAID_OF_PEOPLE = frozenset(
    {"lives in", "studies", "speaks", "is from", "is allergic to", "uses", "owns", "likes", "has"}
)
_MOST_COUNTED = 12

# --- what is not so of "the user's son", whose name is known


def is_of_relation(told: SlottedStatement) -> bool:
    """Whether it ends something of "the user's son", who may be known by his name."""
    over = told.slot is not None and ends_something(told.slot)
    roles = words("declared", "held_by_one") | words("declared", "known_by_role")
    of_the_user = told.held.subject.startswith(OF_THE_USER)
    # "My friend" may be any of them, though one alone is known by name, unless it was so of them.
    meant = (
        told.held.subject.removeprefix(OF_THE_USER) in roles or " no longer " in told.one.content
    )
    return over and of_the_user and meant


def not_so_of_relation(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    """The same of the one son by his name, where nothing is known of "the user's son"."""
    role = told.held.subject.removeprefix(OF_THE_USER)
    names = {name for held in standing if (name := _who_is(role, held))}
    by_name = (told.held.model_copy(update={"subject": name}) for name in names)
    meant = next(by_name, None) if len(names) == 1 else None
    known = {held.slot: held for held in standing}
    old = None if meant is None or told.held in known else known.get(meant)
    yield told.one if old is None else no_longer(old, told.one, told.one.confidence)


def _who_is(role: str, held: KnownToHold) -> str | None:
    """Who is that to the user: the name of their son, or wife."""
    slot = held.slot
    if slot.predicate == IS_THE_USERS:
        return slot.subject if slot.object == role else None
    married = role in words("declared", "married") and slot.predicate == MARRIED
    held_by_one = slot_of(USER, f"{role} is", slot.object) == slot
    return slot.object if slot.subject == USER and (married or held_by_one) else None


def said_of_people() -> frozenset[str]:
    """The predicates of what may be so of somebody whom the user names by what they are."""
    roles = (f"{role} is" for role in words("declared", "held_by_one"))
    return _SAID_OF_PEOPLE | {IS_THE_USERS, MARRIED, *roles}


# --- who died, and who is with whom


def is_death(told: SlottedStatement) -> bool:
    """Whether somebody has died who is not the user."""
    return told.slot is not None and told.slot.predicate == DIED and told.slot.subject != USER


def ended_by_death(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    """That somebody died, and that the user has them, or is married to them, no longer."""
    several = expression("statements", "of_several").match(told.one.subject or "")
    if several is not None:
        yield from _fewer(told.one, several, of_subject(speaker, standing))
        return
    name = words_of(told.one.subject)
    old = only_one(held for held in of_subject(speaker, standing) if name_of(held) == name)
    partner = of_subject(speaker, standing, MARRIED, ENGAGED)
    yield from and_over(
        _with_whose(told.one, standing, old),
        old or only_one(held for held in partner if words_of(held.slot.object) == name),
    )


def _fewer(
    one: Statement, several: re.Match[str], standing: Iterable[KnownToHold]
) -> Iterator[Statement]:
    """How many there are when one of three has died."""
    gone, kind = _counted(f"{several.group('many')} {several.group('kind')}")
    counted = [(held, *_counted(held.slot.object)) for held in standing]
    numbers = {many for _, many, what in counted if what == kind}
    # What an earlier run concluded from the same turn is no number that stood before it.
    old = only_one(
        held
        for held, many, what in counted
        if what == kind and many > gone and many + gone not in numbers
    )
    left = _counted(old.slot.object)[0] - gone if old is not None else 0
    if old is None or left not in _NUMBERS.values():
        yield one
        return
    # "The dogs" are theirs, then.
    whose = one.content.replace(" of the user's ", " of the ").replace(
        " of the ", " of the user's "
    )
    yield one.model_copy(update={"content": whose})
    yield no_longer(old, one, min(one.confidence, INFERRED))
    number = next(word for word, value in _NUMBERS.items() if value == left)
    what = f"{number} {kind.removesuffix('s') if left == 1 else kind}"
    yield one.model_copy(
        update={
            "content": f"The user {old.slot.predicate} {what}.",
            "worded_by": old.episode_ids,
            "subject": old.slot.subject,
            "predicate": old.slot.predicate,
            "object": what,
            "kind": MemoryKind.NOTE,
            "confidence": min(one.confidence, INFERRED),
        }
    )


def is_number_of(told: SlottedStatement) -> bool:
    """Whether it says how many there are, of what one has: "three sisters"."""
    counted = told.held.predicate in POSSESSING and _counted(told.held.object)[0] > 0
    return told.one.holds and counted


def ended_by_number(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    """How many there are, and that there are not as many as before."""
    many, kind = _counted(told.held.object)
    counted = [
        (held, *_counted(held.slot.object))
        for held in of_subject(told.held.subject, standing, told.held.predicate)
    ]
    old = only_one(
        held for held, before, what in counted if what == kind and before not in {0, many}
    )
    return and_over(told.one, old)


def _counted(what: str) -> tuple[int, str]:
    """How many of what: (3, "sisters"); 0 where it is not counted, or more is said of them."""
    number, _, kind = what.partition(" ")
    many = _NUMBERS.get(number, 0)
    plain = kind.replace(" ", "").isalpha()
    if many == 1 and plain:
        return many, kind if kind.endswith("s") else f"{kind}s"
    return (many, kind) if plain and kind.endswith(("s", "children")) else (0, what)


_NUMBERS = {word: number for word, number in SMALL.items() if 1 <= number <= _MOST_COUNTED}


def is_parting(told: SlottedStatement) -> bool:
    """Whether the user and a partner are no longer together."""
    parted = told.is_about(MARRIED, holds=False) and told.held.subject == USER
    return parted and (bool(told.held.object) or told.one.content.endswith(_BROKEN_UP))


def ended_by_parting(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    """That they parted, and that one of them is the other's partner no longer."""
    name = words_of(told.one.object)
    if name:
        yield from and_over(told.one, only_one(h for h in standing if _is_partner(h, name)))
        return
    # "We split up": of two who are not said to be a couple, nothing is told.
    old = only_one(held for held in standing if _is_couple(held))
    if old is not None:
        yield told.one
        yield no_longer(old, told.one, min(told.one.confidence, INFERRED))


def is_wedding(told: SlottedStatement) -> bool:
    """Whether the user got married, to whom they name or to whom everybody knows."""
    named = told.is_about(MARRIED, holds=True) and told.held.subject == USER
    return named or expression("statements", "got_married").match(told.one.content) is not None


def ended_by_wedding(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    """Who was the fiancée, or the girlfriend, is that no longer."""
    one = told.one
    before = [held for held in standing if _is_engaged(held)]
    if told.slot is None:
        yield one
        old = only_one(before)
        if old is None or speaker != USER:
            return
        whom = old.content.removeprefix(f"The user {ENGAGED} ").partition(" is the user's ")[0]
        one = one.model_copy(
            update={
                "content": f"The user {MARRIED} {whom.rstrip('.')}.",
                "worded_by": old.episode_ids,
                "subject": USER,
                "predicate": MARRIED,
                "object": whom.rstrip("."),
                "kind": MemoryKind.NOTE,
                "begins": True,
                "confidence": min(one.confidence, INFERRED),
            }
        )
    name = words_of(one.object)
    known = (held for held in standing if _is_engaged(held) or _is_partner(held, name))
    yield one
    for held in {held.content: held for held in known if name & _partner(held)}.values():
        yield no_longer(held, one, min(one.confidence, INFERRED))


def _is_engaged(held: KnownToHold) -> bool:
    slot = held.slot
    engaged = slot.subject == USER and slot.predicate == ENGAGED
    return engaged or (
        slot.predicate == IS_THE_USERS and slot.object in words("declared", "to_be_married")
    )


def _partner(held: KnownToHold) -> frozenset[str]:
    """Whom it is about, unless they are married already."""
    slot = held.slot
    role = slot.object if slot.predicate == IS_THE_USERS else slot.predicate.removesuffix(" is")
    if role in words("declared", "married"):
        return frozenset()
    return words_of(slot.subject if slot.predicate == IS_THE_USERS else slot.object)


def _is_partner(held: KnownToHold, name: frozenset[str]) -> bool:
    """Whether it says that somebody of that name is the girlfriend, or husband, of the user."""
    slot, partners = held.slot, words("declared", "partners")
    if slot.predicate == IS_THE_USERS and slot.object in partners:
        return words_of(slot.subject) == name
    role = slot.predicate.removesuffix(" is")
    return slot.subject == USER and role in partners and words_of(slot.object) == name


def _is_couple(held: KnownToHold) -> bool:
    """Whether it says of anybody that the user is together with them."""
    slot, partners = held.slot, words("declared", "partners")
    if slot.predicate == IS_THE_USERS:
        return slot.object in partners
    together = slot.predicate in {MARRIED, ENGAGED}
    return slot.subject == USER and (together or slot.predicate.removesuffix(" is") in partners)


def partner_predicates() -> frozenset[str]:
    """The predicates that say who the partner of the user is, or will be."""
    roles = (f"{role} is" for role in words("declared", "partners"))
    return frozenset({IS_THE_USERS, ENGAGED, *roles})


def _with_whose(
    one: Statement, standing: Sequence[KnownToHold], old: KnownToHold | None
) -> Statement:
    """The death of "the user's cat Miso", where it is known whose Miso was."""
    named = (
        held
        for held in standing
        if held.slot.predicate == IS_CALLED and held.slot.subject.startswith(OF_THE_USER)
        if words_of(held.slot.object) == words_of(one.subject)
    )
    whose = old or next(named, None)
    if whose is None:
        return one
    called = whose.slot.subject.removeprefix(OF_THE_USER)
    what = called if old is None else SAYS_ITS_NAME.split(old.slot.object)[0]
    content = f"The user's {what} {one.subject} has died."
    return one.model_copy(update={"content": content, "worded_by": whose.episode_ids})
