"""What workflows call is what workers run."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
from temporalio.activity import _Definition

from engram.activities import consolidation, importing, lifecycle, removal, reviews, session
from engram.contracts import activities, names

_IMPLEMENTING = (consolidation, importing, lifecycle, removal, reviews, session)


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
