"""What replaces what: the timeline of one slot, and the memories that tell its stretches.

:func:`stretches` decides it, from everything that was told of the slot: each value holds until
something else is told to hold (``_gives_way``), or stands beside a rival where nothing orders the
two. :func:`history` says which memory tells which stretch, with what it replaced, what replaced it
and from when to when it was true. Which values share a timeline, ``engram/domain/slots.py`` says.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from itertools import accumulate, takewhile
from typing import TypeAlias

from engram.consolidation.amendments import (
    quoting,
    sources_only_of,
    tellings_of,
    worded_by,
)
from engram.domain.memories import MemoryStatus, SemanticMemory, Slot, Telling
from engram.domain.occasions import occasions_told
from engram.domain.plan import Place, Statement, Supersession, UpdateNote
from engram.domain.slots import ends_something, held_predicate, is_functional, is_timeless
from engram.lifecycle.decisions import disputed
from engram.lifecycle.policies import is_outcome

# --- what was told of one slot, in the order of what it tells: who held when, and what came next
#
# Everything here follows from the tellings alone. The order in which they became
# known, and how they were cut into batches, does not show.

# How far a month that is named can be from the day that is meant.
_IMPRECISION = timedelta(days=31)
# Of a season and of a year, which stand for their first day as well.
_A_SEASON = timedelta(days=92)
_A_YEAR = timedelta(days=365)
# How far back a month without a year can lie. What an ending names did not end and begin again
# since.
_WITHIN_A_YEAR = timedelta(days=366)
# What is told sooner than that after it happened is told of its moment, later of its day.
_A_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One telling of one value.

    Attributes:
        slot: The value.
        telling: When, and of when.
        carriers: Ids of the memories that know of it.
        statement: Where it comes from, if no memory knows of it yet.
    """

    slot: Slot
    telling: Telling
    carriers: tuple[str, ...] = ()
    statement: Statement | None = None


# When it is told to have been, and when it was told: what orders one telling after another.
_Moment: TypeAlias = tuple[datetime, datetime]


@dataclass(slots=True)
class ValidityInterval:
    """One value, from when it began until something else is told to hold.

    Attributes:
        slot: The value, or the ending of one.
        event_at: When it began to hold, as far as is known.
        told: Its tellings, in the order of what they tell; at least one.
        closed_by: What came next; None while it holds.
        closes: What it replaced.
        hidden_at: From when something that replaces it is known; None while it holds.
        rivals: Other values that were told of the same moment, with nothing to say
            which holds.
        settled_at: When it was known that a rival holds, and not this.
    """

    slot: Slot
    event_at: datetime
    told: list[TimelineEntry]
    last: _Moment
    closed_by: ValidityInterval | None = None
    closes: list[ValidityInterval] = field(default_factory=list)
    hidden_at: datetime | None = None
    rivals: list[ValidityInterval] = field(default_factory=list)
    settled_at: datetime | None = None

    @property
    def disputed_with(self) -> list[ValidityInterval]:
        """The rivals with which nothing has been settled yet."""
        if self.closed_by is not None:
            return []
        return [rival for rival in self.rivals if rival.closed_by is None]

    @property
    def known_at(self) -> datetime:
        """When it was first known."""
        return min(one.telling.known_at for one in self.told)

    @property
    def valid_from(self) -> datetime | None:
        """From when it is true; None if it is not known to have begun."""
        began = self.closes or self.told[0].telling.begins or ends_something(self.slot)
        return self.event_at if began else None

    @property
    def valid_to(self) -> datetime | None:
        """Until when it was true, as far as is known; None while it is."""
        return None if self.closed_by is None else max(self.event_at, self.closed_by.event_at)


# Value and moment of everything said in one episode.
_Breath: TypeAlias = frozenset[tuple[str, datetime, str, str]]


def same_value(first: Slot, second: Slot) -> bool:
    """Whether two slots of one timeline say the same."""
    return first.predicate == second.predicate and first.object == second.object


