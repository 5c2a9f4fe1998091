"""What a terminal shows of tables: whole ids, times with their zone, and that there is nothing."""

from __future__ import annotations

import io
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engram.cli import browse, output
from engram.cli.running import StoreOptions
from engram.operations.admin import EnergyReport, PromotionsReport
from engram.recall.results import RecallHit
from tests.support.cli import engram
from tests.support.example_memories import episode

MEMORY = "6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11"
WORDS = "Ada moved to Lisbon in May, and works for Tejo Robotics, where she writes firmware."


def shown_by(monkeypatch: pytest.MonkeyPatch, columns: int) -> io.StringIO:
    """What a terminal of so many columns shows from now on."""
    shown = io.StringIO()
    terminal = output.PipeConsole(
        file=shown, force_terminal=True, no_color=True, highlight=False, width=columns, _environ={}
    )
    monkeypatch.setattr(output, "console", terminal)
    return shown


def lines_of(shown: io.StringIO) -> list[str]:
    """Those lines, without what makes some bold or dim."""
    return re.sub(r"\x1b\[[0-9;]*m", "", shown.getvalue()).splitlines()


def print_list() -> None:
    """As `engram list` does."""
    browse._print_memories([episode(MEMORY, content=WORDS)], empty=None)  # noqa: SLF001 - what it prints


def print_answers() -> None:
    """As `engram recall --ids` does."""
    hit = RecallHit(memory=episode(MEMORY, content=WORDS), score=0.5)
    output.print_hits([hit], ids=True)


@pytest.mark.parametrize("columns", [80, 100, 120, 200])
@pytest.mark.parametrize("printed", [print_list, print_answers])
def test_an_id_is_on_one_line_and_the_words_can_be_read(
    printed: Callable[[], None], columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the terminal's width, an id can be copied, and the words take few lines."""
    shown = shown_by(monkeypatch, columns)
    printed()
    lines = lines_of(shown)
    assert max(map(len, lines)) <= columns
    assert len([line for line in lines if MEMORY in line]) == 1
    assert any("Ada moved to Lisbon" in line for line in lines)
    assert len(lines) <= 1 + 4


def test_two_ids_of_a_row_stand_below_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where both do not fit, each has a line that says which it is; what is none has none."""
    shown = shown_by(monkeypatch, 60)
    output.print_table(
        ("problem", "memory", "other", "what"),
        [("one way", MEMORY, MEMORY[::-1], "no link back"), ("bad field", MEMORY, "-", "empty")],
        ids=("memory", "other"),
    )
    lines = [line.rstrip().split("  ")[-1].strip() for line in lines_of(shown)]
    assert lines == [
        "what",
        "no link back",
        f"memory {MEMORY}",
        f"other {MEMORY[::-1]}",
        "empty",
        f"memory {MEMORY}",
    ]


def test_a_time_says_that_it_is_utc() -> None:
    """A moment of any zone is shown as that of UTC, and named so."""
    summer = timezone(timedelta(hours=2))
    assert output.utc(datetime(2026, 5, 20, 1, 15, 7, tzinfo=summer)) == "2026-05-19 23:15Z"
    when = datetime(2026, 5, 20, 8, 15, 7, tzinfo=UTC)
    assert output.utc(when, seconds=True) == "2026-05-20 08:15:07Z"


def test_keys_are_listed_with_times_of_utc(tmp_path: Path) -> None:
    """Whoever reads when a key was made need not guess the zone."""
    here = ("-d", str(tmp_path))
    assert engram("keys", "create", "laptop", "--access", "read", *here).code == 0
    columns, row = engram("keys", "list", *here).stdout.splitlines()
    made = dict(zip(columns.split("\t"), row.split("\t"), strict=True))["created"]
    assert datetime.fromisoformat(made).utcoffset() == timedelta(0)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("promotions",), ["Nothing was promoted yet.", "Nothing is ready for promotion yet"]),
        (("energy",), ["There are no active memories yet."]),
        (("test", "list"), ["There are no test memories."]),
    ],
    ids=" ".join,
)
def test_nothing_is_told_as_such(
    asked: tuple[str, ...], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a user without memories a command does not say nothing at all."""

    async def answer(found: Any) -> Any:
        return found

    nothing = SimpleNamespace(
        promotions=lambda **_: answer(PromotionsReport()),
        energy=lambda **_: answer(EnergyReport(policy="energy")),
        list_tests=lambda: answer([]),
    )

    @asynccontextmanager
    async def memory_of(_: StoreOptions, __: str) -> AsyncIterator[Any]:
        yield nothing

    monkeypatch.setattr(StoreOptions, "memory_of", memory_of)
    done = engram(*asked, "-u", "nobody")
    assert (done.code, done.stdout) == (0, "")
    assert all(sentence in done.stderr for sentence in said)
