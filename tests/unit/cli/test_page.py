"""docs/cli.md is what the commands say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from engram.cli import exits

DOCS = Path(__file__).parents[3] / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """docs/generate_cli.py, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("generate_cli", DOCS / "generate_cli.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current(generator: ModuleType) -> None:
    """The page that is committed is the one that the commands make."""
    committed = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert committed == generator.page(), "run: uv run python docs/generate_cli.py"


def test_the_page_tells_every_exit_code(generator: ModuleType) -> None:
    """Each code that a command can end with stands in the table."""
    page = generator.page()
    codes = [value for name, value in vars(exits).items() if isinstance(value, int)]
    assert set(codes) == set(exits.MEANINGS)
    assert all(f"\n| {code} | " in page for code in codes)