def stretches(
    told: Iterable[TimelineEntry], resolved: Mapping[str, datetime] | None = None
) -> list[ValidityInterval]:
    """What held one after another, earliest first, by everything that was told of a timeline.

    Args:
        told: All of it.
        resolved: When promises were noted as kept or lapsed, by the memory that carries each:
            told after that, a promise is made anew.
    """
    tellings = list(told)
    by_event = _ByEvent.of(tellings)
    placed = [(*_happened(one, by_event), one) for one in tellings]
    breath: _Breath = frozenset(_key(e, t, t.slot) for t in tellings for e in t.telling.episode_ids)
    found: list[ValidityInterval] = []
    standing: list[ValidityInterval] = []
    for event_at, _, one in sorted(placed, key=lambda each: _position(*each[1:])):
        same = next((s for s in standing if same_value(s.slot, one.slot)), None)
        moment = _moment(event_at, one)
        anew = same is not None and resolved and _is_made_anew(same, one, resolved)
        if same is not None and not anew:
            same.told.append(one)
            same.last = moment
            _settle(same, one)
            standing = [old for old in standing if old.closed_by is None]
            continue
        new = ValidityInterval(one.slot, event_at, [one], moment)
        for old in standing:
            if old is not same and not _gives_way(old.slot, one, breath):
                continue
            if old is not same and _nothing_orders(old, new):
                old.rivals.append(new)
                new.rivals.append(old)
            else:
                old.closed_by = new
                new.closes.append(old)
        standing = [old for old in standing if old.closed_by is None] + [new]
        found.append(new)
    _hide(found, breath)
    return found


def _is_made_anew(
    before: ValidityInterval, one: TimelineEntry, resolved: Mapping[str, datetime]
) -> bool:
    """Whether this was told after somebody noted how the promise before had ended."""
    carriers = {carrier for earlier in before.told for carrier in earlier.carriers}
    ends = (resolved[carrier] for carrier in carriers - {*one.carriers} if carrier in resolved)
    return any(end < one.telling.known_at for end in ends)


def _hide(found: Sequence[ValidityInterval], breath: _Breath) -> None:
    """Note when the first of whatever comes after it was known, not only of what comes next.

    Word of what comes next can arrive long after word of what came later still. Looked for
    only as far as something can have been known sooner: mostly that is one step.
    """
    known = [one.known_at for one in found]
    # From here on, nothing was known before that.
    earliest = list(accumulate(reversed(known), min))[::-1]
    for number, old in enumerate(found):
        hidden = old.settled_at and max(known[number], old.settled_at)
        for place in range(number + 1, len(found)):
            if hidden is not None and hidden <= max(known[number], earliest[place]):
                break
            new = found[place]
            if any(new is rival for rival in old.rivals):
                continue
            if same_value(old.slot, new.slot) or _gives_way(old.slot, new.told[0], breath):
                at = max(known[number], known[place])
                hidden = at if hidden is None else min(hidden, at)
        old.hidden_at = hidden


def _nothing_orders(old: ValidityInterval, new: ValidityInterval) -> bool:
    """Whether two values were told of one moment at one moment, in two conversations.

    Turns of one conversation follow each other, whatever their timestamps.
    """
    before, after = old.told[-1].telling, new.told[0].telling
    return (
        is_functional(new.slot)
        and old.last == new.last
        and not any(ends_something(one.slot) or one.told[0].telling.begins for one in (old, new))
        and (before.session_id is None or before.session_id != after.session_id)
    )


def _settle(holds: ValidityInterval, one: TimelineEntry) -> None:
    """A value was told again, later than its rivals: they gave way to it."""
    for rival in holds.disputed_with:
        if holds.last > rival.last:
            rival.closed_by = holds
            rival.settled_at = one.telling.known_at
            holds.closes.append(rival)


def _moment(event_at: datetime, one: TimelineEntry) -> _Moment:
    when = one.telling.known_at if is_timeless(one.slot) else event_at
    return when, one.telling.known_at


def _in_its_day(change: TimelineEntry) -> datetime:
    """A change that is told later, of a day, happened in it, and nobody said at what time.

    So it comes after what was said on that very day, and of two such the one told last counts.
    """
    event_at = change.telling.event_at
    told_that_day = change.telling.known_at - event_at < _A_DAY
    if not _changes(change) or told_that_day:
        return event_at
    return datetime.combine(event_at.date(), time.max, event_at.tzinfo)


