"""A run of small notes gets one sentence over it, which follows what becomes of them."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from engram.consolidation.summaries import FEWEST_TO_BEGIN, FEWEST_TO_STAY, MOST_SUMMARISED
from engram.consolidation.verify import verify
from engram.domain.memories import LinkKind, MemoryForm, MemoryStatus, SemanticMemory
from engram.domain.plan import LinkGraph, SummarizeNode
from tests.support.reconciliation import ReconciledKnowledge, on, said, stated
from tests.support.sizes import examples

DRINKS = ("tea", "milk", "mead", "cider", "water", "perry")


def likes(knowledge: ReconciledKnowledge, day: int, what: str, *, holds: bool = True) -> None:
    """That day the user says that they like it, or no longer do."""
    turn = said(day, what)
    knowledge.hear(turn, stated(turn, "likes", what, holds=holds))


def made(knowledge: ReconciledKnowledge) -> list[SemanticMemory]:
    """Every summary, by generation."""
    found = (m for m in knowledge.known.values() if m.form is MemoryForm.SUMMARY)
    return sorted(found, key=lambda m: m.generation)


def current(knowledge: ReconciledKnowledge) -> list[str]:
    """What the active summaries say."""
    return [s.content for s in made(knowledge) if s.status is MemoryStatus.ACTIVE]


def test_the_fourth_note_of_a_kind_makes_a_summary_and_all_stay_readable() -> None:
    """Linked with each, verifiable, and nothing is retired by it."""
    knowledge = ReconciledKnowledge()
    for day, drink in enumerate(DRINKS[:3]):
        likes(knowledge, day, drink)
    assert made(knowledge) == []
    turn = said(3, "cider")
    plan = knowledge.hear(turn, stated(turn, "likes", "cider"))
    (summary,) = made(knowledge)
    assert summary.content == "The user likes tea, milk, mead and cider."
    assert verify(summary, knowledge.episodes).ok
    (action,) = [a for a in plan.actions if isinstance(a, SummarizeNode)]
    members = {m.id for m in knowledge.known.values() if m.form is MemoryForm.STATEMENT}
    assert set(action.summarised_ids) == members
    links = [a for a in plan.actions if isinstance(a, LinkGraph)]
    assert {(a.first_id, a.second_id, a.kind) for a in links} == {
        (member, summary.id, LinkKind.BELONGS_TO) for member in members
    }
    assert {m.status for m in knowledge.known.values()} == {MemoryStatus.ACTIVE}


def test_what_is_no_longer_so_leaves_the_summary_in_the_same_plan() -> None:
    """A new generation without it; the old one is history from when that was known."""
    knowledge = ReconciledKnowledge()
    for day, drink in enumerate(DRINKS[:4]):
        likes(knowledge, day, drink)
    likes(knowledge, 10, "milk", holds=False)
    assert current(knowledge) == ["The user likes tea, mead and cider."]
    old, new = made(knowledge)
    assert (old.superseded_by, old.superseded_known_at) == (new.id, on(10))
    assert new.known_at == on(10)


def test_a_summary_of_fewer_than_two_goes() -> None:
    """And comes back as a further generation when there are four again."""
    knowledge = ReconciledKnowledge()
    for day, drink in enumerate(DRINKS[:4]):
        likes(knowledge, day, drink)
    for day, drink in enumerate(DRINKS[:3], start=10):
        likes(knowledge, day, drink, holds=False)
    assert current(knowledge) == []
    for day, drink in enumerate(DRINKS, start=20):
        likes(knowledge, day, drink)
    assert current(knowledge) == ["The user likes cider, tea, milk, mead, water and perry."]


def test_a_long_run_is_summed_up_by_its_latest() -> None:
    """A sentence of everything is no summary."""
    knowledge = ReconciledKnowledge()
    for day in range(MOST_SUMMARISED + 5):
        likes(knowledge, day, f"dish{day:02}")
    (content,) = current(knowledge)
    assert content.count("dish") == MOST_SUMMARISED
    assert content.endswith(f"and dish{MOST_SUMMARISED + 4:02}.")


def test_what_holds_one_value_or_is_promised_is_not_summed_up() -> None:
    """Homes replace each other; promises stand each for itself."""
    knowledge = ReconciledKnowledge()
    for day, city in enumerate(DRINKS):
        knowledge.hear(said(day), stated(said(day), "lives in", city))
    assert made(knowledge) == []


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(DRINKS), st.booleans()), min_size=1, max_size=14),
    st.integers(1, 5),
)
def test_the_active_summary_says_exactly_what_is_liked(
    told: list[tuple[str, bool]], batch: int
) -> None:
    """However it is batched; and reconciling the same again plans nothing."""
    knowledge, liked = ReconciledKnowledge(), dict[str, None]()
    begun = False
    for start in range(0, len(told), batch):
        turns = []
        for day, (drink, holds) in enumerate(told[start : start + batch], start=start):
            turn = said(day, drink)
            knowledge.episodes[turn.id] = turn
            turns.append(stated(turn, "likes", drink, holds=holds))
            liked.pop(drink, None) if not holds else liked.setdefault(drink)
        knowledge.take(turns)
        again = knowledge.take(turns)
        assert not again.new_memories()
        assert not again.retirements()
        begun = len(liked) >= (FEWEST_TO_STAY if begun else FEWEST_TO_BEGIN)
        summaries = current(knowledge)
        assert len(summaries) == int(begun)
        if begun:
            named = summaries[0].removeprefix("The user likes ").rstrip(".")
            assert set(named.replace(" and ", ", ").split(", ")) == set(liked)
