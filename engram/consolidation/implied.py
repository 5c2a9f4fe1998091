"""What a statement ends without naming it as it was told.

"Miso died" ends "has a cat called Miso", "our cat died" the one cat that is known, and "I switched
to Neovim" the one other editor. What is meant follows from what is known; where several could be
meant, nobody knows, and nothing ends.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from engram.consolidation.companions import (
    DIED,
    ENGAGED,
    MARRIED,
    ended_by_death,
    ended_by_number,
    ended_by_parting,
    ended_by_wedding,
    is_death,
    is_number_of,
    is_of_relation,
    is_parting,
    is_wedding,
    not_so_of_relation,
    partner_predicates,
    said_of_people,
)
from engram.consolidation.keep import Circumstances
from engram.consolidation.standing import (
    ADDRESS,
    INFERRED,
    SAYS_ITS_NAME,
    KnownToHold,
    SlottedStatement,
    and_over,
    meant_by,
    no_longer,
    of_subject,
    only_one,
    said_before,
    standing_at,
    words_of,
)
from engram.domain.identity import normalise
from engram.domain.memories import (
    Category,
    Resolution,
    SemanticMemory,
    Slot,
)
from engram.domain.plan import Statement
from engram.domain.slots import (
    IS_CALLED,
    IS_THE_USERS,
    POSSESSING,
    PROMISED,
    USER,
    WORKS_AT,
    ends_something,
    held_predicate,
    is_functional,
    slot_of,
)
from engram.language.found import Masked
from engram.language.money import find as find_money
from engram.language.statements.medicines import medicine_in
from engram.language.text import verb_lemma
from engram.language.vocabulary import expression, fields_of_work, load, of_one_kind, words

SWITCHED = "switched to"
OWES = "owes"
GAVE_IN = "gave in"
_USES = "uses"
_LIVES_IN = "lives in"
_DIET = "diet is"
_PREFERS = "prefers"
_EATS = "eats"
_PLANS = "plans to"
_STUDIES = "studies"
_TAKES = "takes"
_WORKS_AS = "works as"
_WORK = frozenset({_WORKS_AS, WORKS_AT})
_HAS_LEFT = "has left"
_RETIRED = " has retired."
_JOURNEY = re.compile(r"(?:go|travel|fly|drive|sail|cycle|hike|move|head) |(?:visit|tour|see) ")


# "Tea in the evening"
_AT_SOME_TIME = re.compile(r" (?:in|on|at|during|after|before|for|with|every) ")


class _ImpliedEnd(NamedTuple):
    """One way in which a statement ends something that it does not name.

    Attributes:
        fits: Whether a statement is such.
        ends: The predicates of what it may end.
        concludes: The statement with what it ends, by what stands, and whoever speaks.
        kept_as: The predicates by which such a statement is found among what is known, where it
            can be read again from there; none where it cannot.
    """

    fits: Callable[[SlottedStatement], bool]
    ends: Callable[[], frozenset[str]]
    concludes: Callable[[SlottedStatement, Sequence[KnownToHold], str], Iterable[Statement]]
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
    named = (SAYS_ITS_NAME.split(slot.object)[-1] for slot in held)
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
            *standing_at(known, said.known_at, one.episode_ids),
            *said_before(statements[:number]),
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
            KnownToHold(slot, one.content, one.episode_ids)
            for at, slot, one in times
            if at < memory.known_at
        ]
        told = _told(_restated(memory, memory.slot))
        rule = _rule_for(told)
        if rule is None or not rule.kept_as or not circumstances.sources(told.one):
            continue
        standing = [*standing_at(known, memory.known_at, told.one.episode_ids), *late]
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


def _told(one: Statement) -> SlottedStatement:
    slot = slot_of(one.subject, one.predicate, one.object, holds=one.holds)
    if slot is None:
        return SlottedStatement(one, None, Slot(subject="", predicate="", object=""))
    return SlottedStatement(one, slot, slot.model_copy(update={"predicate": held_predicate(slot)}))


def _rule_for(told: SlottedStatement) -> _ImpliedEnd | None:
    return next((rule for rule in _RULES if rule.fits(told)), None)


# --- what was left behind, or gave way to something else


def _is_switch(told: SlottedStatement) -> bool:
    return told.one.holds and normalise(told.one.predicate or "") == SWITCHED


def _switched(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    """The one other tool of that kind: the editor that was used before the new one."""
    used = of_subject(told.held.subject, standing, _USES)
    old = only_one(held for held in used if of_one_kind(held.slot.object, told.held.object))
    return and_over(told.one, old)


def _is_given_up(told: SlottedStatement) -> bool:
    return told.is_about(_USES, holds=False)


def _given_up(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    """The one model of it that is used: "the ThinkPad" is the ThinkPad X1, "Windows" Windows 11."""
    used, named = list(of_subject(told.held.subject, standing, _USES)), told.held.object
    old = None
    if all(held.slot.object != named for held in used):
        more = [held for held in used if held.slot.object.startswith(f"{named} ")]
        old = only_one(held for held in more if _is_model_of(held, named) or _is_the_one(told.one))
    yield told.one if old is None else no_longer(old, told.one, told.one.confidence)


def _is_model_of(held: KnownToHold, named: str) -> bool:
    """Whether what follows the name has a number: "Pixel 8", but not "React Native"."""
    following = held.slot.object.removeprefix(f"{named} ").partition(" ")[0]
    return any(map(str.isdigit, following))


def _is_the_one(one: Statement) -> bool:
    """Whether it speaks of something both sides know: "the Kindle", "my Kindle"."""
    before = one.content.casefold().partition((one.object or "").casefold())[0].split()
    return before[-1:] in (["the"], ["their"])


def _is_dosed(told: SlottedStatement) -> bool:
    return told.is_about(_TAKES, holds=True) and medicine_in(told.held.object) is not None


def _dosed_anew(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    """The other dose of the same medicine, at the same times or where it is said to be a new one.

    Who takes 500 mg in the morning may take 1000 mg at night, or until Friday, or for their back.
    """
    new = medicine_in(told.held.object)
    changed = told.one.begins or _says(told.one, "dosed_anew")
    replaces = _says(told.one, "in_place_of")
    yield told.one
    if new is None or _says(told.one, "dosed_besides"):
        return
    for held in of_subject(told.held.subject, standing, _TAKES):
        old = medicine_in(held.slot.object)
        if old is None or old.name != new.name or held.is_told_with(told.one.episode_ids):
            continue
        told_anew = replaces or (changed and not new.is_taken_beside(old))
        if new.has_another_dose(old) and (told_anew or old.times == new.times):
            yield no_longer(held, told.one, min(told.one.confidence, INFERRED))


def _is_off_medicine(told: SlottedStatement) -> bool:
    return told.is_about(_TAKES, holds=False)


def _off_medicine(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    """It in whatever dose: who came off metformin takes no 500 mg of it twice a day.

    Who stopped taking it at night may take it in the morning.
    """
    left = medicine_in(told.held.object)
    taken = of_subject(told.held.subject, standing, _TAKES)
    known = [(held, medicine_in(held.slot.object)) for held in taken if held.slot != told.held]
    yield told.one
    for held, one in known if left is not None and not left.dose else ():
        if one is None or left is None or one.name != left.name:
            continue
        if not left.times or left.times == one.times:
            yield no_longer(held, told.one, told.one.confidence)


def _eats_again(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    """The diet of who eats fish again."""
    kept_to = of_subject(told.held.subject, standing, _DIET)
    without = {diet for diet in load("diets") if told.held.object in words("diets", diet)}
    old = only_one(one for one in kept_to if one.slot.object in without)
    return and_over(told.one, old)


def _changes_subject(told: SlottedStatement) -> bool:
    """Whether it is studied in place of another: who starts on law may go on with physics."""
    changed = "changed_over" if told.one.begins else "changed_subject"
    return told.is_about(_STUDIES, holds=True) and _says(told.one, changed)


def _says(one: Statement, wording: str) -> bool:
    return any(expression("statements", wording).search(said.words) for said in one.evidence)


def _studies_instead(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    others = of_subject(told.held.subject, standing, _STUDIES)
    old = only_one(held for held in others if held.slot.object != told.held.object)
    return and_over(told.one, old)


def _is_graduation(told: SlottedStatement) -> bool:
    return expression("statements", "graduated").match(told.one.content) is not None


def _graduated(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    """The one subject that was studied: who graduates, or quits their degree, does so no longer."""
    return and_over(told.one, only_one(of_subject(speaker, standing, _STUDIES)))


# --- work that is over: as what somebody works and for whom are two things, and one job


def _is_out_of_work(told: SlottedStatement) -> bool:
    """Whether a job is over that is not named: "I got fired", "I retired in May"."""
    unnamed = told.is_about(WORKS_AT, holds=False) and not told.held.object
    return unnamed or (told.slot is not None and told.one.content.endswith(_RETIRED))


def _out_of_work(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    """The one thing that was done for work, unless there were two jobs, or it is the new one."""
    done = [held for held in standing if not held.is_told_with(told.one.episode_ids)]
    employers = {held.slot.object for held in of_subject(told.held.subject, done, WORKS_AT)}
    old = only_one(of_subject(told.held.subject, done, _WORKS_AS)) if len(employers) <= 1 else None
    return and_over(told.one, old)


def _leaves_work(told: SlottedStatement) -> bool:
    return told.is_about(_WORKS_AS, holds=False) and _says(told.one, "leaves_work")


def _left_work(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    """For whom it was done: "I quit my job as a nurse", of a nurse at a hospital."""
    done = of_subject(told.held.subject, standing, _WORKS_AS)
    old = next((held for held in done if held.slot == told.held), None)
    return and_over(told.one, _employer(told, old, standing) if old else None)


def _employer(
    told: SlottedStatement, work: KnownToHold, standing: Sequence[KnownToHold]
) -> KnownToHold | None:
    """Where that work was done, if a turn tells of both; who retires works nowhere."""
    old = only_one(of_subject(told.held.subject, standing, WORKS_AT))
    if old is None or old.is_told_with(told.one.episode_ids):
        return None
    same = old.is_told_with(work.episode_ids) or _says(told.one, "retires")
    return old if same else None


def _left_field(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    """Whoever leaves teaching is no maths teacher any more; who only studied nursing quits that."""
    field, who = told.held.object, told.held.subject
    people = fields_of_work().get(field, (f"{verb_lemma(field).removesuffix('e')}er",))
    jobs = list(of_subject(who, standing, _WORKS_AS))
    old = only_one(held for held in jobs if _occupation(held) in people)
    if not jobs:
        old = only_one(
            held for held in of_subject(who, standing, _STUDIES) if held.slot.object == field
        )
    yield told.one if old is None else no_longer(old, told.one, told.one.confidence)
    where = (
        _employer(told, old, standing) if old and jobs and _says(told.one, "leaves_work") else None
    )
    if where is not None:
        yield no_longer(where, told.one, min(told.one.confidence, INFERRED))


def _occupation(held: KnownToHold) -> str:
    """What somebody is, without what kind of it or where: "teacher" of "maths teacher"."""
    return held.slot.object.partition(" of ")[0].split()[-1]


def _trip_is_off(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    """Which trip it was that was called off, what is known says; of none, nothing is told."""
    old = _trip_meant(told.held, standing)
    if old is not None:
        yield no_longer(old, told.one, told.one.confidence)
    elif told.one.object and (
        not _says(told.one, "been_there")
        or any(held.slot == told.held for held in of_subject(told.held.subject, standing, _PLANS))
    ):
        yield told.one


def _trip_meant(slot: Slot, standing: Sequence[KnownToHold]) -> KnownToHold | None:
    """The journey that was planned: to the place that is named, or the only one."""
    plans = [
        held
        for held in of_subject(slot.subject, standing, _PLANS)
        if held.slot.object != slot.object
    ]
    where = slot.object.removeprefix("go to ")
    if where == slot.object and where:
        return None
    trips = (held for held in plans if _JOURNEY.match(held.slot.object))
    return only_one(
        held for held in trips if not where or words_of(where) <= words_of(held.slot.object)
    )


def _is_told_debt(told: SlottedStatement) -> bool:
    """Whether it says again what is owed: "I still owe Stefan the money"."""
    again = expression("statements", "that_debt").match(told.held.object)
    return told.is_about(OWES, holds=True) and again is not None


def _owed_before(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    again = expression("statements", "that_debt").match(told.held.object)
    old = only_one(_owed_to(again.group("whom"), told.held.subject, standing)) if again else None
    same = {} if old is None else {"content": old.content, "object": old.slot.object}
    yield told.one.model_copy(update=same)


def _paid(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    """The debt that is paid off; of several, what is money, and all where both are square."""
    owed = list(_owed_to(told.held.object, told.held.subject, standing))
    if len(owed) > 1 and not _says(told.one, "all_square"):
        owed = [one for one in owed if expression("statements", "money").search(one.slot.object)]
    if not owed:
        yield told.one
    for old in owed:
        if _is_paid_off(old, told.one):
            yield no_longer(old, told.one, told.one.confidence)


def _is_paid_off(owed: KnownToHold, one: Statement) -> bool:
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
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    """What one promised to do without, if that is one thing; else nothing is told."""
    without = expression("commitments", "gives_up")
    promised = of_subject(told.held.subject, standing, PROMISED)
    old = only_one(held for held in promised if without.match(held.slot.object))
    if old is not None:
        who = told.one.content.removesuffix(" gave in.")
        what = old.content[old.content.casefold().rfind(old.slot.object) :]
        over = no_longer(old, told.one, min(told.one.confidence, INFERRED))
        yield over.model_copy(
            update={
                "content": f"{who} no longer means to {what}",
                "category": Category.COMMITMENT,
                "ended": Resolution.EXPIRED,
            }
        )


def _owed_to(whom: str, subject: str, standing: Sequence[KnownToHold]) -> Iterator[KnownToHold]:
    debts = of_subject(subject, standing, OWES)
    return (held for held in debts if f"{held.slot.object} ".startswith(f"{whom} "))


# --- a home, and its address


def _is_move(told: SlottedStatement) -> bool:
    begun = told.one.begins or _says(told.one, "lives_there_now")
    home = told.is_about(_LIVES_IN, holds=True) or told.is_about(ADDRESS, holds=True)
    return home and begun and not told.one.alongside


def _moved_home(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    """The address in the town that was left, or the town of the address that was left."""
    homes = list(of_subject(told.held.subject, standing, _LIVES_IN))
    addresses = list(of_subject(told.held.subject, standing, ADDRESS))
    left = [
        (home, address)
        for home, address in product(homes, addresses)
        if _is_in(home, address.slot.object) and not _is_in(home, told.held.object)
    ]
    if told.held.predicate == _LIVES_IN:
        old = only_one(
            address for _, address in left if told.held.object not in address.slot.object
        )
    else:
        old = only_one(home for home, _ in left)
    return and_over(told.one, old)


def _is_in(home: KnownToHold, where: str) -> bool:
    """Whether an address, or a town, is in the town where somebody lives."""
    return f" {home.slot.object} " in f" {where} "


# --- what is preferred


def _is_preferred_to(told: SlottedStatement) -> bool:
    changed = _says(told.one, "changed_mind") or _less_liked(told) != ""
    return told.is_about(_PREFERS, holds=True) and changed


def _preferred_instead(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    """Who prefers coffee to tea prefers tea no longer, nor does who changed their mind."""
    preferred = [
        held
        for held in of_subject(told.held.subject, standing, _PREFERS)
        if held.slot.object != told.held.object
    ]
    named = [held for held in preferred if held.slot.object == _less_liked(told)]
    changed = _says(told.one, "changed_mind")
    yield from and_over(told.one, only_one(named or (preferred if changed else ())))


def _less_liked(told: SlottedStatement) -> str:
    _, _, other = told.one.content.rstrip(".").partition(" to ")
    return normalise(other)


# --- what was given away


def _ends_possession(told: SlottedStatement) -> bool:
    return told.slot is not None and ends_something(told.slot) and told.held.predicate in POSSESSING


def _gave_away(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    old = meant_by(told, standing)
    yield told.one if old is None else no_longer(old, told.one, told.one.confidence)


def _mends_name(told: SlottedStatement) -> bool:
    """Whether it says anew what one of theirs is called: "Sorry, my son's name is Leon"."""
    return told.is_about(IS_THE_USERS, holds=True) and _says(told.one, "mended_name")


def _is_preferred_no_more(told: SlottedStatement) -> bool:
    """Who prefers tea, not coffee, for once may still prefer coffee in the morning."""
    return told.is_about(_PREFERS, holds=False) and " no longer " in told.one.content


def _preferred_at_no_time(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
) -> Iterator[Statement]:
    """Who no longer prefers tea prefers none in the evening, either."""
    yield told.one
    over = {
        held.content: held
        for held in of_subject(told.held.subject, standing, _PREFERS)
        if told.held.object and _AT_SOME_TIME.match(held.slot.object.removeprefix(told.held.object))
    }
    yield from (no_longer(held, told.one, told.one.confidence) for held in over.values())


def _misnamed(
    told: SlottedStatement, standing: Sequence[KnownToHold], speaker: str
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
    old = only_one(named)
    if old is not None:
        wrong = old.content.partition(" is ")[0]
        over = no_longer(old, told.one, min(told.one.confidence, INFERRED))
        # He is a son still, and never was the one that was named.
        content = f"{told.one.content.removesuffix('.')}, not {wrong}."
        yield over.model_copy(update={"content": content})


def _over_for(*predicates: str) -> frozenset[str]:
    return frozenset(f"no longer {one}" for one in predicates)


_RULES = (
    _ImpliedEnd(_mends_name, lambda: frozenset({IS_THE_USERS}), _misnamed),
    _ImpliedEnd(_is_switch, lambda: frozenset({_USES}), _switched, frozenset({_USES})),
    _ImpliedEnd(_is_given_up, lambda: frozenset({_USES}), _given_up, _over_for(_USES)),
    _ImpliedEnd(_is_dosed, lambda: frozenset({_TAKES}), _dosed_anew, frozenset({_TAKES})),
    _ImpliedEnd(_is_off_medicine, lambda: frozenset({_TAKES}), _off_medicine, _over_for(_TAKES)),
    _ImpliedEnd(
        is_death,
        lambda: POSSESSING | {IS_CALLED, MARRIED, ENGAGED},
        ended_by_death,
        frozenset({DIED}),
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
    _ImpliedEnd(is_of_relation, lambda: said_of_people() | _WORK, not_so_of_relation),
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
    _ImpliedEnd(
        _is_preferred_no_more,
        lambda: frozenset({_PREFERS}),
        _preferred_at_no_time,
        _over_for(_PREFERS),
    ),
    _ImpliedEnd(is_number_of, lambda: POSSESSING, ended_by_number, POSSESSING),
    _ImpliedEnd(
        is_parting, lambda: partner_predicates() | {MARRIED}, ended_by_parting, _over_for(MARRIED)
    ),
    _ImpliedEnd(is_wedding, partner_predicates, ended_by_wedding, frozenset({MARRIED})),
    _ImpliedEnd(_is_move, lambda: frozenset({_LIVES_IN, ADDRESS}), _moved_home),
)
"""In order; of those that fit, the first counts."""


def _speaker(one: Statement, circumstances: Circumstances) -> str:
    named = {normalise(turn.speaker or USER) for turn in circumstances.sources(one)}
    return named.pop() if len(named) == 1 else USER
