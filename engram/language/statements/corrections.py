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

from engram.domain.slots import (
    POSSESSING,
    WORKS_AT,
    kind_of_value,
    role_slot,
)
from engram.language.statements import third_person
from engram.language.statements.answers import in_first_person
from engram.language.statements.changes import changed
from engram.language.statements.clauses import Sentence, masked, sentences, with_words
from engram.language.statements.cutting import Thing
from engram.language.statements.declared import (
    SPEAKER,
    Declared,
    declared,
    is_held_by_one,
    is_role_of_things,
    names_one,
)
from engram.language.statements.notes import Person, people
from engram.language.statements.objects import MatchContext, is_product
from engram.language.statements.predicates import RuleStatement, find
from engram.language.statements.promises import ends
from engram.language.statements.reading import everything, kind_of_object
from engram.language.statements.renewals import of_same_kind
from engram.language.statements.slips import sounds_like, spelt_name
from engram.language.statements.taken_back import (
    ALLERGIC,
    FROM_BIRTH,
    LIVES_IN,
    PLANS,
    STUDIES,
    USES,
    WORKS_AS,
    as_begun,
    as_over,
    bare,
    holds_one,
    is_named,
    last_word,
    not_so,
    same_name,
    uncounted,
)
from engram.language.text import is_past, split_sentences, verb_lemma
from engram.language.vocabulary import expression, fields_of_work, vocabulary, word_lines

_TABLE = "takes_back"
# What is taken back was said just before; a long turn of an assistant says much in general.
_LONGEST_READ = 2_000
_MOST_SENTENCES = 20
# "Bath? Not any more, it's Leeds now": of what stands before a sentence, so much can be asked.
_LONGEST_ASKED = 80
_MARRIED = "is married to"
_SWAPPED = POSSESSING | {LIVES_IN, STUDIES, WORKS_AT, "volunteers at"}
# What "swapped the library for the shelter" gives up, were nothing known of it.
_GIVEN_UP = frozenset({USES, "owns"})
# Who does without something may like it all the same.
_LIKINGS = frozenset({"likes", "dislikes", "prefers"})
# To whom one says goodbye may be on a journey; to these one says it once.
_LEFT_FOR_GOOD = POSSESSING | {LIVES_IN, WORKS_AT, USES, STUDIES}
_HAS_LEFT = re.compile(r"(?:'ve|\bhave)(?: now| just| finally| since)? \Z", re.I)
_A_DAY = re.compile(r"\d|day\b", re.I)
# Wordings that name what is over, each with the predicates of which it can be.
_ENDED_BY_NAME: Final[tuple[tuple[str, Callable[[str], bool]], ...]] = (
    ("gone_now", lambda predicate: predicate in POSSESSING),
    ("tool_gone", lambda predicate: predicate == USES),
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
    ("spouse_gone", lambda predicate: predicate == _MARRIED),
    ("closed_for_good", lambda predicate: predicate in POSSESSING),
    ("closed_down", lambda predicate: predicate == WORKS_AT),
    ("done_at", lambda predicate: predicate == WORKS_AT),
    ("no_allergy", lambda predicate: predicate == ALLERGIC),
    ("none_for_me", lambda predicate: predicate not in _LIKINGS),
    ("gone_without", lambda predicate: predicate in {USES, WORKS_AT, LIVES_IN, STUDIES}),
    ("not_for_me", lambda predicate: predicate in {USES, WORKS_AT, WORKS_AS, STUDIES}),
)


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
            claimed = with_words(claim.group("claim"), text[:_LONGEST_READ])
            found += everything(f"{in_first_person(claimed)}.") if claimed else ()
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
    of_user = {bare(one.thing.name): one for one in told}
    elsewhere = cache(partial(_by_value, before))
    last_declared = cache(partial(_declared_last, before))
    own = cache(lambda: {bare(one.thing.name): one for one in everything(text) if one.holds})
    mistaken = expression(_TABLE, "mistaken").search(text) is not None
    for sentence in sentences(text):
        yield from _never_said(sentence, told)
        if (spelt := spelt_name(sentence.text)) is not None:
            yield from _respelt(sentence, spelt, told, before)
            continue
        out = expression(_TABLE, "is_out").match(sentence.text)
        chosen = elsewhere().get(bare(out.group("what"))) if out else None
        if chosen is not None and _is_chosen(chosen):
            yield _given_up(chosen, sentence)
            continue
        moved = expression(_TABLE, "changed_it").match(sentence.text) or _only_that(sentence)
        if moved and (last := last_declared()) is not None:
            yield from (
                replace(one, begins=True)
                for one in _meant_of(sentence, moved.group("new").strip(), last)
                if one.holds
            )
            continue
        yield from _role_given_up(sentence, elsewhere)
        yield from _role_changed(sentence)
        yield from _wrote_wrongly(sentence, told, own)
        if expression(_TABLE, "says_nothing").search(sentence.text):
            continue
        asked = text[max(0, sentence.start - _LONGEST_ASKED) : sentence.start]
        yield from _renewed(sentence, asked, of_user, elsewhere)
        swap = _swap(sentence)
        if swap is not None:
            meant_one = of_user.get(bare(swap.old)) or _by_last_word(swap.old, told)
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
        else:
            yield from _number_again(sentence, last_declared, before)


