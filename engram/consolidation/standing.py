"""What stands while statements are read, what of it somebody means, and that it is over."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from engram.domain.identity import normalise
from engram.domain.memories import MemoryKind, MemoryStatus, SemanticMemory, Slot
from engram.domain.plan import Statement
from engram.domain.slots import POSSESSING, ends_something, slot_of

ADDRESS: Final = "address is"
SAYS_ITS_NAME: Final = re.compile(r"\s(?:called|named)\s")
_BESIDE = re.compile(r"\s(?:above|over|below|under|near|by|beside|behind|in|on|at|with|from|for)\s")
INFERRED: Final = 0.75
"""Confidence that it is over: that follows from what was said; nobody said it."""


class KnownToHold(NamedTuple):
    """Something that is so, as a statement or a memory tells it, and by which turns."""

    slot: Slot
    content: str
    episode_ids: tuple[str, ...]

    def is_told_with(self, episode_ids: Iterable[str]) -> bool:
        """Whether one of these turns tells it."""
        return not set(self.episode_ids).isdisjoint(episode_ids)


class SlottedStatement(NamedTuple):
    """A statement, with its slot, and the same slot where nothing has ended."""

    one: Statement
    slot: Slot | None
    held: Slot

    def is_about(self, predicate: str, *, holds: bool) -> bool:
        """Whether it says that something is so, or no longer so, by this predicate."""
        return (
            self.slot is not None and self.held.predicate == predicate and self.one.holds is holds
        )


def standing_at(
    known: Sequence[SemanticMemory], at: datetime, episode_ids: Sequence[str]
) -> Iterator[KnownToHold]:
    """What was so when it was said, also where an earlier run took up what these turns end."""
    here = set(episode_ids)
    ended_here = {m.id for m in known if any(here.intersection(t.episode_ids) for t in m.tellings)}
    for memory in sorted(known, key=lambda one: (one.known_at, one.id)):
        if memory.slot is None or ends_something(memory.slot) or memory.refuted_at is not None:
            continue
        stands = memory.status is MemoryStatus.ACTIVE or memory.superseded_by in ended_here
        if stands and memory.known_at <= at:
            yield KnownToHold(memory.slot, memory.content, memory.source_episode_ids)


def said_before(statements: Sequence[Statement]) -> Iterator[KnownToHold]:
    """What the same turns state before it, and do not end."""
    told: dict[Slot, KnownToHold] = {}
    for one in statements:
        slot = slot_of(one.subject, one.predicate, one.object)
        if slot is None:
            continue
        if one.holds:
            told[slot] = KnownToHold(slot, one.content, one.episode_ids)
        else:
            told.pop(slot, None)
    yield from told.values()


def of_subject(
    subject: str, standing: Iterable[KnownToHold], *predicates: str
) -> Iterator[KnownToHold]:
    """Of what stands, what is said of a subject: what it has, or by these predicates."""
    wanted = predicates or tuple(POSSESSING)
    return (one for one in standing if one.slot.subject == subject and one.slot.predicate in wanted)


def meant_by(told: SlottedStatement, standing: Sequence[KnownToHold]) -> KnownToHold | None:
    """What an ending is of: "our cat Miso" is the cat that is called Miso, or the only cat.

    None where it is known by those very words, or not known.
    """
    mine = list(of_subject(told.held.subject, standing))
    exactly = [held for held in mine if held.slot == told.held]
    if len(exactly) == 1:
        return None
    return only_one(held for held in mine if _is_meant(held, told.one.object or ""))


def _is_meant(held: KnownToHold, said: str) -> bool:
    spoken = said.split()
    if not spoken:
        return False
    names = words_of(" ".join(word for word in spoken if word[:1].isupper()))
    kind = [word for word in spoken if not word[:1].isupper() and word not in {"called", "named"}]
    own = name_of(held)
    if names and own:
        return names <= own
    # A "flat above a chip shop" is a flat.
    head = _BESIDE.split(SAYS_ITS_NAME.split(held.slot.object)[0])[0].split()[-1:]
    # "Our cat": whatever it is called; "Miso": only what is called so; "the Golf": the red Golf.
    return head == kind[-1:] or head == [spoken[-1].casefold()]


def name_of(held: KnownToHold) -> frozenset[str]:
    """What it is called, as words; empty where nobody said."""
    parts = SAYS_ITS_NAME.split(held.content.rstrip(". "), maxsplit=1)
    return words_of(parts[1]) if len(parts) > 1 else frozenset()


def words_of(text: str | None) -> frozenset[str]:
    """The words of a text, as they are compared."""
    return frozenset(normalise(text or "").split())


def only_one(found: Iterable[KnownToHold]) -> KnownToHold | None:
    """The one that was found, however often it is told; None of several, and of none."""
    by_content = {held.content: held for held in found}
    return next(iter(by_content.values())) if len(by_content) == 1 else None


def and_over(one: Statement, old: KnownToHold | None) -> Iterator[Statement]:
    """The statement, and that what it implies to be over is."""
    yield one
    if old is not None:
        yield no_longer(old, one, min(one.confidence, INFERRED))


def no_longer(old: KnownToHold, one: Statement, confidence: float) -> Statement:
    """That it is no longer so, by the same words of the same turns."""
    who, said, rest = old.content.partition(f" {old.slot.predicate} ")
    if old.slot.predicate == ADDRESS and said:
        content = f"{who}{said}no longer {rest}"
    elif said:
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
            "worded_by": old.episode_ids,
        }
    )
