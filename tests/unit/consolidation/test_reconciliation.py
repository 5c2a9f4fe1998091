"""What becomes of new statements, by pure rule."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.consolidation.reconcile import reconcile
from engram.domain.memories import Episode, MemoryKind, MemoryStatus
from engram.domain.plan import Discard, Statement, StoreNote
from tests.support.reconciliation import ReconciledKnowledge, on, said, stated


def test_something_new_is_stored_with_its_source() -> None:
    """A statement nobody knew becomes one note, dated by its turn."""
    knowledge, turn = ReconciledKnowledge(), said(3)
    plan = knowledge.hear(turn, stated(turn, "uses", "Vim", importance=0.7))
    (action,) = plan.actions
    assert isinstance(action, StoreNote)
    memory = action.memory
    assert memory.source_episode_ids == (turn.id,)
    assert (memory.event_at, memory.known_at) == (on(3), on(3))
    assert (memory.importance, memory.generation, memory.selectivity) == (0.7, 0, 0.0)


def test_a_newer_value_retires_the_older_one() -> None:
    """One value at a time: the newer event wins, the older keeps its place in history."""
    knowledge, first, second = ReconciledKnowledge(), said(1), said(9)
    knowledge.hear(first, stated(first, "lives in", "Paris"))
    plan = knowledge.hear(second, stated(second, "lives in", "London", begins=True))
    assert len(plan.retirements()) == 1
    paris, london = knowledge.of("paris")[0], knowledge.of("london")[0]
    assert paris.status is MemoryStatus.SUPERSEDED
    assert (paris.superseded_by, paris.valid_to) == (london.id, on(9))
    assert paris.superseded_known_at == on(9)
    assert (london.supersedes, london.valid_from) == ((paris.id,), on(9))


def test_what_is_switched_to_ends_the_one_of_its_kind_that_is_known() -> None:
    """A switch to Neovim says nothing of VS Code, but what is known does."""
    knowledge, first, second = ReconciledKnowledge(), said(1), said(9)
    knowledge.hear(first, stated(first, "uses", "VS Code"))
    knowledge.hear(second, stated(second, "switched to", "Neovim"))
    assert knowledge.of("vs code")[0].status is MemoryStatus.SUPERSEDED


def test_an_older_value_that_arrives_late_is_history_at_once() -> None:
    """What happened before does not replace what holds now, however late it is learnt."""
    knowledge, new, late = ReconciledKnowledge(), said(5), said(9)
    knowledge.hear(new, stated(new, "lives in", "London"))
    plan = knowledge.hear(late, stated(late, "lives in", "Paris", event_at=on(-300)))
    assert not plan.retirements()
    paris, london = knowledge.of("paris")[0], knowledge.of("london")[0]
    assert (paris.status, paris.superseded_by) == (MemoryStatus.SUPERSEDED, london.id)
    assert (paris.valid_to, paris.superseded_known_at) == (on(5), on(9))
    assert london.superseded_by is None
    assert london.supersedes == (paris.id,)


def test_a_value_in_between_is_fitted_into_the_history() -> None:
    """Paris, London, and then word of Rome in between: Paris gave way to Rome."""
    knowledge, a, b, c = ReconciledKnowledge(), said(1), said(100), said(200)
    knowledge.hear(a, stated(a, "lives in", "Paris"))
    knowledge.hear(b, stated(b, "lives in", "London"))
    knowledge.hear(c, stated(c, "lives in", "Rome", event_at=on(50)))
    paris, rome, london = (
        knowledge.of("paris")[0],
        knowledge.of("rome")[0],
        knowledge.of("london")[0],
    )
    assert (paris.superseded_by, paris.valid_to) == (rome.id, on(50))
    assert paris.superseded_known_at == on(100)
    assert (rome.superseded_by, rome.valid_to) == (london.id, on(100))
    assert knowledge.current() == {"The user lives in London."}


def test_saying_it_again_adds_a_source_and_no_memory() -> None:
    """Corroboration is a set of episodes; knowing does not move later."""
    knowledge, first, second = ReconciledKnowledge(), said(1), said(40)
    knowledge.hear(first, stated(first, "likes", "tea"))
    knowledge.hear(second, stated(second, "likes", "tea"))
    (memory,) = knowledge.known.values()
    assert memory.source_episode_ids == (first.id, second.id)
    assert (memory.known_at, memory.confidence.last_confirmed) == (on(1), on(40))
    assert memory.confidence.supporting_episodes == 2


def test_the_same_slot_in_other_words_is_the_same_knowledge() -> None:
    """Two wordings of one slot and object make one memory."""
    knowledge, first, second = ReconciledKnowledge(), said(1), said(2)
    knowledge.hear(first, stated(first, "lives in", "Lisbon"))
    again = stated(second, "resides in", "Lisbon", content="The user resides in Lisbon.")
    knowledge.hear(second, again)
    (memory,) = knowledge.known.values()
    assert memory.source_episode_ids == (first.id, second.id)


def test_reading_the_same_turn_again_corroborates_nothing() -> None:
    """The same statement from the same turn changes nothing, also when it was replaced since."""
    knowledge, first, second = ReconciledKnowledge(), said(1), said(2)
    statement = stated(first, "lives in", "Paris")
    knowledge.hear(first, statement)
    knowledge.hear(second, stated(second, "lives in", "London"))
    before = dict(knowledge.known)
    plan = knowledge.take([statement])
    assert knowledge.known == before
    assert [type(a) for a in plan.actions] == [Discard]


def test_a_value_that_returns_is_a_new_generation() -> None:
    """Paris, London, Paris: three memories, the last one current."""
    knowledge, a, b, c = ReconciledKnowledge(), said(1), said(2), said(3)
    knowledge.hear(a, stated(a, "lives in", "Paris"))
    knowledge.hear(b, stated(b, "lives in", "London"))
    knowledge.hear(c, stated(c, "lives in", "Paris"))
    first, second = knowledge.of("paris")
    assert (first.generation, second.generation) == (0, 1)
    assert first.id != second.id
    assert knowledge.current() == {"The user lives in Paris."}


def test_an_ending_ends_the_value_and_only_that() -> None:
    """Hearing "No longer uses Trello" ends Trello; Linear stays; Trello can return."""
    knowledge, a, b, c = ReconciledKnowledge(), said(1), said(2), said(3)
    knowledge.hear(a, stated(a, "uses", "Trello"), stated(a, "uses", "Linear"))
    knowledge.hear(b, stated(b, "uses", "Trello", holds=False))
    trello = knowledge.of("trello")[0]
    ending = next(m for m in knowledge.known.values() if "no longer" in m.content)
    assert (trello.superseded_by, trello.valid_to) == (ending.id, on(2))
    assert knowledge.current() == {"The user uses Linear.", "The user no longer uses Trello."}
    knowledge.hear(c, stated(c, "uses", "Trello"))
    assert knowledge.current() == {"The user uses Linear.", "The user uses Trello."}


def test_an_ending_that_comes_first_still_ends_what_began_before_it() -> None:
    """Order of arrival does not matter, order of events does."""
    knowledge, late, early = ReconciledKnowledge(), said(9), said(1)
    knowledge.hear(late, stated(late, "lives in", "Paris", holds=False))
    knowledge.hear(early, stated(early, "lives in", "Paris"))
    assert knowledge.current() == {"The user no longer lives in Paris."}


def test_an_ending_of_something_else_ends_nothing() -> None:
    """Hearing "No longer lives in Paris" says nothing against London."""
    knowledge, a, b = ReconciledKnowledge(), said(1), said(2)
    knowledge.hear(a, stated(a, "lives in", "London"))
    knowledge.hear(b, stated(b, "lives in", "Paris", holds=False))
    assert "The user lives in London." in knowledge.current()


def test_a_month_that_is_named_does_not_go_back_behind_what_was_said_in_it() -> None:
    """Hearing "I moved in May" names the first; on the tenth they still lived elsewhere."""
    knowledge, tenth, later = ReconciledKnowledge(), said(10), said(40)
    knowledge.hear(tenth, stated(tenth, "lives in", "Porto"))
    knowledge.hear(later, stated(later, "lives in", "Lisbon", begins=True, event_at=on(0)))
    assert knowledge.current() == {"The user lives in Lisbon."}
    assert knowledge.of("porto")[0].valid_to == knowledge.of("lisbon")[0].event_at == on(10)


def test_a_turn_that_arrives_late_does_not_replace_what_was_said_again_since() -> None:
    """London in January and in May; word of Paris from March comes last and is history."""
    knowledge, january, may, march = ReconciledKnowledge(), said(0), said(120), said(60)
    knowledge.hear(january, stated(january, "lives in", "London"))
    knowledge.hear(may, stated(may, "lives in", "London"))
    knowledge.hear(march, stated(march, "lives in", "Paris"))
    assert knowledge.current() == {"The user lives in London."}
    assert (knowledge.of("paris")[0].valid_to) == on(120)


def test_unrelated_knowledge_never_retires_each_other() -> None:
    """Other people, other predicates and several likes live side by side."""
    knowledge, turn, later = ReconciledKnowledge(), said(1), said(2)
    knowledge.hear(turn, stated(turn, "likes", "tea"), stated(turn, "lives in", "Paris"))
    other = stated(later, "lives in", "Oslo", subject="Bo", content="Bo lives in Oslo.")
    knowledge.hear(later, stated(later, "likes", "coffee"), other)
    assert len(knowledge.current()) == 4


def test_liking_and_disliking_the_same_thing_replace_each_other() -> None:
    """The newer of two opposed predicates wins, for that object."""
    knowledge, a, b = ReconciledKnowledge(), said(1), said(2)
    knowledge.hear(a, stated(a, "likes", "olives"), stated(a, "likes", "tea"))
    knowledge.hear(b, stated(b, "dislikes", "olives"))
    assert knowledge.current() == {"The user likes tea.", "The user dislikes olives."}


def test_two_values_in_one_breath_stand_side_by_side() -> None:
    """Hearing "I work at Rise and at Charité" is no change of job."""
    knowledge, turn = ReconciledKnowledge(), said(1)
    knowledge.hear(turn, stated(turn, "works at", "Rise"), stated(turn, "works at", "Charité"))
    assert len(knowledge.current()) == 2


def test_birthplace_and_birthday_do_not_compete() -> None:
    """Born in Lagos and born in 1979 are two slots; a later correction of one wins."""
    knowledge, a, b, c = ReconciledKnowledge(), said(1), said(2), said(3)
    knowledge.hear(a, stated(a, "was born", "1979"))
    knowledge.hear(b, stated(b, "was born", "Lagos"))
    knowledge.hear(c, stated(c, "was born", "1978"))
    assert knowledge.current() == {"The user was born 1978.", "The user was born Lagos."}


def test_a_statement_without_a_source_is_discarded_with_a_reason() -> None:
    """What no stored turn says is not believed."""
    knowledge = ReconciledKnowledge()
    plan = knowledge.take([stated(said(1), "likes", "tea")])
    assert not knowledge.known
    assert [type(a) for a in plan.actions] == [Discard]


def test_content_without_a_slot_is_known_by_its_words() -> None:
    """The same sentence twice is one memory with two sources."""
    knowledge, a, b = ReconciledKnowledge(), said(1), said(2)
    words = "The user walked the coast path."
    knowledge.hear(a, stated(a, None, "", content=words))
    knowledge.hear(b, stated(b, None, "", content="the user walked the coast path"))
    (memory,) = knowledge.known.values()
    assert memory.source_episode_ids == (a.id, b.id)


CITIES = st.sampled_from(["Paris", "London", "Rome", "Oslo"])
MOVES = st.lists(st.tuples(CITIES, st.booleans()), min_size=1, max_size=7)


@given(moves=MOVES, order=st.randoms(use_true_random=False))
def test_order_of_arrival_does_not_matter_for_what_holds(
    moves: list[tuple[str, bool]], order: object
) -> None:
    """Whatever order turns are consolidated in, the same values hold at the end."""
    turns = [said(day * 10, str(day)) for day in range(len(moves))]
    told = [
        stated(turn, "lives in", city, holds=holds)
        for turn, (city, holds) in zip(turns, moves, strict=True)
    ]
    shuffled = list(zip(turns, told, strict=True))
    order.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis' seeded Random
    in_order, in_disorder = ReconciledKnowledge(), ReconciledKnowledge()
    for turn, statement in zip(turns, told, strict=True):
        in_order.hear(turn, statement)
    for turn, statement in shuffled:
        in_disorder.hear(turn, statement)

    def standing(knowledge: ReconciledKnowledge) -> set[str]:
        return {
            m.content
            for m in knowledge.known.values()
            if m.superseded_by is None and "no longer" not in m.content
        }

    assert standing(in_disorder) == standing(in_order)
    assert len(standing(in_order)) <= 1


@given(moves=MOVES)
def test_reconciling_again_changes_nothing(moves: list[tuple[str, bool]]) -> None:
    """A second pass over the same statements leaves every memory as it is."""
    knowledge = ReconciledKnowledge()
    told = []
    for day, (city, holds) in enumerate(moves):
        turn = said(day, city)
        told.append(stated(turn, "lives in", city, holds=holds))
        knowledge.hear(turn, told[-1])
    before = dict(knowledge.known)
    knowledge.take(told)
    assert knowledge.known == before


@given(moves=MOVES)
def test_one_batch_or_many_passes_lead_to_the_same_memory(moves: list[tuple[str, bool]]) -> None:
    """How turns are cut into batches does not show in what is known."""
    turns = [said(day, str(day)) for day in range(len(moves))]
    told = [
        stated(turn, "lives in", city, holds=holds)
        for turn, (city, holds) in zip(turns, moves, strict=True)
    ]
    one_by_one, at_once = ReconciledKnowledge(), ReconciledKnowledge()
    for turn, statement in zip(turns, told, strict=True):
        one_by_one.hear(turn, statement)
    at_once.episodes = {turn.id: turn for turn in turns}
    at_once.take(told)
    assert at_once.known.keys() == one_by_one.known.keys()
    for memory_id, memory in at_once.known.items():
        assert memory == one_by_one.known[memory_id]


@given(moves=MOVES, stop=st.integers(0, 6))
def test_a_plan_that_was_never_retired_is_made_good(
    moves: list[tuple[str, bool]], stop: int
) -> None:
    """If a run ends between writing and retiring, the next one retires what is left."""
    whole, broken = ReconciledKnowledge(), ReconciledKnowledge()
    for day, (city, holds) in enumerate(moves):
        turn = said(day, city)
        statement = stated(turn, "lives in", city, holds=holds)
        whole.hear(turn, statement)
        broken.episodes[turn.id] = turn
        if day == stop:
            lost = reconcile([statement], broken.known.values(), broken.circumstances())
            for memory in lost.new_memories():
                broken.known.setdefault(memory.id, memory)
        broken.take([statement])
    assert broken.current() == whole.current()


@pytest.mark.parametrize(
    ("known", "change", "holds"),
    [
        (("is held in", "room 4.12"), ("moved to", "the Birch room"), "held in the Birch room"),
        (("is held in", "the Ash room"), ("moved to", "the Birch room"), "held in the Birch room"),
        (("is held in", "a tent"), ("moved to", "the Birch room"), "held in the Birch room"),
        (("is held in", "an attic"), ("moved to", "the Birch room"), "held in the Birch room"),
        (("takes place on", "Monday"), ("is scheduled for", "Friday"), "takes place on Friday"),
    ],
)
def test_a_change_in_other_words_is_told_in_those_of_what_it_changes(
    known: tuple[str, str], change: tuple[str, str], holds: str
) -> None:
    """The new value stands where the old one stood, article and all, as a fact that holds."""
    knowledge, first, second = ReconciledKnowledge(), said(1), said(9)
    knowledge.hear(first, review(first, *known))
    knowledge.hear(second, review(second, *change, begins=True, kind=MemoryKind.EPISODE))
    old, new = sorted(knowledge.known.values(), key=lambda memory: memory.event_at)
    assert knowledge.current() == {new.content}
    assert new.content.removeprefix("The review ").removeprefix("is ") == f"{holds}."
    assert (new.kind, new.supersedes, old.superseded_by) == (MemoryKind.NOTE, (old.id,), new.id)
    assert old.content == f"The review {' '.join(known)}."
    # Half of its words are the first turn's.
    assert {*new.source_episode_ids} == {first.id, second.id}


def test_only_what_says_that_it_began_is_a_change_in_other_words() -> None:
    """That it moved to the annex once ends nothing; nor does that it never moved there."""
    for more in ({"begins": False}, {"begins": True, "holds": False}):
        knowledge, first, second = ReconciledKnowledge(), said(1), said(9)
        knowledge.hear(first, review(first, "is held in", "room 4.12"))
        knowledge.hear(second, review(second, "moved to", "the annex", **more))
        assert "The review is held in room 4.12." in knowledge.current()
        assert len(knowledge.current()) == 2


@pytest.mark.parametrize(
    "content",
    [
        "The review is held in room 4.12 with everybody.",
        "The review is held in room 4.12X.",
        "The room 4.12.",
    ],
)
def test_a_change_whose_old_value_does_not_end_a_sentence_keeps_its_own_words(content: str) -> None:
    """Where the value stood cannot be told, or nothing is left in front of it."""
    knowledge, first, second = ReconciledKnowledge(), said(1), said(9)
    knowledge.hear(first, review(first, "is held in", "room 4.12", content=content))
    knowledge.hear(second, review(second, "moved to", "the Birch room", begins=True))
    assert knowledge.current() == {"The review moved to the Birch room."}


def test_a_full_stop_behind_the_old_value_is_none_of_its_words() -> None:
    """Also where it stands apart."""
    knowledge, first, second = ReconciledKnowledge(), said(1), said(9)
    knowledge.hear(
        first, review(first, "is held in", "room X", content="The review is held in room X .")
    )
    knowledge.hear(second, review(second, "moved to", "the Birch room", begins=True))
    assert knowledge.current() == {"The review is held in the Birch room."}


def test_several_changes_in_one_batch_are_each_told_in_the_words_of_the_first() -> None:
    """A change counts for those after it as what it changed, not as what it was told as."""
    knowledge = ReconciledKnowledge()
    turns = [said(1), said(5), said(9)]
    knowledge.episodes = {turn.id: turn for turn in turns}
    first, second, third = turns
    knowledge.take(
        [
            review(first, "is held in", "room 4.12"),
            review(second, "moved to", "the Birch room", begins=True),
            review(third, "moved to", "the Ash room", begins=True),
        ]
    )
    assert knowledge.current() == {"The review is held in the Ash room."}
    assert len(knowledge.known) == 3


def test_a_change_that_does_not_say_to_what_changes_nothing() -> None:
    """That Tom left names no new employer."""
    knowledge, first, second = ReconciledKnowledge(), said(1), said(9)
    works = stated(first, "works at", "Acme", subject="Tom", content="Tom works at Acme.")
    left = stated(second, "left for", "", subject="Tom", content="Tom left.", begins=True)
    knowledge.hear(first, works)
    knowledge.hear(second, left.model_copy(update={"object": None}))
    assert "Tom works at Acme." in knowledge.current()


def review(episode: Episode, predicate: str, what: str, **more: Any) -> Statement:
    """What a turn says of the review."""
    content = more.pop("content", f"The review {predicate} {what}.")
    return stated(episode, predicate, what, subject="the review", content=content, **more)
