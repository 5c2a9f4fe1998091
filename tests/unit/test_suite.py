"""The suite itself: tests say what they prove, and share only what is under tests/support."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sources import imported, nodes_of

TESTS = Path(__file__).parent.parent
MODULES = sorted(TESTS.rglob("*.py"))
HELPERS = [path for path in MODULES if path.parent == TESTS / "support" and path.stem[0] != "_"]
# Sources are parsed once, in one process.
pytestmark = pytest.mark.xdist_group("sources")
_IMPORTED = re.compile(r"(?:from|import) +(tests\.[\w.]+)")


def name_of(path: Path) -> str:
    """A module's name."""
    return ".".join(path.relative_to(TESTS.parent).with_suffix("").parts)


def reached(path: Path) -> Iterator[str]:
    """The modules that a module imports, those of this suite in programs that it starts too."""
    yield from imported(path)
    for text in started(path):
        yield from _IMPORTED.findall(text)


def started(path: Path) -> Iterator[str]:
    """The modules that a module may start as programs: it names them."""
    for node in nodes_of(path):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_groups_stay_together(request: pytest.FixtureRequest) -> None:
    """Tests of a group run in one process: where tests are distributed, its name is in their id."""
    if hasattr(request.config, "workerinput"):
        assert request.node.nodeid.endswith("@sources")


def test_every_test_says_what_it_proves() -> None:
    """A test without a docstring, or with one that says nothing, is not finished."""
    silent = [
        f"{name_of(path)}.{node.name}"
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and len(ast.get_docstring(node) or "") < 20
    ]
    assert silent == []


def test_no_test_module_is_imported() -> None:
    """What tests share is a helper under tests/support, no part of a test module or a conftest."""
    tests = {name_of(path) for path in MODULES if re.match(r"test_|conftest$", path.stem)}
    assert {name_of(Path(__file__)), "tests.conftest"} < tests
    wrong = {
        f"{name_of(path)} imports {module}"
        for path in MODULES
        for module in reached(path)
        if module in tests
    }
    assert wrong == set()


def test_every_helper_is_used() -> None:
    """What nothing imports and nothing starts is no help."""
    used = {
        module
        for path in MODULES
        for module in (*reached(path), *started(path))
        if module != name_of(path)
    }
    assert HELPERS
    assert [name for path in HELPERS if (name := name_of(path)) not in used] == []
