"""`engram up` without what reads command lines: the same as with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engram.cli.up import settings_in


@pytest.mark.parametrize("option", ["-d", "--data-dir"])
def test_a_folder_is_all_that_is_read_without_typer(option: str) -> None:
    """No more than a folder is understood; of all else, help and mistakes too, Typer speaks."""
    assert settings_in(["up"]) == {}
    assert settings_in(["up", option, "here"]) == {"data_dir": Path("here")}
    for words in (
        ["up", "--help"],
        ["up", option],
        ["up", option, " "],
        ["up", option, "--help"],
        ["up", "here"],
        ["up", option, "here", "more"],
        ["serve"],
    ):
        assert settings_in(words) is None


def test_completion_is_left_to_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell that asks what may follow gets no running Engram."""
    monkeypatch.setenv("_ENGRAM_COMPLETE", "complete_bash")
    assert settings_in(["up"]) is None
