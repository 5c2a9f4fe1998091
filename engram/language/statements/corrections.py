"""What a turn takes back of the turns before it: "It's Postgres, not MongoDB", "I never said that".

Which predicate is meant, the turns before say: the assistant's ("Since you use MongoDB, ...") and
the user's own. Without any, two tools by name are things that one uses, and nothing else is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Final, NamedTuple

from engram.domain.slots import kind_of_value
from engram.language.statements import third_person
from engram.language.statements.answers import in_first_person
from engram.language.statements.changes import changed
from engram.language.statements.clauses import Sentence, masked, sentences
from engram.language.statements.declared import (
    SPEAKER,
    Declared,
    declared,
    is_role_of_things,
)
from engram.language.statements.notes import Person, people
from engram.language.statements.objects import MatchContext, Thing, is_product
from engram.language.statements.predicates import RuleStatement, find
from engram.language.statements.reading import everything, holds_one, kind_of_object
from engram.language.statements.slips import sounds_like, spelt_name
from engram.language.statements.told_before import (
    USES,
    bare_name,
    ended,
    not_so,
    same_name,
    short_name,
    stands_in,
)
from engram.language.text import split_sentences
from engram.language.vocabulary import expression

_TABLE = "takes_back"
_LONGEST_READ = 2_000
_MOST_SENTENCES = 20
_A_DAY = re.compile(r"\d|day\b", re.I)


def claims(text: str) -> list[RuleStatement]:
    """What a turn of somebody else says of the user, as the user would say it.

    Args:
        text: The turn of an assistant: "Since you use MongoDB, ...".
    """
    found: list[RuleStatement] = []
    own = masked(text[:_LONGEST_READ])
    for piece in list(split_sentences(own))[:_MOST_SENTENCES]:
        said = own[piece.start : piece.end].strip()
        for claim in expression(_TABLE, "of_you").finditer(said):
            found += everything(f"{in_first_person(claim.group('claim'))}.")
    return found


def corrected(
    text: str, told: Sequence[RuleStatement], before: Sequence[str]
) -> Iterator[RuleStatement | Declared | Person]:
    """What a turn says holds, and does not hold, instead of what was said before it.

    Args:
        text: The turn of the user.
        told: What was said of the user before it, the latest last.
        before: The turns in which something else may have been said, the latest last.
    """
    # Each read once, however many sentences correct something.
    of_user = {bare_name(one.thing.name): one for one in told}
    elsewhere = cache(partial(_by_value, before))
    last_declared = cache(partial(_declared_last, before))
    own = cache(lambda: {bare_name(one.thing.name): one for one in everything(text) if one.holds})
    mistaken = expression(_TABLE, "mistaken").search(text) is not None
    yield from _doubted(text, told)
    yield from _admitted(text, told) if mistaken else ()
    for sentence in sentences(text):
        yield from _never_said(sentence, told)
        if (spelt := spelt_name(sentence.text)) is not None:
            yield from _respelt(sentence, spelt, told, before)
            continue
        out = expression(_TABLE, "is_out").match(sentence.text)
        chosen = elsewhere().get(bare_name(out.group("what"))) if out else None
        if chosen is not None and _is_chosen(chosen):
            yield _given_up(chosen, sentence)
            continue
        moved = expression(_TABLE, "changed_it").match(sentence.text)
        if moved and (last := last_declared()) is not None:
            yield from (
                replace(one, begins=True)
                for one in _meant_of(sentence, moved.group("new").strip(), last)
                if one.holds
            )
            continue
        yield from _role_given_up(sentence, elsewhere)
        if expression(_TABLE, "says_nothing").search(sentence.text):
            continue
        swap = _swap(sentence)
        if swap is not None:
            meant_one = of_user.get(bare_name(swap.old)) or _by_last_word(swap.old, told)
            yield from _swapped(swap, meant_one, elsewhere)
        elif meant := _value_meant(
            sentence, told, " ".join((*before[-1:], text[: sentence.start])), mistaken=mistaken
        ):
            new = meant.group("new").strip()
            last = last_declared()
            if last is not None:
                yield from _meant_of(sentence, new, last)
            elif (wrong := _can_be(new, told)) is not None:
                yield from _meant_by(sentence, new, wrong, own())


def _doubted(text: str, told: Sequence[RuleStatement]) -> Iterator[RuleStatement]:
    """What somebody asks whether they said it, and says otherwise: "Did I put Slovak? ..."."""
    own_words = masked(text)
    asked = expression(_TABLE, "doubted").search(own_words) or expression(_TABLE, "not_it").search(
        own_words
    )
    if asked is None:
        return
    own = [one for one in everything(text) if one.holds]
    sentence = own[0].sentence if own else None
    for one in told if sentence else ():
        otherwise = one.predicate in {o.predicate for o in own}
        named = stands_in(asked["what"], one.thing.name)
        if one.holds and named and otherwise and not any(_same(one, o) for o in own):
            yield not_so(one, own[0].sentence)


def _admitted(text: str, told: Sequence[RuleStatement]) -> Iterator[RuleStatement]:
    """What was told last of something of which there can be several, and is told otherwise now."""
    for new in everything(text):
        if not new.holds or new.begins or holds_one(new) or new.predicate in _OF_MANY:
            continue
        if expression(_TABLE, "as_well").search(new.sentence.text):
            continue
        old = next((one for one in reversed(told) if one.predicate == new.predicate), None)
        if old is not None and old.holds and not same_name(old.thing.name, new.thing.name):
            yield not_so(old, new.sentence)


# Who likes this may like that as well, whatever they got wrong.
_OF_MANY: Final = frozenset({"likes", "dislikes", "prefers", "promised to", "plans to"})


def _same(one: RuleStatement, other: RuleStatement) -> bool:
    return one.predicate == other.predicate and same_name(one.thing.name, other.thing.name)


_ANY_ROLE_LEFT: Final = re.compile(
    r"\b(?:left|quit|cancell?ed|dropped|ditched|stopped|closed|moved on|fired|sacked|switched|"
    r"changed|no longer|don't|do not|dont|nobody|no one|no-one|now)\b",
    re.I,
)


def _role_given_up(
    sentence: Sentence, elsewhere: Callable[[], dict[str, Declared]]
) -> Iterator[Declared]:
    """Who or what is something of the speaker's no longer, and who is now, by the name told."""
    if _ANY_ROLE_LEFT.search(sentence.text) is None:
        return
    now = expression(_TABLE, "role_now").search(sentence.text)
    left = expression(_TABLE, "role_left").match(sentence.text)
    if now is None and left is None:
        return
    roles = [
        one
        for one in elsewhere().values()
        if one.subject == SPEAKER and one.predicate.endswith(" is") and one.value[:1].isupper()
    ]
    said = sentence.text[: now.start()].casefold() if now else ""
    for one in roles:
        if now and re.search(rf"\b{re.escape(one.value.casefold())}(?!\w)", said):
            yield replace(_now(one, now.group("new"), sentence), begins=True)
            return
    what = bare_name(left.group("what")) if left else ""
    for one in roles if left else ():
        if f"{bare_name(one.value)} ".startswith(f"{what} "):
            yield _given_up(one, sentence)


