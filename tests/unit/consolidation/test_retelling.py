"""Telling the past again, late news of it, and memories that hold after all."""

from __future__ import annotations

from datetime import datetime

import pytest

from engram.domain.confidence import ExtractionMethod, Verification
from engram.domain.memories import Evidence, MemoryStatus
from engram.domain.verifying import verify
from engram.domain.visibility import Visibility
from tests.unit.consolidation.support import NOW, Mind, on, said, stated

# Days after the first of January 2024; what happened then is told of its month.
FEBRUARY, MAY = on(31), on(121)
MARCH_20, JUNE_3, JUNE_6, JUNE_10 = 79, 154, 157, 161


def mind_that_moved() -> Mind:
    """To London in February, to Rome in May, and London told again in June."""
    mind = Mind()
    moved(mind, MARCH_20, "London", FEBRUARY)
    moved(mind, JUNE_3, "Rome", MAY)
    moved(mind, JUNE_6, "London", FEBRUARY)
    return mind


def moved(mind: Mind, day: int, city: str, event_at: datetime) -> None:
    """One turn about a move."""
    turn = said(day)
    mind.hear(turn, stated(turn, "lives in", city, begins=True, event_at=event_at))


@pytest.mark.parametrize("last", ["London again", "Rome again", "lives in Rome"])
def test_telling_the_past_again_leaves_the_present_alone(last: str) -> None:
    """Rome stays current, London ends in May, and nothing comes in between."""
    mind = mind_that_moved()
    if last == "lives in Rome":
        mind.hear(said(JUNE_10), stated(said(JUNE_10), "lives in", "Rome"))
    else:
        place, began = ("London", FEBRUARY) if last == "London again" else ("Rome", MAY)
        moved(mind, JUNE_10, place, began)
    (london,), (rome,) = mind.of("london"), mind.of("rome")
    assert mind.current() == {"The user lives in Rome."}
    assert (london.superseded_by, london.valid_to) == (rome.id, MAY)
    assert (rome.supersedes, rome.valid_from) == ((london.id,), MAY)
    assert len(london.source_episode_ids) == (3 if last == "London again" else 2)


def test_telling_again_does_not_make_it_happen_again_within_the_month() -> None:
    """London on the first, Rome seen on the 20th; London told again later is still the first."""
    mind, rome = Mind(), said(20)
    moved(mind, 10, "London", on(1))
    mind.hear(rome, stated(rome, "lives in", "Rome"))
    moved(mind, 150, "London", on(0))
    assert mind.current() == {"The user lives in Rome."}


@pytest.mark.parametrize("together", [True, False])
def test_as_of_does_not_depend_on_batching(together: bool) -> None:
    """What displaced a memory first hides it, also when news of an earlier event comes later."""
    turns = london, rome, paris = said(37), said(62), said(89)
    statements = [
        stated(london, "lives in", "London"),
        stated(rome, "lives in", "Rome", begins=True),
        stated(paris, "lives in", "Paris", event_at=on(58)),
    ]
    mind = Mind(episodes={turn.id: turn for turn in turns})
    for part in [statements] if together else [[s] for s in statements]:
        mind.take(part)
    (memory,) = mind.of("london")
    assert (memory.valid_to, memory.superseded_known_at) == (on(58), on(62))
    then = Visibility(now=NOW, as_of=on(75))
    assert [m.content for m in mind.known.values() if then.counts(m)] == ["The user lives in Rome."]


def test_a_memory_that_holds_after_all_is_reinstated() -> None:
    """Porto, seen on the 7th, puts a move named for the month after one on the 5th."""
    mind, porto = Mind(), said(7)
    moved(mind, 6, "Rome", on(5))
    moved(mind, 8, "London", on(3))
    assert mind.current() == {"The user lives in Rome."}
    mind.hear(porto, stated(porto, "lives in", "Porto"))
    (london,) = mind.of("london")
    assert mind.current() == {"The user lives in London."}
    assert london.status is MemoryStatus.ACTIVE
    assert (london.valid_to, london.superseded_known_at) == (None, None)


def test_late_news_divides_what_looked_like_one_time() -> None:
    """London in January and May, Paris in March: each London has the turns of its own time."""
    mind, january, may, march = Mind(), said(0), said(120), said(60)
    for turn in (january, may):
        mind.hear(turn, stated(turn, "lives in", "London"))
    mind.hear(march, stated(march, "lives in", "Paris"))
    first, second = mind.of("london")
    assert (first.source_episode_ids, second.source_episode_ids) == ((january.id,), (may.id,))
    assert (first.confidence.supporting_episodes, first.confidence.last_confirmed) == (1, on(0))
    assert (first.valid_to, second.event_at, second.superseded_by) == (on(60), on(120), None)


