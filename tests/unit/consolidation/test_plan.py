"""Plans on their way through Temporal: what is read is an action, or refused."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from engram.domain.plan import (
    ConsolidationPlan,
    Discard,
    Eligibility,
    LinkGraph,
    StoreNote,
    UpdateNote,
)
from tests.support.engines import ADA, semantic

LINK = {"action": "link_graph", "why": "same city", "first_id": "a", "second_id": "b"}


def plan_of(*raw: object) -> ConsolidationPlan:
    """A plan as it comes from a history."""
    return ConsolidationPlan.model_validate({"actions": raw})


def test_a_valid_action_is_read() -> None:
    """Kind, reason and context come through."""
    context = {"confidence": 0.5, "state": "active", "importance": 1, "source": "consolidation"}
    (action,) = plan_of({**LINK, "eligibility": context}).actions
    assert isinstance(action, LinkGraph)
    assert (action.why, action.eligibility.state) == ("same city", "active")


def test_an_action_without_a_context_rests_on_nothing() -> None:
    """That is {0, candidate, 0, unknown}."""
    (action,) = plan_of(LINK).actions
    assert action.eligibility == Eligibility()
    assert action.eligibility.model_dump() == {
        "confidence": 0.0,
        "state": "candidate",
        "importance": 0.0,
        "source": "unknown",
    }


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
    """Unknown kinds, missing fields, numbers out of range."""
    with pytest.raises(ValidationError):
        plan_of(raw)


def test_a_plan_of_another_version_is_read() -> None:
    """Plans stay in histories of running workflows: a field that is no more is ignored."""
    raw = {"action": "update_note", "why": "x", "memory_id": "a", "valid_from": None}
    assert plan_of(raw).actions == (UpdateNote(why="x", memory_id="a"),)


def test_a_plan_of_a_newer_version_is_read() -> None:
    """An old worker in a rolling upgrade reads past new fields of an action and of its memory."""
    memory = semantic(ADA, "note")
    raw = memory.model_dump(mode="json")
    raw |= {"mood": "new in 2.0", "confidence": {**raw["confidence"], "spread": 0.1}}
    (action,) = plan_of({"action": "store_note", "why": "x", "memory": raw, "urgency": 3}).actions
    assert action == StoreNote(why="x", memory=memory)


def test_a_plan_survives_the_way_through_temporal() -> None:
    """A plan read back from JSON is the same plan."""
    plan = ConsolidationPlan(actions=(*plan_of(LINK).actions, Discard(why="no")))
    assert ConsolidationPlan.model_validate_json(plan.model_dump_json()) == plan
