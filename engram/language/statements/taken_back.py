"""What a turn takes back of the turn before it: by calling it wrong, or by saying it anew."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from engram.domain.slots import POSSESSING, PROMISED, WORKS_AT, is_functional, slot_of
from engram.language.statements.clauses import Sentence, sentences
from engram.language.statements.cutting import Thing
from engram.language.statements.predicates import RuleStatement
from engram.language.statements.reading import everything
from engram.language.vocabulary import expression

_TABLE: Final = "takes_back"
PLANS: Final = "plans to"
USES: Final = "uses"
WORKS_AS: Final = "works as"
LIVES_IN: Final = "lives in"
STUDIES: Final = "studies"
ALLERGIC: Final = "is allergic to"
FROM_BIRTH: Final = frozenset({"is from", "was born in", "was born on"})
_SHORTEST_NAME: Final = 2
_LONG_ENOUGH: Final = 3


def denied(text: str, told: Sequence[RuleStatement]) -> Iterator[RuleStatement]:
    """What was said just before, and the turn says is wrong without naming it.

    Args:
        text: "No, that's wrong. I use Postgres."
        told: What the turn right before says of the user.
    """
    wrong = _wrong(text)
    holding = [one for one in told if one.holds and one.thing.name]
    if wrong is None or not holding:
        return
    instead = {one.predicate for one in everything(text) if one.holds}
    same = [one for one in holding if one.predicate in instead]
    if not same and len(holding) > 1:
        # Which of them is wrong, nobody can tell.
        return
    for one in same or holding:
        yield not_so(one, wrong)


def said_anew(
    text: str, stated: Sequence[RuleStatement], last: Sequence[RuleStatement]
) -> Iterator[RuleStatement]:
    """What the turn right before says, where this one takes it back and says the same anew.

    Args:
        text: "Let me fix that, I speak Dari."
        stated: What it says of its speaker.
        last: What they said of themselves in the turn right before.
    """
    begun = expression(_TABLE, "anew").match(text)
    if begun is None or expression(_TABLE, "besides").search(text):
        return
    anew = [one for one in stated if one.holds and one.predicate not in _NEVER_ANEW]
    # What is said after anything else need be no correction.
    new = next((one for one in anew if one.at == begun.end()), None)
    if new is None:
        return
    told = [o for o in last if o.holds and o.predicate == new.predicate and o.thing.name]
    again = {bare(one.thing.name) for one in anew if one.predicate == new.predicate}
    # Which of two was wrong, nobody can tell; "a small dog" is the dog.
    if len(told) == len(again) == 1 and not _goes_with(told[0].thing.name, new.thing.name):
        yield not_so(told[0], new.sentence)


# One may like, plan and promise several things, whatever is said of it next.
_NEVER_ANEW: Final = frozenset({"likes", "dislikes", PROMISED, PLANS})


def _goes_with(one: str, other: str) -> bool:
    """Whether the words of one are all in the other."""
    words = [set(bare(name).split()) for name in (one, other)]
    return words[0] <= words[1] or words[1] <= words[0]


def is_wrong(text: str) -> bool:
    """Whether a turn says that what was said before it is wrong."""
    return _wrong(text) is not None


def _wrong(text: str) -> Sentence | None:
    said = expression(_TABLE, "wrong")
    return next((one for one in sentences(text) if said.match(one.text)), None)


def bare(text: str) -> str:
    """A name as it is compared: without an article or a preposition before it."""
    return re.sub(r"\A(?:the|a|an|in|at|on|for|to|as) ", "", text.casefold().strip(" ."))


def not_so(one: RuleStatement, sentence: Sentence) -> RuleStatement:
    """That what was told is wrong, by a sentence of a later turn."""
    return replace(
        one, holds=False, begins=False, denied=True, corrects=False, at=sentence.start,
        sentence=sentence,
    )  # fmt: skip


def last_word(one: RuleStatement) -> str:
    """The last word of the name of a thing, of several: "zoe" of "Renault Zoe"."""
    if one.predicate not in POSSESSING | {USES}:
        return ""
    _, *more = one.thing.name.split() or [""]
    last = more[-1] if more else ""
    return last.casefold() if last[:1].isupper() and len(last) > _SHORTEST_NAME else ""


def as_begun(one: RuleStatement, thing: Thing, sentence: Sentence) -> RuleStatement:
    """The same of another thing, from now on."""
    return replace(one, thing=thing, holds=True, begins=True, at=sentence.start, sentence=sentence)


def holds_one(one: RuleStatement) -> bool:
    """Whether its predicate has one value at a time."""
    slot = slot_of("user", one.predicate, one.thing.name)
    return slot is not None and is_functional(slot)


def as_over(one: RuleStatement, sentence: Sentence) -> RuleStatement:
    """That what was told is so no longer, by a sentence of a later turn."""
    return replace(one, holds=False, begins=False, at=sentence.start, sentence=sentence)


def same_name(value: str, old: str) -> bool:
    """Whether both are the same, but for article and case."""
    return bare(value) == bare(old)


def is_named(one: RuleStatement, what: str) -> bool:
    """Whether it is called so; of a plan, whether it ends so: "run the Berlin marathon"."""
    name = bare(one.thing.name)
    if one.predicate in POSSESSING and uncounted(name) == what:
        # "The hens" of who has three hens.
        return True
    if one.predicate == ALLERGIC:
        # A "peanut allergy" is one to peanuts.
        return name.removesuffix("s") == what.removesuffix("s")
    if one.predicate == WORKS_AT and len(what) > _LONG_ENOUGH:
        # "Vesper went bust" is said of Vesper Studios.
        return f"{name} ".startswith(f"{what} ")
    return name == what or (one.predicate == PLANS and name.endswith(f" {what}"))


_COUNT: Final = re.compile(
    r"\A(?:two|three|four|five|six|seven|eight|nine|ten|a few|some|several|\d{1,3}) "
)


def uncounted(name: str) -> str:
    """A name as it is compared, without how many there are: "hens" of "three hens"."""
    return _COUNT.sub("", bare(name))
