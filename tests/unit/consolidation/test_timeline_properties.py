"""One value at a time, whatever is said in whatever order: checked against a plain reading.

The reading here knows every telling at once and looks nothing up; what is known
came telling by telling, in any order and in any batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from engram.consolidation.reconcile import reconcile
from engram.domain.memories import Episode, MemoryStatus, SemanticMemory
from engram.domain.plan import Action, ConsolidationPlan, Statement, StoreNote
from engram.recall.request import Visibility
from tests.support.reconciliation import NOW, ReconciledKnowledge, on, said, stated
from tests.support.sizes import examples

EXAMPLES = 60
CITIES = ("Paris", "London", "Rome")
# "In May" names the first of May.
A_MONTH = timedelta(days=31)
A_YEAR = timedelta(days=366)
MOMENTS = tuple(on(day) for day in range(-5, 170, 5))


@dataclass(frozen=True)
class Word:
    """What one turn says of the city.

    Attributes:
        day: When it is said.
        city: Which one; empty for an ending that names none.
        kind: "plain" (lives in), "begins" (moved to) or "ends" (no longer lives in).
        back: How many days before it was said it happened; None if it does not say.
        lasts: How many days the time has that it names; None if that does not show.
    """

    day: int
    city: str
    kind: str
    back: int | None
    lasts: int | None = None

    @property
    def known_at(self) -> datetime:
        """When it was said."""
        return on(self.day)

    @property
    def event_at(self) -> datetime:
        """When it happened, by its own words."""
        return on(self.day - (self.back or 0))

    @property
    def days(self) -> frozenset[int] | None:
        """The days on which it can have happened, by its own words; None where they do not show."""
        first = self.day - (self.back or 0)
        if self.lasts is None and self.back:
            return None
        # From noon to noon: the last of them is begun.
        return frozenset(range(first, first + (self.lasts or 0) + 1))

    def turn(self) -> Episode:
        """The turn that says it."""
        return said(self.day)

    def statement(self) -> Statement:
        """What is read from the turn."""
        return stated(
            self.turn(),
            "lives in",
            self.city,
            holds=self.kind != "ends",
            begins=self.kind == "begins",
            event_at=None if self.back is None else self.event_at,
            event_from=None if self.lasts is None else self.event_at,
            event_by=None if self.lasts is None else self.event_at + timedelta(days=self.lasts),
        )


Words = tuple[Word, ...]


def is_told_of_its_own_time(word: Word) -> bool:
    """Whether it says where they lived on a day that is not just the name of a month."""
    of_a_day = word.event_at == word.known_at or word.lasts == 1
    return word.kind == "plain" or (word.kind == "begins" and of_a_day)


def is_different(lived: Word, change: Word) -> bool:
    """Whether living there means that the change has not happened yet."""
    if change.kind == "begins":
        return lived.city != change.city
    return change.city in {"", lived.city}


def in_its_day(word: Word) -> datetime:
    """A change of a day that is told later stands in its evening."""
    told_that_day = word.known_at - word.event_at < timedelta(days=1)
    return (
        word.event_at if word.kind == "plain" or told_that_day else word.event_at.replace(hour=23)
    )


def placed(word: Word, words: Words) -> datetime:
    """Where it stands among the others, given where they are known to have lived meanwhile."""
    if word.kind == "plain":
        return word.event_at
    first_told = min(
        other.known_at
        for other in words
        if (other.city, other.kind) == (word.city, word.kind)
        and -A_MONTH <= other.event_at - word.event_at <= max(A_MONTH, timedelta(word.lasts or 0))
        and (other.days is None or word.days is None or other.days & word.days)
    )
    named = A_MONTH if word.lasts is None else timedelta(days=word.lasts)
    # An ending reaches further back, most where it names the city: see the rule's own words.
    if word.kind == "ends":
        named = A_YEAR if word.city else max(named, A_MONTH)
    meanwhile = [
        other
        for other in words
        if is_told_of_its_own_time(other)
        and is_different(other, word)
        and word.event_at < other.event_at < first_told
        and other.event_at - word.event_at <= named
    ]
    return max(map(in_its_day, meanwhile), default=in_its_day(word))


def city_at(words: Words, moment: datetime | None = None) -> str | None:
    """Where they live by the latest event that was known at that moment."""
    ordered = sorted(
        (w for w in words if moment is None or w.known_at <= moment),
        key=lambda w: (placed(w, words), w.kind == "ends", w.known_at),
    )
    city: str | None = None
    for word in ordered:
        if word.kind != "ends":
            city = word.city
        elif word.city in {"", city}:
            city = None
    return city


@st.composite
def told(draw: st.DrawFn) -> Words:
    """A history of up to seven turns, each on a day of its own."""
    days = draw(st.lists(st.integers(0, 150), min_size=1, max_size=7, unique=True))
    return tuple(draw(a_word(day)) for day in sorted(days))


@st.composite
def a_word(draw: st.DrawFn, day: int) -> Word:
    """What is said on that day."""
    kind = draw(st.sampled_from(("plain", "plain", "begins", "begins", "ends")))
    city = draw(st.sampled_from((*CITIES, "") if kind == "ends" else CITIES))
    back = draw(st.none() | st.integers(0, 120))
    lasts = None if back is None else draw(st.sampled_from((None, 1, 7, 31, 92)))
    return Word(day, city, kind, back, lasts)


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[Words, list[list[Words]]]:
    """A history and ways in which it reaches consolidation: batches in any order."""
    words = draw(told())
    ways: list[list[Words]] = [
        [words],
        [(word,) for word in words],
        [(word,) for word in reversed(words)],
    ]
    for _ in range(2):
        order = draw(st.permutations(words))
        cuts = sorted(draw(st.sets(st.integers(1, len(words)), max_size=3)) | {0, len(words)})
        ways.append([tuple(order[a:b]) for a, b in pairwise(cuts)])
    return words, ways


def known_from(batches: Sequence[Words]) -> ReconciledKnowledge:
    """What is known after these batches."""
    knowledge = ReconciledKnowledge()
    for batch in batches:
        knowledge.episodes |= {word.turn().id: word.turn() for word in batch}
        knowledge.take([word.statement() for word in batch])
    return knowledge


def held(knowledge: ReconciledKnowledge) -> list[SemanticMemory]:
    """Every memory of living somewhere, current or not."""
    return [m for m in knowledge.known.values() if m.slot and m.slot.predicate == "lives in"]


def active(knowledge: ReconciledKnowledge) -> list[str]:
    """The cities of which memories are active."""
    return [m.slot.object for m in held(knowledge) if m.slot and m.status is MemoryStatus.ACTIVE]


def seen_at(knowledge: ReconciledKnowledge, moment: datetime) -> list[str]:
    """The cities that ``as_of`` that moment shows."""
    then = Visibility(now=NOW, as_of=moment)
    return [m.slot.object for m in held(knowledge) if m.slot and then.counts(m)]


def has_cycle(knowledge: ReconciledKnowledge) -> bool:
    """Whether following what replaced what leads round."""
    for start in knowledge.known.values():
        memory, steps = start, 0
        while memory.superseded_by is not None:
            memory, steps = knowledge.known[memory.superseded_by], steps + 1
            if steps > len(knowledge.known):
                return True
    return False


def expected(city: str | None) -> list[str]:
    """As a list of what is shown."""
    return [] if city is None else [city.lower()]


@settings(max_examples=examples(EXAMPLES), deadline=None)
@given(arrivals())
def test_exactly_what_the_latest_event_says_is_current(
    case: tuple[Words, list[list[Words]]],
) -> None:
    """One active value, that of the latest event; none only if an ending came last."""
    words, ways = case
    for batches in ways:
        assert active(known_from(batches)) == expected(city_at(words))


@settings(max_examples=examples(EXAMPLES), deadline=None)
@given(arrivals())
def test_as_of_shows_what_was_known_then_however_it_was_batched(
    case: tuple[Words, list[list[Words]]],
) -> None:
    """At every moment at most one value, and that of what had been said by then."""
    words, ways = case
    for batches in ways:
        knowledge = known_from(batches)
        for moment in MOMENTS:
            assert seen_at(knowledge, moment) == expected(city_at(words, moment))


@settings(max_examples=examples(EXAMPLES), deadline=None)
@given(arrivals())
def test_reconciling_again_plans_nothing(case: tuple[Words, list[list[Words]]]) -> None:
    """The same statements over what they led to: nothing stored, nothing changed."""
    words, ways = case
    for batches in ways:
        knowledge = known_from(batches)
        known, there = knowledge.known.values(), knowledge.circumstances()
        again = reconcile([word.statement() for word in words], known, there)
        assert not again.new_memories()
        assert not list(again.amendments())
        assert not again.retirements()


@settings(max_examples=examples(EXAMPLES), deadline=None)
@given(arrivals())
def test_the_history_is_whole_and_leads_somewhere(case: tuple[Words, list[list[Words]]]) -> None:
    """Every turn is the source of a memory of what it says; nothing replaces itself."""
    words, ways = case
    for batches in ways:
        knowledge = known_from(batches)
        assert not has_cycle(knowledge)
        for word in words:
            predicate = "no longer lives in" if word.kind == "ends" else "lives in"
            assert any(
                m.slot is not None
                and (m.slot.predicate, m.slot.object) == (predicate, word.city.lower())
                and word.turn().id in m.source_episode_ids
                for m in knowledge.known.values()
            )


@settings(max_examples=examples(EXAMPLES), deadline=None)
@given(arrivals(), st.integers(0, 6), st.integers(0, 2))
def test_a_run_that_ended_half_way_is_made_good(
    case: tuple[Words, list[list[Words]]], broken: int, steps: int
) -> None:
    """A plan of which only the first steps were done, and the batch read again: nothing lost."""
    words, ways = case
    for batches in ways:
        knowledge = ReconciledKnowledge()
        for number, batch in enumerate(batches):
            knowledge.episodes |= {word.turn().id: word.turn() for word in batch}
            statements = [word.statement() for word in batch]
            if number == broken:
                plan = reconcile(statements, knowledge.known.values(), knowledge.circumstances())
                knowledge.apply(ConsolidationPlan(actions=done(plan, steps)))
            knowledge.take(statements)
        assert active(knowledge) == expected(city_at(words))
        for moment in MOMENTS:
            assert seen_at(knowledge, moment) == expected(city_at(words, moment))


def done(plan: ConsolidationPlan, steps: int) -> tuple[Action, ...]:
    """What was done: nothing, what is new, or that and what changed, but no retirement."""
    stored = [a for a in plan.actions if isinstance(a, StoreNote)]
    return () if steps == 0 else (*stored, *(plan.amendments() if steps == 2 else ()))
