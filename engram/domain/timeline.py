"""What was told of one slot, in the order of what it tells: who held when, and what came next.

Everything here follows from the tellings alone. The order in which they became
known, and how they were cut into batches, does not show.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeAlias

from engram.domain.memories import Slot, Telling
from engram.domain.slots import ends_something, held_predicate, is_functional, is_timeless
from engram.domain.statements import Statement

# How far a month that is named can be from the day that is meant.
_IMPRECISION = timedelta(days=31)


@dataclass(frozen=True, slots=True)
class Told:
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
class Stretch:
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
    told: list[Told]
    last: _Moment
    closed_by: Stretch | None = None
    closes: list[Stretch] = field(default_factory=list)
    hidden_at: datetime | None = None
    rivals: list[Stretch] = field(default_factory=list)
    settled_at: datetime | None = None

    @property
    def disputed_with(self) -> list[Stretch]:
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
        return self.event_at if self.closes or self.told[0].telling.begins else None

    @property
    def valid_to(self) -> datetime | None:
        """Until when it was true, as far as is known; None while it is."""
        return None if self.closed_by is None else max(self.event_at, self.closed_by.event_at)


# Value and moment of everything said in one episode.
_Breath: TypeAlias = frozenset[tuple[str, datetime, str, str]]


def same_value(first: Slot, second: Slot) -> bool:
    """Whether two slots of one timeline say the same."""
    return first.predicate == second.predicate and first.object == second.object


def stretches(told: Iterable[Told]) -> list[Stretch]:
    """What held one after another, earliest first, by everything that was told of a timeline."""
    tellings = list(told)
    placed = [(_happened(one, tellings), one) for one in tellings]
    breath: _Breath = frozenset(_key(e, t, t.slot) for t in tellings for e in t.telling.episode_ids)
    found: list[Stretch] = []
    standing: list[Stretch] = []
    for event_at, one in sorted(placed, key=lambda pair: _position(*pair)):
        same = next((s for s in standing if same_value(s.slot, one.slot)), None)
        moment = _moment(event_at, one)
        if same is not None:
            same.told.append(one)
            same.last = moment
            _settle(same, one)
            standing = [old for old in standing if old.closed_by is None]
            continue
        new = Stretch(one.slot, event_at, [one], moment)
        for old in standing:
            if not _gives_way(old.slot, one, breath):
                continue
            if _nothing_orders(old, new):
                old.rivals.append(new)
                new.rivals.append(old)
            else:
                old.closed_by = new
                new.closes.append(old)
        standing = [old for old in standing if old.closed_by is None] + [new]
        found.append(new)
    for number, old in enumerate(found):
        old.hidden_at = _hidden_at(old, found[number + 1 :], breath)
    return found


def _hidden_at(old: Stretch, later: Sequence[Stretch], breath: _Breath) -> datetime | None:
    """When the first of whatever comes after it was known, not only of what comes next.

    Word of what comes next can arrive long after word of what came later still.
    """
    known = [
        max(old.known_at, new.known_at)
        for new in later
        if not any(new is rival for rival in old.rivals)
        and (same_value(old.slot, new.slot) or _gives_way(old.slot, new.told[0], breath))
    ]
    if old.settled_at is not None:
        known.append(max(old.known_at, old.settled_at))
    return min(known, default=None)


def _nothing_orders(old: Stretch, new: Stretch) -> bool:
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


def _settle(holds: Stretch, one: Told) -> None:
    """A value was told again, later than its rivals: they gave way to it."""
    for rival in holds.disputed_with:
        if holds.last > rival.last:
            rival.closed_by = holds
            rival.settled_at = one.telling.known_at
            holds.closes.append(rival)


def _moment(event_at: datetime, one: Told) -> _Moment:
    when = one.telling.known_at if is_timeless(one.slot) else event_at
    return when, one.telling.known_at


def _position(
    event_at: datetime, one: Told
) -> tuple[datetime, bool, datetime, str, int, str, str, tuple[str, ...]]:
    """By event, then what holds before what ends, then by knowing; every run agrees on ties."""
    slot, telling = one.slot, one.telling
    when, known_at = _moment(event_at, one)
    order = (telling.session_id or "", telling.sequence)
    tie = (slot.predicate, slot.object, telling.episode_ids)
    return (when, ends_something(slot), known_at, *order, *tie)


def _happened(change: Told, told: Sequence[Told]) -> datetime:
    """When a change can have happened at the earliest, given what was said to hold meanwhile.

    "I moved in May" names the first of May; who still lived elsewhere on the tenth
    moved after that. Further back than a month it is no matter of wording any more,
    and what was said after the change was first told is no news about it: telling
    it again later does not make it happen again.
    """
    event_at = change.telling.event_at
    if not _changes(change):
        return event_at
    first_told = min(
        other.telling.known_at
        for other in told
        if _changes(other)
        and same_value(other.slot, change.slot)
        and abs(other.telling.event_at - event_at) <= _IMPRECISION
    )
    meanwhile = [
        other.telling.event_at
        for other in told
        if event_at < other.telling.event_at < first_told
        and other.telling.event_at - event_at <= _IMPRECISION
        and _is_of_its_day(other)
        and _is_before(other.slot, change.slot)
    ]
    return max(meanwhile, default=event_at)


def _changes(one: Told) -> bool:
    return one.telling.begins or ends_something(one.slot)


def _is_of_its_day(one: Told) -> bool:
    """Whether it says what held on that day; a change told later only names about when."""
    return not one.telling.begins or one.telling.event_at == one.telling.known_at


def _is_before(held: Slot, change: Slot) -> bool:
    """Whether the change had not happened while this was said to hold."""
    if ends_something(held):
        return False
    return _names(change, held) if ends_something(change) else not same_value(held, change)


def _gives_way(earlier: Slot, new: Told, breath: _Breath) -> bool:
    later = new.slot
    if ends_something(later):
        # An ending ends what it names, and repeats of an ending end nothing.
        return not ends_something(earlier) and _names(later, earlier)
    if ends_something(earlier):
        return _names(earlier, later)
    # Two values stated in one breath ("in Lisbon and in Porto") do not contradict.
    together = any(_key(e, new, earlier) in breath for e in new.telling.episode_ids)
    return not same_value(earlier, later) and not together


def _key(episode_id: str, said: Told, slot: Slot) -> tuple[str, datetime, str, str]:
    return episode_id, said.telling.event_at, slot.predicate, slot.object


def _names(ending: Slot, held: Slot) -> bool:
    """Whether an ending means this value; without an object it means any."""
    same_predicate = held_predicate(ending) == held_predicate(held)
    return same_predicate and ending.object in {"", held.object}
