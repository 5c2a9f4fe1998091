"""What becomes of two values of one moment, repeated words, promises that end, and echoes."""

from __future__ import annotations

import pytest

from engram.consolidation.amendments import FIRST_KEPT, LATEST_KEPT
from engram.consolidation.disputes import found_between
from engram.contracts.reviews import Settlement
from engram.domain.confidence import Confidence, ExtractionMethod, Verification
from engram.domain.memories import (
    Category,
    Episode,
    Evidence,
    MemoryKind,
    MemoryStatus,
    Resolution,
    SemanticMemory,
)
from engram.domain.plan import Discard, Reason, Statement, StoreEpisode
from engram.domain.rules import LifecycleRules, ReviewDefault
from engram.lifecycle import decisions
from engram.lifecycle.decisions import disputed
from engram.lifecycle.policies import is_open_promise, is_outcome
from tests.support.reconciliation import ReconciledKnowledge, on, said, stated


def turn(days: int, name: str, session: str, sequence: int = 0) -> Episode:
    """A turn of a session."""
    return said(days, name).model_copy(update={"session_id": session, "sequence": sequence})


def lives(knowledge: ReconciledKnowledge, episode: Episode, city: str) -> None:
    """The turn says that the user lives there."""
    knowledge.hear(episode, stated(episode, "lives in", city))


def confidence_of(memory: SemanticMemory, *, turns: int) -> Confidence:
    """Its confidence, were so many independent turns to say it."""
    return memory.confidence.model_copy(update={"supporting_episodes": turns})


def only(knowledge: ReconciledKnowledge, what: str) -> SemanticMemory:
    """The one memory of that object."""
    (memory,) = knowledge.of(what)
    return memory


def test_what_two_conversations_say_of_one_moment_is_disputed_until_one_says_it_again() -> None:
    """Nothing orders them, so neither goes; a later telling of one settles it."""
    knowledge = ReconciledKnowledge()
    lives(knowledge, turn(1, "a", "s1"), "Paris")
    lives(knowledge, turn(1, "b", "s2"), "Rome")
    paris, rome = only(knowledge, "paris"), only(knowledge, "rome")
    assert {paris.status, rome.status} == {MemoryStatus.ACTIVE}
    assert (paris.disputed_with, rome.disputed_with) == ((rome.id,), (paris.id,))
    assert {m.confidence.verification for m in (paris, rome)} == {Verification.DISPUTED}
    assert {m.confidence.contradictions for m in (paris, rome)} == {1}

    lives(knowledge, turn(5, "c", "s3"), "Rome")
    paris, rome = only(knowledge, "paris"), only(knowledge, "rome")
    assert rome.status is MemoryStatus.ACTIVE
    assert (paris.superseded_by, paris.superseded_known_at) == (rome.id, on(5))
    assert paris.disputed_with == rome.disputed_with == ()
    assert rome.confidence.contradictions == 0
    assert rome.confidence.verification is Verification.UNCHECKED


@pytest.mark.parametrize("default", ["keep_newest", "keep_best_supported"])
def test_no_default_keeps_what_was_put_aside_in_place_of_what_answers(
    default: ReviewDefault,
) -> None:
    """The newest, which most turns say, was archived by hand: it is the other that stays."""
    knowledge = ReconciledKnowledge()
    lives(knowledge, turn(1, "a", "s1"), "Paris")
    lives(knowledge, turn(1, "b", "s2"), "Rome")
    paris, rome = only(knowledge, "paris"), only(knowledge, "rome")
    more = {"event_at": on(2), "confidence": confidence_of(rome, turns=3)}
    gone = decisions.demote(rome.model_copy(update=more), on(3), LifecycleRules()).memory
    ids = tuple(sorted((paris.id, rome.id)))
    found = found_between({paris.id: paris, rome.id: gone}, ids)
    assert found.settled_after(default, ids) == Settlement((paris.id,), (rome.id,))


def test_a_third_value_told_later_settles_the_dispute_of_two() -> None:
    """Both give way to it."""
    knowledge = ReconciledKnowledge()
    lives(knowledge, turn(1, "a", "s1"), "Paris")
    lives(knowledge, turn(1, "b", "s2"), "Rome")
    lives(knowledge, turn(5, "c", "s3"), "Oslo")
    oslo = only(knowledge, "oslo")
    assert {only(knowledge, "paris").superseded_by, only(knowledge, "rome").superseded_by} == {
        oslo.id
    }
    assert not any(m.disputed_with for m in knowledge.known.values())


def test_turns_of_one_conversation_follow_each_other_whatever_their_timestamps() -> None:
    """An application may give a whole list of turns one timestamp."""
    for order in ((0, 1), (1, 0)):
        knowledge = ReconciledKnowledge()
        turns = [turn(1, "a", "s1", 0), turn(1, "b", "s1", 1)]
        cities = ["Rome", "Paris"]
        for number in order:
            lives(knowledge, turns[number], cities[number])
        assert knowledge.current() == {"The user lives in Paris."}
        assert not only(knowledge, "paris").disputed_with


