"""What becomes of a batch of statements, decision by decision: sources, words, slots, endings."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from engram.consolidation.amendments import MAX_EVIDENCE
from engram.consolidation.reconcile import reconcile
from engram.domain.confidence import ExtractionMethod, Verification
from engram.domain.memories import (
    Category,
    Episode,
    Evidence,
    MemoryStatus,
    Resolution,
    SemanticMemory,
)
from engram.domain.plan import (
    ActionSource,
    ConsolidationPlan,
    Discard,
    Eligibility,
    Reason,
    Statement,
    StoreNote,
    UpdateNote,
)
from engram.domain.rules import LifecycleRules
from engram.errors import InvalidInput
from engram.lifecycle.decisions import resolve, rulebook
from engram.lifecycle.policies import is_open_promise
from tests.support.reconciliation import NOW, ReconciledKnowledge, on, said, stated

WALKED = "The user walked the coast path."
PROMISE = {"category": Category.COMMITMENT}
LONG = "The user says that " + "tea is good, and that " * 30 + "it is."


def words(episode: Episode, content: str = WALKED, **more: Any) -> Statement:
    """What a turn states without a slot."""
    return stated(episode, None, "", content=content, **more)


def quote(episode: Episode, text: str) -> Evidence:
    """A quotation of that turn."""
    return Evidence(episode_id=episode.id, words=text)


def mind_of(*episodes: Episode) -> ReconciledKnowledge:
    """A mind that has these turns, and has read none of them."""
    return ReconciledKnowledge(episodes={episode.id: episode for episode in episodes})


def only(mind: ReconciledKnowledge) -> SemanticMemory:
    """The one memory there is."""
    (memory,) = mind.known.values()
    return memory


def named(mind: ReconciledKnowledge, content: str) -> SemanticMemory:
    """The one memory of this content."""
    (memory,) = [m for m in mind.known.values() if m.content == content]
    return memory


def updates(plan: ConsolidationPlan) -> list[UpdateNote]:
    """The changes of a plan."""
    return [action for action in plan.actions if isinstance(action, UpdateNote)]


def discards(plan: ConsolidationPlan) -> list[Discard]:
    """What a plan leaves alone."""
    return [action for action in plan.actions if isinstance(action, Discard)]


def change_of(memory: SemanticMemory, mind: ReconciledKnowledge, **changes: Any) -> SemanticMemory:
    """The memory changed behind the back of reconciliation."""
    mind.known[memory.id] = memory.model_copy(update=changes)
    return mind.known[memory.id]


A, B, C, D = said(1), said(2), said(3), said(9)


def test_nothing_stated_changes_nothing() -> None:
    """Not even what is known already."""
    mind = ReconciledKnowledge()
    mind.hear(A, words(A))
    assert mind.take([]).actions == ()


def test_what_no_turn_says_is_left_alone_with_its_words() -> None:
    """The reason is counted, and told in few characters."""
    mind = mind_of(A)
    plan = mind.take([words(B), words(A, "The user swam."), words(B, LONG)])
    assert [type(action) for action in plan.actions] == [StoreNote, Discard, Discard]
    first, second = discards(plan)
    assert first == Discard(
        why=f"none of its sources exists any more: {WALKED}", reason=Reason.NO_SOURCE
    )
    assert second.why == f"none of its sources exists any more: {LONG}"[:500]


def test_a_turn_read_again_is_left_alone_on_what_its_memory_rests_on() -> None:
    """The reason is counted, with how sure and how important the memory is."""
    mind = ReconciledKnowledge()
    for content in (WALKED, LONG):
        mind.hear(A, words(A, content, confidence=0.7, importance=0.3))
    plan = mind.take([words(A), words(A, LONG)])
    second, first = plan.actions
    assert first == Discard(
        why=f"read before from the same turns: {WALKED}",
        reason=Reason.READ_BEFORE,
        eligibility=Eligibility(confidence=0.7, importance=0.3, source=ActionSource.EXTRACTION),
    )
    assert second.why == f"read before from the same turns: {LONG}"[:500]


def test_an_echo_is_left_alone_with_its_words() -> None:
    """A turn in Engram's own words, whatever their case and spacing, is named as such."""
    mind = ReconciledKnowledge()
    mind.hear(A, words(A))
    mind.hear(A, words(A, LONG))
    echo = words(B, evidence=(quote(B, "the user  walked the coast path"),))
    long_echo = words(B, LONG, evidence=(quote(B, "so"), quote(B, LONG)))
    second, first = discards(mind.hear(B, echo, long_echo))
    assert (first.reason, second.reason) == (Reason.ECHO, Reason.ECHO)
    assert first.why == f"repeats a memory in Engram's own words: {WALKED}"
    assert second.why == f"repeats a memory in Engram's own words: {LONG}"[:500]
    assert first.eligibility.confidence == 0.9


