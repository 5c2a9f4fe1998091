"""Profiles stay short, keep their sources, and follow from memories alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.digests.profiles import OwnNames, Rest, compose, is_of_the_user, user_draft
from engram.domain.memories import Category, MemoryForm, MemoryKind, MemoryStatus, SemanticMemory
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


@pytest.mark.parametrize(
    ("content", "slot", "more"),
    [
        ("The user likes tea.", ("user", "likes", "tea"), {"category": Category.PREFERENCE}),
        ("The user lives in Lisbon.", ("user", "lives in", "Lisbon"), {}),
        ("The user always walks to work.", ("user", "walks", "work"), {}),
        ("The user is allergic to nuts.", ("user", "is allergic to", "nuts"), {}),
        ("The user has two kids.", ("user", "has", "two kids"), {}),
        ("The user takes insulin every day.", None, {}),
        ("The user's blood type is O negative.", None, {}),
        ("The user's resting heart rate at night is 50.", None, {}),
        ("User’s pronouns are they/them.", None, {}),
        *(
            (f"The user's hero {verb} a nurse.", None, {})
            for verb in ("is", "was", "has", "and idol are", "and idol were", "and idol have")
        ),
        ("Leo is the user's son.", ("Leo", "is the user's", "son"), {}),
        ("The user's cat is called Tigger.", ("user's cat", "is called", "Tigger"), {}),
        ("The user's older sister has asthma.", ("user's older sister", "has", "asthma"), {}),
    ],
)
def test_what_holds_of_the_user_in_general_is_of_the_user(
    content: str, slot: tuple[str, str, str] | None, more: dict[str, Any]
) -> None:
    """Preferences, facts with a slot and without, and who the user's people and animals are."""
    assert is_of_the_user(known(content, slot=slot, **more))


@pytest.mark.parametrize(
    ("content", "slot", "more"),
    [
        ("The user saw a play.", ("user", "saw", "a play"), {"kind": MemoryKind.EPISODE}),
        ("The user saw a play.", None, {"category": Category.MOMENT}),
        ("The user plans to go.", ("user", "plans to", "go"), {"category": Category.DECISION}),
        ("The user no longer has a dog.", ("user", "no longer has", "dog"), {}),
        ("The user does not live in Rome.", None, {"category": Category.CORRECTION}),
        ("The user's flight leaves at six.", ("user's flight", "leaves at", "six"), {}),
        ("The server runs on Linux.", None, {}),
        ("The user's blood type is not B.", None, {"category": Category.CORRECTION}),
        ("The user's sister is loud.", None, {}),
        ("The user's little sisters are loud.", None, {}),
        ("The user's Boss is loud.", None, {}),
        ("The user's two loud old neighbours are here.", None, {}),
        ("The user’s wife's blood pressure is too high.", None, {}),
        ("Username ada is taken.", None, {}),
        ("Sam likes tea.", ("Sam", "likes", "tea"), {"category": Category.PREFERENCE}),
    ],
)
def test_what_passes_is_over_or_is_of_others_is_not_of_the_user(
    content: str, slot: tuple[str, str, str] | None, more: dict[str, Any]
) -> None:
    """Events and plans, what has ended, things, and people who have profiles of their own."""
    assert not is_of_the_user(known(content, slot=slot, **more))


def test_health_stands_first_and_is_left_out_last() -> None:
    """However much else is liked, and lately: an allergy has its line, the rest is omitted."""
    nuts = known(
        "The user is allergic to nuts.", 0, slot=("user", "is allergic to", "nuts"), importance=0.2
    )
    home = known("The user lives in Lisbon.", 1, slot=("user", "lives in", "Lisbon"))
    others = [known(f"The user {n} times a day looks up.", n, importance=0.9) for n in range(2, 20)]
    composed = compose([home, *others, nuts], TIGHT)
    assert [line.text for line in composed.lines[:2]] == [nuts.content, home.content]
    assert len(composed.omitted) == len(others) - TIGHT.profile_lines + 2


def test_the_users_name_is_not_that_of_the_cat() -> None:
    """Only what the user is called heads the user's profile."""
    cat = known("The user's cat is called Tigger.", slot=("user's cat", "is called", "Tigger"))
    draft = user_draft([cat], OwnNames(), Rest(times={}), POLICY)
    assert draft is not None
    assert draft.content == "The user (user):\nThe user's cat is called Tigger."


def test_a_name_keeps_its_letters() -> None:
    """A letter that is longer when it is folded moves nothing: no full stop is part of a name."""
    called = known("The user is called Jörg Strauß.", slot=("user", "is called", "Jörg Strauß"))
    draft = user_draft([called], OwnNames.of([called]), Rest(times={}), POLICY)
    assert draft is not None
    assert draft.content.splitlines()[0] == "Jörg Strauß (user):"
