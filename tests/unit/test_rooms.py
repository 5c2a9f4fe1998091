"""The source as its readers meet it: a name means one thing, and what is read at once is short."""

from __future__ import annotations

import ast
from collections import defaultdict

import pytest

from tests.support.sources import MODULES, imported, nodes_of, place_of, tree_of

# Sources are parsed once, in one process.
pytestmark = pytest.mark.xdist_group("sources")

LONGEST_FUNCTION = 60
LONGEST_MODULE = 900
# A module with fewer lines that one other alone imports belongs into that one.
SHORTEST_CHAPTER = 90
ALONE_FOR_A_REASON = {
    "engram.activities.importing": "each kind of activity has its module, as each workflow has",
    "engram.activities.lifecycle": "each kind of activity has its module, as each workflow has",
    "engram.activities.reviews": "each kind of activity has its module, as each workflow has",
    "engram.activities.session": "each kind of activity has its module, as each workflow has",
    "engram.client.remote": "loads a client for the network, which who asks servers needs not",
    "engram.language.misunderstood": "loads all rules of statements, which most turns need not",
    "engram.operations.catalogue": "names all operations, so that a new one is added in one place",
    "engram.operations.nexus": "what callers in other namespaces import, without our workflows",
}
# Both of each are public: a port or a Python name on one side, the OpenAPI document on the other.
PUBLIC_TWICE = {"Candidate", "Problem", "Verification"}


def test_no_name_of_a_class_stands_for_two_things() -> None:
    """Whoever meets a class's name anywhere finds one class of that name."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                found[node.name].add(place_of(path))
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
                    others[name] = place_of(path)
    assert {name: others[name] for name in others.keys() & classes} == {}


def test_functions_and_modules_can_be_read_at_once() -> None:
    """No function has more than 60 lines, and no module more than 900."""
    too_long = [
        f"{place_of(path)}:{node.lineno} {node.name}"
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= LONGEST_FUNCTION
    ]
    too_long += [
        place_of(path)
        for path in MODULES
        if len(path.read_text("utf-8").splitlines()) > LONGEST_MODULE
    ]
    assert too_long == []


def test_what_users_say_is_kept_only_where_it_can_be_let_go_of() -> None:
    """In the rooms that read and score their words, answers are kept by one function."""
    rooms = {"language", "digests", "embedding", "recall", "consolidation"}
    others = {
        place_of(path)
        for path in MODULES
        if place_of(path).split("/")[1] in rooms and "lru_cache" in path.read_text("utf-8")
    }
    assert others == set()


def test_what_only_one_other_imports_is_a_chapter() -> None:
    """A short module that serves one other alone stands in that one, or here with its reason."""
    modules = {place_of(path)[:-3].replace("/", "."): path for path in MODULES}
    importers: dict[str, set[str]] = defaultdict(set)
    for name, path in modules.items():
        for other in imported(path):
            importers[other].add(name)
    alone = {
        name
        for name, path in modules.items()
        if len(importers[name] - {name}) == 1
        and len(path.read_text("utf-8").splitlines()) < SHORTEST_CHAPTER
    }
    assert alone - ALONE_FOR_A_REASON.keys() == set()
    assert ALONE_FOR_A_REASON.keys() <= modules.keys()
