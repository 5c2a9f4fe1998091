"""What takes back or goes on from something said just before: "sorry, I meant Bosch"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from engram.agents.rules.expressions import expression
from engram.agents.rules.kinds import find
from engram.agents.rules.sentences import Sentence
from engram.agents.rules.spoken import NOTHING_NAMED, Spoken
from engram.agents.rules.stated import Stated
from engram.agents.rules.wordings import predicates, wordings

_TABLE = "corrections"
# Longer turns are pastes; each statement in them would search all of it.
_LONGEST = 1_000


def mended(found: Sequence[Stated], plain: str) -> list[Stated]:
    """Without what was taken back in the same breath, and with what mends marked as such."""
    cues = [cue.start() for cue in expression(_TABLE, "cue").finditer(plain)]
    if not cues:
        return list(found)
    gone: set[int] = set()
    mending: set[int] = set()
    for number, new in enumerate(found):
        if not new.holds:
            continue
        old = next(
            (
                n
                for n in range(number - 1, -1, -1)
                if n not in gone and found[n].holds and found[n].predicate == new.predicate
            ),
            None,
        )
        if any(cue <= new.at and (old is None or found[old].at < cue) for cue in cues):
            mending.add(number)
            if old is not None and found[old].thing.name.casefold() != new.thing.name.casefold():
                gone.add(old)
    return [replace(one, corrects=n in mending) for n, one in enumerate(found) if n not in gone]


def continued(sentence: Sentence, found: Sequence[Stated], topic: Stated | None) -> list[Stated]:
    """New values that a sentence gives to what was being spoken of, without naming it."""
    more: list[Stated] = []
    for said, cue in (("mend", True), ("now", False), ("since", False), ("but", False)):
        for match in expression(_TABLE, said).finditer(sentence.text):
            at = sentence.start + match.start("it")
            about = _spoken_of(at, [*found, *more], topic)
            if about is None or (said == "but" and about.holds):
                continue
            if expression(_TABLE, "clausal").match(match.group("it")):
                continue
            kind = _kind(about.predicate)
            words = f"on {match.group('it')}" if kind == "birth" else match.group("it")
            things = find(kind, Spoken("", words, sentence.text))
            more += [
                Stated(about.predicate, one, begins=not cue, at=at, sentence=sentence)
                for one in things[:1]
                if one.name.casefold() != about.thing.name.casefold()
                and not any(one.name == other.thing.name for other in found)
            ]
    return more


def taken_back(found: Sequence[Stated], plain: str) -> list[Stated]:
    """What "I meant blues, not jazz. I like blues." ends, wherever the turn says it."""
    lowered = plain.casefold()
    if "not " not in lowered or len(lowered) > _LONGEST:
        return []
    return [old for new in found if new.holds for old in _not_that(new, plain)]


def _not_that(new: Stated, plain: str) -> list[Stated]:
    name = re.escape(new.thing.name)
    after = rf"\b{name},? (?:and |but )?not (?:in |at |as |to )?(?P<after>[^,;:!().]{{1,40}})"
    before = (
        rf"\bnot (?:in |at |as |to )?(?P<before>[^,;:!().]{{1,40}})(?:, (?:but )?| but ){name}\b"
    )
    kind = _kind(new.predicate)
    for said in re.finditer(rf"{after}|{before}", plain, re.I):
        words = said.group("after") or said.group("before")
        if expression(_TABLE, "not_a_value").match(words):
            continue
        for old in find(kind, Spoken("", words, plain))[:1]:
            if old.name.casefold() != new.thing.name.casefold():
                return [replace(new, thing=old, holds=False, begins=False, corrects=False)]
    return []


def topic(sentence: Sentence, found: Sequence[Stated], before: Stated | None) -> Stated | None:
    """What the sentences that follow may go on about."""
    if found:
        return found[-1]
    for name, cue in _topics():
        if cue.search(sentence.text):
            return Stated(name, NOTHING_NAMED, sentence=sentence)
    return before


def not_but(rest: str) -> str | None:
    """What "..., not Valencia" names, after a statement."""
    found = expression(_TABLE, "not").search(rest)
    if found is None:
        return None
    old = next(group for group in found.groups() if group)
    return None if expression(_TABLE, "not_a_value").match(old) else old


def _spoken_of(at: int, found: Sequence[Stated], topic: Stated | None) -> Stated | None:
    before = [one for one in found if one.at < at]
    return max(before, key=lambda one: one.at) if before else topic


def _kind(predicate: str) -> str:
    if predicate.startswith("favourite "):
        return "titled"
    kind = predicates()[predicate].kind
    return {"place": "named_place", "organisation": "name"}.get(kind, kind)


@cache
def _topics() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(cue, re.I)) for name, cue in wordings().topics.items())
