"""What a turn says takes the place of what was told before it: "Zadar's behind me, I'm in Rijeka".

The old value is named, or was spoken of last; which predicate is meant, it says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from engram.domain.slots import IS_CALLED, WORKS_AT
from engram.language.statements.clauses import Sentence, sentences
from engram.language.statements.cutting import Thing
from engram.language.statements.objects import (
    MatchContext,
    is_place,
    is_product,
    tool_in_version,
)
from engram.language.statements.predicates import RuleStatement, find, is_firm, is_subject
from engram.language.statements.reading import everything, kind_of_object
from engram.language.statements.taken_back import (
    FROM_BIRTH,
    LIVES_IN,
    STUDIES,
    USES,
    WORKS_AS,
    as_begun,
    as_over,
    bare,
    holds_one,
    is_named,
    last_word,
    same_name,
)
from engram.language.vocabulary import expression, of_one_kind, vocabulary, word_lines

_TABLE: Final = "takes_back"
# Of these one has one, and what can be one is told from other things.
_TOLD_ALONE: Final = frozenset({LIVES_IN, WORKS_AT, "diet is", "drives", "is married to"})


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
        if spoken and expression(_TABLE, "left_work").search(text) and where.startswith("a"):
            # "Last day at the council, I'm at a charity now"
            kind = "organisation"
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
    single = [
        one
        for one in named_so
        if holds_one(one) or is_product(one.thing) or one.predicate in {USES, STUDIES}
    ]
    for sentence in sentences(text):
        yield from _holding_again(sentence, told)
        yield from _favourite_now(sentence, named_so)
        now = expression(_TABLE, "now_it").search(sentence.text)
        before = sentence.text[: now.start()].casefold() if now else ""
        meant = [
            one
            for one in single
            if re.search(rf"\b{re.escape(one.thing.name.casefold())}\b", before)
        ]
        only = expression(_TABLE, "only_now").match(sentence.text)
        # "The build was red. It's green now": of what was spoken of there.
        alone = only is not None and (only["it"] is None or not text[: sentence.start].strip(" .!"))
        if only and alone and (only["it"] or not only["since"]) and len(last) == 1:
            now, meant = only, [one for one in last if one in single]
        for one in meant[-1:] if now else ():
            spoken = MatchContext("", now.group("new"), sentence.text) if now else None
            things = find(kind_of_object(one.predicate), spoken)[:1] if spoken else []
            # "Better now": alone, only a name that is known says anything.
            known = (
                thing
                for thing in things
                if is_product(thing)
                or (only and _is_known(one, thing, only))
                or (one.predicate not in {USES, STUDIES} and not only)
            )
            for thing in known:
                yield as_begun(one, thing, sentence)
                if only and only["it"] and one.predicate in {USES, STUDIES}:
                    yield as_over(one, sentence)


def _is_known(one: RuleStatement, thing: Thing, only: re.Match[str]) -> bool:
    """Whether a value that is said alone can be no other's: "Lisbon now!", "It's Pulp now"."""
    if one.predicate == WORKS_AS or is_place(thing):
        return True
    if only.group("it") is None:
        return False
    if one.predicate == USES:
        return of_one_kind(one.thing.name, thing.name)
    if one.predicate == STUDIES:
        return is_subject(one.thing) and is_subject(thing)
    if one.predicate in _TOLD_ALONE:
        # "It's Bath these days" of who lives in Leeds; "it's GMT now", "it's Peppa Pig now".
        lasting = only["since"] is not None or (only["until"] or "").strip() != "now"
        alike = thing.name[:1].isupper() is one.thing.name[:1].isupper()
        fits = alike and of_same_kind(one, only["new"], only["new"]) is not None
        return fits and (
            lasting or one.predicate == "diet is" or is_firm(thing) or _is_a_car(thing)
        )
    shared = set(thing.name.split()) & set(one.thing.name.split())
    return one.predicate.startswith("favourite ") or (one.predicate == IS_CALLED and bool(shared))


def _is_a_car(thing: Thing) -> bool:
    known = not vocabulary().cars.isdisjoint(thing.name.casefold().split())
    return known and thing.phrase != thing.name


def _favourite_now(sentence: Sentence, told: Sequence[RuleStatement]) -> Iterator[RuleStatement]:
    """Of what was told last, another favourite: "Lapsang is my favourite now"."""
    now = expression(_TABLE, "favourite_now").search(sentence.text)
    last = next((one for one in reversed(told) if one.predicate.startswith("favourite ")), None)
    if now is not None and last is not None:
        spoken = MatchContext("", now.group("new"), sentence.text)
        for thing in find(kind_of_object(last.predicate), spoken)[:1]:
            yield as_begun(last, thing, sentence)