def _by_last_word(name: str, told: Sequence[RuleStatement]) -> RuleStatement | None:
    """What was told by a longer name: "the Zoe" of who drives a Renault Zoe."""
    bare = bare_name(name)
    found = [
        one
        for one in told
        if one.holds and one.thing.name[:1].isupper() and bare == short_name(one)
    ]
    return found[-1] if bare and found else None


def _is_chosen(one: Declared) -> bool:
    """Whether it is chosen for something; somebody who is "out" is not at their desk."""
    role = one.predicate.removesuffix(" is")
    return role != one.predicate and is_role_of_things(role)


def _respelt(
    sentence: Sentence, spelt: str, told: Sequence[RuleStatement], before: Sequence[str]
) -> Iterator[RuleStatement | Declared | Person]:
    """The name that was told last, of whomever, as it is spelled; no other name is meant."""
    for one in reversed(told):
        named = kind_of_object(one.predicate) in {"name", "own_name"}
        if named and one.holds and sounds_like(spelt, one.thing.name):
            yield replace(
                one, thing=Thing(spelt, spelt), begins=False, corrects=True, at=sentence.start,
                sentence=sentence,
            )  # fmt: skip
            yield not_so(one, sentence)
            return
    for turn in reversed(before):
        for person in people(turn):
            if person.holds and sounds_like(spelt, person.name):
                yield replace(person, name=spelt, at=sentence.start, sentence=sentence, facts=())
                yield replace(person, holds=False, at=sentence.start, sentence=sentence, facts=())
                return
        for other in declared(turn):
            if other.holds and sounds_like(spelt, other.value):
                yield _now(other, spelt, sentence)
                yield _no_longer(other, sentence)
                return