def test_engrams_own_words_are_news_where_nothing_is_known_in_them() -> None:
    """Somebody may well speak of himself so."""
    mind = ReconciledKnowledge()
    mind.hear(A, words(A, evidence=(quote(A, WALKED),)))
    assert only(mind).source_episode_ids == (A.id,)


def test_the_same_statement_twice_in_a_batch_is_one_memory_and_no_repeat() -> None:
    """A turn that was read once is not told to have been read before."""
    mind = mind_of(A)
    plan = mind.take([words(A), words(A)])
    assert [type(action) for action in plan.actions] == [StoreNote]
    assert only(mind).source_episode_ids == (A.id,)


def test_of_two_readings_of_one_turn_in_a_batch_the_first_counts() -> None:
    """The same words from the same turn, or from a part of the same turns, are one telling."""
    lives = {"content": "The user lives in Paris."}
    mind = mind_of(A)
    mind.take([stated(A, "lives in", "Paris"), stated(A, "lives in", "Paris", begins=True)])
    assert [one.begins for one in only(mind).tellings] == [False]
    mind = mind_of(A, B)
    both = stated(A, "lives in", "Paris", episode_ids=(A.id, B.id), **lives)
    mind.take([both, stated(B, "lives in", "Paris", **lives)])
    assert [one.episode_ids for one in only(mind).tellings] == [(A.id, B.id)]


def test_two_turns_of_a_batch_that_say_the_same_make_one_memory_of_both() -> None:
    """With the sources and quotations of both, as if they had come one after the other."""
    first = words(A, evidence=(quote(A, "I walked"), quote(A, "the path")))
    second = words(B, evidence=(quote(B, "yes, walked"),))
    together, apart = mind_of(A, B), ReconciledKnowledge()
    plan = together.take([first, second])
    apart.hear(A, first)
    apart.hear(B, second)
    assert len(plan.actions) == 1
    memory = only(together)
    assert memory.source_episode_ids == (A.id, B.id)
    assert memory.evidence == (*first.evidence, *second.evidence)
    assert (memory.confidence.supporting_episodes, memory.confidence.last_confirmed) == (2, on(2))
    assert memory == only(apart)


@pytest.mark.parametrize("predicate", [None, "lives in"])
def test_a_quotation_by_a_later_turn_of_the_batch_makes_it_extracted(predicate: str | None) -> None:
    """As it does where the turns are read one after the other."""
    mind = mind_of(A, B)
    content = {"content": "The user lives in Rome."}
    found = quote(B, "in Rome")
    mind.take(
        [
            stated(A, predicate, "Rome", **content),
            stated(B, predicate, "Rome", evidence=(found, found), **content),
        ]
    )
    memory = only(mind)
    assert memory.evidence == (found,)
    assert memory.confidence.method is ExtractionMethod.EXTRACTED
    assert memory.confidence.verification is Verification.EVIDENCE_FOUND


def test_quotations_of_a_batch_are_kept_in_bounds() -> None:
    """The first ones stay."""
    mind = mind_of(A, B)
    quotes = {
        e.id: tuple(quote(e, f"{e.content}, {number}") for number in range(10)) for e in (A, B)
    }
    mind.take([words(e, evidence=quotes[e.id]) for e in (A, B)])
    assert only(mind).evidence == (*quotes[A.id], *quotes[B.id])[:MAX_EVIDENCE]