def _position(
    when: datetime, one: TimelineEntry
) -> tuple[datetime, bool, datetime, str, int, str, str, tuple[str, ...]]:
    """By event, then what holds before what ends, then by knowing; every run agrees on ties."""
    slot, telling = one.slot, one.telling
    when, known_at = _moment(when, one)
    order = (telling.session_id or "", telling.sequence)
    tie = (slot.predicate, slot.object, telling.episode_ids)
    return (when, ends_something(slot), known_at, *order, *tie)


@dataclass(frozen=True, slots=True)
class _ByEvent:
    """What was told of a timeline, in order of when it is said to have happened.

    Attributes:
        told: All of it.
        changes: Of each value, what says that it began or ended.
        sides: Of each change, what its turns say was left for it, or what began where it ends
            something.
        days: Of each change, the first and the last day on which it can have been, with leeway;
            None where that does not show.
    """

    told: Sequence[TimelineEntry]
    changes: Mapping[tuple[str, str], Sequence[TimelineEntry]]
    sides: Mapping[int, frozenset[str]]
    days: Mapping[int, tuple[date, date] | None]

    @classmethod
    def of(cls, told: Iterable[TimelineEntry]) -> _ByEvent:
        in_order = sorted(told, key=lambda one: one.telling.event_at)
        changes: dict[tuple[str, str], list[TimelineEntry]] = {}
        # Of each turn, the values that it says ended, and those that it says began.
        named: dict[tuple[str, bool], set[str]] = {}
        for one in in_order:
            if _changes(one):
                changes.setdefault((one.slot.predicate, one.slot.object), []).append(one)
            left = ends_something(one.slot) and one.slot.object != ""
            if left or one.telling.begins:
                for episode_id in one.telling.episode_ids:
                    named.setdefault((episode_id, left), set()).add(one.slot.object)
        changing = [one for of_value in changes.values() for one in of_value]
        sides = {id(one): _other_side(one, named) for one in changing}
        return cls(in_order, changes, sides, {id(one): _days_open(one) for one in changing})

    def could_follow(self, change: TimelineEntry, held: Slot) -> bool:
        """Whether what was said to hold can be what a change put an end to.

        Who moved from Kyoto to Porto did not leave Lyon by it.
        """
        if ends_something(change.slot):
            return True
        left = self.sides[id(change)]
        return not left or held.object in left

    def only_ends(self, change: TimelineEntry) -> bool:
        """Whether a change ends something, and its turns tell of nothing that took its place."""
        return ends_something(change.slot) and not self.sides[id(change)]

    def first_told(self, change: TimelineEntry) -> datetime:
        """When a change was first told: of the same value, and at about the same time."""
        changes = self.changes[change.slot.predicate, change.slot.object]
        telling, ahead = change.telling, _IMPRECISION
        if telling.event_by is not None:
            ahead = max(ahead, telling.event_by - telling.event_at)
        first = telling.known_at
        for one in _between(changes, telling.event_at, -_IMPRECISION, ahead):
            if one.telling.known_at < first and self._could_be_one(one, change):
                first = one.telling.known_at
        return first

    def _could_be_one(self, one: TimelineEntry, change: TimelineEntry) -> bool:
        """Whether two changes may be one: neither their times nor their other sides differ."""
        sides = self.sides[id(one)], self.sides[id(change)]
        if all(sides) and sides[0].isdisjoint(sides[1]):
            return False
        days, others = self.days[id(one)], self.days[id(change)]
        return not (days and others) or (days[0] <= others[1] and others[0] <= days[1])

    def after(self, event_at: datetime, most: timedelta) -> Sequence[TimelineEntry]:
        """What is said to have happened then or not that much later."""
        return _between(self.told, event_at, timedelta(0), most)


def _other_side(
    change: TimelineEntry, named: Mapping[tuple[str, bool], Collection[str]]
) -> frozenset[str]:
    left = not ends_something(change.slot)
    return frozenset(o for e in change.telling.episode_ids for o in named.get((e, left), ()))


def _days_open(change: TimelineEntry) -> tuple[date, date] | None:
    telling = change.telling
    day = telling.event_at.date()
    if telling.event_from is None or telling.event_by is None:
        return (day, day) if telling.event_at == telling.known_at else None
    # Who counted back, and counts back again of the same, may be off to both sides.
    counted = telling.event_from.date() < day
    leeway = (telling.event_by - telling.event_from) / 2 if counted else timedelta(0)
    last = telling.event_by - timedelta(microseconds=1)
    return (telling.event_from - leeway).date(), (last + leeway).date()