def test_a_dispute_read_again_changes_nothing() -> None:
    """Counts a contradiction once."""
    knowledge = ReconciledKnowledge()
    turns = [(turn(1, "a", "s1"), "Paris"), (turn(1, "b", "s2"), "Rome")]
    for episode, city in turns:
        lives(knowledge, episode, city)
    before = dict(knowledge.known)
    for episode, city in turns:
        lives(knowledge, episode, city)
    assert knowledge.known == before


def test_what_was_refuted_is_told_anew_or_not_at_all() -> None:
    """A telling from before the user's word is left out; a later one begins to hold by itself."""
    knowledge = ReconciledKnowledge()
    lives(knowledge, turn(1, "a", "s1"), "Paris")
    lives(knowledge, turn(1, "b", "s2"), "Rome")
    paris, rome = only(knowledge, "paris"), only(knowledge, "rome")
    # Not before it was concluded, which was much later than it was told.
    refuted = decisions.dispute(rome, on(2000), LifecycleRules()).memory
    assert isinstance(refuted, SemanticMemory)
    freed = disputed(paris, with_=(), settled=(rome.id,))
    knowledge.known |= {rome.id: refuted, paris.id: freed}

    for before in (turn(2, "c", "s3"), turn(2000, "at that moment", "s3")):
        plan = knowledge.hear(before, stated(before, "lives in", "Rome"))
        assert [a.reason for a in plan.actions] == [Reason.REFUTED]
        assert knowledge.known == {rome.id: refuted, paris.id: freed}

    lives(knowledge, turn(2001, "d", "s4"), "Rome")
    old, new = sorted(knowledge.of("rome"), key=lambda m: m.generation)
    assert (old, new.status, new.disputed_with) == (refuted, MemoryStatus.ACTIVE, ())
    assert only(knowledge, "paris").superseded_by == new.id


def test_a_settled_dispute_leaves_a_memory_as_sure_as_its_evidence() -> None:
    """With words of its turn it counts as found in them, and else as not looked at."""
    knowledge = ReconciledKnowledge()
    lives(knowledge, turn(1, "a", "s1"), "Paris")
    lives(knowledge, turn(1, "b", "s2"), "Rome")
    paris, rome = only(knowledge, "paris"), only(knowledge, "rome")
    assert paris.confidence.verification is Verification.DISPUTED
    quote = Evidence(episode_id=paris.source_episode_ids[0], words="in Paris")
    for evidence, sure in (((quote,), "evidence_found"), ((), "unchecked")):
        one = paris.model_copy(update={"evidence": evidence})
        freed = disputed(one, with_=(), settled=(rome.id,))
        assert freed.confidence.verification.value == sure


def test_what_the_user_confirmed_stays_confirmed_in_a_dispute_and_after_it() -> None:
    """Another value takes nothing from the user's own word."""
    knowledge = ReconciledKnowledge()
    lives(knowledge, turn(1, "a", "s1"), "Paris")
    paris = only(knowledge, "paris")
    sure = paris.confidence.model_copy(update={"verification": Verification.USER_CONFIRMED})
    one = disputed(paris.model_copy(update={"confidence": sure}), with_=("rome",))
    assert one.confidence.verification is Verification.USER_CONFIRMED
    one = disputed(one, with_=(), settled=("rome",))
    assert one.confidence.verification is Verification.USER_CONFIRMED


def test_what_holds_side_by_side_is_not_disputed_again() -> None:
    """A person said that both do; another telling of the slot changes nothing about that."""
    knowledge = ReconciledKnowledge()
    lives(knowledge, turn(1, "a", "s1"), "Paris")
    lives(knowledge, turn(1, "b", "s2"), "Rome")
    paris, rome = only(knowledge, "paris"), only(knowledge, "rome")
    for one, other in ((paris, rome), (rome, paris)):
        settled = disputed(one, with_=(), settled=(other.id,))
        beside = settled.model_copy(update={"settled_with": (other.id,)})
        knowledge.known[one.id] = beside
        assert disputed(beside, with_=(other.id,)) == beside
    lives(knowledge, turn(0, "c", "s3"), "Oslo")
    for city in ("paris", "rome"):
        found = only(knowledge, city)
        assert (found.status, found.disputed_with) == (MemoryStatus.ACTIVE, ())


def test_a_thousand_tellings_are_counted_and_kept_in_bounds() -> None:
    """Each independent episode counts once, first and latest sources stay whole."""
    knowledge, turns = ReconciledKnowledge(), [said(day) for day in range(300)]
    for start in range(0, 300, 20):
        for episode in turns[start : start + 20]:
            knowledge.episodes[episode.id] = episode
        knowledge.take([stated(e, "lives in", "Paris") for e in turns[start : start + 20]])
    paris = only(knowledge, "paris")
    assert paris.confidence.supporting_episodes == 300
    assert len(paris.source_episode_ids) == FIRST_KEPT + LATEST_KEPT
    assert paris.source_episode_ids[0] == turns[0].id
    assert paris.source_episode_ids[-1] == turns[-1].id
    assert len(paris.model_dump_json()) < 30_000
    assert (paris.known_at, paris.confidence.last_confirmed) == (on(0), on(299))

    again = knowledge.take([stated(e, "lives in", "Paris") for e in turns])
    assert not again.new_memories()
    assert not list(again.amendments())
    assert only(knowledge, "paris") == paris


