"""Of several answers that tell one value, or one kind of day, the one that is asked for first.

What is measured is told again and again in other words, and mostly nothing ends by it: the scale,
a balance, a dose, the dentist. The latest answers what it is now, what was told by then what it was
in March, and of two appointments the one that is still to come answers when the next one is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import NamedTuple

from engram.domain.memories import (
    DIGEST_FORMS,
    AnyMemory,
    Episode,
    MemoryStatus,
    SemanticMemory,
)
from engram.domain.slots import ends_something
from engram.language.query import ASSISTANT, AskedFor, tells_of_a_change
from engram.language.query import USER as ASKING
from engram.language.tellings import (
    AskedValue,
    ToldSentence,
    WhichTold,
    asked_for,
    days_of,
    may_ask_for_a_day,
    may_count,
)
from engram.recall.results import JUST_BELOW, Ranked, by_score
from engram.recall.search import PreparedQuery

# Who asks for one of these asks for no value.
_NO_VALUES = frozenset({AskedFor.NAME, AskedFor.REASON})
# One alone has one order.
_SEVERAL = 2


class _AnswerTold(NamedTuple):
    """What an answer tells of what is asked, when, and in whose voice."""

    said: ToldSentence
    at: datetime
    voice: tuple[str, str | None]


def current_first(question: PreparedQuery, found: Sequence[Ranked]) -> list[Ranked]:
    """``found``, best first, the latest of what tells one value before the others.

    Where the question names a time that is over, the latest that was told by its end; where it
    asks for the next or the last of something, that. No order changes between what is told of
    different things or people, nor by what somebody wishes, supposes, denies or plans.
    """
    asked = _asked(question, found)
    if asked is None:
        return list(found)
    told = {one.memory.id: said for one in found if (said := _told(one.memory, asked))}
    if len(told) < _SEVERAL:
        return list(found)
    if asked.which is WhichTold.LATEST:
        past = past_period_end(question)
        return _put_first(found, told, lambda new, old: _is_later(asked, new, old, past))
    today = question.request.asked_at(question.visibility.moment).date()
    return _put_first(found, told, lambda new, old: _is_nearer(asked, new, old, today))


def _asked(question: PreparedQuery, found: Sequence[Ranked]) -> AskedValue | None:
    """Which value or day is asked for; None where it is none, or nobody can have told several.

    Most questions and most answers have to do with no number, and are looked at no further.
    """
    query, analysis = question.request.query, question.analysis
    if question.request.valid_at is not None:
        return None
    past = past_period_end(question)
    if may_ask_for_a_day(query):
        asked = asked_for(query)
        if asked is not None and asked.which is not WhichTold.LATEST:
            return None if analysis.period is not None else asked
    if past is None and (analysis.period is not None or analysis.former):
        return None
    if AskedFor.NUMBER not in analysis.asked and not _NO_VALUES.isdisjoint(analysis.asked):
        return None
    if sum(may_count(one.memory.content) for one in found) < _SEVERAL:
        return None
    return asked_for(query)


def past_period_end(question: PreparedQuery) -> datetime | None:
    """The end of the time that is asked about, where it is over at the moment one looks from."""
    period = question.analysis.period
    if period is None or period.end is None or period.end > question.visibility.moment:
        return None
    return period.end


def _told(memory: AnyMemory, asked: AskedValue) -> _AnswerTold | None:
    """The sentence of it that answers, if one does; a note is in the voice of who asks."""
    if isinstance(memory, Episode):
        if memory.role == ASSISTANT:
            return None
        at, voice = memory.known_at, (memory.role, memory.speaker)
    elif isinstance(memory, SemanticMemory) and memory.status is MemoryStatus.ACTIVE:
        slot = memory.slot
        if memory.form in DIGEST_FORMS or (slot is not None and ends_something(slot)):
            return None
        # What is told again holds from then on.
        at, voice = max(memory.known_at, memory.confidence.last_confirmed), (ASKING, None)
    else:
        return None
    if asked.which is WhichTold.LATEST and not may_count(memory.content):
        return None
    for said in asked.told_by(memory.content):
        if said.values if asked.which is WhichTold.LATEST else days_of(said.text, memory.known_at):
            return _AnswerTold(said, at, voice)
    return None


def _put_first(
    found: Sequence[Ranked],
    told: dict[str, _AnswerTold],
    precedes: Callable[[_AnswerTold, _AnswerTold], bool],
) -> list[Ranked]:
    """Each telling behind the one that precedes it most; the two are of one voice."""
    known = list(found)
    for place in range(len(known)):
        old = told.get(known[place].memory.id)
        if old is None:
            continue
        best, first = old, place
        for after in range(place + 1, len(known)):
            new = told.get(known[after].memory.id)
            if new and new.voice == best.voice and precedes(new, best) and precedes(new, old):
                best, first = new, after
        if first != place:
            before = known[place]
            ahead = known.pop(first).moved_to(before.score, "newest")
            known[place] = before.moved_to(before.score * JUST_BELOW, "older")
            known.insert(place, ahead)
    return by_score(known)


def _is_later(
    asked: AskedValue, new: _AnswerTold, old: _AnswerTold, until: datetime | None
) -> bool:
    if until is None:
        later = new.at > old.at
    else:
        later = new.at < until and (old.at >= until or new.at > old.at)
    return later and asked.measures_the_same(new.said, old.said)


def _is_nearer(asked: AskedValue, new: _AnswerTold, old: _AnswerTold, today: date) -> bool:
    """Whether a day of it is nearer to today, on the side that is asked for."""
    here, there = (_nearest(one, asked.which, today) for one in (new, old))
    if here is None or not asked.covers(new.said, old.said):
        return False
    if there is None:
        return True
    # What was moved is no longer on the nearer day.
    moved = tells_of_a_change(new.said.text) or tells_of_a_change(old.said.text)
    return not moved and (here < there if asked.which is WhichTold.COMING else here > there)


def _nearest(told: _AnswerTold, which: WhichTold, today: date) -> date | None:
    days = days_of(told.said.text, told.at)
    if which is WhichTold.COMING:
        return min((day for day in days if day >= today), default=None)
    return max((day for day in days if day < today), default=None)
