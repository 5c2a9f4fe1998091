"""Ids are derived from what a memory is: the same twice is one, different never meets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engram.domain.identity import derived_id, episode_id, operation_id
from engram.domain.scope import Scope

NAMES = st.from_regex(r"[a-z0-9][a-z0-9._@+:=|~-]{0,12}", fullmatch=True)
SCOPES = st.builds(Scope, namespace=NAMES, user_id=NAMES)
PARTS = st.tuples(SCOPES, NAMES, st.text(max_size=20))


@given(PARTS, PARTS)
def test_an_episode_is_its_scope_session_and_message(
    one: tuple[Scope, str, str], other: tuple[Scope, str, str]
) -> None:
    """Two turns share an id exactly when namespace, user, session and message id agree."""
    assert (episode_id(*one) == episode_id(*other)) == (one == other)


@given(SCOPES, NAMES, st.text(max_size=20), st.integers(0, 5), st.integers(0, 5))
def test_a_conclusion_is_its_identity_and_generation(
    scope: Scope, kind: str, identity: str, one: int, other: int
) -> None:
    """The same conclusion has one id per generation, and never an episode's id."""
    same = derived_id(scope, kind, identity, one) == derived_id(scope, kind, identity, other)
    assert same == (one == other)
    assert derived_id(scope, kind, identity, one) != episode_id(scope, kind, identity)


@given(st.lists(st.text(max_size=5), max_size=4), st.lists(st.text(max_size=5), max_size=4))
def test_parts_never_run_together(one: list[str], other: list[str]) -> None:
    """("ab", "c") and ("a", "bc") are different operations."""
    assert (operation_id(*one) == operation_id(*other)) == (one == other)


def test_ids_are_the_same_in_every_version() -> None:
    """Pinned: a change here would give every stored memory a new id."""
    scope = Scope.of("default", "ada")
    assert episode_id(scope, "s1", "m1") == "dca3a69c-4cb5-53bd-8431-3a6ba8fd044c"
    assert (
        derived_id(scope, "factual", "email:ada@example.org", 0)
        == "9b0aab73-81e3-5ac0-8c4b-2f5ceb23b112"
    )
