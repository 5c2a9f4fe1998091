"""Telling the past again, late news of it, and memories that hold after all."""

from __future__ import annotations

from datetime import datetime

import pytest

from engram.consolidation.verify import verify
from engram.domain.confidence import ExtractionMethod, Verification
from engram.domain.memories import Evidence, MemoryStatus
from engram.recall.request import Visibility
from tests.support.reconciliation import NOW, ReconciledKnowledge, on, said, stated

# Days after the first of January 2024; what happened then is told of its month.
FEBRUARY, MAY = on(31), on(121)
MARCH_20, JUNE_3, JUNE_6, JUNE_10 = 79, 154, 157, 161


def known_after_moves() -> ReconciledKnowledge:
    """To London in February, to Rome in May, and London told again in June."""
    knowledge = ReconciledKnowledge()
    moved(knowledge, MARCH_20, "London", FEBRUARY)
    moved(knowledge, JUNE_3, "Rome", MAY)
    moved(knowledge, JUNE_6, "London", FEBRUARY)
    return knowledge


def moved(knowledge: ReconciledKnowledge, day: int, city: str, event_at: datetime) -> None:
    """One turn about a move."""
    turn = said(day)
    knowledge.hear(turn, stated(turn, "lives in", city, begins=True, event_at=event_at))


@pytest.mark.parametrize("last", ["London again", "Rome again", "lives in Rome"])
def test_telling_the_past_again_leaves_the_present_alone(last: str) -> None:
    """Rome stays current, London ends in May, and nothing comes in between."""
    knowledge = known_after_moves()
    if last == "lives in Rome":
        knowledge.hear(said(JUNE_10), stated(said(JUNE_10), "lives in", "Rome"))
    else:
        place, began = ("London", FEBRUARY) if last == "London again" else ("Rome", MAY)
        moved(knowledge, JUNE_10, place, began)
    (london,), (rome,) = knowledge.of("london"), knowledge.of("rome")
    assert knowledge.current() == {"The user lives in Rome."}
    assert (london.superseded_by, london.valid_to) == (rome.id, MAY)
    assert (rome.supersedes, rome.valid_from) == ((london.id,), MAY)
    assert len(london.source_episode_ids) == (3 if last == "London again" else 2)


def test_telling_again_does_not_make_it_happen_again_within_the_month() -> None:
    """London on the first, Rome seen on the 20th; London told again later is still the first."""
    knowledge, rome = ReconciledKnowledge(), said(20)
    moved(knowledge, 10, "London", on(1))
    knowledge.hear(rome, stated(rome, "lives in", "Rome"))
    moved(knowledge, 150, "London", on(0))
    assert knowledge.current() == {"The user lives in Rome."}


@pytest.mark.parametrize("together", [True, False])
def test_as_of_does_not_depend_on_batching(together: bool) -> None:
    """What displaced a memory first hides it, also when news of an earlier event comes later."""
    turns = london, rome, paris = said(37), said(62), said(89)
    statements = [
        stated(london, "lives in", "London"),
        stated(rome, "lives in", "Rome", begins=True),
        stated(paris, "lives in", "Paris", event_at=on(58)),
    ]
    knowledge = ReconciledKnowledge(episodes={turn.id: turn for turn in turns})
    for part in [statements] if together else [[s] for s in statements]:
        knowledge.take(part)
    (memory,) = knowledge.of("london")
    assert (memory.valid_to, memory.superseded_known_at) == (on(58), on(62))
    then = Visibility(now=NOW, as_of=on(75))
    assert [m.content for m in knowledge.known.values() if then.counts(m)] == [
        "The user lives in Rome."
    ]


def test_a_memory_that_holds_after_all_is_reinstated() -> None:
    """Porto, seen on the 7th, puts a move named for the month after one on the 5th."""
    knowledge, porto = ReconciledKnowledge(), said(7)
    moved(knowledge, 6, "Rome", on(5))
    moved(knowledge, 8, "London", on(3))
    assert knowledge.current() == {"The user lives in Rome."}
    knowledge.hear(porto, stated(porto, "lives in", "Porto"))
    (london,) = knowledge.of("london")
    assert knowledge.current() == {"The user lives in London."}
    assert london.status is MemoryStatus.ACTIVE
    assert (london.valid_to, london.superseded_known_at) == (None, None)


