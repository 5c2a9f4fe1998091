"""The actions of a plan: strict to read, harmless when they cannot be read (row W9)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.domain.plan import (
    ConsolidationPlan,
    Discard,
    Eligibility,
    LinkGraph,
    UpdateNote,
    action_or_discard,
    eligibility_or_candidate,
    parse_action,
)
from engram.errors import InvalidInput

LINK = {"action": "link_graph", "why": "same city", "first_id": "a", "second_id": "b"}


def test_a_valid_action_is_read() -> None:
    """Kind, reason and context come through."""
    context = {"confidence": 0.5, "state": "active", "importance": 1, "source": "replay"}
    action = parse_action({**LINK, "eligibility": context})
    assert isinstance(action, LinkGraph)
    assert action.eligibility.state == "active"


@pytest.mark.parametrize(
    "raw",
    [
        None,
        [],
        {},
        {"action": "delete_everything", "why": "x"},
        {**LINK, "confidence": 2},
        {**LINK, "why": ""},
        {k: v for k, v in LINK.items() if k != "second_id"},
        {**LINK, "eligibility": {"confidence": 1.5}},
    ],
)
def test_anything_else_is_refused(raw: object) -> None:
    """Parsing is strict: unknown kinds, fields and ranges."""
    with pytest.raises(InvalidInput):
        parse_action(raw)


def test_at_run_time_an_invalid_action_becomes_discard() -> None:
    """It does nothing, and says which field was wrong but not what it held."""
    action = action_or_discard({**LINK, "confidence": "Lisbon"})
    assert isinstance(action, Discard)
    assert "confidence" in action.why
    assert "Lisbon" not in action.why


def test_at_run_time_an_invalid_context_becomes_a_candidate_of_nothing() -> None:
    """The action stays, resting on {0, candidate, 0, unknown}."""
    action = action_or_discard({**LINK, "eligibility": {"confidence": "very"}})
    assert isinstance(action, LinkGraph)
    assert action.eligibility == Eligibility()
    assert action.eligibility.model_dump() == {
        "confidence": 0.0,
        "state": "candidate",
        "importance": 0.0,
        "source": "unknown",
    }


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(raw=JSON, context=JSON)
def test_nothing_breaks_the_run_time_readers(raw: object, context: object) -> None:
    """Whatever a model writes, the result is an action and a context."""
    assert action_or_discard(raw).action
    assert 0.0 <= eligibility_or_candidate(context).confidence <= 1.0
    assert action_or_discard({**LINK, "eligibility": context}).action == "link_graph"


def test_a_plan_of_another_version_is_read() -> None:
    """Plans stay in histories of running workflows: a field that is no more is ignored."""
    raw = {"action": "update_note", "why": "x", "memory_id": "a", "valid_from": None}
    plan = ConsolidationPlan.model_validate({"actions": [raw]})
    assert plan.actions == (UpdateNote(why="x", memory_id="a"),)


def test_a_plan_survives_the_way_through_temporal() -> None:
    """A plan read back from JSON is the same plan."""
    plan = ConsolidationPlan(actions=(parse_action(LINK), Discard(why="no")))
    assert ConsolidationPlan.model_validate_json(plan.model_dump_json()) == plan
