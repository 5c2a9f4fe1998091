"""What a statement ends without naming it as it was told.

"Miso died" ends "has a cat called Miso", "our cat died" the one cat that is known, and "I switched
to Neovim" the one other editor. What is meant follows from what is known; where several could be
meant, nobody knows, and nothing ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import product
from typing import NamedTuple

from engram.consolidation.keep import Circumstances
from engram.domain.identity import normalise
from engram.domain.memories import (
    Category,
    MemoryKind,
    MemoryStatus,
    Resolution,
    SemanticMemory,
    Slot,
)
from engram.domain.plan import Statement
from engram.domain.slots import (
    IS_CALLED,
    IS_THE_USERS,
    OF_THE_USER,
    POSSESSING,
    PROMISED,
    USER,
    WORKS_AT,
    ends_something,
    held_predicate,
    is_functional,
    slot_of,
)
from engram.language.calendar import SMALL
from engram.language.found import Masked
from engram.language.money import find as find_money
from engram.language.text import verb_lemma
from engram.language.vocabulary import expression, fields_of_work, load, of_one_kind, words

DIED = "died"
SWITCHED = "switched to"
OWES = "owes"
GAVE_IN = "gave in"
_USES = "uses"
_LIVES_IN = "lives in"
_ADDRESS = "address is"
_DIET = "diet is"
_PREFERS = "prefers"
_EATS = "eats"
_PLANS = "plans to"
_STUDIES = "studies"
_WORKS_AS = "works as"
_WORK = frozenset({_WORKS_AS, WORKS_AT})
_HAS_LEFT = "has left"
_RETIRED = " has retired."
_BROKEN_UP = " have broken up."
_JOURNEY = re.compile(r"(?:go|travel|fly|drive|sail|cycle|hike|move|head) |(?:visit|tour|see) ")
_MARRIED = "is married to"
_ENGAGED = "is engaged to"
_SAID_OF_PEOPLE = frozenset(
    {"lives in", "studies", "speaks", "is from", "is allergic to", "uses", "owns", "likes", "has"}
)
_CALLED = re.compile(r"\s(?:called|named)\s")
_BESIDE = re.compile(r"\s(?:above|over|below|under|near|by|beside|behind|in|on|at|with|from|for)\s")
_MOST_COUNTED = 12
# That it is over follows from what was said; nobody said it.
_INFERRED = 0.75


class _KnownToHold(NamedTuple):
    """Something that is so, as a statement or a memory tells it, and by which turns."""

    slot: Slot
    content: str
    episode_ids: tuple[str, ...]

    def is_told_with(self, episode_ids: Iterable[str]) -> bool:
        """Whether one of these turns tells it."""
        return not set(self.episode_ids).isdisjoint(episode_ids)


class _SlottedStatement(NamedTuple):
    """A statement, with its slot, and the same slot where nothing has ended."""

    one: Statement
    slot: Slot | None
    held: Slot

    def is_about(self, predicate: str, *, holds: bool) -> bool:
        """Whether it says that something is so, or no longer so, by this predicate."""
        return (
            self.slot is not None and self.held.predicate == predicate and self.one.holds is holds
        )


class _ImpliedEnd(NamedTuple):
    """One way in which a statement ends something that it does not name.

    Attributes:
        fits: Whether a statement is such.
        ends: The predicates of what it may end.
        concludes: The statement with what it ends, by what stands, and whoever speaks.
        kept_as: The predicates by which such a statement is found among what is known, where it
            can be read again from there; none where it cannot.
    """

    fits: Callable[[_SlottedStatement], bool]
    ends: Callable[[], frozenset[str]]
    concludes: Callable[[_SlottedStatement, Sequence[_KnownToHold], str], Iterable[Statement]]
    kept_as: frozenset[str] = frozenset()


def ended_unnamed(statements: Iterable[Statement]) -> frozenset[str]:
    """The predicates of which something known may end by these statements, without being named."""
    rules = (_rule_for(_told(one)) for one in statements)
    return frozenset().union(*(rule.ends() for rule in rules if rule is not None))


class LateEnds(NamedTuple):
    """Where to look for what was told before some statements came, of a time after theirs.

    Attributes:
        subjects: Of whom it is.
        predicates: By which it is known.
        ends: The predicates of what it may end.
    """

    subjects: frozenset[str]
    predicates: frozenset[str]
    ends: frozenset[str]


def ended_late(statements: Iterable[Statement]) -> LateEnds:
    """Of what these say to hold, what may have ended it, had it been told in order."""
    held = [told.held for one in statements if (told := _told(one)).slot is not None and one.holds]
    said = {slot.predicate for slot in held}
    rules = [rule for rule in _RULES if rule.kept_as and not said.isdisjoint(rule.ends())]
    named = (_CALLED.split(slot.object)[-1] for slot in held)
    return LateEnds(
        frozenset({*(slot.subject for slot in held), *named} - {""}),
        frozenset().union(*(rule.kept_as for rule in rules)),
        frozenset().union(*(rule.ends() for rule in rules)),
    )


def with_implied(
    statements: Sequence[Statement],
    known: Sequence[SemanticMemory],
    circumstances: Circumstances,
) -> list[Statement]:
    """The statements, where one ends something by another name under the name it was told by.

    Args:
        statements: What the turns state.
        known: What is known of their subjects, whether it still holds or not.
        circumstances: Their turns.
    """
    found: list[Statement] = []
    for number, one in enumerate(statements):
        told = _told(one)
        rule = _rule_for(told)
        said = circumstances.telling(one) if rule is not None else None
        if rule is None or said is None:
            found.append(one)
            continue
        standing = [
            *_standing(known, said.known_at, one.episode_ids),
            *_said_before(statements[:number]),
        ]
        concluded = rule.concludes(told, standing, _speaker(one, circumstances))
        found += [each for each in concluded if each is one or not _is_replaced(each, statements)]
    return [*found, *_told_late(statements, known, circumstances)]


def _told_late(
    statements: Sequence[Statement], known: Sequence[SemanticMemory], circumstances: Circumstances
) -> Iterator[Statement]:
    """The ends of what these say to hold, by what was told of a later time before they came."""
    said = [(slot, one) for one in statements if one.holds and (slot := _told(one).slot)]
    times = [(t.known_at, slot, one) for slot, one in said if (t := circumstances.telling(one))]
    earliest = min((at for at, *_ in times), default=None)
    for memory in sorted(known, key=lambda one: (one.known_at, one.id)):
        if earliest is None or memory.known_at <= earliest:
            continue
        if memory.slot is None or memory.refuted_at is not None:
            continue
        late = [
            _KnownToHold(slot, one.content, one.episode_ids)
            for at, slot, one in times
            if at < memory.known_at
        ]
        told = _told(_restated(memory, memory.slot))
        rule = _rule_for(told)
        if rule is None or not rule.kept_as or not circumstances.sources(told.one):
            continue
        standing = [*_standing(known, memory.known_at, told.one.episode_ids), *late]
        slots = {one.slot for one in late}
        for each in rule.concludes(told, standing, _speaker(told.one, circumstances)):
            if not each.holds and _told(each).held in slots:
                yield each


def _restated(memory: SemanticMemory, slot: Slot) -> Statement:
    """What is known as it was told first, as far as the memory shows."""
    first = memory.tellings[:1]
    told_by = first[0].episode_ids if first else memory.source_episode_ids[:1]
    evidence = tuple(one for one in memory.evidence if one.episode_id in told_by)
    at = memory.content.casefold().rfind(slot.object)
    what = memory.content[at : at + len(slot.object)] if at >= 0 else slot.object
    begins = any(one.begins for one in first)
    used = begins and slot.predicate == _USES and what != ""
    switched = used and any(_is_switching(one.words, what) for one in evidence)
    return Statement(
        content=memory.content,
        category=memory.category,
        kind=memory.kind,
        subject=slot.subject,
        predicate=SWITCHED if switched else held_predicate(slot),
        object=what,
        holds=not ends_something(slot),
        begins=begins,
        entities=memory.entities,
        tags=memory.tags,
        evidence=evidence,
        event_at=first[0].event_at if first else memory.event_at,
        event_from=first[0].event_from if first else None,
        event_by=first[0].event_by if first else None,
        confidence=memory.confidence.extraction,
        importance=memory.importance,
        episode_ids=told_by,
    )


def _is_switching(words: str, what: str) -> bool:
    """Whether it is used in place of another: "I switched to Neovim", and no more."""
    before, _, after = words.partition(what)
    switching = expression("exchanges", "switching").search(before)
    altogether = expression("exchanges", "altogether", exact_case=True).match(after)
    return switching is not None and altogether is not None


def _is_replaced(end: Statement, statements: Iterable[Statement]) -> bool:
    """Whether the same turn tells what took its place: nobody need be told that it is over."""
    over = _told(end)
    return (
        not end.holds
        and over.slot is not None
        and is_functional(over.slot)
        and any(
            _told(one).is_about(over.held.predicate, holds=True)
            and _told(one).held.subject == over.held.subject
            and one.episode_ids == end.episode_ids
            for one in statements
        )
    )


def _told(one: Statement) -> _SlottedStatement:
    slot = slot_of(one.subject, one.predicate, one.object, holds=one.holds)
    if slot is None:
        return _SlottedStatement(one, None, Slot(subject="", predicate="", object=""))
    return _SlottedStatement(one, slot, slot.model_copy(update={"predicate": held_predicate(slot)}))


def _rule_for(told: _SlottedStatement) -> _ImpliedEnd | None:
    return next((rule for rule in _RULES if rule.fits(told)), None)


# --- what was left behind, or gave way to something else


def _is_switch(told: _SlottedStatement) -> bool:
    return told.one.holds and normalise(told.one.predicate or "") == SWITCHED


def _switched(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    """The one other tool of that kind: the editor that was used before the new one."""
    used = _of(told.held.subject, standing, _USES)
    old = _only(held for held in used if of_one_kind(held.slot.object, told.held.object))
    return _and_over(told.one, old)


def _is_given_up(told: _SlottedStatement) -> bool:
    return told.is_about(_USES, holds=False)


def _given_up(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    """The one model of it that is used: "the ThinkPad" is the ThinkPad X1, "Windows" Windows 11."""
    used, named = list(_of(told.held.subject, standing, _USES)), told.held.object
    old = None
    if all(held.slot.object != named for held in used):
        more = [held for held in used if held.slot.object.startswith(f"{named} ")]
        old = _only(held for held in more if _is_model_of(held, named) or _is_the_one(told.one))
    yield told.one if old is None else _over(old, told.one, told.one.confidence)


def _is_model_of(held: _KnownToHold, named: str) -> bool:
    """Whether what follows the name has a number: "Pixel 8", but not "React Native"."""
    following = held.slot.object.removeprefix(f"{named} ").partition(" ")[0]
    return any(map(str.isdigit, following))


def _is_the_one(one: Statement) -> bool:
    """Whether it speaks of something both sides know: "the Kindle", "my Kindle"."""
    before = one.content.casefold().partition((one.object or "").casefold())[0].split()
    return before[-1:] in (["the"], ["their"])


def _eats_again(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    """The diet of who eats fish again."""
    kept_to = _of(told.held.subject, standing, _DIET)
    without = {diet for diet in load("diets") if told.held.object in words("diets", diet)}
    old = _only(one for one in kept_to if one.slot.object in without)
    return _and_over(told.one, old)


def _changes_subject(told: _SlottedStatement) -> bool:
    """Whether it is studied in place of another: who starts on law may go on with physics."""
    changed = "changed_over" if told.one.begins else "changed_subject"
    return told.is_about(_STUDIES, holds=True) and _says(told.one, changed)


def _says(one: Statement, wording: str) -> bool:
    return any(expression("statements", wording).search(said.words) for said in one.evidence)


def _studies_instead(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    others = _of(told.held.subject, standing, _STUDIES)
    old = _only(held for held in others if held.slot.object != told.held.object)
    return _and_over(told.one, old)


def _is_graduation(told: _SlottedStatement) -> bool:
    return expression("statements", "graduated").match(told.one.content) is not None


def _graduated(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    """The one subject that was studied: who graduates, or quits their degree, does so no longer."""
    return _and_over(told.one, _only(_of(speaker, standing, _STUDIES)))


def _is_qualified(told: _SlottedStatement) -> bool:
    """Whether they are now what they studied to be: "I'm a qualified vet!"."""
    return told.is_about(_WORKS_AS, holds=True) and _says(told.one, "qualified_now")


def _qualified(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    """The subject that makes whoever finished it that: veterinary medicine makes a vet."""
    work = told.held.object.removeprefix("qualified ")
    studied = _of(told.held.subject, standing, _STUDIES)
    old = _only(held for held in studied if work in fields_of_work().get(held.slot.object, ()))
    return _and_over(told.one, old)


# --- work that is over: as what somebody works and for whom are two things, and one job


def _is_out_of_work(told: _SlottedStatement) -> bool:
    """Whether a job is over that is not named: "I got fired", "I retired in May"."""
    unnamed = told.is_about(WORKS_AT, holds=False) and not told.held.object
    return unnamed or (told.slot is not None and told.one.content.endswith(_RETIRED))


def _out_of_work(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    """The one thing that was done for work, unless there were two jobs, or it is the new one."""
    done = [held for held in standing if not held.is_told_with(told.one.episode_ids)]
    employers = {held.slot.object for held in _of(told.held.subject, done, WORKS_AT)}
    old = _only(_of(told.held.subject, done, _WORKS_AS)) if len(employers) <= 1 else None
    return _and_over(told.one, old)


def _leaves_work(told: _SlottedStatement) -> bool:
    return told.is_about(_WORKS_AS, holds=False) and _says(told.one, "leaves_work")


def _left_work(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    """For whom it was done: "I quit my job as a nurse", of a nurse at a hospital."""
    done = _of(told.held.subject, standing, _WORKS_AS)
    old = next((held for held in done if held.slot == told.held), None)
    return _and_over(told.one, _employer(told, old, standing) if old else None)


def _employer(
    told: _SlottedStatement, work: _KnownToHold, standing: Sequence[_KnownToHold]
) -> _KnownToHold | None:
    """Where that work was done, if a turn tells of both; who retires works nowhere."""
    old = _only(_of(told.held.subject, standing, WORKS_AT))
    if old is None or old.is_told_with(told.one.episode_ids):
        return None
    same = old.is_told_with(work.episode_ids) or _says(told.one, "retires")
    return old if same else None


def _left_field(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    """Whoever leaves teaching is no maths teacher any more; who only studied nursing quits that."""
    field, who = told.held.object, told.held.subject
    # "Vet nursing" is nursing.
    kind = field if field in fields_of_work() else field.rpartition(" ")[2]
    people = fields_of_work().get(kind, (f"{verb_lemma(kind).removesuffix('e')}er",))
    jobs = list(_of(who, standing, _WORKS_AS))
    old = _only(held for held in jobs if _occupation(held) in people)
    if not jobs:
        old = _only(held for held in _of(who, standing, _STUDIES) if held.slot.object == field)
    yield told.one if old is None else _over(old, told.one, told.one.confidence)
    where = (
        _employer(told, old, standing) if old and jobs and _says(told.one, "leaves_work") else None
    )
    if where is not None:
        yield _over(where, told.one, min(told.one.confidence, _INFERRED))


def _occupation(held: _KnownToHold) -> str:
    """What somebody is, without what kind of it or where: "teacher" of "maths teacher"."""
    return held.slot.object.partition(" of ")[0].split()[-1]


def _trip_is_off(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    """Which trip it was that was called off, what is known says; of none, nothing is told."""
    old = _trip_meant(told.held, standing)
    if old is not None:
        yield _over(old, told.one, told.one.confidence)
    elif told.one.object and (
        not _says(told.one, "been_there")
        or any(held.slot == told.held for held in _of(told.held.subject, standing, _PLANS))
    ):
        yield told.one


def _trip_meant(slot: Slot, standing: Sequence[_KnownToHold]) -> _KnownToHold | None:
    """The journey that was planned: to the place that is named, or the only one."""
    plans = [
        held for held in _of(slot.subject, standing, _PLANS) if held.slot.object != slot.object
    ]
    where = slot.object.removeprefix("go to ")
    if where == slot.object and where:
        return None
    trips = (held for held in plans if _JOURNEY.match(held.slot.object))
    return _only(held for held in trips if not where or _words(where) <= _words(held.slot.object))


def _is_told_debt(told: _SlottedStatement) -> bool:
    """Whether it says again what is owed: "I still owe Stefan the money"."""
    again = expression("statements", "that_debt").match(told.held.object)
    return told.is_about(OWES, holds=True) and again is not None


def _owed_before(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    again = expression("statements", "that_debt").match(told.held.object)
    old = _only(_owed_to(again.group("whom"), told.held.subject, standing)) if again else None
    same = {} if old is None else {"content": old.content, "object": old.slot.object}
    yield told.one.model_copy(update=same)


def _paid(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    """The debt that is paid off; of several, what is money, and all where both are square."""
    owed = list(_owed_to(told.held.object, told.held.subject, standing))
    if len(owed) > 1 and not _says(told.one, "all_square"):
        owed = [one for one in owed if expression("statements", "money").search(one.slot.object)]
    if not owed:
        yield told.one
    for old in owed:
        if _is_paid_off(old, told.one):
            yield _over(old, told.one, told.one.confidence)


def _is_paid_off(owed: _KnownToHold, one: Statement) -> bool:
    """Whether what was paid is all that was owed: neither half of it is, nor 5 euros of 20."""
    paid = expression("statements", "paid_what")
    said = " ".join(found.group("what") for q in one.evidence if (found := paid.search(q.words)))
    if expression("statements", "paid_rest").search(said):
        return True
    of, whole = _amounts(said), _amounts(owed.content)
    partly = expression("statements", "paid_partly").search(said) is not None
    return bool(of & whole) or not (partly or (of and whole))


def _amounts(text: str) -> frozenset[str]:
    return frozenset(one.value for one in find_money(Masked(text)))


def _gave_in(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    """What one promised to do without, if that is one thing; else nothing is told."""
    without = expression("commitments", "gives_up")
    promised = _of(told.held.subject, standing, PROMISED)
    old = _only(held for held in promised if without.match(held.slot.object))
    if old is not None:
        who = told.one.content.removesuffix(" gave in.")
        what = old.content[old.content.casefold().rfind(old.slot.object) :]
        over = _over(old, told.one, min(told.one.confidence, _INFERRED))
        yield over.model_copy(
            update={
                "content": f"{who} no longer means to {what}",
                "category": Category.COMMITMENT,
                "ended": Resolution.EXPIRED,
            }
        )


def _owed_to(whom: str, subject: str, standing: Sequence[_KnownToHold]) -> Iterator[_KnownToHold]:
    debts = _of(subject, standing, OWES)
    return (held for held in debts if f"{held.slot.object} ".startswith(f"{whom} "))


# --- what is not so of "the user's son", whose name is known


def _is_of_relation(told: _SlottedStatement) -> bool:
    over = told.slot is not None and ends_something(told.slot)
    roles = words("declared", "held_by_one") | words("declared", "known_by_role")
    of_the_user = told.held.subject.startswith(OF_THE_USER)
    # "My friend" may be any of them, though one alone is known by name, unless it was so of them.
    meant = (
        told.held.subject.removeprefix(OF_THE_USER) in roles or " no longer " in told.one.content
    )
    return over and of_the_user and meant


def _not_so_of_relation(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    """The same of the one son by his name, where nothing is known of "the user's son"."""
    role = told.held.subject.removeprefix(OF_THE_USER)
    names = {name for held in standing if (name := _who_is(role, held))}
    by_name = (told.held.model_copy(update={"subject": name}) for name in names)
    meant = next(by_name, None) if len(names) == 1 else None
    known = {held.slot: held for held in standing}
    old = None if meant is None or told.held in known else known.get(meant)
    yield told.one if old is None else _over(old, told.one, told.one.confidence)


def _who_is(role: str, held: _KnownToHold) -> str | None:
    """Who is that to the user: the name of their son, or wife."""
    slot = held.slot
    if slot.predicate == IS_THE_USERS:
        return slot.subject if slot.object == role else None
    married = role in words("declared", "married") and slot.predicate == _MARRIED
    held_by_one = slot_of(USER, f"{role} is", slot.object) == slot
    return slot.object if slot.subject == USER and (married or held_by_one) else None


def _said_of_people() -> frozenset[str]:
    roles = (f"{role} is" for role in words("declared", "held_by_one"))
    return _SAID_OF_PEOPLE | {IS_THE_USERS, _MARRIED, *roles}


# --- who died, and who is with whom


def _is_death(told: _SlottedStatement) -> bool:
    return told.slot is not None and told.slot.predicate == DIED and told.slot.subject != USER


def _died(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    several = expression("statements", "of_several").match(told.one.subject or "")
    if several is not None:
        yield from _fewer(told.one, several, _of(speaker, standing))
        return
    name = _words(told.one.subject)
    old = _only(held for held in _of(speaker, standing) if _name(held) == name)
    partner = _of(speaker, standing, _MARRIED, _ENGAGED)
    yield from _and_over(
        _with_whose(told.one, standing, old),
        old or _only(held for held in partner if _words(held.slot.object) == name),
    )


def _fewer(
    one: Statement, several: re.Match[str], standing: Iterable[_KnownToHold]
) -> Iterator[Statement]:
    """How many there are when one of three has died."""
    gone, kind = _counted(f"{several.group('many')} {several.group('kind')}")
    counted = [(held, *_counted(held.slot.object)) for held in standing]
    numbers = {many for _, many, what in counted if what == kind}
    # What an earlier run concluded from the same turn is no number that stood before it.
    old = _only(
        held
        for held, many, what in counted
        if what == kind and many > gone and many + gone not in numbers
    )
    left = _counted(old.slot.object)[0] - gone if old is not None else 0
    if old is None or left not in _NUMBERS.values():
        yield one
        return
    # "The dogs" are theirs, then.
    whose = one.content.replace(" of the user's ", " of the ").replace(
        " of the ", " of the user's "
    )
    yield one.model_copy(update={"content": whose})
    yield _over(old, one, min(one.confidence, _INFERRED))
    number = next(word for word, value in _NUMBERS.items() if value == left)
    what = f"{number} {kind.removesuffix('s') if left == 1 else kind}"
    yield one.model_copy(
        update={
            "content": f"The user {old.slot.predicate} {what}.",
            "worded_by": old.episode_ids,
            "subject": old.slot.subject,
            "predicate": old.slot.predicate,
            "object": what,
            "kind": MemoryKind.NOTE,
            "confidence": min(one.confidence, _INFERRED),
        }
    )


def _is_number_of(told: _SlottedStatement) -> bool:
    """Whether it says how many there are, of what one has: "three sisters"."""
    counted = told.held.predicate in POSSESSING and _counted(told.held.object)[0] > 0
    return told.one.holds and counted


def _other_number(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    many, kind = _counted(told.held.object)
    counted = [
        (held, *_counted(held.slot.object))
        for held in _of(told.held.subject, standing, told.held.predicate)
    ]
    old = _only(held for held, before, what in counted if what == kind and before not in {0, many})
    return _and_over(told.one, old)


def _counted(what: str) -> tuple[int, str]:
    """How many of what: (3, "sisters"); 0 where it is not counted, or more is said of them."""
    number, _, kind = what.partition(" ")
    many = _NUMBERS.get(number, 0)
    plain = kind.replace(" ", "").isalpha()
    if many == 1 and plain:
        return many, kind if kind.endswith("s") else f"{kind}s"
    return (many, kind) if plain and kind.endswith(("s", "children")) else (0, what)


_NUMBERS = {word: number for word, number in SMALL.items() if 1 <= number <= _MOST_COUNTED}


def _is_parting(told: _SlottedStatement) -> bool:
    parted = told.is_about(_MARRIED, holds=False) and told.held.subject == USER
    return parted and (bool(told.held.object) or told.one.content.endswith(_BROKEN_UP))


def _parted(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    name = _words(told.one.object)
    if name:
        yield from _and_over(told.one, _only(h for h in standing if _is_partner(h, name)))
        return
    # "We split up": of two who are not said to be a couple, nothing is told.
    old = _only(held for held in standing if _is_couple(held))
    if old is not None:
        yield told.one
        yield _over(old, told.one, min(told.one.confidence, _INFERRED))


def _is_wedding(told: _SlottedStatement) -> bool:
    """Whether the user got married, to whom they name or to whom everybody knows."""
    named = told.is_about(_MARRIED, holds=True) and told.held.subject == USER
    return named or expression("statements", "got_married").match(told.one.content) is not None


def _married(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    """Who was the fiancée, or the girlfriend, is that no longer."""
    one = told.one
    before = [held for held in standing if _is_engaged(held)]
    if told.slot is None:
        yield one
        old = _only(before)
        if old is None or speaker != USER:
            return
        whom = old.content.removeprefix(f"The user {_ENGAGED} ").partition(" is the user's ")[0]
        one = one.model_copy(
            update={
                "content": f"The user {_MARRIED} {whom.rstrip('.')}.",
                "worded_by": old.episode_ids,
                "subject": USER,
                "predicate": _MARRIED,
                "object": whom.rstrip("."),
                "kind": MemoryKind.NOTE,
                "begins": True,
                "confidence": min(one.confidence, _INFERRED),
            }
        )
    name = _words(one.object)
    known = (held for held in standing if _is_engaged(held) or _is_partner(held, name))
    yield one
    for held in {held.content: held for held in known if name & _partner(held)}.values():
        yield _over(held, one, min(one.confidence, _INFERRED))


def _is_engaged(held: _KnownToHold) -> bool:
    slot = held.slot
    engaged = slot.subject == USER and slot.predicate == _ENGAGED
    return engaged or (
        slot.predicate == IS_THE_USERS and slot.object in words("declared", "to_be_married")
    )


def _partner(held: _KnownToHold) -> frozenset[str]:
    """Whom it is about, unless they are married already."""
    slot = held.slot
    role = slot.object if slot.predicate == IS_THE_USERS else slot.predicate.removesuffix(" is")
    if role in words("declared", "married"):
        return frozenset()
    return _words(slot.subject if slot.predicate == IS_THE_USERS else slot.object)


def _is_partner(held: _KnownToHold, name: frozenset[str]) -> bool:
    """Whether it says that somebody of that name is the girlfriend, or husband, of the user."""
    slot, partners = held.slot, words("declared", "partners")
    if slot.predicate == IS_THE_USERS and slot.object in partners:
        return _words(slot.subject) == name
    role = slot.predicate.removesuffix(" is")
    return slot.subject == USER and role in partners and _words(slot.object) == name


def _is_couple(held: _KnownToHold) -> bool:
    """Whether it says of anybody that the user is together with them."""
    slot, partners = held.slot, words("declared", "partners")
    if slot.predicate == IS_THE_USERS:
        return slot.object in partners
    together = slot.predicate in {_MARRIED, _ENGAGED}
    return slot.subject == USER and (together or slot.predicate.removesuffix(" is") in partners)


def _partners() -> frozenset[str]:
    roles = (f"{role} is" for role in words("declared", "partners"))
    return frozenset({IS_THE_USERS, _ENGAGED, *roles})


# --- a home, and its address


def _is_move(told: _SlottedStatement) -> bool:
    begun = told.one.begins or _says(told.one, "lives_there_now")
    home = told.is_about(_LIVES_IN, holds=True) or told.is_about(_ADDRESS, holds=True)
    return home and begun and not told.one.alongside


def _moved_home(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    """The address in the town that was left, or the town of the address that was left."""
    homes = list(_of(told.held.subject, standing, _LIVES_IN))
    addresses = list(_of(told.held.subject, standing, _ADDRESS))
    left = [
        (home, address)
        for home, address in product(homes, addresses)
        if _is_in(home, address.slot.object) and not _is_in(home, told.held.object)
    ]
    if told.held.predicate == _LIVES_IN:
        old = _only(address for _, address in left if told.held.object not in address.slot.object)
    else:
        old = _only(home for home, _ in left)
    return _and_over(told.one, old)


def _is_in(home: _KnownToHold, where: str) -> bool:
    """Whether an address, or a town, is in the town where somebody lives."""
    return f" {home.slot.object} " in f" {where} "


# --- what is preferred


def _is_preferred_to(told: _SlottedStatement) -> bool:
    changed = _says(told.one, "changed_mind") or _less_liked(told) != ""
    return told.is_about(_PREFERS, holds=True) and changed


def _preferred_instead(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    """Who prefers coffee to tea prefers tea no longer, nor does who changed their mind."""
    preferred = [
        held
        for held in _of(told.held.subject, standing, _PREFERS)
        if held.slot.object != told.held.object
    ]
    named = [held for held in preferred if held.slot.object == _less_liked(told)]
    changed = _says(told.one, "changed_mind")
    yield from _and_over(told.one, _only(named or (preferred if changed else ())))


def _less_liked(told: _SlottedStatement) -> str:
    _, _, other = told.one.content.rstrip(".").partition(" to ")
    return normalise(other)


# --- what was given away


def _ends_possession(told: _SlottedStatement) -> bool:
    return told.slot is not None and ends_something(told.slot) and told.held.predicate in POSSESSING


def _gave_away(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    old = _meant(told, standing)
    yield told.one if old is None else _over(old, told.one, told.one.confidence)


def _mends_name(told: _SlottedStatement) -> bool:
    """Whether it says anew what one of theirs is called: "Sorry, my son's name is Leon"."""
    return told.is_about(IS_THE_USERS, holds=True) and _says(told.one, "mended_name")


def _misnamed(
    told: _SlottedStatement, standing: Sequence[_KnownToHold], speaker: str
) -> Iterator[Statement]:
    """The one other son: of two that are known, nobody can tell which was meant."""
    named = (
        held
        for held in standing
        if held.slot.predicate == IS_THE_USERS
        and held.slot.object == told.held.object
        and held.slot.subject != told.held.subject
    )
    yield told.one
    old = _only(named)
    if old is not None:
        wrong = old.content.partition(" is ")[0]
        over = _over(old, told.one, min(told.one.confidence, _INFERRED))
        # He is a son still, and never was the one that was named.
        content = f"{told.one.content.removesuffix('.')}, not {wrong}."
        yield over.model_copy(update={"content": content})


def _over_for(*predicates: str) -> frozenset[str]:
    return frozenset(f"no longer {one}" for one in predicates)


_RULES = (
    _ImpliedEnd(_mends_name, lambda: frozenset({IS_THE_USERS}), _misnamed),
    _ImpliedEnd(_is_switch, lambda: frozenset({_USES}), _switched, frozenset({_USES})),
    _ImpliedEnd(_is_given_up, lambda: frozenset({_USES}), _given_up, _over_for(_USES)),
    _ImpliedEnd(
        _is_death, lambda: POSSESSING | {IS_CALLED, _MARRIED, _ENGAGED}, _died, frozenset({DIED})
    ),
    _ImpliedEnd(
        lambda told: told.is_about(_EATS, holds=True),
        lambda: frozenset({_DIET}),
        _eats_again,
        frozenset({_EATS}),
    ),
    _ImpliedEnd(
        lambda told: told.is_about(_PLANS, holds=False), lambda: frozenset({_PLANS}), _trip_is_off
    ),
    _ImpliedEnd(
        _changes_subject, lambda: frozenset({_STUDIES}), _studies_instead, frozenset({_STUDIES})
    ),
    _ImpliedEnd(_is_graduation, lambda: frozenset({_STUDIES}), _graduated),
    _ImpliedEnd(
        lambda told: told.is_about(_STUDIES, holds=False) and not told.held.object,
        lambda: frozenset({_STUDIES}),
        _graduated,
        _over_for(_STUDIES),
    ),
    _ImpliedEnd(_is_of_relation, lambda: _said_of_people() | _WORK, _not_so_of_relation),
    _ImpliedEnd(_is_qualified, lambda: frozenset({_STUDIES}), _qualified),
    _ImpliedEnd(_is_out_of_work, lambda: _WORK, _out_of_work, _over_for(WORKS_AT)),
    _ImpliedEnd(_leaves_work, lambda: _WORK, _left_work, _over_for(_WORKS_AS)),
    _ImpliedEnd(
        lambda told: told.is_about(_HAS_LEFT, holds=True),
        lambda: _WORK | {_STUDIES},
        _left_field,
        frozenset({_HAS_LEFT}),
    ),
    _ImpliedEnd(
        lambda told: told.is_about(GAVE_IN, holds=True), lambda: frozenset({PROMISED}), _gave_in
    ),
    _ImpliedEnd(_is_told_debt, lambda: frozenset({OWES}), _owed_before),
    _ImpliedEnd(
        lambda told: told.is_about(OWES, holds=False),
        lambda: frozenset({OWES}),
        _paid,
        _over_for(OWES),
    ),
    _ImpliedEnd(_ends_possession, lambda: POSSESSING, _gave_away, _over_for(*POSSESSING)),
    _ImpliedEnd(
        _is_preferred_to, lambda: frozenset({_PREFERS}), _preferred_instead, frozenset({_PREFERS})
    ),
    _ImpliedEnd(_is_number_of, lambda: POSSESSING, _other_number, POSSESSING),
    _ImpliedEnd(_is_parting, lambda: _partners() | {_MARRIED}, _parted, _over_for(_MARRIED)),
    _ImpliedEnd(_is_wedding, _partners, _married, frozenset({_MARRIED})),
    _ImpliedEnd(_is_move, lambda: frozenset({_LIVES_IN, _ADDRESS}), _moved_home),
)
"""In order; of those that fit, the first counts."""


# --- what stands, and what is meant of it


def _speaker(one: Statement, circumstances: Circumstances) -> str:
    named = {normalise(turn.speaker or USER) for turn in circumstances.sources(one)}
    return named.pop() if len(named) == 1 else USER


def _standing(
    known: Sequence[SemanticMemory], at: datetime, episode_ids: Sequence[str]
) -> Iterator[_KnownToHold]:
    """What was so when it was said, also where an earlier run took up what these turns end."""
    here = set(episode_ids)
    ended_here = {m.id for m in known if any(here.intersection(t.episode_ids) for t in m.tellings)}
    for memory in sorted(known, key=lambda one: (one.known_at, one.id)):
        if memory.slot is None or ends_something(memory.slot) or memory.refuted_at is not None:
            continue
        stands = memory.status is MemoryStatus.ACTIVE or memory.superseded_by in ended_here
        if stands and memory.known_at <= at:
            yield _KnownToHold(memory.slot, memory.content, memory.source_episode_ids)


def _said_before(statements: Sequence[Statement]) -> Iterator[_KnownToHold]:
    """What the same turns state before it, and do not end."""
    told: dict[Slot, _KnownToHold] = {}
    for one in statements:
        slot = slot_of(one.subject, one.predicate, one.object)
        if slot is None:
            continue
        if one.holds:
            told[slot] = _KnownToHold(slot, one.content, one.episode_ids)
        else:
            told.pop(slot, None)
    yield from told.values()


def _of(subject: str, standing: Iterable[_KnownToHold], *predicates: str) -> Iterator[_KnownToHold]:
    wanted = predicates or tuple(POSSESSING)
    return (one for one in standing if one.slot.subject == subject and one.slot.predicate in wanted)


def _with_whose(
    one: Statement, standing: Sequence[_KnownToHold], old: _KnownToHold | None
) -> Statement:
    """The death of "the user's cat Miso", where it is known whose Miso was."""
    named = (
        held
        for held in standing
        if held.slot.predicate == IS_CALLED and held.slot.subject.startswith(OF_THE_USER)
        if _words(held.slot.object) == _words(one.subject)
    )
    whose = old or next(named, None)
    if whose is None:
        return one
    called = whose.slot.subject.removeprefix(OF_THE_USER)
    what = called if old is None else _CALLED.split(old.slot.object)[0]
    content = f"The user's {what} {one.subject} has died."
    return one.model_copy(update={"content": content, "worded_by": whose.episode_ids})


def _meant(told: _SlottedStatement, standing: Sequence[_KnownToHold]) -> _KnownToHold | None:
    """What an ending is of: "our cat Miso" is the cat that is called Miso, or the only cat.

    None where it is known by those very words, or not known.
    """
    mine = list(_of(told.held.subject, standing))
    exactly = [held for held in mine if held.slot == told.held]
    if len(exactly) == 1:
        return None
    return _only(held for held in mine if _is_meant(held, told.one.object or ""))


def _is_meant(held: _KnownToHold, said: str) -> bool:
    spoken = said.split()
    if not spoken:
        return False
    names = _words(" ".join(word for word in spoken if word[:1].isupper()))
    kind = [word for word in spoken if not word[:1].isupper() and word not in {"called", "named"}]
    own = _name(held)
    if names and own:
        return names <= own
    # A "flat above a chip shop" is a flat.
    head = _BESIDE.split(_CALLED.split(held.slot.object)[0])[0].split()[-1:]
    # "Our cat": whatever it is called; "Miso": only what is called so; "the Golf": the red Golf.
    return head == kind[-1:] or head == [spoken[-1].casefold()]


def _name(held: _KnownToHold) -> frozenset[str]:
    """What it is called, as words; empty where nobody said."""
    parts = _CALLED.split(held.content.rstrip(". "), maxsplit=1)
    return _words(parts[1]) if len(parts) > 1 else frozenset()


def _words(text: str | None) -> frozenset[str]:
    return frozenset(normalise(text or "").split())


def _only(found: Iterable[_KnownToHold]) -> _KnownToHold | None:
    by_content = {held.content: held for held in found}
    return next(iter(by_content.values())) if len(by_content) == 1 else None


def _and_over(one: Statement, old: _KnownToHold | None) -> Iterator[Statement]:
    """The statement, and that what it implies to be over is."""
    yield one
    if old is not None:
        yield _over(old, one, min(one.confidence, _INFERRED))


def _over(old: _KnownToHold, one: Statement, confidence: float) -> Statement:
    """That it is no longer so, by the same words of the same turns."""
    who, said, rest = old.content.partition(f" {old.slot.predicate} ")
    if old.slot.predicate == _ADDRESS and said:
        content = f"{who}{said}no longer {rest}"
    elif said:
        verb = said.removeprefix(" is")
        content = (
            f"{who} is no longer{verb}{rest}" if verb != said else f"{who} no longer{said}{rest}"
        )
    else:
        who, said, rest = old.content.partition(" is ")
        content = f"{who} is no longer {rest}" if said else f"It is no longer so that {old.content}"
    return one.model_copy(
        update={
            "content": content,
            "subject": old.slot.subject,
            "predicate": old.slot.predicate,
            "object": old.slot.object,
            "kind": MemoryKind.NOTE,
            "holds": False,
            "begins": False,
            "confidence": confidence,
            "worded_by": old.episode_ids,
        }
    )