def test_what_is_said_again_is_an_update_with_what_is_new_in_it() -> None:
    """Only turns that are no sources yet, each once, and with the words by which they say so."""
    mind = mind_of(A, B, C)
    mind.hear(A, words(A, importance=0.3))
    plan = mind.take(
        [
            words(A, episode_ids=(A.id, B.id), evidence=(quote(B, "walked"),)),
            words(B),
            words(B, episode_ids=(B.id, C.id), evidence=(quote(C, "the path"),)),
        ]
    )
    (update,) = updates(plan)
    assert plan.actions == (update,)
    assert update.add_sources == (B.id, C.id)
    assert update.add_evidence == (quote(B, "walked"), quote(C, "the path"))
    assert (update.why, update.reason, update.add_tellings) == ("said again", Reason.SAID_AGAIN, ())
    assert update.eligibility == Eligibility(
        confidence=0.9, importance=0.3, source=ActionSource.EXTRACTION
    )
    assert only(mind).source_episode_ids == (A.id, B.id, C.id)


def test_what_is_settled_for_a_value_is_an_update_that_says_why() -> None:
    """The reason is counted, with how sure and how important the memory is."""
    mind = ReconciledKnowledge()
    mind.hear(A, stated(A, "lives in", "Paris", importance=0.3))
    (update,) = updates(mind.hear(B, stated(B, "lives in", "Rome")))
    assert update.reason is Reason.REPLACED
    assert update.why == "replaced by what began to hold then: The user lives in Rome."
    assert update.eligibility == Eligibility(
        confidence=0.9, importance=0.3, source=ActionSource.EXTRACTION
    )


def test_a_turn_that_says_two_things_is_quoted_for_each_with_its_own_words() -> None:
    """A quotation about one employer is no evidence of the other."""
    mind = ReconciledKnowledge()
    mind.hear(A, stated(A, "works at", "Rise"), stated(A, "works at", "Charité"))
    rise, charite = quote(B, "I work at Rise"), quote(B, "and at Charité")
    mind.hear(
        B,
        stated(B, "works at", "Rise", evidence=(rise,)),
        stated(B, "works at", "Charité", evidence=(charite,)),
    )
    assert named(mind, "The user works at Rise.").evidence == (rise,)
    assert named(mind, "The user works at Charité.").evidence == (charite,)


def test_only_the_words_of_tellings_that_are_new_are_added() -> None:
    """What was told of another value in the same batch is no evidence of this one."""
    mind = ReconciledKnowledge()
    mind.hear(A, stated(A, "lives in", "Paris"))
    mind.episodes |= {B.id: B, C.id: C}
    paris, rome = quote(B, "in Paris"), quote(C, "in Rome")
    mind.take(
        [
            stated(B, "lives in", "Paris", evidence=(paris,)),
            stated(C, "lives in", "Rome", evidence=(rome,)),
        ]
    )
    assert named(mind, "The user lives in Paris.").evidence == (paris,)
    assert named(mind, "The user lives in Rome.").evidence == (rome,)


def test_a_statement_about_somebody_else_is_about_them() -> None:
    """Subject, predicate and object make the slot."""
    mind = ReconciledKnowledge()
    mind.hear(A, stated(A, "lives in", "Oslo", subject="Bo", content="Bo lives in Oslo."))
    slot = only(mind).slot
    assert slot is not None
    assert (slot.subject, slot.predicate, slot.object) == ("bo", "lives in", "oslo")


def test_words_that_return_after_they_were_replaced_get_the_next_generation() -> None:
    """First 0, then 1, then 2; other words do not count."""
    mind = ReconciledKnowledge()
    mind.hear(A, words(A, "The user swam."))
    for number, episode in enumerate((A, B, C)):
        mind.hear(episode, words(episode))
        memory = max(
            (m for m in mind.known.values() if m.content == WALKED), key=lambda m: m.generation
        )
        assert memory.generation == number
        change_of(memory, mind, status=MemoryStatus.SUPERSEDED)


