"""What commands run on: their log, and where the memory is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engram.cli.running import MemoryOptions, given_url, moment, over_http, pairs, settings_from
from engram.contracts.consolidation import ConsolidationReport
from engram.domain.turns import check_timestamp
from engram.errors import InvalidQuery, InvalidSettings, InvalidTurn, StorageUnavailable
from engram.recall.request import RecallRequest
from engram.settings import Settings
from tests.support.cli import engram


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
    monkeypatch.setattr("engram.logging.configure_logging_late", lambda **given: said.append(given))
    settings_from(stays=stays)
    settings_from(stays=stays, asks=True)
    assert [each["level"] for each in said] == [level, level]


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


def test_a_command_that_answers_others_asks_nobody() -> None:
    """An address on the line of ``engram up`` would do nothing: it is refused, not passed over."""
    token = given_url.set("http://127.0.0.1:8745")
    try:
        with pytest.raises(InvalidSettings, match="answers others"):
            settings_from(stays=True)
    finally:
        given_url.reset(token)


@pytest.mark.parametrize(
    "asked",
    [
        ("keys", "create", "laptop", "--access", "read"),
        ("keys", "list"),
        ("keys", "revoke", "laptop"),
        ("encryption", "init"),
        ("encryption", "status"),
        ("encryption", "rotate"),
    ],
    ids=" ".join,
)
def test_keys_of_a_server_are_not_looked_for_here(asked: tuple[str, ...], tmp_path: Path) -> None:
    """Who names an HTTP API is told that its keys lie elsewhere; none is made or shown here."""
    home = {"HOME": str(tmp_path)}
    for words, env in (
        (("--url", "http://127.0.0.1:9", *asked), home),
        (asked, home | {"ENGRAM_URL": "http://127.0.0.1:9"}),
        (("--url", "http://127.0.0.1:9", *asked, "-d", str(tmp_path / "here")), home),
    ):
        done = engram(*words, "--json", env=env)
        assert (done.code, json.loads(done.stdout)["error"]["code"]) == (1, "invalid_settings")
    assert list(tmp_path.iterdir()) == []


def test_keys_of_a_folder_that_is_named_are_found_whatever_the_shell_has(tmp_path: Path) -> None:
    """An address in the environment gives way to a folder on the line, as everywhere."""
    env = {"ENGRAM_URL": "http://127.0.0.1:9"}
    here = ("-d", str(tmp_path), "--json")
    made = engram("keys", "create", "laptop", "--access", "read", *here, env=env)
    assert made.code == 0, made.stderr
    assert [one["name"] for one in json.loads(engram("keys", "list", *here, env=env).stdout)] == [
        "laptop"
    ]


def test_a_key_expires_within_a_hundred_years(tmp_path: Path) -> None:
    """More days than a calendar has are told with what is allowed, and no key is made."""
    asked = ("keys", "create", "laptop", "--access", "read", "-d", str(tmp_path))
    refused = engram(*asked, "--days", "1e12")
    assert refused.code == 2
    assert "36525" in refused.stderr
    assert not (tmp_path / "keys.json").exists()
    assert engram(*asked, "--days", "36525").code == 0


def test_a_moment_is_read_or_refused() -> None:
    """ISO 8601 is read; anything else is a typed error that shows the form."""
    when = moment("2026-05-20T08:15:00+01:00", InvalidQuery)
    assert when is not None
    assert when.isoformat() == "2026-05-20T08:15:00+01:00"
    assert moment(None, InvalidQuery) is None
    for odd in ("yesterday", "2026-05-20", "2026-05-20T08:15:00"):
        with pytest.raises(InvalidQuery, match="ISO 8601 with zone"):
            moment(odd, InvalidQuery)


def test_a_moment_without_its_timezone_is_refused_in_words_for_a_shell_too() -> None:
    """Whoever hands over a day is shown how a moment is written, not only how Python has it."""
    typed = datetime(2026, 5, 20)  # noqa: DTZ001 - it is what is refused
    with pytest.raises(InvalidQuery, match=r"2026-05-20T08:15:00\+01:00"):
        RecallRequest.of("tea", settings=Settings(), as_of=typed)
    with pytest.raises(InvalidTurn, match=r"2026-05-20T08:15:00\+01:00"):
        check_timestamp(typed, now=datetime.now(UTC))


def test_metadata_that_nobody_can_read_as_json_is_text() -> None:
    """Brackets without end are kept as they were typed, like any other text."""
    brackets = "[" * 100_000
    assert pairs(["n=1", "t=tea", f"b={brackets}"]) == {"n": 1, "t": "tea", "b": brackets}


class SlowMemory:
    """A memory in which one turn after another is read while somebody looks."""

    def __init__(self) -> None:
        self.waiting = 4
        self.done = asyncio.Event()

    async def status(self, *, test_only: bool = False) -> Any:
        """How it stands; each look finds one fewer, and one cannot be answered."""
        self.waiting -= not test_only
        if self.waiting == 2 and not test_only:
            raise StorageUnavailable("Not now.")
        if self.waiting == 0:
            self.done.set()
        return SimpleNamespace(waiting=self.waiting)

    async def consolidate(self) -> ConsolidationReport:
        """Ends when nothing waits."""
        await self.done.wait()
        return ConsolidationReport(episodes=4)


def test_what_takes_long_says_how_far_it_is_in_a_pipe_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Numbers go to standard error while the answer is waited for, whatever a look comes to."""
    memory = SlowMemory()

    @asynccontextmanager
    async def memory_of(options: MemoryOptions, user: str) -> AsyncIterator[SlowMemory]:
        yield memory

    monkeypatch.setattr(MemoryOptions, "memory_of", memory_of)
    monkeypatch.setattr("engram.cli.running._LOOK_EVERY", 0.001)
    monkeypatch.setattr("engram.cli.output.SAY_SO", 0.0)
    found = MemoryOptions(user="ada").ask(
        lambda asked: asked.consolidate(),
        doing="Consolidating",
        left=lambda real, _: real.waiting,
    )
    assert found.episodes == 4
    assert capsys.readouterr().err.splitlines() == [
        "Consolidating: 2 of 3",
        "Consolidating: 3 of 3",
    ]
