"""What commands run on: their log, and where the memory is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engram.cli.running import given_url, moment, over_http, settings_from
from engram.errors import InvalidQuery, InvalidSettings


@pytest.mark.parametrize(
    ("variable", "stays", "level"),
    [
        (None, False, "warning"),
        (None, True, "info"),
        ("info", False, "info"),
        ("error", True, "error"),
    ],
)
def test_a_command_that_ends_is_quiet(
    variable: str | None, stays: bool, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what serves others logs its course, unless the environment asks for it."""
    said: list[dict[str, Any]] = []
    monkeypatch.setattr("engram.logging.configure_logging", lambda **given: said.append(given))
    monkeypatch.delenv("ENGRAM_LOG_LEVEL", raising=False)
    if variable is not None:
        monkeypatch.setenv("ENGRAM_LOG_LEVEL", variable)
    settings_from(stays=stays)
    assert [each["level"] for each in said] == [level]


def test_one_place_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An address in the environment gives way to a folder or servers; one on the line does not."""
    monkeypatch.setattr("engram.logging.configure_logging", lambda **_: None)
    monkeypatch.setenv("ENGRAM_URL", "http://127.0.0.1:8745")
    settings = settings_from()
    assert over_http(settings, None, connected=False)
    assert not over_http(settings, tmp_path, connected=False)
    assert not over_http(settings, None, connected=True)
    token = given_url.set("http://127.0.0.1:8745")
    try:
        with pytest.raises(InvalidSettings, match="two places"):
            over_http(settings, tmp_path, connected=False)
    finally:
        given_url.reset(token)


def test_a_moment_is_read_or_refused() -> None:
    """ISO 8601 is read; anything else is a typed error that shows the form."""
    when = moment("2026-05-20T08:15:00+01:00", InvalidQuery)
    assert when is not None
    assert when.isoformat() == "2026-05-20T08:15:00+01:00"
    assert moment(None, InvalidQuery) is None
    with pytest.raises(InvalidQuery, match="ISO 8601"):
        moment("yesterday", InvalidQuery)
