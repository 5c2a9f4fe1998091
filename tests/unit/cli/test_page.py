"""docs/cli.md is what the commands say."""

from __future__ import annotations

from engram.cli import exits
from tests.support.page_makers import DOCS, page_maker


def test_the_page_is_current() -> None:
    """The page that is committed is the one that the commands make."""
    committed = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert committed == page_maker("cli").page(), "run: uv run python docs/generate_cli.py"


def test_the_page_tells_every_exit_code() -> None:
    """Each code that a command can end with stands in the table."""
    page = page_maker("cli").page()
    codes = [value for name, value in vars(exits).items() if isinstance(value, int)]
    assert set(codes) == set(exits.MEANINGS)
    assert all(f"\n| {code} | " in page for code in codes)