READ_AS = "The user settled by the river."


def test_words_once_understood_keep_what_they_were_understood_as() -> None:
    """Read without a slot, or with one of which nothing else is known, they confirm it."""
    mind = ReconciledKnowledge()
    mind.hear(A, stated(A, "lives in", "Paris", content=READ_AS))
    mind.hear(B, words(B, READ_AS))
    mind.hear(C, stated(C, "keeps", "a boat", content=READ_AS))
    memory = only(mind)
    assert memory.source_episode_ids == (A.id, B.id, C.id)
    assert [one.episode_ids for one in memory.tellings] == [(A.id,), (B.id,), (C.id,)]


def test_words_understood_as_a_value_that_others_compete_with_keep_their_first_meaning() -> None:
    """Somebody's other home is known, in other words: these do not become one."""
    mind = ReconciledKnowledge()
    mind.hear(A, stated(A, "keeps", "a boat", content=READ_AS), stated(A, "lives in", "Paris"))
    plan = mind.hear(B, stated(B, "lives in", "Rome", content=READ_AS))
    assert not plan.new_memories()
    assert named(mind, READ_AS).source_episode_ids == (A.id, B.id)
    assert named(mind, "The user lives in Paris.").status is MemoryStatus.ACTIVE


def test_words_understood_as_what_is_known_in_other_words_confirm_that() -> None:
    """Two memories could take them; the one that says this of the same thing does."""
    mind = ReconciledKnowledge()
    mind.hear(A, stated(A, "keeps", "a boat", content=READ_AS), stated(A, "lives in", "Paris"))
    mind.hear(B, stated(B, "lives in", "Paris", content=READ_AS))
    assert named(mind, READ_AS).source_episode_ids == (A.id,)
    assert named(mind, "The user lives in Paris.").source_episode_ids == (A.id, B.id)


def test_words_understood_as_another_value_of_the_same_thing_are_that_value() -> None:
    """Within one timeline the new reading counts, and takes its place in it."""
    mind = ReconciledKnowledge()
    mind.hear(A, stated(A, "lives in", "Paris", content=READ_AS))
    mind.hear(B, stated(B, "lives in", "Rome", content=READ_AS))
    paris, rome = mind.of("paris")[0], mind.of("rome")[0]
    assert (paris.superseded_by, rome.status) == (rome.id, MemoryStatus.ACTIVE)


def test_a_timeline_gets_what_is_told_of_it_with_and_without_a_slot() -> None:
    """Words that carry no slot this time are told of what they meant before."""
    mind = ReconciledKnowledge()
    mind.hear(A, stated(A, "lives in", "Paris", content=READ_AS))
    mind.episodes |= {B.id: B, C.id: C}
    mind.take([words(B, READ_AS), stated(C, "resides in", "Paris")])
    memory = only(mind)
    assert [one.episode_ids for one in memory.tellings] == [(A.id,), (B.id,), (C.id,)]


def test_words_understood_a_moment_before_in_the_batch_are_understood_so_again() -> None:
    """One turn is read with a slot and the next one without: one memory with both tellings."""
    mind = mind_of(A, B)
    mind.take([stated(A, "lives in", "Paris", content=READ_AS), words(B, READ_AS)])
    memory = only(mind)
    assert [one.episode_ids for one in memory.tellings] == [(A.id,), (B.id,)]


def test_words_understood_in_two_ways_in_one_batch_are_two_memories() -> None:
    """Each reading with a slot of its own stands."""
    mind = mind_of(A, B)
    mind.take(
        [
            stated(A, "lives in", "Paris", content=READ_AS),
            stated(B, "keeps", "a boat", content=READ_AS),
        ]
    )
    assert [m.slot.object for m in mind.known.values() if m.slot] == ["paris", "boat"]
    assert [m.generation for m in mind.known.values()] == [0, 1]


