"""What a statement ends without naming it as it was told.

"Miso died" ends "has a cat called Miso", "our cat died" the one cat that is known, and "I switched
to Neovim" the one other editor. What is meant follows from what is known; where several could be
meant, nobody knows, and nothing ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from engram.consolidation.keep import Circumstances
from engram.domain.identity import normalise
from engram.domain.memories import MemoryKind, MemoryStatus, SemanticMemory, Slot
from engram.domain.plan import Statement
from engram.domain.slots import USER, ends_something, held_predicate, slot_of
from engram.language.vocabulary import expression, of_one_kind, words

DIED = "died"
SWITCHED = "switched to"
_USES = "uses"
_DIET = "diet is"
_EATS = "eats"
_PLANS = "plans to"
_STUDIES = "studies"
_WORKS_AS = "works as"
_RETIRED = " has retired."
_JOURNEY = re.compile(r"(?:go|travel|fly|drive|sail|cycle|hike|move|head) |(?:visit|tour|see) ")
_HELD = frozenset({"has", "owns", "drives"})
_IS_CALLED = "is called"
_MARRIED = "is married to"
_IS_THE_USERS = "is the user's"
_CALLED = re.compile(r"\s(?:called|named)\s")
# That it is over follows from what was said; nobody said it.
_INFERRED = 0.75


class _KnownToHold(NamedTuple):
    """Something that is so, as a statement or a memory tells it."""

    slot: Slot
    content: str


def ended_unnamed(statements: Iterable[Statement]) -> frozenset[str]:
    """The predicates of which something known may end by these statements, without being named."""
    found: set[str] = set()
    for one in statements:
        if _is_switch(one):
            found.add(_USES)
        elif _is_death(one):
            found |= {*_HELD, _IS_CALLED}
        elif _is_about(one, _EATS, holds=True):
            found.add(_DIET)
        elif _is_about(one, _PLANS, holds=False):
            found.add(_PLANS)
        elif _changes_subject(one):
            found.add(_STUDIES)
        elif one.content.endswith(_RETIRED):
            found.add(_WORKS_AS)
        elif _ends_possession(one):
            found |= _HELD
        elif _is_parting(one):
            found |= {_IS_THE_USERS, *(f"{one} is" for one in words("declared", "partners"))}
    return frozenset(found)


def with_implied(
    statements: Sequence[Statement],
    known: Sequence[SemanticMemory],
    circumstances: Circumstances,
) -> list[Statement]:
    """The statements, where one ends something by another name under the name it was told by.

    Args:
        statements: What the turns state.
        known: What is known of their subjects, whether it still holds or not.
        circumstances: Their turns.
    """
    if not ended_unnamed(statements):
        return list(statements)
    found: list[Statement] = []
    for number, one in enumerate(statements):
        # What ends nothing under another name needs no look at what is known.
        said = circumstances.telling(one) if ended_unnamed([one]) else None
        if said is None:
            found.append(one)
            continue
        standing = [
            *_standing(known, said.known_at, one.episode_ids),
            *_said_before(statements[:number]),
        ]
        found += _with_ending(one, standing, _speaker(one, circumstances))
    return found


def _with_ending(
    one: Statement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    if _ends_possession(one):
        old = _meant(one, standing)
        yield one if old is None else _over(old, one, one.confidence)
        return
    old = _given_up(one, standing)
    if _is_about(one, _PLANS, holds=False):
        # Which trip it was that was called off, what is known says; of none, nothing is told.
        if old is not None:
            yield _over(old, one, one.confidence)
        elif one.object:
            yield one
        return
    if _is_switch(one):
        old = _other_of_its_kind(one, standing)
    elif _is_death(one):
        old = _only(held for held in _of(speaker, standing) if _name(held) == _words(one.subject))
        one = _with_whose(one, standing, old)
    elif _is_parting(one):
        old = _only(held for held in standing if _is_partner(held, _words(one.object)))
    yield one
    if old is not None:
        yield _over(old, one, min(one.confidence, _INFERRED))


def _is_about(one: Statement, predicate: str, *, holds: bool) -> bool:
    slot = slot_of(one.subject, one.predicate, one.object, holds=one.holds)
    return slot is not None and held_predicate(slot) == predicate and one.holds is holds


def _changes_subject(one: Statement) -> bool:
    """Whether it is studied in place of another: who starts on law may go on with physics."""
    changed = expression("statements", "changed_over")
    told = any(changed.search(evidence.words) for evidence in one.evidence)
    return one.begins and told and _is_about(one, _STUDIES, holds=True)


def _given_up(one: Statement, standing: Sequence[_KnownToHold]) -> _KnownToHold | None:
    """What else is over by it: the diet of who eats fish again, the work of who retired."""
    slot = slot_of(one.subject, one.predicate, one.object)
    if slot is None:
        return None
    if _is_about(one, _EATS, holds=True):
        kept_to = _of(slot.subject, standing, _DIET)
        return _only(held for held in kept_to if slot.object in words("diets", held.slot.object))
    if one.content.endswith(_RETIRED):
        return _only(_of(slot.subject, standing, _WORKS_AS))
    if _changes_subject(one):
        others = _of(slot.subject, standing, _STUDIES)
        return _only(held for held in others if held.slot.object != slot.object)
    if _is_about(one, _PLANS, holds=False):
        return _trip_meant(slot, standing)
    return None


def _trip_meant(slot: Slot, standing: Sequence[_KnownToHold]) -> _KnownToHold | None:
    """The journey that was planned: to the place that is named, or the only one."""
    plans = [
        held for held in _of(slot.subject, standing, _PLANS) if held.slot.object != slot.object
    ]
    where = slot.object.removeprefix("go to ")
    if where == slot.object and where:
        return None
    trips = (held for held in plans if _JOURNEY.match(held.slot.object))
    return _only(held for held in trips if not where or _words(where) <= _words(held.slot.object))


def _is_switch(one: Statement) -> bool:
    return one.holds and normalise(one.predicate or "") == SWITCHED


def _is_death(one: Statement) -> bool:
    slot = slot_of(one.subject, one.predicate, one.object, holds=one.holds)
    return slot is not None and slot.predicate == DIED and slot.subject != USER


def _is_parting(one: Statement) -> bool:
    slot = slot_of(one.subject, one.predicate, one.object, holds=one.holds)
    return (
        slot is not None
        and ends_something(slot)
        and held_predicate(slot) == _MARRIED
        and slot.subject == USER
        and bool(slot.object)
    )


def _is_partner(held: _KnownToHold, name: frozenset[str]) -> bool:
    """Whether it says that somebody of that name is the girlfriend, or husband, of the user."""
    slot, partners = held.slot, words("declared", "partners")
    if slot.predicate == _IS_THE_USERS and slot.object in partners:
        return _words(slot.subject) == name
    role = slot.predicate.removesuffix(" is")
    return slot.subject == USER and role in partners and _words(slot.object) == name


def _ends_possession(one: Statement) -> bool:
    slot = slot_of(one.subject, one.predicate, one.object, holds=one.holds)
    return slot is not None and ends_something(slot) and held_predicate(slot) in _HELD


def _speaker(one: Statement, circumstances: Circumstances) -> str:
    named = {normalise(turn.speaker or USER) for turn in circumstances.sources(one)}
    return named.pop() if len(named) == 1 else USER


def _standing(
    known: Sequence[SemanticMemory], at: datetime, episode_ids: Sequence[str]
) -> Iterator[_KnownToHold]:
    """What was so when it was said, also where an earlier run took up what these turns end."""
    ended_here = {m.id for m in known if not set(episode_ids).isdisjoint(m.source_episode_ids)}
    for memory in sorted(known, key=lambda one: (one.known_at, one.id)):
        if memory.slot is None or ends_something(memory.slot) or memory.refuted_at is not None:
            continue
        stands = memory.status is MemoryStatus.ACTIVE or memory.superseded_by in ended_here
        if stands and memory.known_at <= at:
            yield _KnownToHold(memory.slot, memory.content)


def _said_before(statements: Sequence[Statement]) -> Iterator[_KnownToHold]:
    """What the same turns state before it, and do not end."""
    told: dict[Slot, _KnownToHold] = {}
    for one in statements:
        slot = slot_of(one.subject, one.predicate, one.object)
        if slot is None:
            continue
        if one.holds:
            told[slot] = _KnownToHold(slot, one.content)
        else:
            told.pop(slot, None)
    yield from told.values()


def _of(subject: str, standing: Iterable[_KnownToHold], *predicates: str) -> Iterator[_KnownToHold]:
    wanted = predicates or tuple(_HELD)
    return (one for one in standing if one.slot.subject == subject and one.slot.predicate in wanted)


def _other_of_its_kind(one: Statement, standing: Sequence[_KnownToHold]) -> _KnownToHold | None:
    """The one other tool of that kind: the editor that was used before the new one."""
    new = slot_of(one.subject, one.predicate, one.object)
    if new is None:
        return None
    used = _of(new.subject, standing, _USES)
    return _only(held for held in used if of_one_kind(held.slot.object, new.object))


def _with_whose(
    one: Statement, standing: Sequence[_KnownToHold], old: _KnownToHold | None
) -> Statement:
    """The death of "the user's cat Miso", where it is known whose Miso was."""
    mine = f"{USER}'s "
    named = (
        held.slot.subject.removeprefix(mine)
        for held in standing
        if held.slot.predicate == _IS_CALLED and held.slot.subject.startswith(mine)
        if _words(held.slot.object) == _words(one.subject)
    )
    what = _CALLED.split(old.slot.object)[0] if old is not None else next(named, None)
    if what is None:
        return one
    return one.model_copy(update={"content": f"The user's {what} {one.subject} has died."})


def _meant(one: Statement, standing: Sequence[_KnownToHold]) -> _KnownToHold | None:
    """What an ending is of: "our cat Miso" is the cat that is called Miso, or the only cat.

    None where it is known by those very words, or not known.
    """
    slot = slot_of(one.subject, one.predicate, one.object)
    if slot is None:
        return None
    mine = list(_of(slot.subject, standing))
    exactly = [held for held in mine if held.slot == slot]
    if len(exactly) == 1:
        return None
    return _only(held for held in mine if _is_meant(held, one.object or ""))


def _is_meant(held: _KnownToHold, said: str) -> bool:
    spoken = said.split()
    if not spoken:
        return False
    names = _words(" ".join(word for word in spoken if word[:1].isupper()))
    kind = [word for word in spoken if not word[:1].isupper() and word not in {"called", "named"}]
    own = _name(held)
    if names and own:
        return names <= own
    head = _CALLED.split(held.slot.object)[0].split()[-1:]
    # "Our cat": whatever it is called; "Miso": only what is called so; "the Golf": the red Golf.
    return head == kind[-1:] or head == [spoken[-1].casefold()]


def _name(held: _KnownToHold) -> frozenset[str]:
    """What it is called, as words; empty where nobody said."""
    parts = _CALLED.split(held.content.rstrip(". "), maxsplit=1)
    return _words(parts[1]) if len(parts) > 1 else frozenset()


def _words(text: str | None) -> frozenset[str]:
    return frozenset(normalise(text or "").split())


def _only(found: Iterable[_KnownToHold]) -> _KnownToHold | None:
    by_content = {held.content: held for held in found}
    return next(iter(by_content.values())) if len(by_content) == 1 else None


def _over(old: _KnownToHold, one: Statement, confidence: float) -> Statement:
    """That it is no longer so, by the same words of the same turns."""
    who, said, rest = old.content.partition(f" {old.slot.predicate} ")
    if said:
        verb = said.removeprefix(" is")
        content = (
            f"{who} is no longer{verb}{rest}" if verb != said else f"{who} no longer{said}{rest}"
        )
    else:
        who, said, rest = old.content.partition(" is ")
        content = f"{who} is no longer {rest}" if said else f"It is no longer so that {old.content}"
    return one.model_copy(
        update={
            "content": content,
            "subject": old.slot.subject,
            "predicate": old.slot.predicate,
            "object": old.slot.object,
            "kind": MemoryKind.NOTE,
            "holds": False,
            "begins": False,
            "confidence": confidence,
        }
    )