def _value_meant(
    sentence: Sentence, told: Sequence[RuleStatement], said: str, *, mistaken: bool
) -> re.Match[str] | None:
    """The value alone: "I meant KPMG", and "it's KPMG" of who says that they got it wrong.

    Args:
        sentence: That may say it.
        told: What was said of the user before it.
        said: Their turn right before, and what they say before it in the same one.
        mistaken: Whether they say that something is wrong.
    """
    meant = expression(_TABLE, "meant").search(sentence.text)
    if meant is None and told and told[-1].holds:
        slip = expression(_TABLE, "slipped").match(sentence.text)
        slipped = slip or (
            expression(_TABLE, "date_alone").match(sentence.text) if mistaken else None
        )
        # "Sorry, Bonn" may say anything; "sorry, 5 May 1990" after another day says which.
        if slipped is not None and kind_of_object(told[-1].predicate) == "birth":
            # No other day may have been named since.
            own, _, since = said.rpartition(told[-1].thing.phrase)
            return slipped if own and _A_DAY.search(since) is None else None
    if meant is None and mistaken:
        return expression(_TABLE, "instead").search(sentence.text)
    return meant


def _by_value(before: Sequence[str]) -> dict[str, Declared]:
    """What is said to hold of anybody and anything, by its value; the latest of each."""
    return {
        bare_name(one.value): one
        for turn in before
        for one in (*_of_people(turn), *changed(turn), *declared(turn))
        if one.holds
    }


def _of_people(turn: str) -> Iterator[Declared]:
    """What a turn says of whom it introduces: "My sister Clara lives in Rome"."""
    for person in people(turn):
        for fact in person.facts:
            told = third_person.sentence(person.name, fact)
            value = fact.thing.phrase
            if value and told.endswith(f"{value}."):
                yield Declared(
                    person.name, fact.predicate, value, told, fact.sentence, holds=fact.holds
                )


def _declared_last(before: Sequence[str]) -> Declared | None:
    """What the latest turn that states anything says, if it is one thing, not of its speaker."""
    for turn in reversed(before):
        if everything(turn):
            return None
        if said := declared(turn):
            return said[0] if len(said) == 1 and said[0].holds else None
    return None


def joked(
    text: str, told: Sequence[RuleStatement], last: Sequence[RuleStatement]
) -> Iterator[RuleStatement]:
    """What the turn right before said in jest, as not so, and again what was so: "April fool!".

    Args:
        text: The turn of the user.
        told: What they said of themselves before it, the latest last.
        last: Of that, what they said in the turn right before.
    """
    if not last or expression(_TABLE, "joked").match(masked(text)) is None:
        return
    sentence = next(iter(sentences(text)), Sentence("", 0))
    before = told[: len(told) - len(last)]
    for one in last:
        if one.holds:
            yield not_so(one, sentence)
        so = next((o for o in reversed(before) if o.predicate == one.predicate and o.holds), None)
        if so is not None and (holds_one(one) or same_name(so.thing.name, one.thing.name)):
            yield replace(so, begins=True, at=sentence.start, sentence=sentence)


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