def duplicates(mind: ReconciledKnowledge, *contents: str) -> list[SemanticMemory]:
    """Memories of these words, each a duplicate of the next and replaced by it."""
    for content in contents:
        mind.hear(A, words(A, content))
    for one, other in pairwise(contents):
        by = named(mind, other).id
        changes = {"status": MemoryStatus.SUPERSEDED, "superseded_by": by, "duplicate_of": by}
        change_of(named(mind, one), mind, **changes)
    return [named(mind, content) for content in contents]


def test_words_confirm_what_stands_for_them_over_any_number_of_steps() -> None:
    """The last of a chain of duplicates is what says it now."""
    mind = ReconciledKnowledge()
    *_, last = duplicates(mind, WALKED, "The user hiked.", "The user hiked far.", "The user went.")
    plan = mind.hear(B, words(B))
    assert not plan.new_memories()
    assert mind.known[last.id].source_episode_ids == (A.id, B.id)


def test_words_whose_duplicate_was_replaced_as_well_are_news() -> None:
    """What stood for them does not hold any more; nor does one that was forgotten."""
    mind = ReconciledKnowledge()
    _, last = duplicates(mind, WALKED, "The user hiked.")
    change_of(last, mind, status=MemoryStatus.SUPERSEDED)
    assert len(mind.hear(B, words(B)).new_memories()) == 1
    forgetful = ReconciledKnowledge()
    _, last = duplicates(forgetful, WALKED, "The user hiked.")
    del forgetful.known[last.id]
    (again,) = forgetful.hear(B, words(B)).new_memories()
    assert (again.content, again.generation) == (WALKED, 1)


def test_duplicates_in_a_circle_stand_for_nothing() -> None:
    """Two that name each other, with or without the words in question, end the search."""
    mind = ReconciledKnowledge()
    first, second, third = duplicates(mind, WALKED, "The user hiked.", "The user hiked far.")
    circle = {"status": MemoryStatus.SUPERSEDED}
    change_of(third, mind, duplicate_of=second.id, **circle)
    assert len(reconciled(mind, words(B), B).new_memories()) == 1
    change_of(second, mind, duplicate_of=first.id)
    assert len(reconciled(mind, words(B), B).new_memories()) == 1


def reconciled(
    mind: ReconciledKnowledge, statement: Statement, *episodes: Episode
) -> ConsolidationPlan:
    """A plan that is not applied."""
    mind.episodes |= {episode.id: episode for episode in episodes}
    return reconcile([statement], mind.known.values(), mind.circumstances())


def promise(episode: Episode, what: str, **more: Any) -> Statement:
    """A promise, or that it no longer stands."""
    return stated(episode, "promised to", what, **{**PROMISE, **more})


def test_a_turn_that_ends_two_promises_ends_each_in_its_own_way() -> None:
    """One was kept and the other lapsed: the same telling, but not the same thing."""
    for first, second in (
        (Resolution.EXPIRED, Resolution.FULFILLED),
        (Resolution.FULFILLED, Resolution.EXPIRED),
        (Resolution.EXPIRED, None),
    ):
        mind = ReconciledKnowledge()
        mind.hear(A, promise(A, "call Bo"), promise(A, "call Al"))
        mind.hear(
            D,
            promise(D, "call Bo", holds=False, ended=first),
            promise(D, "call Al", holds=False, ended=second),
        )
        assert named(mind, "The user promised to call Bo.").resolution is first
        al = named(mind, "The user promised to call Al.")
        assert (al.resolution, al.resolved_at) == (second or Resolution.FULFILLED, on(9))


def test_how_a_promise_ended_is_not_lost_with_a_run_that_ended_half_way() -> None:
    """The ending was stored and the promise is still open: reading the turn again ends it so."""
    mind = ReconciledKnowledge()
    mind.hear(A, promise(A, "call Bo"))
    end = promise(D, "call Bo", holds=False, ended=Resolution.EXPIRED)
    for memory in reconciled(mind, end, D).new_memories():
        mind.known[memory.id] = memory
    plan = mind.take([end])
    assert not plan.new_memories()
    called = named(mind, "The user promised to call Bo.")
    assert (called.resolution, called.resolved_at) == (Resolution.EXPIRED, on(9))
    assert called.status is MemoryStatus.SUPERSEDED


