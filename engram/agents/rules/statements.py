"""What a turn's speaker states about themselves, as predicates and objects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from engram.agents.rules import corrections, objects
from engram.agents.rules.clauses import Clause, clauses
from engram.agents.rules.exchanges import exchanged
from engram.agents.rules.expressions import expression
from engram.agents.rules.favourites import favourites
from engram.agents.rules.kinds import find
from engram.agents.rules.objects import Thing
from engram.agents.rules.patterns import (
    Pattern,
    Reading,
    candidates,
    inside,
    maybe_inside,
    readings,
)
from engram.agents.rules.sentences import Sentence, masked, sentences
from engram.agents.rules.spoken import Spoken, is_product
from engram.agents.rules.stated import NO_SENTENCE, Stated
from engram.agents.rules.vocabulary import vocabulary

_TABLE = "statements"
_AS = re.compile(r"\bas\s+(?=an?\s)", re.I)
_AT = re.compile(r"\s+(?:at|for|with)\s+(?=[A-Z])")


def statements(text: str) -> list[Stated]:
    """Every plain statement of a turn about its speaker, each once, in order."""
    return [one for one in everything(text) if not one.loose]


def everything(text: str) -> list[Stated]:
    """The same, with what is less than plain: promises by "I'll"."""
    plain = masked(text)
    found: dict[tuple[str, str, bool], Stated] = {}
    told = corrections.mended(sorted(_all(plain, text), key=lambda one: one.at), plain)
    for stated in [*told, *corrections.taken_back(told, plain)]:
        key = (stated.predicate, stated.thing.name.casefold(), stated.holds)
        found.setdefault(key, stated)
    named = {(one.predicate, one.sentence.start) for one in found.values() if one.thing.name}
    # "Callum and I got divorced" also holds "I got divorced".
    return [
        one
        for one in found.values()
        if one.thing.name or (one.predicate, one.sentence.start) not in named
    ]


def in_clause(clause: Clause, sentence: Sentence, turn: str) -> list[Stated]:
    """What one clause states; of several wordings that fit, the first."""
    found = exchanged(clause.text)
    if not found:
        found = next(_by_wording(clause, sentence, turn), [])
    return [replace(stated, at=clause.at, sentence=sentence) for stated in found]


def _all(plain: str, text: str) -> Iterator[Stated]:
    greeted = expression(_TABLE, "greeting", exact_case=True).match(plain) or expression(
        _TABLE, "introduction", exact_case=True
    ).match(plain)
    if greeted and _can_be_a_name(greeted.group("name")):
        name = greeted.group("name")
        yield Stated("is called", Thing(name, name), sentence=Sentence(greeted.group(), 0))
    topic: Stated | None = None
    for sentence in sentences(text):
        found = list(_in_sentence(sentence, plain))
        found += corrections.continued(sentence, found, topic)
        yield from found
        topic = corrections.topic(sentence, found, topic)


def _in_sentence(sentence: Sentence, turn: str) -> Iterator[Stated]:
    for clause in clauses(sentence):
        yield from in_clause(clause, sentence, turn)
    yield from favourites(sentence)
    if not maybe_inside().search(sentence.text):
        return
    for pattern in inside():
        for said in pattern.says.finditer(sentence.text):
            if _meets(pattern, sentence.text, sentence, turn):
                spoken = Spoken(said.group(), said.group("it"), sentence.text)
                for thing in find(pattern.kind, spoken):
                    yield _stated(
                        pattern, thing, at=sentence.start + said.start(), sentence=sentence
                    )


def _by_wording(clause: Clause, sentence: Sentence, turn: str) -> Iterator[list[Stated]]:
    for pattern, reading in candidates(readings(clause.text)):
        if pattern.predicate == "works as" and expression(_TABLE, "by_training").search(
            clause.text.partition(" but ")[0]
        ):
            continue
        if _meets(pattern, clause.text, sentence, turn):
            stated = _matched(pattern, reading, sentence)
            if stated:
                yield stated


def _meets(pattern: Pattern, clause: str, sentence: Sentence, turn: str) -> bool:
    when = pattern.when
    if when is None:
        return True
    text = {"clause": clause, "sentence": sentence.text, "turn": turn}[when.of]
    return when.holds.search(text) is not None


def _matched(pattern: Pattern, reading: Reading, sentence: Sentence) -> list[Stated]:
    said = pattern.says.match(reading.clause, reading.start)
    if said is None:
        return []
    words, rest = reading.clause[: said.end()], reading.clause[said.end() :]
    things = find(pattern.kind, Spoken(words, rest, sentence.text))
    found = [_stated(pattern, thing, said=words) for thing in things]
    if not found or not pattern.holds:
        return found
    return [*found, *_besides(pattern, rest, found), *_instead(pattern, rest, things, sentence)]


def _stated(
    pattern: Pattern,
    thing: Thing,
    *,
    said: str = "",
    at: int = 0,
    sentence: Sentence = NO_SENTENCE,
) -> Stated:
    return Stated(
        predicate="uses" if pattern.kind == "moved_to" and is_product(thing) else pattern.predicate,
        thing=thing,
        holds=pattern.holds,
        begins=pattern.begins,
        denied=pattern.denied,
        loose=pattern.loose,
        said=said,
        at=at,
        sentence=sentence,
    )


def _besides(pattern: Pattern, rest: str, found: list[Stated]) -> list[Stated]:
    """The second statement of "joined Spotify as an engineer" and "a nurse at Charité"."""
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


def _instead(pattern: Pattern, rest: str, things: list[Thing], sentence: Sentence) -> list[Stated]:
    """What ended by "I study animation now, not graphic design"."""
    old = corrections.not_but(rest)
    if old is None:
        return []
    taken = {thing.name.casefold() for thing in things}
    spoken = Spoken("", old, sentence.text)
    kind = "named_place" if pattern.kind in {"place", "moved_to"} else pattern.kind
    ended = [thing for thing in find(kind, spoken)[:1] if thing.name.casefold() not in taken]
    return [Stated(pattern.predicate, thing, holds=False) for thing in ended]


def _can_be_a_name(word: str) -> bool:
    lowered = word.casefold()
    known = vocabulary()
    return not (
        lowered in known.languages
        or lowered in known.months
        or expression(_TABLE, "not_a_name", exact_case=True).match(word)
    )
