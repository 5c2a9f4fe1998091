"""What a turn ends of what was told before it: "I left Rio Tinto", "Sold it", "Not any more"."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final

from engram.domain.slots import POSSESSING
from engram.language.statements.clauses import Sentence, sentences
from engram.language.statements.objects import MatchContext
from engram.language.statements.predicates import RuleStatement, find
from engram.language.statements.promises import ends
from engram.language.statements.reading import kind_of_object
from engram.language.statements.told_before import (
    ALLERGIC,
    LIVES_IN,
    PLANS,
    STUDIES,
    USES,
    WORKS_AS,
    WORKS_AT,
    bare_name,
    ended,
    is_named,
    last_word,
    same_name,
    short_name,
    stands_in,
)
from engram.language.text import is_past, verb_lemma
from engram.language.vocabulary import expression, word_lines

_TABLE = "takes_back"

# Who does without something may like it all the same.
_LIKINGS = frozenset({"likes", "dislikes", "prefers"})
_HAS_LEFT = re.compile(r"(?:'ve|\bhave)(?: now| just| finally| since)? \Z", re.I)
# Wordings that name what is over, each with the predicates of which it can be.
_ENDED_BY_NAME: Final[tuple[tuple[str, Callable[[str], bool]], ...]] = (
    ("gone_now", lambda predicate: predicate in POSSESSING),
    ("tool_gone", lambda predicate: predicate == USES),
    ("no_longer_one", lambda predicate: predicate == WORKS_AS),
    ("closed_down", lambda predicate: predicate == WORKS_AT),
    ("done_at", lambda predicate: predicate == WORKS_AT),
    ("told_off", lambda predicate: predicate == WORKS_AT),
    ("last_deed", lambda predicate: predicate == WORKS_AT),
    ("plan_off", lambda predicate: predicate == PLANS),
    ("behind_one", lambda predicate: predicate in {LIVES_IN, WORKS_AT, STUDIES, USES}),
    ("days_over", lambda predicate: predicate in {LIVES_IN, WORKS_AT, WORKS_AS, STUDIES, USES}),
    ("stolen", lambda predicate: predicate in POSSESSING),
    ("put_away", lambda predicate: predicate in POSSESSING | {USES}),
    ("given_back", lambda predicate: predicate in POSSESSING),
    ("none_left", lambda predicate: predicate not in _LIKINGS),
    ("no_allergy", lambda predicate: predicate == ALLERGIC),
    ("none_for_me", lambda predicate: predicate not in _LIKINGS),
    ("gone_without", lambda predicate: predicate in {USES, WORKS_AT, LIVES_IN, STUDIES}),
    ("not_for_me", lambda predicate: predicate in {USES, WORKS_AT, WORKS_AS, STUDIES}),
)


def left_behind(
    text: str, told: Sequence[RuleStatement], last: Sequence[RuleStatement]
) -> Iterator[RuleStatement]:
    """What a turn ends by the name it has in the turns before: "I left Rio Tinto", "Not any more".

    Args:
        text: The turn of the user.
        told: What they said of themselves before it.
        last: What was said of them in the turn right before, by themselves or to them.
    """
    holding = {(one.predicate, bare_name(one.thing.name)): one for one in told if one.thing.name}
    own = [one for one in holding.values() if one.holds]
    plans = [one for one in own if one.predicate == PLANS]
    # A plan is over when it has come about as when it has come to nothing, as a promise is.
    for end in ends(text, [one.thing.phrase for one in plans]) if plans else ():
        plan = plans[end.promise].thing.phrase
        if _tells_of_own_doing(end.sentence.text) or _tells_of(plan, end.sentence.text):
            yield ended(plans[end.promise], end.sentence)
    unnamed = bool(own) and expression(_TABLE, "may_end_unnamed").search(text) is not None
    for sentence in sentences(text) if own or last else ():
        if over := expression(_TABLE, "no_more").match(sentence.text):
            now = _no_more_of(last, over.group())
            for one in now if len(now) == 1 else ():
                yield from _moved_on(one, text, sentence, sentence.start + over.end())
                yield ended(one, sentence)
            continue
        if unnamed:
            yield from _unnamed(sentence, own, last, text)
        for said in expression(_TABLE, "left_behind").finditer(sentence.text):
            verb = " ".join(said.group("verb").lower().split())
            for one in own:
                what = said.group("what").casefold()
                rest = what.removeprefix(one.thing.name.casefold())
                rest = what.removeprefix(short_name(one)) if rest == what else rest
                named = rest != what and not rest[:1].isalpha()
                # "I left Kobe yesterday" may tell of a journey.
                away = one.predicate != LIVES_IN or _HAS_LEFT.search(
                    sentence.text, 0, said.start("verb")
                )
                if named and away and _can_leave(one.predicate, verb) and _ends_there(rest):
                    yield ended(one, sentence)


def _no_more_of(last: Sequence[RuleStatement], said: str) -> list[RuleStatement]:
    """What "not any more" can be said of; "Coffee at Tesco? Not since Easter": of no liking."""
    now = [one for one in last if one.holds and one.thing.name]
    return [one for one in now if "since" not in said or one.predicate not in _LIKINGS]


def _is_of_others(wording: str, sentence: Sentence) -> bool:
    """Whether somebody else did it, or the speaker will be back."""
    guards = {
        "behind_one": ("starts_with_others", "comes_back"),
        **dict.fromkeys(
            ("put_away", "given_back", "told_off", "last_deed"), ("starts_with_others",)
        ),
    }
    return any(expression(_TABLE, one).search(sentence.text) for one in guards.get(wording, ()))


def _unnamed(
    sentence: Sentence, own: Sequence[RuleStatement], last: Sequence[RuleStatement], text: str
) -> Iterator[RuleStatement]:
    """What a sentence ends by "it", "them" or "there", or as "no more X for me"."""
    for wording, can_be_meant in _ENDED_BY_NAME:
        said = expression(_TABLE, wording).search(sentence.text)
        if said and not _is_of_others(wording, sentence):
            what = bare_name(next(filter(None, said.groups())))
            named = (one for one in own if can_be_meant(one.predicate) and is_named(one, what))
            yield from (ended(one, sentence) for one in named)
    if expression(_TABLE, "last_day").search(sentence.text):
        work = [one for one in own if one.predicate == WORKS_AT][-1:]
        at_it = (one for one in work if one in last or stands_in(text, one.thing.name))
        yield from (ended(one, sentence) for one in at_it)
    now = {one.predicate: one for one in last if one.holds and one.thing.name}
    several = len({one.thing.name for one in last if one.holds and one.thing.name}) > 1
    no_longer = expression(_TABLE, "no_longer_it").search(sentence.text)
    if no_longer:
        verb = verb_lemma(no_longer.group("verb").lower())
        meant = [one for one in now.values() if verb in _doing().get(one.predicate, ())]
        if no_longer.group("where"):
            # Who does not work there may do the same elsewhere.
            meant = [one for one in meant if one.predicate in {LIVES_IN, WORKS_AT}]
        yield from (ended(one, sentence) for one in meant if len(meant) == 1)
    alone = expression(_TABLE, "left_alone").match(sentence.text)
    if alone:
        yield from _left_alone(sentence, alone.group("verb"), own, last, text)
    left = expression(_TABLE, "left_it").match(sentence.text)
    if left and not several:
        verb = " ".join(left.group("verb").lower().split())
        yield from (ended(o, sentence) for o in now.values() if _can_leave(o.predicate, verb))


def _left_alone(
    sentence: Sentence,
    verb: str,
    own: Sequence[RuleStatement],
    last: Sequence[RuleStatement],
    text: str,
) -> Iterator[RuleStatement]:
    """What is over by a word alone, "Sold!": what the turn names, or what was told last alone."""
    said = verb.casefold()
    gone = POSSESSING | {USES} if said == "gone" else ()
    can = [o for o in own if o.predicate in gone or _can_leave(o.predicate, said)]
    spoken = text[: sentence.start], text[sentence.start + len(sentence.text) :]
    named = [one for one in can if stands_in(spoken[0], last_word(one.thing))]
    # "Sold! The house at number 9": of something else.
    of_it = expression(_TABLE, "left_alone_then").match(spoken[1]) and not spoken[0].strip(" .,!")
    only = [one for one in can if of_it and one in last and len(last) == 1 and not gone]
    yield from (ended(one, sentence) for one in (named or only)[-1:])


@cache
def _doing() -> Mapping[str, frozenset[str]]:
    lines = (line.partition(":") for line in word_lines(_TABLE, "doing"))
    return {name.strip(): frozenset(verbs.split()) for name, _, verbs in lines}


def _moved_on(
    one: RuleStatement, text: str, sentence: Sentence, at: int
) -> Iterator[RuleStatement]:
    """What is so instead of what was said before: "Not any more, Lisbon now"."""
    said = expression(_TABLE, "moved_on").match(text, at)
    if said is None or expression("corrections", "clausal").match(said.group("it")):
        return
    things = find(kind_of_object(one.predicate), MatchContext("", said.group("it"), text))
    if things and not same_name(things[0].name, one.thing.name):
        yield replace(
            one, thing=things[0], begins=True, corrects=False, denied=False, at=sentence.start,
            sentence=sentence,
        )  # fmt: skip


def _tells_of_own_doing(text: str) -> bool:
    """Whether the speaker did it, or was to: "Sold my flat!", but not "A flat was sold"."""
    begun = expression(_TABLE, "own_doing").match(text)
    first = begun.group("first").lower() if begun else ""
    return is_past(first) or expression(_TABLE, "myself").fullmatch(first) is not None


def _tells_of(plan: str, text: str) -> bool:
    """Whether it says of what was planned, and of no other, how it is: "House is sold"."""
    said = expression(_TABLE, "of_itself").finditer(text)
    return any(one.group("what").lower() in plan.lower().split() for one in said)


def _can_leave(predicate: str, verb: str) -> bool:
    """Whether "left" is said of work, "sold" of what is owned."""
    return verb in _leaving().get(predicate, ())


@cache
def _leaving() -> Mapping[str, frozenset[str]]:
    lines = (line.partition(":") for line in word_lines(_TABLE, "leaving"))
    return {name.strip(): frozenset(map(str.strip, verbs.split(","))) for name, _, verbs in lines}


def _ends_there(rest: str) -> bool:
    return expression(_TABLE, "after_left").match(rest) is not None
