"""What a model's judgements may do to memories, and what they may not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.consolidation.decisions import (
    Judgement,
    Relation,
    judged,
    most_retired,
    related_in_words,
)
from engram.domain.confidence import Verification
from engram.domain.memories import (
    Category,
    Evidence,
    MemoryKind,
    MemoryStatus,
    PolicyClass,
    Resolution,
    SemanticMemory,
)
from engram.domain.plan import ConsolidationPlan, Discard, Reason
from tests.support.reconciliation import ReconciledKnowledge, said, stated
from tests.support.sizes import examples


def told(knowledge: ReconciledKnowledge, day: int, content: str, **more: Any) -> SemanticMemory:
    """What that day's turn makes known."""
    turn = said(day, content)
    (memory,) = knowledge.hear(turn, stated(turn, None, "", content=content, **more)).new_memories()
    return memory


def pair(knowledge: ReconciledKnowledge, **more: Any) -> tuple[SemanticMemory, SemanticMemory]:
    """An older and a newer memory of one thing."""
    older = told(knowledge, 1, "The user keeps bees in the garden.", **more)
    return told(knowledge, 9, "The user keeps bees on the roof.", **more), older


def apply(
    knowledge: ReconciledKnowledge, *judgements: Judgement, shown: int = 10
) -> ConsolidationPlan:
    """Carry out what is decided about these."""
    plan = ConsolidationPlan(actions=judged(judgements, shown=shown).actions)
    knowledge.apply(plan)
    return plan


def reasons(plan: ConsolidationPlan) -> list[Reason]:
    """Why things were refused."""
    return [a.reason for a in plan.actions if isinstance(a, Discard)]


def test_an_update_keeps_the_old_value_as_history() -> None:
    """Status, successor and until when; the newer one names what it replaced."""
    knowledge = ReconciledKnowledge()
    newer, older = pair(knowledge)
    apply(knowledge, Judgement(newer, older, Relation.UPDATES, 0.7, "moved"))
    old, new = knowledge.known[older.id], knowledge.known[newer.id]
    assert (old.status, old.superseded_by) == (MemoryStatus.SUPERSEDED, new.id)
    assert (old.valid_to, old.superseded_known_at) == (newer.event_at, newer.known_at)
    assert new.supersedes == (old.id,)
    assert new.status is MemoryStatus.ACTIVE


def test_a_merge_loses_nothing_and_the_words_told_again_confirm_the_one_that_stays() -> None:
    """The older gains sources and evidence; the newer stays readable as its duplicate."""
    knowledge = ReconciledKnowledge()
    turn = said(9, "x")
    older = told(knowledge, 1, "The user keeps bees.")
    quote = Evidence(episode_id=turn.id, words="turn")
    words = "The user is keeping some bees."
    knowledge.hear(turn, stated(turn, None, "", content=words, evidence=(quote,)))
    newer = next(m for m in knowledge.known.values() if m.content == words)
    judgement = Judgement(newer, older, Relation.SAME, 0.9, "same")
    apply(knowledge, judgement)
    kept, gone = knowledge.known[older.id], knowledge.known[newer.id]
    assert kept.source_episode_ids == (*older.source_episode_ids, turn.id)
    assert kept.evidence == (quote,)
    assert (gone.status, gone.duplicate_of) == (MemoryStatus.SUPERSEDED, kept.id)
    before = dict(knowledge.known)
    assert apply(knowledge, judgement).actions
    assert knowledge.known == before

    again = said(20)
    plan = knowledge.hear(again, stated(again, None, "", content=words))
    assert not plan.new_memories()
    assert knowledge.known[older.id].confidence.supporting_episodes == 3


def test_a_contradiction_that_is_plainly_later_replaces_and_another_is_a_dispute() -> None:
    """Sure and later: then and now. Else both are disputed until one stops holding."""
    knowledge = ReconciledKnowledge()
    newer, older = pair(knowledge)
    apply(knowledge, Judgement(newer, older, Relation.CONTRADICTS, 0.6, "or"))
    old, new = knowledge.known[older.id], knowledge.known[newer.id]
    assert (old.disputed_with, new.disputed_with) == ((new.id,), (old.id,))
    assert {m.confidence.verification for m in (old, new)} == {Verification.DISPUTED}
    apply(knowledge, Judgement(new, old, Relation.CONTRADICTS, 0.9, "then and now"))
    old, new = knowledge.known[older.id], knowledge.known[newer.id]
    assert old.superseded_by == new.id
    assert old.disputed_with == new.disputed_with == ()
    assert new.confidence.contradictions == 0


def test_a_promise_is_resolved_by_what_keeps_it() -> None:
    """It stays active; only open commitments can be kept."""
    knowledge = ReconciledKnowledge()
    promise = told(knowledge, 1, "The user promised Bo a cake.", category=Category.COMMITMENT)
    baked = told(knowledge, 3, "The user baked Bo the cake.", kind=MemoryKind.EPISODE)
    fact = told(knowledge, 2, "The user likes cake.")
    apply(knowledge, Judgement(baked, promise, Relation.FULFILS, 0.9, "kept"))
    kept = knowledge.known[promise.id]
    assert (kept.resolution, kept.resolved_at) == (Resolution.FULFILLED, baked.known_at)
    assert kept.status is MemoryStatus.ACTIVE
    for other in (fact, kept):
        plan = apply(knowledge, Judgement(baked, other, Relation.FULFILS, 0.9, "kept"))
        assert reasons(plan) == [Reason.NOT_ELIGIBLE]