def test_a_quotation_makes_it_extracted_and_a_later_one_does_so_too() -> None:
    """Inferred without a quotation, extracted with one; sources keep their words."""
    knowledge, first, second = ReconciledKnowledge(), said(1), said(2)
    knowledge.hear(first, stated(first, "uses", "Vim"))
    vim = only(knowledge, "vim")
    assert vim.confidence.method is ExtractionMethod.INFERRED
    quote = Evidence(episode_id=second.id, words="turn 2")
    knowledge.hear(second, stated(second, "uses", "Vim", evidence=(quote,)))
    vim = only(knowledge, "vim")
    assert vim.evidence == (quote,)
    assert vim.confidence.method is ExtractionMethod.EXTRACTED
    assert vim.confidence.verification is Verification.EVIDENCE_FOUND


def test_a_turn_in_engrams_own_words_is_no_evidence() -> None:
    """The memory said back, letter by letter, corroborates nothing; it is counted."""
    knowledge, first = ReconciledKnowledge(), said(1)
    knowledge.hear(first, stated(first, "uses", "Vim"))
    echo = said(2)
    quote = Evidence(episode_id=echo.id, words="The user uses Vim.")
    plan = knowledge.hear(echo, stated(echo, "uses", "Vim", evidence=(quote,)))
    assert [a.reason for a in plan.actions if isinstance(a, Discard)] == [Reason.ECHO]
    assert only(knowledge, "vim").confidence.supporting_episodes == 1


def test_what_happened_is_stored_as_an_episode_that_nothing_replaces() -> None:
    """It has no slot, and the same words again only corroborate it."""
    knowledge, first, second = ReconciledKnowledge(), said(1), said(2)

    def met(episode: Episode) -> Statement:
        return stated(episode, "met", "Ana", kind=MemoryKind.EPISODE)

    plan = knowledge.hear(first, met(first))
    assert [type(a) for a in plan.actions] == [StoreEpisode]
    knowledge.hear(second, met(second))
    knowledge.hear(said(3), stated(said(3), "met", "Ana", holds=False))
    (memory, *_) = [m for m in knowledge.known.values() if m.kind is MemoryKind.EPISODE]
    assert memory.slot is None
    assert memory.status is MemoryStatus.ACTIVE
    assert memory.confidence.supporting_episodes == 2


def test_a_promise_that_no_longer_holds_was_kept_unless_the_turn_says_otherwise() -> None:
    """A later statement resolves a commitment."""
    for ended, resolution in (
        (None, Resolution.FULFILLED),
        (Resolution.EXPIRED, Resolution.EXPIRED),
    ):
        knowledge, first, later = ReconciledKnowledge(), said(1), said(9)
        promise = {"category": Category.COMMITMENT}
        knowledge.hear(first, stated(first, "promised to", "call Bo", **promise))
        end = stated(later, "promised to", "call Bo", holds=False, ended=ended, **promise)
        assert [is_open_promise(m) for m in knowledge.of("call bo")] == [True]
        knowledge.hear(later, end)
        called = min(knowledge.of("call bo"), key=lambda m: m.known_at)
        assert (called.resolution, called.resolved_at) == (resolution, on(9))
        assert not any(is_open_promise(m) for m in knowledge.of("call bo"))
        # Told once more that it ended, it has not ended twice.
        again = said(12)
        knowledge.hear(again, end.model_copy(update={"episode_ids": (again.id,)}))
        [outcome] = [m for m in knowledge.of("call bo") if is_outcome(m)]
        assert {*outcome.source_episode_ids} == {first.id, later.id, again.id}


def test_of_others_everybody_speaks_in_the_third_person() -> None:
    """What is said again of Tom counts: where it changed meanwhile, and where it did not."""
    knowledge = ReconciledKnowledge()

    def works(day: int, employer: str) -> None:
        turn_of_day, words = said(day), f"Tom works at {employer}."
        quote = Evidence(episode_id=turn_of_day.id, words=words)
        one = stated(turn_of_day, "works at", employer, content=words, subject="Tom")
        knowledge.hear(turn_of_day, one.model_copy(update={"evidence": (quote,)}))

    for day, employer in enumerate(("Acme", "Globex", "Globex", "Acme")):
        works(day, employer)
    assert knowledge.current() == {"Tom works at Acme."}
    assert only(knowledge, "globex").confidence.supporting_episodes == 2


def test_engrams_own_words_are_no_echo_where_they_hold_no_more() -> None:
    """Said after it was replaced, it is news."""
    knowledge = ReconciledKnowledge()
    lives(knowledge, said(1), "Paris")
    lives(knowledge, said(2), "Rome")
    again = said(3)
    quote = Evidence(episode_id=again.id, words="The user lives in Paris.")
    knowledge.hear(again, stated(again, "lives in", "Paris", evidence=(quote,)))
    assert knowledge.current() == {"The user lives in Paris."}
