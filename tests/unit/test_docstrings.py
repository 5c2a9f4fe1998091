"""Tests say what they prove: each has a one-line docstring."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
MODULES = sorted(TESTS.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(TESTS)))
def test_every_test_says_what_it_proves(path: Path) -> None:
    """A test without a docstring, or with one that says nothing, is not finished."""
    tree = ast.parse(path.read_text("utf-8"))
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    silent = [
        function.name
        for function in functions
        if function.name.startswith("test_") and len(ast.get_docstring(function) or "") < 20
    ]
    assert silent == []
