"""What takes the place of what was told before a turn: "Lisbon now", "Back at Bupa"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from engram.domain.slots import IS_CALLED, POSSESSING
from engram.language.statements.clauses import Sentence, sentences
from engram.language.statements.objects import (
    MatchContext,
    Thing,
    is_origin,
    is_place,
    is_product,
)
from engram.language.statements.predicates import RuleStatement, find, is_subject
from engram.language.statements.reading import everything, holds_one, kind_of_object
from engram.language.statements.told_before import (
    FROM_BIRTH,
    LIVES_IN,
    MARRIED,
    STUDIES,
    USES,
    WORKS_AS,
    WORKS_AT,
    bare_name,
    begun,
    ended,
    is_named,
    last_word,
    same_name,
    short_name,
    stands_in,
)
from engram.language.vocabulary import expression, vocabulary, word_lines

_TABLE = "takes_back"

_SWAPPED = POSSESSING | {LIVES_IN, STUDIES, WORKS_AT}


def works_now(
    text: str, told: Sequence[RuleStatement], before: Sequence[str]
) -> Iterator[RuleStatement]:
    """Where whoever left their work is now: "I'm at the Co-op now", which need be no work.

    Args:
        text: The turn of the user.
        told: What they said of themselves before it.
        before: What they said before it.
    """
    if expression(_TABLE, "at_now").search(text) is None:
        return
    if not any(one.predicate == WORKS_AT for one in (*told, *everything(text))):
        return
    if not any(expression(_TABLE, "left_work").search(said) for said in (*before, text)):
        return
    for sentence in sentences(text):
        now = expression(_TABLE, "at_now").search(sentence.text)
        where = now.group("what").strip().removeprefix("the ") if now else ""
        spoken = MatchContext(now.group("said"), where, sentence.text) if now else None
        kind = "company" if spoken and spoken.lower else "name"
        for thing in find(kind, spoken)[:1] if spoken else ():
            if not is_product(thing) and not is_place(thing):
                yield RuleStatement(
                    WORKS_AT, thing, begins=True, at=sentence.start, sentence=sentence
                )


def instead_now(
    text: str, told: Sequence[RuleStatement], last: Sequence[RuleStatement]
) -> Iterator[RuleStatement]:
    """What takes the place of what was told, or holds again: "now it's Da Nino", "back at Bupa".

    Args:
        text: The turn of the user.
        told: What they said of themselves before it.
        last: What they said in the turn right before.
    """
    if not told or expression(_TABLE, "may_be_now").search(text) is None:
        return
    named_so = [one for one in told if one.holds and one.thing.name]
    single = [one for one in named_so if holds_one(one) or is_product(one.thing)]
    said = sentences(text)
    for number, sentence in enumerate(said):
        yield from _holding_again(sentence, told)
        yield from _holding_there(sentence, told, text)
        yield from _favourite_now(sentence, named_so)
        yield from _said_alone(said, number, told, text)
        yield from _new_one(sentence, text, told)
        now = expression(_TABLE, "now_it").search(sentence.text)
        before = sentence.text[: now.start()].casefold() if now else ""
        meant = [
            one
            for one in single
            if re.search(rf"\b{re.escape(one.thing.name.casefold())}\b", before)
        ]
        for one in meant[-1:] if now else ():
            spoken = MatchContext("", now.group("new"), sentence.text) if now else None
            things = find(kind_of_object(one.predicate), spoken)[:1] if spoken else []
            # "Better now": alone, only a name that is known says anything.
            known = (thing for thing in things if is_product(thing) or one.predicate != USES)
            yield from (begun(one, thing, sentence) for thing in known)


def _said_alone(
    said: Sequence[Sentence], number: int, told: Sequence[RuleStatement], text: str
) -> Iterator[RuleStatement]:
    """What is said without its predicate, and can be of one alone: "Aldi now", "Vim again".

    Args:
        said: The sentences of the turn.
        number: Of the one that is asked.
        told: What was said of the speaker before, the latest last.
        text: The turn.
    """
    sentence = said[number]
    alone = expression(_TABLE, "alone").search(sentence.text)
    near = said[max(0, number - 1) : number + 1]
    if alone is None:
        return
    marked = alone.end("new")
    around = f"{sentence.text[:marked]} {sentence.text[alone.end() :]}"
    away = expression(_TABLE, "for_a_while").search(around) is not None
    # "Our supplier? Bosch now": a turn may ask at length, and what it asks stands right before.
    asked = text[max(0, sentence.start - _LONGEST_ASKED) : sentence.start]
    of_others = any(
        expression(_TABLE, one).search(spoken) is not None
        for one, spoken in (("of_business", sentence.text), ("asked_what", asked))
    ) or any(
        expression(_TABLE, "of_others").match(one.text)
        # "They've redeployed me. Orpington Library now."
        and (one is sentence or expression(_TABLE, "of_me").search(one.text) is None)
        for one in near
    )
    # "My parents cried, so it's law again": whoever cried.
    found = list(_as_told_before(alone, told)) if alone.group("lead") or not of_others else []
    found = found or (list(_as_of_kind(alone, told, sentence)) if not of_others else [])
    one, thing = found[0] if len(found) == 1 else (None, None)
    if one is None or thing is None:
        return
    travels = any(expression(_TABLE, "on_the_way").search(each.text) for each in near)
    if one.predicate == LIVES_IN and alone.group("time"):
        # "Rome this time": where one goes.
        return
    if one.predicate in {LIVES_IN, WORKS_AT} and (away or (travels and one.predicate == LIVES_IN)):
        return
    if one.predicate == WORKS_AS and alone.group("the"):
        # "The plumber again": who came.
        return
    yield begun(one, thing, sentence)
    latest = _latest(told, one.predicate)
    if latest is not None and not holds_one(one) and not same_name(latest.thing.name, thing.name):
        yield ended(latest, sentence)


def _new_one(
    sentence: Sentence, text: str, told: Sequence[RuleStatement]
) -> Iterator[RuleStatement]:
    """Where one works or lives, by what is new of it: "New badge, new car park: Hedlund Timber"."""
    new = expression(_TABLE, "new_one").search(text, sentence.start)
    if new is None or new.start() > sentence.start + len(sentence.text):
        return
    if expression(_TABLE, "of_others").match(sentence.text):
        return
    one = _latest(told, WORKS_AT if new.group("work") else LIVES_IN)
    thing = _named_alone(one, new.group("new"), sentence) if one else None
    if one is not None and thing is not None:
        yield begun(one, thing, sentence)


def _latest(told: Sequence[RuleStatement], predicate: str) -> RuleStatement | None:
    holding = (one for one in reversed(told) if one.predicate == predicate and one.thing.name)
    return next((one for one in holding if one.holds), None)


def _as_told_before(
    alone: re.Match[str], told: Sequence[RuleStatement]
) -> Iterator[tuple[RuleStatement, Thing]]:
    """What was told to be so, and since then to be otherwise."""
    for predicate in dict.fromkeys(one.predicate for one in told):
        if predicate not in _SAID_ALONE and not predicate.startswith("favourite "):
            continue
        of_it = [one for one in told if one.predicate == predicate]
        named = [one for one in of_it if same_name(one.thing.name, alone.group("new"))]
        if named and not (of_it[-1].holds and of_it[-1] in named):
            yield named[-1], named[-1].thing


def _as_of_kind(
    alone: re.Match[str], told: Sequence[RuleStatement], sentence: Sentence
) -> Iterator[tuple[RuleStatement, Thing]]:
    """What can be of one of what was told by what it is, or as the only name that is told."""
    latest = [_latest(told, one) for one in dict.fromkeys(each.predicate for each in told)]
    holding = [one for one in latest if one is not None]
    if alone.group("again"):
        return
    known = [(o, t) for o in holding if (t := _as_value_of(o, alone.group("new"), sentence))]
    yield from known
    # "Aldi now" may be any word that stands first; after "it's" a capital is that of a name.
    only = [one for one in holding if _is_named_freely(one)]
    several = " " in alone.group("new")
    if not known and (several or alone.group("lead")) and len(holding) == len(only) == 1:
        thing = _named_alone(only[0], alone.group("new"), sentence)
        if thing is not None:
            yield only[0], thing


def _is_named_freely(one: RuleStatement) -> bool:
    return one.predicate in {LIVES_IN, WORKS_AT} or one.predicate.startswith("favourite ")


_SAID_ALONE: Final = frozenset({LIVES_IN, WORKS_AT, WORKS_AS, STUDIES, USES, IS_CALLED})


def _named_alone(one: RuleStatement, new: str, sentence: Sentence) -> Thing | None:
    named = new[:1].isupper() and new[new.rfind(" ") + 1 :][:1].isupper()
    # "It's orange now", of a colour.
    hue = one.predicate.startswith("favourite col") and expression(_TABLE, "colours").fullmatch(new)
    if not (named or hue) or is_origin(new):
        return None
    things = find(kind_of_object(one.predicate), MatchContext("", new, sentence.text))
    thing = things[0] if things else None
    fits = thing is not None and same_name(thing.name, new) and not is_product(thing)
    if thing is None or not fits:
        return None
    # "It's Dave now": who it is.
    if one.predicate == LIVES_IN and expression(_TABLE, "of_whom").search(sentence.text):
        return None
    return None if one.predicate == WORKS_AT and is_place(thing) else thing


def _as_value_of(one: RuleStatement, new: str, sentence: Sentence) -> Thing | None:
    """The value as one of the same kind as was told; None if it may be something else."""
    kind = kind_of_object(one.predicate)
    spoken = MatchContext("", new, sentence.text)
    things = [Thing(new, new)] if spoken.lower and kind != "work" else find(kind, spoken)
    thing = things[0] if things else None
    whole = thing is not None and (
        same_name(thing.name, new) or (kind == "work" and new.endswith(f" {thing.name}"))
    )
    if thing is None or not whole or same_name(thing.name, one.thing.name):
        return None
    known = {
        IS_CALLED: bool(set(thing.name.split()) & set(one.thing.name.split())),
        LIVES_IN: is_place(thing),
        STUDIES: _is_studied(thing) and _is_studied(one.thing),
        USES: is_product(thing) and is_product(one.thing),
        WORKS_AS: last_word(thing) in vocabulary().occupations,
        WORKS_AT: _is_employer_like(thing, one.thing),
        _HAS: _are_as_many(thing, one.thing),
    }
    return thing if known.get(one.predicate) else None


def _are_as_many(thing: Thing, other: Thing) -> bool:
    """Whether it is another number of the same: "four hens" of who has three."""
    counts = [_COUNT.match(one.name) for one in (thing, other)]
    return all(counts) and last_word(thing) == last_word(other)


_HAS: Final = "has"
_COUNT: Final = re.compile(
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d{1,3}) ", re.I
)


def _is_studied(thing: Thing) -> bool:
    return is_subject(thing) or thing.name.casefold() in vocabulary().languages


def _is_employer_like(thing: Thing, other: Thing) -> bool:
    """Whether it is known to employ, or called alike: "Bexley Library" and "Orpington Library"."""
    alike = last_word(thing) == last_word(other) and " " in thing.name
    known = vocabulary().employers.union(word_lines(_TABLE, "employs_too"))
    return not is_place(thing) and (alike or thing.name.casefold() in known)


def _holding_there(
    sentence: Sentence, told: Sequence[RuleStatement], text: str
) -> Iterator[RuleStatement]:
    """What was told before and is so again, by "there": "The Co-op rang, I'm back there"."""
    again = expression(_TABLE, "back_there").search(sentence.text)
    still = again is not None and " still " in again.group()
    said = text[: None if still else sentence.start + again.start()] if again else ""
    named = [
        one
        for one in told
        if one.predicate in {WORKS_AT, LIVES_IN} and stands_in(said, one.thing.name)
    ]
    yield from (begun(one, one.thing, sentence) for one in named[-1:])


def _favourite_now(sentence: Sentence, told: Sequence[RuleStatement]) -> Iterator[RuleStatement]:
    """Of what was told last, another favourite: "Lapsang is my favourite now"."""
    now = expression(_TABLE, "favourite_now").search(sentence.text)
    last = next((one for one in reversed(told) if one.predicate.startswith("favourite ")), None)
    if now is not None and last is not None:
        spoken = MatchContext("", now.group("new"), sentence.text)
        for thing in find(kind_of_object(last.predicate), spoken)[:1]:
            yield begun(last, thing, sentence)


def came_about(
    text: str, before: Sequence[str], told: Sequence[RuleStatement]
) -> Iterator[RuleStatement]:
    """What was to come, and has: "I start at Elis on Monday", "first week at Elis done".

    Args:
        text: The turn of the user.
        before: What they said before it.
        told: What they said of themselves in it.
    """
    here = expression(_TABLE, "lives_here").search(text)
    if here is not None:
        yield from _lives_here(text, before, told)
    if expression(_TABLE, "came_about").search(text) is None:
        return
    for sentence in sentences(text):
        come = expression(_TABLE, "came_about").search(sentence.text)
        if come is None:
            continue
        name = come.group("what").strip(" .")
        for said in (*before, text[: sentence.start]):
            for announced in expression(_TABLE, "announced").finditer(said):
                if not same_name(announced.group("what"), name):
                    continue
                works = announced.group("works") is not None
                if works is (come.group("how").lower() != "in"):
                    predicate = WORKS_AT if works else LIVES_IN
                    thing = Thing(name, name)
                    yield RuleStatement(
                        predicate, thing, begins=True, at=sentence.start, sentence=sentence
                    )
                    return


def _lives_here(
    text: str, before: Sequence[str], told: Sequence[RuleStatement]
) -> Iterator[RuleStatement]:
    """Where somebody lives who says that it is where they are, or names where they lived."""
    lives = expression(_TABLE, "lives_here")
    sentence = next((one for one in sentences(text) if lives.search(one.text)), None)
    if sentence is None or everything(text):
        # Said in full already.
        return
    there = [one for one in told if one.predicate == LIVES_IN and stands_in(text, one.thing.name)]
    if len({one.thing.name for one in there}) == 1:
        yield begun(there[-1], there[-1].thing, sentence)
        return
    for said in (text, *reversed(before[-2:])):
        places = [one.group("what") for one in expression(_TABLE, "is_here").finditer(said)]
        spoken = MatchContext("", places[0], said) if len(set(places)) == 1 else None
        for thing in find("named_place", spoken) if spoken else ():
            yield RuleStatement(LIVES_IN, thing, at=sentence.start, sentence=sentence)
            return


def given_up_for(text: str, told: Sequence[RuleStatement]) -> Iterator[RuleStatement]:
    """What takes the place of what was told and is left: "Zadar's behind me, I'm in Rijeka now".

    Args:
        text: The turn of the user.
        told: What they said of themselves before it.
    """
    if not told or expression(_TABLE, "may_give_up").search(text) is None:
        return
    single = {(one.predicate, bare_name(one.thing.name)): one for one in told if _can_give_way(one)}
    said = list(sentences(text))
    for number, sentence in enumerate(said):
        aside = expression(_TABLE, "of_others").match(sentence.text)
        if aside or expression(_TABLE, "for_a_while").search(sentence.text):
            continue
        for one in single.values() if single else ():
            left = _left_in(sentence.text, one.thing.name)
            if left is None and (short := short_name(one)):
                left = _left_in(sentence.text, short)
            if left is None:
                continue
            for place, rest in ((sentence, sentence.text[left:]), *_next(said, number)):
                new = expression(_TABLE, "taken_up").search(rest)
                if new and one.predicate == LIVES_IN and _only_travels(new, sentence, place):
                    continue
                value = new.group(new.lastgroup or 0) if new else ""
                used = new is not None and _USING.search(new.group()) is not None
                thing = _of_same_kind(one, value, rest, used=used) if new else None
                if thing is not None and not expression(_TABLE, "for_a_while").search(rest):
                    yield begun(one, thing, place)
                    yield ended(one, sentence)
                    break


def _only_travels(new: re.Match[str], left: Sentence, place: Sentence) -> bool:
    """Whether the sentences tell of a journey, or of places that play: "Italy is out"."""
    said = f"{left.text} {place.text}"
    if expression(_TABLE, "in_contest").search(said):
        return True
    journey = expression(_TABLE, "by_journey").match(new.group())
    return journey is not None and not expression(_TABLE, "for_good").search(said)


def _next(said: Sequence[Sentence], number: int) -> list[tuple[Sentence, str]]:
    return [(one, one.text) for one in said[number + 1 : number + 2]]


def _can_give_way(one: RuleStatement) -> bool:
    named = one.holds and one.thing.name[:1].isupper() and one.predicate not in FROM_BIRTH
    return named and (holds_one(one) or one.predicate in {USES, STUDIES})


def _left_in(text: str, name: str) -> int | None:
    """Where a sentence goes on that says of what it names that it is left; None if it does not."""
    found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.I)
    if found is None:
        return None
    before, after = text[: found.start()], text[found.end() :]
    over = expression(_TABLE, "left_after").match(after)
    if over is not None:
        return found.end() + over.end()
    return found.end() if expression(_TABLE, "left_before").search(before) else None


_LONGEST_ASKED: Final = 60
_USING: Final = re.compile(r"\bus(?:e|ing)\b", re.I)


def _of_same_kind(one: RuleStatement, new: str, rest: str, *, used: bool) -> Thing | None:
    """The new value, if it can be one of what the old one was, or is said to be used."""
    things = find(kind_of_object(one.predicate), MatchContext("", new, rest))
    thing = things[0] if things else None
    if thing is None or same_name(thing.name, one.thing.name):
        return None
    if one.predicate == USES and is_product(one.thing):
        return thing if used or is_product(thing) else None
    if one.predicate == STUDIES:
        return thing if is_subject(thing) == is_subject(one.thing) else None
    if one.predicate == WORKS_AT and (is_product(thing) or is_place(thing)):
        return None
    return thing


def _holding_again(sentence: Sentence, told: Sequence[RuleStatement]) -> Iterator[RuleStatement]:
    """What was told before and is so again: "back at Thornton's Garage"."""
    has = expression(_TABLE, "has_back").search(sentence.text)
    what = bare_name(has.group("what")) if has else ""
    of_it = (o for o in told if o.predicate in {LIVES_IN, WORKS_AT} and is_named(o, what))
    yield from (begun(one, one.thing, sentence) for one in list(of_it)[-1:])
    again = expression(_TABLE, "back_at").search(sentence.text)
    if again:
        what, how = bare_name(again.group("what")), again.group("how").lower()
        named = [one for one in told if is_named(one, what) and one.predicate in _back(how)]
        yield from (begun(one, one.thing, sentence) for one in named[-1:])


@cache
def _back(how: str) -> frozenset[str]:
    lines = (line.partition(":") for line in word_lines(_TABLE, "back_in"))
    return frozenset(
        name.strip() for name, _, ways in lines if how.split(maxsplit=1)[0] in ways.split()
    )


def by_what_was_told(
    stated: Sequence[RuleStatement], told: Sequence[RuleStatement]
) -> list[RuleStatement]:
    """The statements, where one thing takes the place of another as what the other was.

    Who drives a Skoda, and swaps it for a Kia, drives the Kia; who works at Onda, and parted ways
    with it, was not married to it.
    """
    had = {short_name(one): one.predicate for one in told if one.holds and short_name(one)}
    had |= {bare_name(one.thing.name): one.predicate for one in told if one.holds}
    swapped = {
        one.sentence.start: had[bare_name(one.thing.name)]
        for one in stated
        if one.predicate == USES
        and not one.holds
        and had.get(bare_name(one.thing.name)) in _SWAPPED
    }
    return [
        replace(one, predicate=swapped[one.sentence.start])
        if one.predicate == USES and one.sentence.start in swapped
        else replace(one, predicate=WORKS_AT)
        if one.predicate == MARRIED and had.get(bare_name(one.thing.name)) == WORKS_AT
        else one
        for one in stated
    ]