def test_each_part_of_a_divided_time_keeps_the_quotations_of_its_own_turns() -> None:
    """A part that nothing is quoted for counts as inferred; all are found in their sources."""
    mind, january, may, march = Mind(), said(0), said(120), said(60)
    quote = Evidence(episode_id=january.id, words=january.content)
    mind.hear(january, stated(january, "lives in", "London", evidence=(quote,)))
    mind.hear(may, stated(may, "lives in", "London"))
    mind.hear(march, stated(march, "lives in", "Paris"))
    first, second = mind.of("london")
    assert (first.evidence, second.evidence) == ((quote,), ())
    assert first.confidence.method is ExtractionMethod.EXTRACTED
    assert second.confidence.method is ExtractionMethod.INFERRED
    for part in (first, second):
        assert verify(part, {e: mind.episodes[e] for e in part.source_episode_ids}).ok


def test_a_quotation_goes_with_the_turn_it_was_said_in() -> None:
    """What the second part took with it is evidence of the first no more."""
    mind, january, may, march = Mind(), said(0), said(120), said(60)
    quote = Evidence(episode_id=may.id, words=may.content)
    mind.hear(january, stated(january, "lives in", "London"))
    mind.hear(may, stated(may, "lives in", "London", evidence=(quote,)))
    assert mind.of("london")[0].confidence.method is ExtractionMethod.EXTRACTED
    mind.hear(march, stated(march, "lives in", "Paris"))
    first, second = mind.of("london")
    assert (first.evidence, second.evidence) == ((), (quote,))
    assert first.confidence.method is ExtractionMethod.INFERRED
    assert first.confidence.verification is Verification.UNCHECKED
    assert second.confidence.method is ExtractionMethod.EXTRACTED


def test_memories_from_before_tellings_were_kept_are_understood() -> None:
    """First and last word of an old memory serve instead; it gains tellings when told again."""
    mind, january, may, march = Mind(), said(0), said(120), said(60)
    for turn in (january, may):
        mind.hear(turn, stated(turn, "lives in", "London"))
    mind.known = {k: m.model_copy(update={"tellings": ()}) for k, m in mind.known.items()}
    mind.hear(march, stated(march, "lives in", "Paris"))
    assert mind.current() == {"The user lives in London."}
    (paris,) = mind.of("paris")
    assert paris.valid_to == on(120)


def test_a_cycle_of_before_is_mended_by_the_next_word() -> None:
    """Two memories that replaced each other: the later event holds again."""
    mind = mind_that_moved()
    (london,), (rome,) = mind.of("london"), mind.of("rome")
    ended = {"status": MemoryStatus.SUPERSEDED, "superseded_by": london.id, "valid_to": on(157)}
    mind.known[rome.id] = rome.model_copy(update=ended)
    moved(mind, JUNE_10, "London", FEBRUARY)
    assert mind.current() == {"The user lives in Rome."}


def test_what_replaced_it_being_forgotten_reinstates_nothing_until_it_is_told_again() -> None:
    """Forgetting London does not bring back Paris; hearing of Paris does."""
    mind, paris, london, other, again = Mind(), said(1), said(2), said(3), said(4)
    mind.hear(paris, stated(paris, "lives in", "Paris"))
    mind.hear(london, stated(london, "lives in", "London"))
    del mind.known[mind.of("london")[0].id]
    mind.hear(other, stated(other, "lives in", "Rome", holds=False))
    assert mind.of("paris")[0].status is MemoryStatus.SUPERSEDED
    mind.hear(again, stated(again, "lives in", "Paris"))
    assert mind.of("paris")[0].status is MemoryStatus.ACTIVE


def test_words_without_a_slot_do_not_rearrange_a_timeline_that_is_not_at_hand() -> None:
    """A sentence understood without a slot confirms what says it, and moves nothing else."""
    mind, paris, london, again = Mind(), said(1), said(2), said(3)
    mind.hear(paris, stated(paris, "lives in", "Paris"))
    mind.hear(london, stated(london, "lives in", "London"))
    (old,), (before,) = mind.of("paris"), mind.of("london")
    mind.known = {before.id: before}
    mind.hear(again, stated(again, None, "", content="The user lives in London."))
    (after,) = mind.of("london")
    assert after.source_episode_ids == (london.id, again.id)
    assert after.supersedes == before.supersedes == (old.id,)