def _between(
    told: Sequence[TimelineEntry], event_at: datetime, least: timedelta, most: timedelta
) -> Sequence[TimelineEntry]:
    """The part, of what is in order of events, that is so far from one. Both ends count."""

    def distance(one: TimelineEntry) -> timedelta:
        return one.telling.event_at - event_at

    first = bisect_left(told, least, key=distance)
    return told[first : bisect_right(told, most, lo=first, key=distance)]


def _happened(change: TimelineEntry, told: _ByEvent) -> tuple[datetime, datetime]:
    """When a change can have happened at the earliest, given what was said to hold meanwhile.

    With it comes what orders it among the others: not before that of what puts it there.

    "I moved in May" names the first of May; who still lived elsewhere on the tenth
    moved after that. Further back than what is named lasts it is no matter of wording any more,
    but for what only ends something. Told to be married in October, "we divorced in March" means
    that it is over; "they laid me off last week" ends the job told yesterday. What was said after
    the change was first told is no news about it: telling it again later does not make it happen
    again.
    """
    event_at = change.telling.event_at
    if not _changes(change):
        return event_at, event_at
    first_told = told.first_told(change)
    named = change.telling.event_by
    reach = _imprecision(event_at) if named is None else named - event_at
    if told.only_ends(change):
        reach = _WITHIN_A_YEAR if change.slot.object else max(reach, _IMPRECISION)
    meanwhile = (
        other
        for other in reversed(told.after(event_at, min(reach, first_told - event_at)))
        if event_at < other.telling.event_at < first_told
        and _is_of_its_day(other)
        and _is_before(other.slot, change.slot)
        and (_is_within(named, other) or told.could_follow(change, other.slot))
    )
    last = next(meanwhile, None)
    if last is None:
        return event_at, _in_its_day(change)
    day = last.telling.event_at.date()
    of_that_day = takewhile(lambda other: other.telling.event_at.date() == day, meanwhile)
    return last.telling.event_at, max(map(_in_its_day, (last, *of_that_day)))


def _is_within(named: datetime | None, other: TimelineEntry) -> bool:
    """Whether it was said within the time that is named: then what is told later counts."""
    return named is not None and other.telling.event_at < named


def _imprecision(event_at: datetime) -> timedelta:
    """How much later than the moment that is named a change can have happened.

    "Last year" names the first of January, "last summer" the first of June; the day of a month
    could as well be named by that.
    """
    if event_at.day > 1 or event_at.time() != time.min:
        return _IMPRECISION
    return _A_YEAR if event_at.month == 1 else _A_SEASON


def _changes(one: TimelineEntry) -> bool:
    return one.telling.begins or ends_something(one.slot)


def _is_of_its_day(one: TimelineEntry) -> bool:
    """Whether it says what held on that day; a change told later mostly names about when."""
    telling = one.telling
    if not telling.begins or telling.event_at == telling.known_at:
        return True
    if telling.event_from is None or telling.event_by is None:
        return False
    return telling.event_by - telling.event_from <= _A_DAY


def _is_before(held: Slot, change: Slot) -> bool:
    """Whether the change had not happened while this was said to hold."""
    if ends_something(held):
        return False
    return _names(change, held) if ends_something(change) else not same_value(held, change)


def _gives_way(earlier: Slot, new: TimelineEntry, breath: _Breath) -> bool:
    """Whether a value stops holding because this is told of a later moment."""
    later = new.slot
    if ends_something(later):
        # An ending ends what it names, and repeats of an ending end nothing.
        return not ends_something(earlier) and _names(later, earlier)
    if ends_something(earlier):
        return _names(earlier, later)
    if new.telling.alongside:
        # A second job takes the place of none.
        return False
    # Two values stated in one breath ("in Lisbon and in Porto") do not contradict.
    together = any(_key(e, new, earlier) in breath for e in new.telling.episode_ids)
    return not same_value(earlier, later) and not together


def _key(episode_id: str, said: TimelineEntry, slot: Slot) -> tuple[str, datetime, str, str]:
    return episode_id, said.telling.event_at, slot.predicate, slot.object


def _names(ending: Slot, held: Slot) -> bool:
    """Whether an ending means this value; without an object it means any."""
    same_predicate = held_predicate(ending) == held_predicate(held)
    return same_predicate and ending.object in {"", held.object}