def _only_that(sentence: Sentence) -> re.Match[str] | None:
    """What it is now, said of what was told last: "It's Dr Virta now"."""
    only = expression(_TABLE, "only_now").match(sentence.text)
    return only if only is not None and only["it"] else None


_A_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*")


def _number_again(
    sentence: Sentence, last_declared: Callable[[], Declared | None], before: Sequence[str]
) -> Iterator[Declared]:
    """The right number of what was told last: "My shoe size is 42", "No wait, 43"."""
    slipped = expression(_TABLE, "slipped_number").match(sentence.text)
    last = last_declared() if slipped else None
    if slipped is not None and last is not None and _is_last_number(last, before):
        value = _A_NUMBER.sub(slipped.group("new"), last.value)
        yield from _meant_of(sentence, value, last)


def _is_last_number(one: Declared, before: Sequence[str]) -> bool:
    """Whether its value is the only number that was spoken of, and nothing was asked since."""
    own = _A_NUMBER.findall(one.value)
    for turn in reversed(before):
        if "?" in turn or not set(_A_NUMBER.findall(turn)) <= set(own):
            return False
        if own and one.value in turn and declared(turn):
            return len(own) == 1
    return False


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
    what = bare(left.group("what")) if left else ""
    for one in roles if left else ():
        if f"{bare(one.value)} ".startswith(f"{what} "):
            yield _given_up(one, sentence)


def _role_changed(sentence: Sentence) -> Iterator[Declared]:
    """Another of what one has one of: "I've changed dentists, it's Dr Virta now"."""
    if expression(_TABLE, "may_change_role").search(sentence.text) is None:
        return
    changed_to = expression(_TABLE, "role_changed").match(sentence.text)
    if changed_to is None:
        return
    role = changed_to.group("role").lower().removesuffix("s")
    predicate = role_slot(role) if role in vocabulary().services or is_held_by_one(role) else None
    new = changed_to.group("new").strip(" .")
    if predicate is not None:
        content = f"My {role} is {new}."
        yield Declared(SPEAKER, predicate, new, content, sentence, begins=True)


def _wrote_wrongly(
    sentence: Sentence,
    told: Sequence[RuleStatement],
    own: Callable[[], Mapping[str, RuleStatement]],
) -> Iterator[RuleStatement]:
    """What was told by mistake: "I study geology, I wrote geography because the form says so"."""
    wrong = expression(_TABLE, "wrote_wrongly").search(sentence.text)
    if wrong is None:
        return
    instead = {one.predicate for one in own().values()}
    for one in told:
        if one.holds and one.predicate in instead and is_named(one, bare(wrong.group("old"))):
            yield not_so(one, sentence)


def _by_last_word(name: str, told: Sequence[RuleStatement]) -> RuleStatement | None:
    """What was told by a longer name: "the Zoe" of who drives a Renault Zoe."""
    short = bare(name)
    found = [
        one
        for one in told
        if one.holds and one.thing.name[:1].isupper() and short == last_word(one)
    ]
    return found[-1] if short and found else None


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
    if sentence.text.startswith("*"):
        starred = expression(_TABLE, "starred").match(sentence.text)
        last = told[-1].thing.name if told else ""
        return starred if starred and sounds_like(starred["new"], last) else None
    meant = expression(_TABLE, "meant").search(sentence.text)
    if meant is None and told and told[-1].holds:
        slipped = expression(_TABLE, "slipped").match(sentence.text)
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
        bare(one.value): one
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