def is_wrong(text: str) -> bool:
    """Whether a turn says that what was said before it is wrong."""
    return _wrong(text) is not None


def _wrong(text: str) -> Sentence | None:
    said = expression(_TABLE, "wrong")
    return next((one for one in sentences(text) if said.match(one.text)), None)


def _never_said(sentence: Sentence, told: Sequence[RuleStatement]) -> Iterator[RuleStatement]:
    """So that "I never said I use MongoDB" is that it is not used.

    Who never said so need not deny it ("I never said I like tea"): only where somebody did
    say so just before, or of a tool by name, is it meant.
    """
    found = expression(_TABLE, "never_said").match(sentence.text)
    if found is None:
        return
    said = {(one.predicate, one.thing.name.casefold()) for one in told}
    for one in everything(f"{found.group('it')}."):
        meant = (one.predicate, one.thing.name.casefold()) in said
        if one.holds and (meant or (one.predicate == USES and is_product(one.thing))):
            yield not_so(one, sentence)


class _Swap(NamedTuple):
    """What is said to be so in place of something else; whether that was so until now."""

    sentence: Sentence
    old: str
    new: str
    changed: bool


_SWAPS: Final = (
    "not_that", "not_that_but", "greeted", "out_and_in", "gave_way", "in_its_place",
    "one_for_other",
)  # fmt: skip
_WRONG_SWAPS: Final = frozenset({"not_that", "not_that_but"})


def _swap(sentence: Sentence) -> _Swap | None:
    for way in _SWAPS:
        found = expression(_TABLE, way).search(sentence.text)
        if found is not None:
            old, new = found.group("old").strip(), found.group("new").strip()
            over = way not in _WRONG_SWAPS or bool(found.groupdict().get("over"))
            return None if same_name(new, old) else _Swap(sentence, old, new, over)
    return None


# "Mei lives in Bern, not Cork" says nothing of who said to live in Cork.
_OF_SOMEBODY: Final = re.compile(
    r"\b(?!I\b)[A-Z][\w'-]{0,40}(?:\s+[A-Z][\w'-]{0,40}){0,5}\s+(?:is|has|was|[a-z]{3,}s)\s+\w"
)


def _swapped(
    swap: _Swap, meant: RuleStatement | None, elsewhere: Callable[[], dict[str, Declared]]
) -> Iterator[RuleStatement | Declared]:
    sentence, new = swap.sentence, swap.new
    if meant is not None:
        if _OF_SOMEBODY.match(new):
            return
        # "I'm a teacher, not a nurse" says itself what is so.
        told = expression("corrections", "clausal").match(new) is not None
        kind = kind_of_object(meant.predicate)
        things = [] if told else find(kind, MatchContext("", new, sentence.text))
        if things:
            yield replace(
                meant, thing=things[0], holds=True, begins=swap.changed, corrects=not swap.changed,
                denied=False, at=sentence.start, sentence=sentence,
            )  # fmt: skip
        yield ended(meant, sentence) if swap.changed else not_so(meant, sentence)
        return
    other = elsewhere().get(bare_name(swap.old))
    if other is not None:
        value = _value_alone(new, other)
        if not value:
            return
        yield _now(other, value, sentence)
        yield _no_longer(other, sentence)
        return
    tools = [find("product", MatchContext("", words, sentence.text)) for words in (new, swap.old)]
    if all(tools) and all(is_product(one[0]) for one in tools):
        right, wrong = tools[0][0], RuleStatement(USES, tools[1][0])
        at = sentence.start
        yield RuleStatement(USES, right, at=at, sentence=sentence, corrects=not swap.changed)
        yield ended(wrong, sentence) if swap.changed else not_so(wrong, sentence)


