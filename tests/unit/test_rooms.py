"""The source as its readers meet it: a name means one thing, and what is read at once is short."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

from tests.support.sources import nodes_of, tree_of

# Sources are parsed once, in one process.
pytestmark = pytest.mark.xdist_group("sources")

ROOT = Path(__file__).parents[2]
ROOMS = ("engram", "workflows", "activities")
MODULES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
LONGEST_FUNCTION = 60
LONGEST_MODULE = 900
# Both of each are public: a port or a Python name on one side, the OpenAPI document on the other.
PUBLIC_TWICE = {"Candidate", "Problem", "Verification"}


def test_no_name_of_a_class_stands_for_two_things() -> None:
    """Whoever meets a class's name anywhere finds one class of that name."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                found[node.name].add(str(path.relative_to(ROOT)))
    assert {name for name, modules in found.items() if len(modules) > 1} == PUBLIC_TWICE


def test_no_constant_is_named_like_a_class_of_another_module() -> None:
    """An alias, a type variable or a constant does not pass for a class that is elsewhere."""
    classes, others = set[str](), dict[str, str]()
    for path in MODULES:
        for node in tree_of(path).body:
            match node:
                case ast.ClassDef(name=name):
                    classes.add(name)
                case (
                    ast.Assign(targets=[ast.Name(id=name)])
                    | ast.AnnAssign(target=ast.Name(id=name))
                ):
                    others[name] = str(path.relative_to(ROOT))
    assert {name: others[name] for name in others.keys() & classes} == {}


def test_functions_and_modules_can_be_read_at_once() -> None:
    """No function has more than 60 lines, and no module more than 900."""
    too_long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= LONGEST_FUNCTION
    ]
    too_long += [
        str(path.relative_to(ROOT))
        for path in MODULES
        if len(path.read_text("utf-8").splitlines()) > LONGEST_MODULE
    ]
    assert too_long == []