def left_behind(
    text: str, told: Sequence[RuleStatement], last: Sequence[RuleStatement]
) -> Iterator[RuleStatement]:
    """What a turn ends by the name it has in the turns before: "I left Rio Tinto", "Not any more".

    Args:
        text: The turn of the user.
        told: What they said of themselves before it.
        last: What was said of them in the turn right before, by themselves or to them.
    """
    holding = {(one.predicate, bare(one.thing.name)): one for one in told if one.thing.name}
    own = [one for one in holding.values() if one.holds]
    plans = [one for one in own if one.predicate == PLANS]
    # A plan is over when it has come about as when it has come to nothing, as a promise is.
    for end in ends(text, [one.thing.phrase for one in plans]) if plans else ():
        plan = plans[end.promise].thing.phrase
        if _tells_of_own_doing(end.sentence.text) or _tells_of(plan, end.sentence.text):
            yield as_over(plans[end.promise], end.sentence)
    unnamed = bool(own) and expression(_TABLE, "may_end_unnamed").search(text) is not None
    for sentence in sentences(text) if own or last else ():
        if over := expression(_TABLE, "no_more").match(sentence.text):
            now = [one for one in last if one.holds and one.thing.name]
            for one in now if len(now) == 1 else ():
                yield from _moved_on(one, text, sentence, sentence.start + over.end())
                yield as_over(one, sentence)
            continue
        if unnamed:
            yield from _unnamed(sentence, own, last)
        for said in expression(_TABLE, "left_behind").finditer(sentence.text):
            verb = " ".join(said.group("verb").lower().split())
            for one in own:
                rest = _after_name(one, said.group("what").casefold())
                # "I left Kobe yesterday" may tell of a journey.
                away = one.predicate != LIVES_IN or _HAS_LEFT.search(
                    sentence.text, 0, said.start("verb")
                )
                can_leave = rest is not None and away and _can_leave(one.predicate, verb)
                if can_leave and _ends_there(rest or ""):
                    yield as_over(one, sentence)


def _after_name(one: RuleStatement, what: str) -> str | None:
    """What follows the name of a thing; None where something else is named.

    Args:
        one: What was told.
        what: What is left behind: "the hens last week", in lower case.
    """
    names = [one.thing.name.casefold(), last_word(one)]
    names += [uncounted(one.thing.name)] if one.predicate in POSSESSING else []
    for name in filter(None, names):
        rest = what.removeprefix(name)
        if rest != what:
            return None if rest[:1].isalpha() else rest
    return None


def _unnamed(
    sentence: Sentence, own: Sequence[RuleStatement], last: Sequence[RuleStatement]
) -> Iterator[RuleStatement]:
    """What a sentence ends by "it", "them" or "there", or as "no more X for me"."""
    for wording, can_be_meant in _ENDED_BY_NAME:
        can_be = [one for one in own if can_be_meant(one.predicate)]
        said = expression(_TABLE, wording).search(sentence.text) if can_be else None
        if said:
            what = bare(next(filter(None, said.groups())))
            yield from (as_over(one, sentence) for one in can_be if is_named(one, what))
    now = {one.predicate: one for one in last if one.holds and one.thing.name}
    several = len({one.thing.name for one in last if one.holds and one.thing.name}) > 1
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
    left = expression(_TABLE, "left_it").match(sentence.text)
    if left and not several:
        verb = " ".join(left.group("verb").lower().split())
        yield from (as_over(o, sentence) for o in now.values() if _can_leave(o.predicate, verb))


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


def by_what_was_told(
    stated: Sequence[RuleStatement], told: Sequence[RuleStatement]
) -> list[RuleStatement]:
    """The statements, where one thing takes the place of another as what the other was.

    Who drives a Skoda, and swaps it for a Kia, drives the Kia; who works at Onda, and parted ways
    with it, was not married to it.
    """
    had = {last_word(one): one.predicate for one in told if one.holds and last_word(one)}
    had |= {bare(one.thing.name): one.predicate for one in told if one.holds}
    swapped = {
        one.sentence.start: had[bare(one.thing.name)]
        for one in stated
        if one.predicate in _GIVEN_UP
        and not one.holds
        and had.get(bare(one.thing.name)) in _SWAPPED - {one.predicate}
    }
    studied = {bare(one.thing.name) for one in told if one.predicate == STUDIES}
    work = {one.thing.name.casefold() for one in told if one.predicate == WORKS_AS and one.holds}
    return [
        replace(one, predicate="has left", holds=True)
        if one.predicate == STUDIES
        and not one.holds
        and bare(one.thing.name) not in studied
        and not work.isdisjoint(_workers_in(one.thing.name.casefold()))
        else replace(one, predicate=swapped[one.sentence.start])
        if one.predicate in _GIVEN_UP and one.sentence.start in swapped
        else replace(one, predicate=WORKS_AT)
        if one.predicate == _MARRIED and had.get(bare(one.thing.name)) == WORKS_AT
        else one
        for one in stated
    ]


def _workers_in(field: str) -> tuple[str, ...]:
    """What those are who work in a field: "plumber" of "plumbing"."""
    return fields_of_work().get(field, ())


