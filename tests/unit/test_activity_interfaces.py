"""What workflows call is what workers run."""

from __future__ import annotations

import base64
import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter
from temporalio.activity import _Definition

from engram.activities import consolidation, importing, lifecycle, removal, reviews, session
from engram.contracts import activities, names

_IMPLEMENTING = (consolidation, importing, lifecycle, removal, reviews, session)
# Fields that nothing looked at any more when they went.
DROPPED = {
    ("engram.reconcile", ".use.deterministic"),
    ("engram.write_plan", ".plan.actions[].instead_of"),
}


def _defined(kind: type) -> Iterator[tuple[str, _Definition]]:
    for name, method in inspect.getmembers(kind, inspect.isfunction):
        definition = _Definition.from_callable(method)
        if definition is not None:
            yield name, definition


def _interfaces() -> list[type[Any]]:
    found = (one for _, one in inspect.getmembers(activities, inspect.isclass))
    return [one for one in found if one.__module__ == activities.__name__]


def test_every_activity_name_is_declared_once() -> None:
    """The interfaces together name every activity that histories know, each once."""
    declared = [d.name for interface in _interfaces() for _, d in _defined(interface)]
    known = [value for key, value in vars(names).items() if key.endswith("_ACTIVITY")]
    assert sorted(declared, key=str) == sorted(known)


@pytest.mark.parametrize("interface", _interfaces(), ids=lambda one: one.__name__)
def test_implementations_carry_the_names_of_their_interface(interface: type[Any]) -> None:
    """One class implements each interface: every method, under its name and with its types."""
    (implementation,) = (
        one
        for module in _IMPLEMENTING
        for _, one in inspect.getmembers(module, inspect.isclass)
        if issubclass(one, interface) and one is not interface
    )
    offered = dict(_defined(implementation))
    for name, asked in _defined(interface):
        assert getattr(implementation, name) is not getattr(interface, name)
        assert offered[name].name == asked.name
        assert offered[name].arg_types == asked.arg_types
        assert offered[name].ret_type == asked.ret_type


def _asked_in_histories() -> Iterator[tuple[str, bytes]]:
    """What recorded runs asked of activities: the activity, and its input as it was sent."""
    for path in (Path(__file__).parents[1] / "replay" / "histories").glob("*.json"):
        for event in json.loads(path.read_text("utf-8"))["events"]:
            asked = event.get("activityTaskScheduledEventAttributes")
            if asked is not None:
                (payload,) = asked["input"]["payloads"]
                yield asked["activityType"]["name"], base64.b64decode(payload["data"])


def _lost(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """The places of what was recorded, and is not read any more."""
    match before, after:
        case dict(), dict():
            for key, value in before.items():
                yield from _lost(value, after.get(key), f"{place}.{key}")
        case list(), list() if len(before) == len(after):
            for one, other in zip(before, after, strict=True):
                yield from _lost(one, other, f"{place}[]")
        case _ if before is not None and before != after:
            yield place


def test_what_runs_asked_of_activities_is_read_to_the_last_field() -> None:
    """A worker that takes over a task finds in it all that the run before it put there."""
    readers: dict[str | None, TypeAdapter[Any]] = {
        d.name: TypeAdapter(d.arg_types[0])
        for interface in _interfaces()
        for _, d in _defined(interface)
        if d.arg_types
    }
    lost: set[tuple[str, str]] = set()
    for name, asked in _asked_in_histories():
        # What other programs ask of the plugin's activities is no matter of these.
        if name in readers:
            after = readers[name].dump_python(readers[name].validate_json(asked), mode="json")
            lost |= {(name, place) for place in _lost(json.loads(asked), after)}
    assert lost == DROPPED