def came_about(text: str, before: Sequence[str]) -> Iterator[RuleStatement]:
    """What was to come, and has: "I start at Elis on Monday", "first week at Elis done".

    Args:
        text: The turn of the user.
        before: What they said before it.
    """
    here = expression(_TABLE, "lives_here").search(text)
    if here is not None:
        yield from _lives_here(text, before)
    if expression(_TABLE, "came_about").search(text) is None:
        return
    for sentence in sentences(text):
        come = expression(_TABLE, "came_about").search(sentence.text)
        if come is None:
            continue
        name = come.group("what").strip(" .")
        for said in (*before, text[: sentence.start]):
            for told in expression(_TABLE, "announced").finditer(said):
                if not same_name(told.group("what"), name):
                    continue
                works = told.group("works") is not None
                if works is (come.group("how").lower() != "in"):
                    predicate = WORKS_AT if works else LIVES_IN
                    thing = Thing(name, name)
                    yield RuleStatement(
                        predicate, thing, begins=True, at=sentence.start, sentence=sentence
                    )
                    return


def _lives_here(text: str, before: Sequence[str]) -> Iterator[RuleStatement]:
    """Where somebody lives who says that it is where they are."""
    lives = expression(_TABLE, "lives_here")
    sentence = next((one for one in sentences(text) if lives.search(one.text)), None)
    if sentence is None or everything(text):
        # Said in full already.
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
    single = {(one.predicate, bare(one.thing.name)): one for one in told if _can_give_way(one)}
    said = list(sentences(text))
    for number, sentence in enumerate(said):
        aside = expression(_TABLE, "of_others").match(sentence.text)
        if aside or expression(_TABLE, "for_a_while").search(sentence.text):
            continue
        for one in single.values() if single else ():
            left = _left_in(sentence.text, one.thing.name)
            if left is None and (short := last_word(one)):
                left = _left_in(sentence.text, short)
            if left is None:
                continue
            for place, rest in ((sentence, sentence.text[left:]), *_next(said, number)):
                new = expression(_TABLE, "taken_up").search(rest)
                if new and one.predicate == LIVES_IN and _only_travels(new, sentence, place):
                    continue
                thing = of_same_kind(one, new.group(new.lastgroup or 0), rest) if new else None
                if thing is not None and not expression(_TABLE, "for_a_while").search(rest):
                    yield as_begun(one, thing, place)
                    yield as_over(one, sentence)
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


def of_same_kind(one: RuleStatement, new: str, rest: str) -> Thing | None:
    """The new value, if it can be one of what the old one was."""
    things = find(kind_of_object(one.predicate), MatchContext("", new, rest))
    thing = things[0] if things else None
    if thing is None or same_name(thing.name, one.thing.name):
        return None
    if one.predicate == USES and is_product(one.thing):
        return thing if is_product(thing) else None
    if one.predicate == STUDIES:
        return thing if is_subject(thing) == is_subject(one.thing) else None
    if one.predicate == WORKS_AT and (is_product(thing) or is_place(thing)):
        return None
    return thing


def _holding_again(sentence: Sentence, told: Sequence[RuleStatement]) -> Iterator[RuleStatement]:
    """What was told before and is so again, or never will be: "back at Thornton's Garage"."""
    again = expression(_TABLE, "back_at").search(sentence.text)
    if again is None:
        return
    what, how = bare(again.group("what")), again.group("how").lower()
    named = [one for one in told if is_named(one, what) and one.predicate in _back(how)]
    denied = expression(_TABLE, "not_back").search(sentence.text[: again.start()])
    for one in named[-1:]:
        if denied is None:
            yield as_begun(one, one.thing, sentence)
        elif denied["going"]:
            yield as_over(one, sentence)


@cache
def _back(how: str) -> frozenset[str]:
    lines = (line.partition(":") for line in word_lines(_TABLE, "back_in"))
    return frozenset(
        name.strip() for name, _, ways in lines if how.split(maxsplit=1)[0] in ways.split()
    )


def overtaken(
    stated: Sequence[RuleStatement], told: Sequence[RuleStatement]
) -> Iterator[RuleStatement]:
    """What a turn takes the place of, though one can have several.

    Who upgraded to Postgres 17 uses Postgres 16 no longer; who preferred tea to coffee, and now
    prefers coffee, does not prefer tea.

    Args:
        stated: What the turn states of its speaker.
        told: What they said of themselves before it.
    """
    for new in stated:
        if not new.holds:
            continue
        for old in told:
            if old.holds and old.predicate == new.predicate and _is_overtaken(old, new):
                yield as_over(old, new.sentence)


def _is_overtaken(old: RuleStatement, new: RuleStatement) -> bool:
    if new.predicate == USES and new.begins:
        tool = tool_in_version(new.thing)
        return tool is not None and tool == tool_in_version(old.thing) and old.thing != new.thing
    compared = f"{old.thing.phrase.casefold()} ".partition(f"{old.thing.name.casefold()} ")[2]
    return new.predicate == "prefers" and compared in {
        f"{joint} {new.thing.name.casefold()} " for joint in ("to", "over", "rather than")
    }