def _can_be(new: str, told: Sequence[RuleStatement]) -> RuleStatement | None:
    """What was told last of which this can be the value: nobody lives in Qdrant."""
    if not is_product(Thing(new, new)):
        return told[-1] if told else None
    return next((one for one in reversed(told) if one.predicate == USES), None)


def _meant(sentence: Sentence, new: str, last: RuleStatement) -> Iterator[RuleStatement]:
    """The right value of what was said last, if it can be one: "sorry, I meant KPMG"."""
    kind = kind_of_object(last.predicate)
    words = f"on {new}" if kind == "birth" else new
    things = find(kind, MatchContext("", words, sentence.text))
    named = bool(things) and things[0].name[:1].isupper() == last.thing.name[:1].isupper()
    if last.holds and named and not same_name(things[0].name, last.thing.name):
        yield replace(
            last, thing=things[0], begins=False, corrects=True, denied=False,
            at=sentence.start, sentence=sentence,
        )  # fmt: skip
        yield not_so(last, sentence)


def _meant_by(
    sentence: Sentence, new: str, wrong: RuleStatement, own: Mapping[str, RuleStatement]
) -> Iterator[RuleStatement]:
    """What was meant; "I meant Bosch. I work at Bosch." says itself what, and what is wrong."""
    again = next((own[name] for name in own if f" {bare_name(new)} " in f" {name} "), None)
    if again is None:
        yield from _meant(sentence, new, wrong)
    elif wrong.predicate == again.predicate and not same_name(wrong.thing.name, again.thing.name):
        yield from () if holds_one(wrong) else (not_so(wrong, sentence),)


def _meant_of(sentence: Sentence, new: str, last: Declared) -> Iterator[Declared]:
    """The same of anybody and anything: "My birthday is on the 4th of May", "I meant the 14th"."""
    lead = re.match(r"(?:in|at|on|for|by) ", last.value)
    value = new if lead is None or new.startswith(lead.group()) else f"{lead.group()}{new}"
    alike = kind_of_value(value) is kind_of_value(last.value)
    cased = bare_name(value)[:1].isdigit() or new[:1].isupper() == last.value[:1].isupper()
    if alike and cased and not same_name(value, last.value):
        yield _now(last, value, sentence)
        yield _no_longer(last, sentence)


def _value_alone(new: str, one: Declared) -> str:
    """What "she lives in Milan" puts in place of Rome; empty where it says something else.

    "Priya lives in Ghent, not Turin" says nothing of Hanna, who lives in Turin.
    """
    whose, said, value = new.partition(f" {one.predicate} ")
    if said and whose.casefold() == one.subject.casefold():
        return value.strip()
    if re.match(r"(?:i|we|he|she|it|they)\b", new, re.I) is None:
        return "" if said else new
    return value.strip()


def _now(one: Declared, new: str, sentence: Sentence) -> Declared:
    content = f"{one.content.rpartition(one.value)[0]}{new}."
    return replace(one, value=new, content=content, sentence=sentence, begins=False)


def _given_up(one: Declared, sentence: Sentence) -> Declared:
    """The value that was right, and is none any more."""
    start = one.content.rpartition(one.value)[0].rstrip()
    content = f"{start} no longer {one.value}."
    return replace(one, holds=False, begins=False, content=content, sentence=sentence)


def _no_longer(one: Declared, sentence: Sentence) -> Declared:
    """The value that was wrong, as ended: what was believed for a while is history."""
    start = one.content.rpartition(one.value)[0]
    content = f"It is not so that {start[:1].lower()}{start[1:]}{one.value}."
    return replace(one, holds=False, content=content, sentence=sentence)