def _can_leave(predicate: str, verb: str) -> bool:
    """Whether "left" is said of work, "sold" of what is owned."""
    return verb in _leaving().get(predicate, ())


@cache
def _leaving() -> Mapping[str, frozenset[str]]:
    lines = (line.partition(":") for line in word_lines(_TABLE, "leaving"))
    return {name.strip(): frozenset(map(str.strip, verbs.split(","))) for name, _, verbs in lines}


def _ends_there(rest: str) -> bool:
    return expression(_TABLE, "after_left").match(rest) is not None


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
)  # fmt: skip
_WRONG_SWAPS: Final = frozenset({"not_that", "not_that_but"})
# These are said of other things as well: both must be of one kind.
_RENEWALS: Final = (
    "is_history", "no_more_that", "given_for", "went_from", "instead_of", "used_to_be",
    "not_favourite",
)  # fmt: skip


def _swap(sentence: Sentence) -> _Swap | None:
    for way in _SWAPS:
        found = expression(_TABLE, way).search(sentence.text)
        if found is not None:
            old, new = found.group("old").strip(), found.group("new").strip()
            said = found.groupdict()
            over = way not in _WRONG_SWAPS or bool(said.get("over") or said.get("now"))
            return None if same_name(new, old) else _Swap(sentence, old, new, over)
    return None


def _renewed(
    sentence: Sentence,
    asked: str,
    of_user: Mapping[str, RuleStatement],
    elsewhere: Callable[[], Mapping[str, Declared]],
) -> Iterator[RuleStatement | Declared]:
    """What is so instead of a value that was told: "Bath is history, it's Leeds now".

    Args:
        sentence: That may say it.
        asked: What stands before it in its turn.
        of_user: What was told of the user, by its value.
        elsewhere: What was told of anything else, by its value.
    """
    for before, then in (("asked_about", "asked_no"), ("said_over", "alone")):
        old = expression(_TABLE, before).search(asked)
        told = expression(_TABLE, then).match(sentence.text) if old else None
        if old is not None and told is not None:
            yield from _in_its_place(sentence, old["old"], told["new"], of_user, elsewhere)
            return
    if expression(_TABLE, "may_renew").search(sentence.text) is None:
        return
    if expression("exchanges", "only_for").search(sentence.text):
        return
    for way in _RENEWALS:
        found = expression(_TABLE, way).match(sentence.text)
        if found is not None:
            new = found.group("new") or found.group("too")
            yield from _in_its_place(sentence, found["old"], new, of_user, elsewhere)
            return


def _in_its_place(
    sentence: Sentence,
    old: str,
    new: str,
    of_user: Mapping[str, RuleStatement],
    elsewhere: Callable[[], Mapping[str, Declared]],
) -> Iterator[RuleStatement | Declared]:
    one = of_user.get(bare(old))
    if one is not None and one.holds and one.predicate not in FROM_BIRTH | _LIKINGS:
        thing = of_same_kind(one, new.strip(), sentence.text)
        if thing is not None and thing.name[:1].isupper() is one.thing.name[:1].isupper():
            yield as_begun(one, thing, sentence)
            yield as_over(one, sentence)
        return
    other = elsewhere().get(bare(old)) if one is None else None
    role = other.predicate.removesuffix(" is") if other else ""
    if other is not None and role != other.predicate and names_one(role, new.strip()):
        yield from (
            replace(told, begins=told.holds) for told in _meant_of(sentence, new.strip(), other)
        )


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
        yield as_over(meant, sentence) if swap.changed else not_so(meant, sentence)
        return
    other = elsewhere().get(bare(swap.old))
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
        yield as_over(wrong, sentence) if swap.changed else not_so(wrong, sentence)


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
    again = next((own[name] for name in own if f" {bare(new)} " in f" {name} "), None)
    if again is None:
        yield from _meant(sentence, new, wrong)
    elif wrong.predicate == again.predicate and not same_name(wrong.thing.name, again.thing.name):
        yield from () if holds_one(wrong) else (not_so(wrong, sentence),)


def _meant_of(sentence: Sentence, new: str, last: Declared) -> Iterator[Declared]:
    """The same of anybody and anything: "My birthday is on the 4th of May", "I meant the 14th"."""
    lead = re.match(r"(?:in|at|on|for|by) ", last.value)
    value = new if lead is None or new.startswith(lead.group()) else f"{lead.group()}{new}"
    alike = kind_of_value(value) is kind_of_value(last.value)
    cased = bare(value)[:1].isdigit() or new[:1].isupper() == last.value[:1].isupper()
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
