"""Profiles stay short, keep their sources, and follow from memories alone."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from engram.digests.profiles import Rest, compose, is_behaviour, user_draft
from engram.domain.memories import Category, MemoryForm, MemoryStatus, SemanticMemory
from engram.domain.rules import DigestPolicy
from tests.support.digest_memories import known
from tests.support.sizes import examples

POLICY = DigestPolicy()
TIGHT = DigestPolicy(profile_lines=6, profile_bytes=512)


def liking(number: int, *, importance: float = 0.5, predicate: str = "likes") -> SemanticMemory:
    """Something that the user likes."""
    return known(
        f"The user {predicate} thing{number}.",
        number,
        slot=("user", predicate, f"thing{number}"),
        category=Category.PREFERENCE,
        importance=importance,
    )


def test_current_values_come_first_then_importance_then_recency() -> None:
    """Where one lives stands above what one likes, however old it is."""
    home = known("The user lives in Lisbon.", 0, slot=("user", "lives in", "Lisbon"))
    composed = compose([liking(1), liking(2), liking(3, importance=0.9), home], POLICY)
    assert [line.text for line in composed.lines] == [
        "The user lives in Lisbon.",
        "The user likes thing3.",
        "The user likes thing2.",
        "The user likes thing1.",
    ]


def test_what_is_replaced_or_no_answer_does_not_stand_in_a_profile() -> None:
    """Superseded memories, test memories, summaries and digests are left out."""
    old = known("The user lives in Porto.", status=MemoryStatus.SUPERSEDED)
    test = known("The user lives in Rome.", is_test=True)
    box = known("5 January 2026: tea.", form=MemoryForm.BOX)
    summary = known("The user likes tea and chess.", form=MemoryForm.SUMMARY)
    assert compose([old, test, box, summary], POLICY).lines == ()


def test_lesser_lines_are_folded_and_keep_their_sources() -> None:
    """Past 8 KB, lines of one predicate become one that names all their memories."""
    long = [
        known(
            f"The user dislikes {'very ' * 40}sour{n}.",
            n,
            slot=("user", "dislikes", f"sour{n}"),
            category=Category.PREFERENCE,
            importance=0.2,
        )
        for n in range(40)
    ]
    assert sum(len(m.content) for m in long) > 8 * 1024
    composed = compose([*long, liking(1)], POLICY)
    first, folded = composed.lines
    assert first.text == "The user likes thing1."
    assert folded.text.startswith("The user dislikes sour39, sour38, ")
    assert folded.text.endswith(" and 16 more.")
    assert set(folded.memory_ids) == {m.id for m in long}


MEMORIES = st.lists(
    st.builds(
        liking,
        st.integers(0, 60),
        importance=st.sampled_from([0.2, 0.5, 0.9]),
        predicate=st.sampled_from(["likes", "dislikes", "owns", "knows about"]),
    ),
    max_size=40,
)


@given(MEMORIES)
@settings(max_examples=examples(150), deadline=None)
def test_a_profile_is_bounded_complete_and_does_not_depend_on_order(
    memories: list[SemanticMemory],
) -> None:
    """Every memory stands in a line or is named as left out; any order gives the same."""
    memories = list({m.id: m for m in memories}.values())
    composed = compose(memories, TIGHT)
    assert compose(list(reversed(memories)), TIGHT) == composed
    assert composed.memory_ids == {m.id for m in memories}
    assert len(composed.lines) <= TIGHT.profile_lines
    assert sum(len(line.text.encode()) for line in composed.lines) <= TIGHT.profile_bytes


@given(MEMORIES)
@settings(max_examples=examples(150), deadline=None)
def test_composing_again_from_what_a_profile_names_changes_nothing(
    memories: list[SemanticMemory],
) -> None:
    """What a profile carries is enough to compose it: rebuilding it is idempotent."""
    by_id = {m.id: m for m in memories}
    policy = TIGHT.model_copy(update={"profile_memories": 20})
    composed = compose(by_id.values(), policy)
    again = compose([by_id[one] for one in composed.memory_ids], policy)
    assert again == composed


def test_behaviour_is_preferences_principles_skills_habits_and_current_values() -> None:
    """A moment is no behaviour; what somebody else does is not the user's."""
    assert is_behaviour(liking(1))
    assert is_behaviour(known("The user lives in Lisbon.", slot=("user", "lives in", "Lisbon")))
    assert is_behaviour(known("The user always walks to work.", slot=("user", "walks", "work")))
    assert not is_behaviour(known("The user saw a play.", slot=("user", "saw", "a play")))
    assert not is_behaviour(
        known("Sam likes tea.", slot=("Sam", "likes", "tea"), category=Category.PREFERENCE)
    )


def test_a_name_keeps_its_letters() -> None:
    """A letter that is longer when it is folded moves nothing: no full stop is part of a name."""
    called = known("The user is called Jörg Strauß.", slot=("user", "is called", "Jörg Strauß"))
    draft = user_draft([called], Rest(times={}), POLICY)
    assert draft is not None
    assert draft.content.splitlines()[0] == "Jörg Strauß (user):"
