"""Actions are read strictly; in a plan on its way through Temporal they do no harm instead."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from engram.domain.plan import (
    Action,
    ActionSource,
    ConsolidationPlan,
    Discard,
    Eligibility,
    LinkGraph,
    Reason,
    StoreNote,
    UpdateNote,
)
from tests.support.engines import ADA, semantic

LINK = {"action": "link_graph", "why": "same city", "first_id": "a", "second_id": "b"}
STRICT: TypeAdapter[Any] = TypeAdapter(Action)
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


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


INVALID: list[tuple[object, str]] = [
    (None, "of no known kind"),
    ([], "of no known kind"),
    ({}, "of no known kind"),
    ({"action": "delete_everything", "why": "x"}, "of no known kind"),
    ({**LINK, "confidence": "Lisbon"}, "confidence"),
    ({**LINK, "why": ""}, "why"),
    ({k: v for k, v in LINK.items() if k != "second_id"}, "second_id"),
    ({**LINK, "second_id": 2, "eligibility": {"state": 3}}, "eligibility.state, second_id"),
]


@pytest.mark.parametrize(("raw", "fields"), INVALID)
def test_an_invalid_action_is_refused_by_itself_and_does_nothing_in_a_plan(
    raw: object, fields: str
) -> None:
    """There it is a counted discard that names the fields, never what they hold."""
    with pytest.raises(ValidationError):
        STRICT.validate_python(raw)
    plan = plan_of(LINK, raw)
    assert plan.actions[1] == Discard(why=f"cannot be read: {fields}", reason=Reason.INVALID)
    assert (len(plan.links()), plan.invalid(), plan.counts()["discard"]) == (1, 1, 1)


@pytest.mark.parametrize(
    "context", [None, "sure", {"confidence": 1.5}, {"source": "a dream"}, {"state": 3}]
)
def test_an_action_with_an_invalid_context_rests_on_nothing(context: object) -> None:
    """Refused by itself; in a plan it stays what it is, on {0, candidate, 0, unknown}."""
    with pytest.raises(ValidationError):
        STRICT.validate_python({**LINK, "eligibility": context})
    plan = plan_of({**LINK, "eligibility": context})
    assert plan == plan_of(LINK)
    assert plan.invalid() == 0


@pytest.mark.parametrize("source", ["extraction", "consolidation", "replay", "manual", "unknown"])
def test_every_source_is_read(source: str) -> None:
    """Whoever may propose a change is known by name."""
    assert Eligibility.model_validate({"source": source}).source is ActionSource(source)


@given(raw=JSON, context=JSON)
def test_nothing_keeps_a_plan_from_being_read(raw: object, context: object) -> None:
    """Whatever stands in it, what can be carried out is."""
    plan = plan_of(raw, {**LINK, "eligibility": context}, LINK)
    assert [action.action for action in plan.actions][1:] == ["link_graph", "link_graph"]
    assert 0.0 <= plan.actions[1].eligibility.confidence <= 1.0


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


def test_a_memory_that_cannot_be_read_costs_only_its_own_action() -> None:
    """Also where it comes as JSON, as Temporal hands it over."""
    raw = semantic(ADA, "note").model_dump(mode="json") | {"kind": "rumour"}
    plan = ConsolidationPlan(actions=(*plan_of(LINK).actions, Discard(why="no")))
    told = plan.model_dump(mode="json")
    told["actions"].append({"action": "store_note", "why": "x", "memory": raw})
    read = ConsolidationPlan.model_validate_json(json.dumps(told))
    assert read.actions[:2] == plan.actions
    assert read.actions[2] == Discard(why="cannot be read: memory.kind", reason=Reason.INVALID)


def test_a_plan_survives_the_way_through_temporal() -> None:
    """A plan read back from JSON is the same plan."""
    plan = ConsolidationPlan(actions=(*plan_of(LINK).actions, Discard(why="no")))
    assert ConsolidationPlan.model_validate_json(plan.model_dump_json()) == plan
