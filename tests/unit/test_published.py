"""The published contract of the workflows is what the workflows are."""

from __future__ import annotations

import json
from typing import Any, get_type_hints

import jsonschema  # type: ignore[import-untyped]  # it has no types
from temporalio.workflow import _Definition

from engram.contracts import names
from engram.contracts.consolidation import ConsolidationPolicy, ConsolidationState
from engram.contracts.lifecycle import DecayState, LifecyclePolicy, MaintenanceState
from engram.contracts.published import PUBLISHED
from engram.contracts.removal import ForgetInput
from engram.contracts.session import SessionState
from engram.domain.scope import Scope
from engram.settings import Settings
from engram.temporal.gateway import session_policy
from engram.workflows.worker import WORKFLOWS
from tests.support.page_makers import DOCS, page_maker

SCOPE = Scope.of("default", "ada")
# Engram's own: how its clients and activities speak with its workflows.
OWN = {
    *(names.FORGET_TURNS_SIGNAL, names.CONSOLIDATION_PROGRESS_QUERY, names.SESSION_ENDED_SIGNAL),
    *(names.LOOK_SIGNAL, names.REVIEW_QUERY, names.MAINTENANCE_PROGRESS_QUERY),
}


def test_page_and_schema_are_current() -> None:
    """What is committed is what the contracts give."""
    again = "run: uv run python docs/generate_workflows.py"
    committed = (DOCS / "workflows.md").read_text(encoding="utf-8")
    maker = page_maker("workflows")
    assert committed == maker.page(committed), again
    assert (DOCS / "workflows.json").read_text(encoding="utf-8") == maker.schema(), again


def test_the_contract_is_that_of_the_workflows() -> None:
    """Names, inputs and answers are those of the code; what is not published is named here."""
    defined = {found.name: found for found in map(_Definition.must_from_class, WORKFLOWS)}
    for published in PUBLISHED:
        definition = defined[published.name]
        of_run = get_type_hints(definition.run_fn)
        assert of_run.pop("return") == published.gives
        assert list(of_run.values()) == [published.takes]
        there = {
            **{("update", name): one.fn for name, one in definition.updates.items()},
            **{("signal", name): one.fn for name, one in definition.signals.items()},
            **{("query", name): one.fn for name, one in definition.queries.items()},
        }
        told = {(one.kind, one.name): one for one in published.sent}
        assert {name for _, name in there.keys() - told.keys()} <= OWN
        assert told.keys() <= there.keys()
        for key, one in told.items():
            hints = get_type_hints(there[key])
            gives = hints.pop("return")
            assert one.gives == (None if gives is type(None) else gives)
            assert list(hints.values()) == ([] if one.takes is None else [one.takes])


def test_what_a_start_leaves_out_is_what_settings_have() -> None:
    """A run that is started by hand goes by the same numbers as a client's with no settings."""
    settings = Settings.load(data_dir="/nowhere")
    lifecycle = LifecyclePolicy.fixed_by(settings)
    assert SessionState(scope=SCOPE, session_id="s1").policy == session_policy(settings)
    assert MaintenanceState.model_validate({"kind": "decay"}).policy == lifecycle
    assert DecayState(scope=SCOPE).policy == lifecycle
    assert ForgetInput(scope=SCOPE, memory_id="m").digests == settings.digests
    queue = names.model_queue_of(names.consolidation_workflow_id(SCOPE))
    assert queue == settings.model_queue
    by_hand = ConsolidationState(scope=SCOPE).policy
    assert by_hand.model_copy(update={"model_queue": queue}) == ConsolidationPolicy.fixed_by(
        settings
    )
    other = Settings.load(data_dir="/nowhere", collection_prefix="other")
    of_other = names.in_store("other", names.session_workflow_id(SCOPE, "s1"))
    assert names.model_queue_of(of_other) == other.model_queue


def test_the_schema_takes_small_inputs() -> None:
    """The least that the page shows fits, and nothing at all does not."""
    document = json.loads((DOCS / "workflows.json").read_text(encoding="utf-8"))
    session = document["workflows"][names.SESSION_WORKFLOW]

    def fits(about: dict[str, Any], value: Any) -> bool:
        whole = {**about, "$defs": document["$defs"]}
        return bool(jsonschema.Draft202012Validator(whole).is_valid(value))

    scope = {"namespace": "default", "user_id": "ada"}
    assert fits(session["input"], {"scope": scope, "session_id": "s1"})
    assert not fits(session["input"], {"scope": scope})
    encode = session["updates"]["encode"]["input"]
    turn = {"role": "user", "content": "I live in Porto."}
    assert fits(encode, {"calls": [{"turns": [turn]}]})
    assert not fits(encode, {"calls": []})