def test_only_promises_are_resolved_whatever_else_ends_beside_them() -> None:
    """A habit that ends first, or a promise that gives way to another, keeps no promise."""
    mind = ReconciledKnowledge()
    mind.hear(
        A,
        stated(A, "uses", "Trello"),
        stated(A, "works at", "Rise", **PROMISE),
        promise(A, "call Bo"),
    )
    mind.hear(
        D,
        stated(D, "uses", "Trello", holds=False),
        stated(D, "works at", "Charité", **PROMISE),
        promise(D, "call Bo", holds=False),
    )
    replaced = [m for m in mind.known.values() if m.superseded_by]
    assert {m.content: m.resolution for m in replaced} == {
        "The user uses Trello.": None,
        "The user works at Rise.": None,
        "The user promised to call Bo.": Resolution.FULFILLED,
    }


def test_what_tells_that_a_promise_ended_is_no_open_promise() -> None:
    """It says how that was, leaves ninety days later as the promise does, and is not resolved."""
    mind = ReconciledKnowledge()
    mind.hear(A, promise(A, "call Bo"), promise(A, "call Al"))
    end = promise(D, "call Al", holds=False, ended=Resolution.EXPIRED, content="Called off.")
    mind.hear(D, promise(D, "call Bo", holds=False, content="Kept."), end)
    for content, how in (("Kept.", Resolution.FULFILLED), ("Called off.", Resolution.EXPIRED)):
        note = named(mind, content)
        assert (note.resolution, note.resolved_at) == (how, on(9))
        assert not is_open_promise(note)
        book = rulebook(LifecycleRules(), note.namespace)
        assert book.decide(note, NOW + timedelta(days=89)) is None
        gone = book.decide(note, NOW + timedelta(days=90))
        assert gone is not None
        assert gone.rule == "commitment"
        with pytest.raises(InvalidInput, match="how a promise ended"):
            resolve(note, Resolution.FULFILLED, NOW)


def test_a_promise_made_anew_after_it_was_resolved_is_open() -> None:
    """As after a turn that ended it: a further memory, and what was kept stays readable as kept."""
    for predicate in ("promised to", None):
        mind = ReconciledKnowledge()
        said_so = {"content": "The user promised to call Bo.", **PROMISE}
        mind.hear(A, stated(A, predicate, "call Bo", **said_so))
        first = named(mind, "The user promised to call Bo.")
        change_of(first, mind, resolution=Resolution.FULFILLED, resolved_at=on(2))
        for again in (C, D):
            mind.hear(again, stated(again, predicate, "call Bo", **said_so))
        kept, anew = sorted(mind.known.values(), key=lambda m: m.generation)
        assert kept.resolution is Resolution.FULFILLED
        assert kept.source_episode_ids == (A.id,)
        assert (anew.resolution, anew.status) == (None, MemoryStatus.ACTIVE)
        assert anew.source_episode_ids == (C.id, D.id)
        before = stated(B, predicate, "call Bo", **said_so)
        mind.hear(B, before)
        assert mind.known[kept.id].source_episode_ids == (A.id, B.id)
        assert mind.known[anew.id].source_episode_ids == (C.id, D.id)


def test_a_promise_that_stands_is_not_resolved_and_one_that_was_is_left_as_it_was() -> None:
    """Told again it is as open as before; ended after it was kept, it stays kept."""
    mind = ReconciledKnowledge()
    mind.hear(A, promise(A, "call Bo"))
    (update,) = updates(mind.hear(B, promise(B, "call Bo")))
    assert update.ending is None
    (called,) = mind.of("call bo")
    change_of(called, mind, resolution=Resolution.FULFILLED, resolved_at=on(3))
    (update,) = updates(mind.hear(D, promise(D, "call Bo", holds=False, ended=Resolution.EXPIRED)))
    assert update.supersession is not None
    assert update.ending is None
