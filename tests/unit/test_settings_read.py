"""A setting that nothing reads, or that only dead code reads, is a fault."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from engram.settings import Settings
from tests.support.sources import MODULES, place_of, tree_of

# Sources are parsed once, in one process.
pytestmark = pytest.mark.xdist_group("sources")

# Shown there, whatever it is called.
SHOWING = ("engram/cli/config",)
BY_TYPE = ("episodic", "factual", "semantic", "procedural", "negation")
# Read by a name that is put together from the type of a memory, or all of them at once.
COMPUTED = {f"{kind}_{what}" for kind in BY_TYPE for what in ("days", "weight")}


def leaves(model: type[BaseModel]) -> Iterator[str]:
    """The names of all settings that have a value of their own."""
    for name, field in model.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield from leaves(inner)
        else:
            yield name


def readers() -> tuple[dict[str, set[str]], set[str]]:
    """For each attribute the functions that read it, and all names that something refers to."""
    read: dict[str, set[str]] = defaultdict(set)
    named: set[str] = set()
    for path in MODULES:
        if not place_of(path).startswith(SHOWING):
            _collect(tree_of(path), "<module>", read, named)
    return read, named


def _collect(node: ast.AST, inside: str, read: dict[str, set[str]], named: set[str]) -> None:
    for child in ast.iter_child_nodes(node):
        within = inside
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            within = child.name
            if child.decorator_list:
                named.add(child.name)
        if isinstance(child, ast.Attribute):
            read[child.attr].add(inside)
            if child.attr != inside:
                named.add(child.attr)
        if isinstance(child, ast.Name) and child.id != inside:
            named.add(child.id)
        _collect(child, within, read, named)


def test_each_setting_is_read_by_code_that_something_calls() -> None:
    """Somewhere outside its definition, in a function that is not dead itself."""
    read, named = readers()
    alive = named | {"<module>"} | {name for name in named if name.startswith("__")}
    dead = {
        name
        for name in {*leaves(Settings)} - COMPUTED
        if not any(one in alive or one.startswith("__") for one in read.get(name, ()))
    }
    assert dead == set()