# --- which memory tells which stretch of a timeline, and what each is to say of itself

MakeMemory = Callable[[TimelineEntry], SemanticMemory]
"""Makes a memory, under an id of its own, of which this is the first telling."""


def history(
    known: Mapping[str, SemanticMemory], said: Iterable[TimelineEntry], new_memory: MakeMemory
) -> list[SemanticMemory]:
    """Every memory of one timeline as it is to be, earliest first.

    Args:
        known: Those that exist, by id. Which of them tells what follows from
            their tellings; what they say of their place is not looked at.
        said: What is told now.
        new_memory: Called for each stretch that no memory tells yet.
    """
    ended = ((m.id, m.resolved_at) for m in known.values() if not is_outcome(m))
    resolved = {memory_id: at for memory_id, at in ended if at is not None}
    found = stretches(_all_told(known.values(), said), resolved)
    owners: dict[str, int] = {}
    memories: list[SemanticMemory] = []
    for number, stretch in enumerate(found):
        carriers = {e for one in stretch.told for e in one.carriers} - owners.keys()
        # The oldest that can: as if everything had become known in order.
        free = sorted((known[c].generation, c) for c in carriers)
        memory = known[free[0][1]] if free else new_memory(stretch.told[0])
        owners[memory.id] = number
        memories.append(memory)
    ids = {id(stretch): memory.id for stretch, memory in zip(found, memories, strict=True)}
    timeline = {*known, *ids.values()}
    placed = [
        _placed(memory, stretch, ids, timeline, known=memory.id in known)
        for memory, stretch in zip(memories, found, strict=True)
    ]
    return placed + _doubles(known, owners, found, memories)


def change(
    before: SemanticMemory,
    after: SemanticMemory,
    update: UpdateNote,
    known: Collection[str],
) -> UpdateNote:
    """``update`` with what makes one of the other.

    Args:
        before: As it is stored.
        after: As it is to be.
        update: For that memory.
        known: Ids of the timeline. Where what replaced a memory is not among them,
            because it was forgotten, only being told again reinstates it.
    """
    old, new = tellings_of(before), after.tellings or tellings_of(after)
    changes: dict[str, object] = {}
    # Mostly they are the very same, which is seen sooner than two sets of them are made.
    if old != new and set(old) != set(new):
        changes["add_tellings"] = tuple(one for one in new if one not in old)
        changes["drop_tellings"] = tuple(one for one in old if one not in new)
        fresh = (e for e in after.source_episode_ids if e not in before.source_episode_ids)
        changes["add_sources"] = tuple(fresh)
    if _stands(before) != _stands(after):
        event_at, known_at, valid_from, supersedes = _stands(after)
        changes["place"] = Place(
            event_at=event_at, known_at=known_at, valid_from=valid_from, supersedes=supersedes
        )
    ended = _supersession(after)
    replaced_by = before.superseded_by
    if ended is None and replaced_by and (replaced_by in known or changes.get("add_tellings")):
        changes["reinstated_from"] = replaced_by
    if ended is not None and ended != _supersession(before):
        changes["supersession"] = ended
    rivals = {one for one in after.disputed_with if one not in before.disputed_with}
    settled = {one for one in before.disputed_with if one not in after.disputed_with}
    if rivals or settled:
        changes["dispute_with"] = tuple(sorted(rivals))
        changes["settle_with"] = tuple(sorted(settled))
    return update.model_copy(update=changes) if changes else update


def _all_told(
    known: Iterable[SemanticMemory], said: Iterable[TimelineEntry]
) -> list[TimelineEntry]:
    """Each telling once, with all that carry it; what is known goes before what is said now."""
    merged: dict[tuple[str, str, Telling], TimelineEntry] = {}
    carried = (
        TimelineEntry(memory.slot, telling, (memory.id,))
        for memory in known
        if memory.slot is not None
        for telling in tellings_of(memory)
    )
    for one in (*carried, *said):
        key = (one.slot.predicate, one.slot.object, one.telling)
        before = merged.setdefault(key, one)
        if before is not one:
            carriers = tuple(dict.fromkeys((*before.carriers, *one.carriers)))
            merged[key] = TimelineEntry(before.slot, before.telling, carriers, before.statement)
    return list(merged.values())


