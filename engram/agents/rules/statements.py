"""What a turn's speaker states about themselves, as predicates and objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from engram.agents.rules import objects
from engram.agents.rules.clauses import clauses, sentences
from engram.agents.rules.kinds import Spoken, find, is_product
from engram.agents.rules.objects import Thing
from engram.agents.rules.patterns import Pattern, Reading, candidates, readings
from engram.agents.rules.vocabulary import vocabulary

# What one learnt is not what one does.
_BY_TRAINING = re.compile(r"\bby\s+(?:training|education|degree)\b", re.I)
_FROM_TO = re.compile(
    r"(?:i|we|i've|we've|i\s+have|we\s+have)\s+(?:\w+\s+){0,2}?"
    r"(?P<verb>moved|relocated|switched|migrated|changed|converted|went)(?:\s+over)?\s+from\s+"
    r"(?P<old>[^,;.]+?)\s+(?:over\s+)?to\s+(?P<new>.+)",
    re.I,
)
_FOR = re.compile(
    r"(?:i|we|i've|we've|i\s+have|we\s+have)\s+(?:\w+\s+){0,2}?"
    r"(?:replaced|swapped|ditched|dropped|abandoned|traded|exchanged)\s+(?P<old>[^,;.]+?)\s+"
    r"(?:with|for|in\s+favou?r\s+of)\s+(?P<new>.+)",
    re.I,
)
_MOVING = frozenset({"moved", "relocated"})
_WHAT_I_USE = re.compile(
    r"(?:^|[,;:]|\bbut\b|\band\b)\s*(?P<it>[^,;:]{1,60}?)\s+is\s+what\s+(?:i|we)\s+(?:\w+\s+)?use\b",
    re.I,
)
_GREETED = re.compile(
    r"(?i:\W*(?:hi|hello|hey|hiya|good\s+(?:morning|evening|afternoon)|greetings|howdy)\b[\s,!.]*(?:there|all|everyone|everybody|folks|again|both)?[\s,!.–—-]*"
    r"(?:i'm|i\s+am|this\s+is|it's))\s+(?P<name>[A-Z][\w'-]+)(?=\s*(?:$|[,.!;(–—]|and\b|from\b|here\b|by\b))",
)
_AS = re.compile(r"\bas\s+(?=an?\s)", re.I)
_AT = re.compile(r"\s+(?:at|for|with)\s+(?=[A-Z])")
_NOT_A_NAME = re.compile(r"(?:.*(?:ish|ese)|[A-Z]{2,})\Z")


@dataclass(frozen=True, slots=True)
class Stated:
    """One statement.

    Attributes:
        said: The words before the object.
        sentence: Where it was said.
    """

    predicate: str
    thing: Thing
    holds: bool = True
    begins: bool = False
    said: str = ""
    sentence: str = ""


def statements(text: str) -> list[Stated]:
    """Every statement of a turn about its speaker, each once, in order."""
    found: dict[tuple[str, str, bool], Stated] = {}
    for stated in _all(text):
        key = (stated.predicate, stated.thing.name.casefold(), stated.holds)
        found.setdefault(key, stated)
    return list(found.values())


def _all(text: str) -> Iterator[Stated]:
    plain = text.replace("’", "'")
    greeted = _GREETED.match(plain)
    if greeted and _can_be_a_name(greeted.group("name")):
        name = greeted.group("name")
        yield Stated("is called", Thing(name, name), sentence=plain)
    for sentence in sentences(text):
        for clause in clauses(sentence):
            for stated in _in_clause(clause, sentence):
                yield replace(stated, sentence=sentence)
        for used in _WHAT_I_USE.finditer(sentence):
            thing = objects.thing(used.group("it"))
            if thing is not None:
                yield Stated("uses", thing, sentence=sentence)


def _in_clause(clause: str, sentence: str) -> list[Stated]:
    exchanged = _exchanged(clause)
    if exchanged:
        return exchanged
    for pattern, reading in candidates(readings(clause)):
        if pattern.predicate == "works as" and _BY_TRAINING.search(clause.partition(" but ")[0]):
            continue
        stated = _matched(pattern, reading, clause, sentence)
        if stated:
            return stated
    return []


def _matched(pattern: Pattern, reading: Reading, clause: str, sentence: str) -> list[Stated]:
    said = pattern.says.match(clause, reading.start)
    if said is None or (pattern.when and not pattern.when.search(clause)):
        return []
    words, rest = clause[: said.end()], clause[said.end() :]
    things = find(pattern.kind, Spoken(words, rest, sentence))
    found = [
        Stated(
            predicate=_tool_or_place(pattern, thing),
            thing=thing,
            holds=pattern.holds,
            begins=pattern.begins,
            said=words,
        )
        for thing in things
    ]
    return found + _besides(pattern, rest, found)


def _besides(pattern: Pattern, rest: str, found: list[Stated]) -> list[Stated]:
    """The second statement of "joined Spotify as an engineer" and "a nurse at Charité"."""
    if not found or not pattern.holds:
        return []
    if pattern.predicate == "works at":
        as_what = _AS.search(rest)
        things = find("work", Spoken("work as", rest[as_what.end() :], rest)) if as_what else []
        return [Stated("works as", thing, begins=pattern.begins) for thing in things]
    if pattern.predicate == "works as":
        after = rest[rest.find(found[0].thing.phrase) + len(found[0].thing.phrase) :]
        where = _AT.match(after)
        name = objects.name(after[where.end() :]) if where else None
        return [Stated("works at", name, begins=pattern.begins)] if name else []
    return []


def _exchanged(clause: str) -> list[Stated]:
    """Both statements of "switched from Trello to Linear", "moved from Porto to Lisbon"."""
    moved = _FROM_TO.match(clause)
    if moved and moved.group("verb").lower() in _MOVING:
        old, new = objects.place(moved.group("old")), objects.place(moved.group("new"))
        tools = any(thing is not None and is_product(thing) for thing in (old, new))
        return _exchange("uses" if tools else "lives in", old, new)
    swapped = moved or _FOR.match(clause)
    if swapped is None:
        return []
    old, new = objects.thing(swapped.group("old")), objects.thing(swapped.group("new"))
    if not (_is_a_tool(old) and _is_a_tool(new)):
        return []
    return _exchange("uses", old, new)


def _exchange(predicate: str, old: Thing | None, new: Thing | None) -> list[Stated]:
    began = [Stated(predicate, new, begins=True)] if new else []
    ended = [Stated(predicate, old, holds=False)] if old else []
    return [*began, *ended]


def _tool_or_place(pattern: Pattern, thing: Thing) -> str:
    return "uses" if pattern.kind == "moved_to" and is_product(thing) else pattern.predicate


def _is_a_tool(thing: Thing | None) -> bool:
    return thing is not None and (is_product(thing) or thing.name[:1].isupper())


def _can_be_a_name(word: str) -> bool:
    lowered = word.casefold()
    known = vocabulary()
    return not (lowered in known.languages or lowered in known.months or _NOT_A_NAME.match(word))
