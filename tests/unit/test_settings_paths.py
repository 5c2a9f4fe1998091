"""Paths in settings mean what a shell would mean by them."""

from __future__ import annotations

from pathlib import Path

import pytest

from engram.settings import Settings

PATHS = [name for name, field in Settings.model_fields.items() if "Path" in str(field.annotation)]


@pytest.mark.parametrize("name", PATHS)
def test_a_path_may_begin_with_the_home_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where no shell has read it: in a service file or a container's environment."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert getattr(Settings.load(**{name: "~/somewhere"}), name) == tmp_path / "somewhere"


@pytest.mark.parametrize("name", PATHS)
def test_an_empty_variable_is_none(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty line of an .env file does not make the current folder the data folder."""
    monkeypatch.delenv(f"ENGRAM_{name.upper()}", raising=False)
    unset = getattr(Settings.load(), name)
    monkeypatch.setenv(f"ENGRAM_{name.upper()}", "")
    assert getattr(Settings.load(), name) == unset
