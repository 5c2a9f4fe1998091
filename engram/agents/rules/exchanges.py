"""Both statements of "switched from Trello to Linear" and "swapped Porto for Lisbon"."""

from __future__ import annotations

import re

from engram.agents.rules import objects
from engram.agents.rules.expressions import expression
from engram.agents.rules.kinds import find
from engram.agents.rules.objects import Thing
from engram.agents.rules.spoken import Spoken, is_place, is_product
from engram.agents.rules.stated import Stated
from engram.agents.rules.vocabulary import vocabulary

_TABLE = "exchanges"
_JOB_VERBS = frozenset({"left", "quit"})


def exchanged(clause: str) -> list[Stated]:
    """What a clause says of the old and of the new; nothing if it exchanges nothing."""
    moved = expression(_TABLE, "from_to").match(clause)
    if moved and expression(_TABLE, "moving").match(moved.group("verb")):
        old, new = objects.place(moved.group("old")), objects.place(moved.group("new"))
        if any(thing is not None and _is_company(thing) for thing in (old, new)):
            return _exchange("works at", old, new)
        tools = any(thing is not None and is_product(thing) for thing in (old, new))
        return _exchange("uses" if tools else "lives in", old, new)
    swapped = moved or expression(_TABLE, "for").match(clause)
    if swapped is None:
        return []
    jobs = _jobs(swapped.group("old"), swapped.group("new"))
    if jobs:
        return jobs
    return _of_names(swapped)


def _of_names(swapped: re.Match[str]) -> list[Stated]:
    """By what the two are: cities, tools, or companies after a verb of leaving."""
    old, new = objects.thing(swapped.group("old")), objects.organisation(swapped.group("new"))
    if old is None or new is None:
        return []
    if is_place(old) or is_place(new):
        return _exchange("lives in", old, new) if new.name[:1].isupper() else []
    if is_product(old) or is_product(new):
        return _exchange("uses", old, new)
    if not (old.name[:1].isupper() and new.name[:1].isupper()):
        return []
    leaving = swapped.group("verb").lower() in _JOB_VERBS
    return _exchange("works at" if leaving else "uses", old, new)


def _is_company(thing: Thing) -> bool:
    return bool(set(thing.name.casefold().split()) & vocabulary().company_words)


def _jobs(old: str, new: str) -> list[Stated]:
    was, is_now = (find("work", Spoken("", words, words)) for words in (old, new))
    if not (was and is_now):
        return []
    return _exchange("works as", was[0], is_now[0])


def _exchange(predicate: str, old: Thing | None, new: Thing | None) -> list[Stated]:
    began = [Stated(predicate, new, begins=True)] if new else []
    ended = [Stated(predicate, old, holds=False)] if old else []
    return [*began, *ended]