def test_late_news_divides_what_looked_like_one_time() -> None:
    """London in January and May, Paris in March: each London has the turns of its own time."""
    knowledge, january, may, march = ReconciledKnowledge(), said(0), said(120), said(60)
    for turn in (january, may):
        knowledge.hear(turn, stated(turn, "lives in", "London"))
    knowledge.hear(march, stated(march, "lives in", "Paris"))
    first, second = knowledge.of("london")
    assert (first.source_episode_ids, second.source_episode_ids) == ((january.id,), (may.id,))
    assert (first.confidence.supporting_episodes, first.confidence.last_confirmed) == (1, on(0))
    assert (first.valid_to, second.event_at, second.superseded_by) == (on(60), on(120), None)


def test_each_part_of_a_divided_time_keeps_the_quotations_of_its_own_turns() -> None:
    """A part that nothing is quoted for counts as inferred; all are found in their sources."""
    mind, january, may, march = ReconciledKnowledge(), said(0), said(120), said(60)
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
    mind, january, may, march = ReconciledKnowledge(), said(0), said(120), said(60)
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
    knowledge, january, may, march = ReconciledKnowledge(), said(0), said(120), said(60)
    for turn in (january, may):
        knowledge.hear(turn, stated(turn, "lives in", "London"))
    knowledge.known = {k: m.model_copy(update={"tellings": ()}) for k, m in knowledge.known.items()}
    knowledge.hear(march, stated(march, "lives in", "Paris"))
    assert knowledge.current() == {"The user lives in London."}
    (paris,) = knowledge.of("paris")
    assert paris.valid_to == on(120)


def test_a_cycle_of_before_is_mended_by_the_next_word() -> None:
    """Two memories that replaced each other: the later event holds again."""
    knowledge = known_after_moves()
    (london,), (rome,) = knowledge.of("london"), knowledge.of("rome")
    ended = {"status": MemoryStatus.SUPERSEDED, "superseded_by": london.id, "valid_to": on(157)}
    knowledge.known[rome.id] = rome.model_copy(update=ended)
    moved(knowledge, JUNE_10, "London", FEBRUARY)
    assert knowledge.current() == {"The user lives in Rome."}


def test_what_replaced_it_being_forgotten_reinstates_nothing_until_it_is_told_again() -> None:
    """Forgetting London does not bring back Paris; hearing of Paris does."""
    knowledge, paris, london, other, again = (
        ReconciledKnowledge(),
        said(1),
        said(2),
        said(3),
        said(4),
    )
    knowledge.hear(paris, stated(paris, "lives in", "Paris"))
    knowledge.hear(london, stated(london, "lives in", "London"))
    del knowledge.known[knowledge.of("london")[0].id]
    knowledge.hear(other, stated(other, "lives in", "Rome", holds=False))
    assert knowledge.of("paris")[0].status is MemoryStatus.SUPERSEDED
    knowledge.hear(again, stated(again, "lives in", "Paris"))
    assert knowledge.of("paris")[0].status is MemoryStatus.ACTIVE


def test_words_without_a_slot_do_not_rearrange_a_timeline_that_is_not_at_hand() -> None:
    """A sentence understood without a slot confirms what says it, and moves nothing else."""
    knowledge, paris, london, again = ReconciledKnowledge(), said(1), said(2), said(3)
    knowledge.hear(paris, stated(paris, "lives in", "Paris"))
    knowledge.hear(london, stated(london, "lives in", "London"))
    (old,), (before,) = knowledge.of("paris"), knowledge.of("london")
    knowledge.known = {before.id: before}
    knowledge.hear(again, stated(again, None, "", content="The user lives in London."))
    (after,) = knowledge.of("london")
    assert after.source_episode_ids == (london.id, again.id)
    assert after.supersedes == before.supersedes == (old.id,)
