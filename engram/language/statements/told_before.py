"""What was told of the speaker before a turn, and what may become of it."""

from __future__ import annotations

import re
from dataclasses import replace

from engram.domain.slots import POSSESSING
from engram.language.statements.clauses import Sentence
from engram.language.statements.objects import Thing
from engram.language.statements.predicates import RuleStatement

_SHORTEST_NAME = 2
_LONG_ENOUGH = 3
USES = "uses"
PLANS = "plans to"
WORKS_AT = "works at"
WORKS_AS = "works as"
LIVES_IN = "lives in"
MARRIED = "is married to"
ALLERGIC = "is allergic to"
FROM_BIRTH = frozenset({"is from", "was born in", "was born on"})
STUDIES = "studies"


def short_name(one: RuleStatement) -> str:
    """The last word of the name of a thing, of several: "zoe" of "Renault Zoe"."""
    if one.predicate not in POSSESSING | {USES}:
        return ""
    _, *more = one.thing.name.split() or [""]
    last = more[-1] if more else ""
    return last.casefold() if last[:1].isupper() and len(last) > _SHORTEST_NAME else ""


def last_word(thing: Thing) -> str:
    """The last word of a name, whatever it is."""
    return thing.name.casefold().rpartition(" ")[2]


def stands_in(text: str, name: str) -> bool:
    """Whether the text has the name, however it is written."""
    return bool(name) and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.I) is not None


def begun(one: RuleStatement, thing: Thing, sentence: Sentence) -> RuleStatement:
    """The same of something else, that begins with this sentence."""
    return replace(one, thing=thing, holds=True, begins=True, at=sentence.start, sentence=sentence)


def is_named(one: RuleStatement, what: str) -> bool:
    """Whether it is called so; of a plan, whether it ends so: "run the Berlin marathon"."""
    name = bare_name(one.thing.name)
    if one.predicate == ALLERGIC:
        # A "peanut allergy" is one to peanuts.
        return name.removesuffix("s") == what.removesuffix("s")
    if one.predicate == WORKS_AT and len(what) > _LONG_ENOUGH:
        # "Vesper went bust" is said of Vesper Studios.
        return f"{name} ".startswith(f"{what} ")
    called = one.thing.own.casefold().partition(" called ")[2]
    if called and what == called:
        return True
    if what and what == short_name(one):
        # "The Panda" is a Fiat Panda.
        return True
    return name == what or (one.predicate == PLANS and name.endswith(f" {what}"))


def ended(one: RuleStatement, sentence: Sentence) -> RuleStatement:
    """That it is so no longer, as this sentence says."""
    return replace(one, holds=False, begins=False, at=sentence.start, sentence=sentence)


def same_name(value: str, old: str) -> bool:
    """Whether both name the same."""
    return bare_name(value) == bare_name(old)


def bare_name(text: str) -> str:
    """A name without what may stand before it, in small letters."""
    return re.sub(r"\A(?:the|a|an|in|at|on|for|to|as) ", "", text.casefold().strip(" ."))


def not_so(one: RuleStatement, sentence: Sentence) -> RuleStatement:
    """That it never was so, as this sentence says."""
    return replace(
        one, holds=False, begins=False, denied=True, corrects=False, at=sentence.start,
        sentence=sentence,
    )  # fmt: skip