def _placed(
    memory: SemanticMemory,
    stretch: ValidityInterval,
    ids: Mapping[int, str],
    timeline: Collection[str],
    *,
    known: bool,
) -> SemanticMemory:
    foreign = _foreign(memory, timeline)
    told = tuple(one.telling for one in stretch.told)
    closer = stretch.closed_by
    changes: dict[str, object] = {
        "event_at": stretch.event_at,
        "known_at": stretch.known_at,
        "valid_from": stretch.valid_from,
        "supersedes": tuple(ids[id(old)] for old in stretch.closes) + foreign.supersedes,
        "superseded_by": None if closer is None else ids[id(closer)],
        "valid_to": stretch.valid_to,
        "superseded_known_at": stretch.hidden_at if closer is not None else None,
        "status": _status(memory, ended=closer is not None),
    }
    still = frozenset(told)
    gone = () if not known else tuple(t for t in tellings_of(memory) if t not in still)
    fresh = tuple(dict.fromkeys(e for one in told for e in one.episode_ids))
    # A new part of a known memory has only the sources of that part, and of its words.
    before = memory.source_episode_ids if known else worded_by(memory)
    leaving = sources_only_of(gone, told)
    sources = tuple(e for e in dict.fromkeys((*before, *fresh)) if e not in leaving)
    changes |= {"tellings": told, "source_episode_ids": sources}
    rivals = tuple(
        rival
        for rival in (ids[id(one)] for one in stretch.disputed_with)
        if rival not in memory.settled_with
    )
    if known:
        changes["disputed_with"] = (*foreign.disputed_with, *rivals)
        return memory.model_copy(update=changes)
    occasions = occasions_told(told)
    changes["occasions"] = occasions
    changes["confidence"] = memory.confidence.model_copy(
        update={
            "supporting_episodes": len(occasions),
            "last_confirmed": max(one.known_at for one in told),
        }
    )
    quoted = {quote.episode_id for quote in memory.evidence}
    part = quoting(memory.model_copy(update=changes), without=quoted - {*sources})
    return disputed(part, with_=rivals)


@dataclass(frozen=True, slots=True)
class _Foreign:
    """What a memory has to do with others than those of its timeline, which stays as it is."""

    supersedes: tuple[str, ...]
    disputed_with: tuple[str, ...]


def _foreign(memory: SemanticMemory, timeline: Collection[str]) -> _Foreign:
    return _Foreign(
        supersedes=tuple(one for one in memory.supersedes if one not in timeline),
        disputed_with=tuple(one for one in memory.disputed_with if one not in timeline),
    )


def _status(memory: SemanticMemory, *, ended: bool) -> MemoryStatus:
    if ended:
        return MemoryStatus.SUPERSEDED
    return MemoryStatus.ACTIVE if memory.status is MemoryStatus.SUPERSEDED else memory.status


def _doubles(
    known: Mapping[str, SemanticMemory],
    owners: Mapping[str, int],
    found: Sequence[ValidityInterval],
    memories: Sequence[SemanticMemory],
) -> list[SemanticMemory]:
    """Memories whose every telling is part of a stretch that another one tells.

    Nothing is deleted: they stay as history of no length, under what tells it now.
    """
    tellers = {
        carrier: memory.id
        for stretch, memory in reversed(list(zip(found, memories, strict=True)))
        for one in stretch.told
        for carrier in one.carriers
    }
    return [
        memory.model_copy(
            update={
                "valid_from": memory.event_at,
                "supersedes": (),
                "status": MemoryStatus.SUPERSEDED,
                "superseded_by": tellers[memory.id],
                "valid_to": memory.event_at,
                "superseded_known_at": memory.known_at,
            }
        )
        for memory in known.values()
        if memory.id not in owners
    ]


def _stands(
    memory: SemanticMemory,
) -> tuple[datetime, datetime, datetime | None, tuple[str, ...]]:
    """What tells its place."""
    return memory.event_at, memory.known_at, memory.valid_from, memory.supersedes


def _supersession(memory: SemanticMemory) -> Supersession | None:
    if memory.superseded_by is None or memory.valid_to is None:
        return None
    return Supersession(
        superseded_by=memory.superseded_by,
        valid_to=memory.valid_to,
        superseded_known_at=memory.superseded_known_at or memory.known_at,
    )
