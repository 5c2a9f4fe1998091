"""What a turn ends by a word for it, or by what became of it: "sold it", "the piano went to her".

What it is, and that it was so, the turns before say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from engram.domain.slots import IS_MARRIED_TO, POSSESSING, WORKS_AT
from engram.language.statements.clauses import Sentence
from engram.language.statements.predicates import RuleStatement
from engram.language.statements.taken_back import (
    ALLERGIC,
    DIET,
    LIKINGS,
    LIVES_IN,
    PLANS,
    STUDIES,
    USES,
    WORKS_AS,
    as_over,
    bare,
    is_named,
)
from engram.language.text import verb_lemma
from engram.language.vocabulary import expression, vocabulary, word_lines

_TABLE: Final = "takes_back"
# To whom one says goodbye may be on a journey; to these one says it once.
_LEFT_FOR_GOOD: Final = POSSESSING | {LIVES_IN, WORKS_AT, USES, STUDIES}
_ONES_OWN: Final = frozenset({"has", "owns"})
# Wordings that name what is over, each with the predicates of which it can be.
_ENDED_BY_NAME: Final[tuple[tuple[str, Callable[[str], bool]], ...]] = (
    ("gone_now", lambda predicate: predicate in POSSESSING),
    ("gone_to", lambda predicate: predicate in POSSESSING),
    ("given_to", lambda predicate: predicate in POSSESSING),
    ("signed_over", lambda predicate: predicate in POSSESSING),
    ("sold_online", lambda predicate: predicate in POSSESSING),
    ("taken_away", lambda predicate: predicate in POSSESSING),
    ("came_off", lambda predicate: predicate in POSSESSING),
    ("moved_out", lambda predicate: predicate in POSSESSING),
    ("tool_gone", lambda predicate: predicate == USES),
    ("beyond_repair", lambda predicate: predicate == USES),
    ("used_instead", lambda predicate: predicate == USES),
    ("took_me_off", lambda predicate: predicate == USES),
    ("farewell", lambda predicate: predicate == USES),
    ("done_with_me", lambda predicate: predicate in {USES, WORKS_AT}),
    ("no_longer_one", lambda predicate: predicate == WORKS_AS),
    ("handed_back", lambda predicate: predicate in POSSESSING),
    ("somebody_has", lambda predicate: predicate in POSSESSING),
    ("plan_off", lambda predicate: predicate == PLANS),
    ("plan_dropped", lambda predicate: predicate == PLANS),
    ("said_goodbye", lambda predicate: predicate in _LEFT_FOR_GOOD),
    ("no_longer_have", lambda predicate: predicate in POSSESSING),
    ("being_over", lambda predicate: predicate == WORKS_AS),
    ("on_hold", lambda predicate: predicate in {STUDIES, PLANS}),
    ("wrecked", lambda predicate: predicate in POSSESSING),
    ("no_thing_of_mine", lambda predicate: predicate == "likes"),
    ("spouse_gone", lambda predicate: predicate == IS_MARRIED_TO),
    ("closed_for_good", lambda predicate: predicate in POSSESSING),
    ("closed_down", lambda predicate: predicate == WORKS_AT),
    ("done_at", lambda predicate: predicate == WORKS_AT),
    ("over_at", lambda predicate: predicate == WORKS_AT),
    ("sacked_by", lambda predicate: predicate == WORKS_AT),
    ("farewell_at_work", lambda predicate: predicate == WORKS_AT),
    ("no_allergy", lambda predicate: predicate == ALLERGIC),
    ("safe_now", lambda predicate: predicate == ALLERGIC),
    ("none_for_me", lambda predicate: predicate not in LIKINGS),
    ("gone_without", lambda predicate: predicate in {USES, WORKS_AT, LIVES_IN, STUDIES}),
    ("not_for_me", lambda predicate: predicate in {USES, WORKS_AT, WORKS_AS, STUDIES}),
)

# Of these only things are an object.
_OF_THINGS: Final = frozenset({"gone_to", "given_to", "signed_over", "sold_online", "taken_away"})
_CHILDREN: Final = frozenset({"child", "children", "baby", "toddler"})


def ended_otherwise(
    sentence: Sentence,
    own: Sequence[RuleStatement],
    last: Sequence[RuleStatement],
    *,
    first: bool,
) -> Iterator[RuleStatement]:
    """What a sentence ends by what became of it, by "it" or "there", or as "no more X for me".

    Args:
        sentence: Of the user.
        own: What holds of them, as the turns before tell.
        last: What was said of them in the turn right before.
        first: Whether nothing stands before the sentence in its turn.
    """
    yield from _by_name(sentence, own)
    now = {one.predicate: one for one in last if one.holds and one.thing.name}
    several = len({one.thing.name for one in last if one.holds and one.thing.name}) > 1
    yield from _by_verb(sentence, own, now)
    left = expression(_TABLE, "left_it").match(sentence.text)
    if left and not several:
        verb = " ".join(left.group("verb").lower().split())
        yield from (as_over(o, sentence) for o in now.values() if can_leave(o.predicate, verb))
    if first and not several:
        yield from _what_became_of_it(sentence, now)
    yield from _the_only_one(sentence, own)


def _by_name(sentence: Sentence, own: Sequence[RuleStatement]) -> Iterator[RuleStatement]:
    """What is named, and what became of it: "the piano went to my niece"; each once."""
    over: dict[tuple[str, str], RuleStatement] = {}
    spoken = sentence.text.casefold()
    spoken_of = [one for one in own if _can_be_named(one, spoken)]
    for wording, can_be_meant in _ENDED_BY_NAME if spoken_of else ():
        can_be = [one for one in spoken_of if can_be_meant(one.predicate)]
        said = expression(_TABLE, wording).search(sentence.text) if can_be else None
        what = bare(next(filter(None, said.groups()))) if said else ""
        for one in can_be if said else ():
            if is_named(one, what) and not (wording in _OF_THINGS and _is_somebody(one)):
                over.setdefault((one.predicate, one.thing.name), one)
    yield from (as_over(one, sentence) for one in over.values())


def _can_be_named(one: RuleStatement, spoken: str) -> bool:
    """Whether any word of its name is said: most sentences are about something else."""
    return any(word.removesuffix("s") in spoken for word in one.thing.name.casefold().split())


def _is_somebody(one: RuleStatement) -> bool:
    """Whether it is a person, who goes to a museum and comes home: "my daughter"."""
    last = one.thing.name.casefold().rpartition(" ")[2]
    return (
        not vocabulary().relations.isdisjoint({last, last.removesuffix("s")}) or last in _CHILDREN
    )


def _by_verb(
    sentence: Sentence, own: Sequence[RuleStatement], now: Mapping[str, RuleStatement]
) -> Iterator[RuleStatement]:
    """What is said to be done no longer: "I don't use it any more", "I no longer drive at all"."""
    no_longer = expression(_TABLE, "no_longer_it").search(sentence.text)
    if no_longer:
        verb = verb_lemma(no_longer.group("verb").lower())
        meant = [one for one in now.values() if verb in _doing().get(one.predicate, ())]
        if no_longer.group("where"):
            # Who does not work there may do the same elsewhere.
            meant = [one for one in meant if one.predicate in {LIVES_IN, WORKS_AT}]
        yield from (as_over(one, sentence) for one in meant if len(meant) == 1)
    without = expression(_TABLE, "not_at_all").search(sentence.text)
    if without:
        verb = without.group("verb").lower()
        meant = [one for one in own if verb in _doing().get(one.predicate, ())]
        yield from (as_over(one, sentence) for one in meant)


def _what_became_of_it(
    sentence: Sentence, now: Mapping[str, RuleStatement]
) -> Iterator[RuleStatement]:
    """What happened to the one thing that was told right before: "it burned down"."""
    gone, outgrown = (
        expression(_TABLE, one).match(sentence.text) for one in ("it_is_gone", "outgrown_it")
    )
    meant = _ONES_OWN if gone else {ALLERGIC} if outgrown else frozenset[str]()
    yield from (as_over(one, sentence) for one in now.values() if one.predicate in meant)


def _the_only_one(sentence: Sentence, own: Sequence[RuleStatement]) -> Iterator[RuleStatement]:
    """What is over without its name, where there is one of it: "I'm no longer allergic"."""
    for wording, predicate in (("no_allergy_left", ALLERGIC), ("eats_all", DIET)):
        meant = [one for one in own if one.predicate == predicate]
        if len(meant) == 1 and expression(_TABLE, wording).search(sentence.text):
            yield as_over(meant[0], sentence)
    favourites = [one for one in own if one.predicate.startswith("favourite ")]
    none = expression(_TABLE, "no_favourite").search(sentence.text) if favourites else None
    for one in favourites if none else ():
        if none and one.predicate == f"favourite {none['what'].lower()}":
            yield as_over(one, sentence)


@cache
def _doing() -> Mapping[str, frozenset[str]]:
    lines = (line.partition(":") for line in word_lines(_TABLE, "doing"))
    return {name.strip(): frozenset(verbs.split()) for name, _, verbs in lines}


def can_leave(predicate: str, verb: str) -> bool:
    """Whether "left" is said of work, "sold" of what is owned."""
    return verb in _leaving().get(predicate, ())


@cache
def _leaving() -> Mapping[str, frozenset[str]]:
    lines = (line.partition(":") for line in word_lines(_TABLE, "leaving"))
    return {name.strip(): frozenset(map(str.strip, verbs.split(","))) for name, _, verbs in lines}