@pytest.mark.parametrize("relation", [Relation.SAME, Relation.UPDATES, Relation.CONTRADICTS])
@pytest.mark.parametrize(
    "spoilt",
    [
        {"kind": MemoryKind.EPISODE},
        {"status": MemoryStatus.SUPERSEDED},
        {"is_test": True},
        {"known_at": said(99).timestamp},
        {"content": "A tram costs four euros."},
    ],
)
def test_what_may_not_be_replaced_is_not(relation: Relation, spoilt: dict[str, Any]) -> None:
    """Episodes, retired and test memories, what is newer, and what is about something else."""
    knowledge = ReconciledKnowledge()
    newer, older = pair(knowledge)
    plan = apply(knowledge, Judgement(newer, older.model_copy(update=spoilt), relation, 0.9, "x"))
    assert reasons(plan) == [Reason.NOT_ELIGIBLE]
    assert len(plan.actions) == 1


def test_what_a_model_is_unsure_of_or_the_user_protects_stays() -> None:
    """Below one half nothing happens; only the user and slots replace what is protected."""
    knowledge = ReconciledKnowledge()
    newer, older = pair(knowledge)
    protected = older.model_copy(update={"policy_class": PolicyClass.PROTECTED})
    for judgement in (
        Judgement(newer, older, Relation.UPDATES, 0.4, "perhaps"),
        Judgement(newer, protected, Relation.UPDATES, 0.9, "surely"),
    ):
        assert reasons(apply(knowledge, judgement)) == [Reason.NOT_ELIGIBLE]


def test_slots_decide_for_themselves() -> None:
    """What was told of one slot orders its values; a model's word does not."""
    knowledge = ReconciledKnowledge()
    for day, city in ((1, "Paris"), (9, "Rome")):
        knowledge.hear(said(day), stated(said(day), "lives in", city))
    paris, rome = knowledge.of("paris")[0], knowledge.of("rome")[0]
    standing = paris.model_copy(update={"status": MemoryStatus.ACTIVE})
    plan = apply(knowledge, Judgement(rome, standing, Relation.UPDATES, 0.9, "moved"))
    assert reasons(plan) == [Reason.NOT_ELIGIBLE]


def test_an_answer_that_tries_to_retire_everything_retires_nothing() -> None:
    """Not even the part that would have been in order; all of it is counted."""
    knowledge = ReconciledKnowledge()
    bees = [told(knowledge, day, f"The user keeps bees, colony {day}.") for day in range(1, 11)]
    judgements = [Judgement(bees[-1], old, Relation.UPDATES, 1.0, "forget") for old in bees[:-1]]
    verdict = judged(judgements, shown=len(bees))
    assert verdict.refused_retirements == 9
    assert {a.reason for a in verdict.actions} == {Reason.TOO_MANY}
    allowed = judged(judgements[:2], shown=len(bees))
    assert allowed.refused_retirements == 0


@pytest.mark.parametrize(
    ("first", "second", "related"),
    [
        ("The user keeps bees.", "The user sold the bees.", True),
        ("The user keeps bees.", "The user speaks Danish.", False),
        ("The user is tall.", "The user is late.", False),
        ("The user's boss is strict.", "The user's boss left.", True),
    ],
)
def test_only_what_shares_a_thing_or_words_is_related(
    first: str, second: str, *, related: bool
) -> None:
    """Sharing the user alone is nothing in common."""
    knowledge = ReconciledKnowledge()
    assert related_in_words(told(knowledge, 1, first), told(knowledge, 2, second)) is related


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 5),
            st.integers(0, 5),
            st.sampled_from(list(Relation)),
            st.sampled_from((0.2, 0.6, 0.9)),
        ),
        max_size=8,
    )
)
def test_whatever_is_judged_no_more_than_allowed_is_retired_and_no_circle_is_made(
    drawn: list[tuple[int, int, Relation, float]],
) -> None:
    """Applying it twice is applying it once; what retires a memory is never itself retired."""
    knowledge = ReconciledKnowledge()
    bees = [told(knowledge, day, f"The user keeps bees, colony {day}.") for day in range(6)]
    judgements = [Judgement(bees[a], bees[b], r, c, "x") for a, b, r, c in drawn]
    plan = apply(knowledge, *judgements, shown=10)
    retired = [m for m in knowledge.known.values() if m.status is MemoryStatus.SUPERSEDED]
    assert len(retired) <= most_retired(10)
    for memory in retired:
        assert knowledge.known[memory.superseded_by or ""].status is MemoryStatus.ACTIVE
    before = dict(knowledge.known)
    knowledge.apply(plan)
    assert knowledge.known == before
