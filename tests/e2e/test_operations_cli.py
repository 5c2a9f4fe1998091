"""The operator's commands beside a running `engram up`."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import typer

from engram import open as open_memory
from engram.cli.app import whole
from tests.support import cli
from tests.support.cli import Said
from tests.support.running_up import Up

# What runs is started once, in one process (tests/e2e/conftest.py).
pytestmark = pytest.mark.xdist_group("up")


@dataclass(frozen=True)
class Told:
    """A user of the running process who told one thing, and nobody else's."""

    running: Up
    user: str


@pytest.fixture
def up(up: Up) -> Told:
    """A user of the test's own."""
    told = Told(up, f"ada-{uuid4().hex[:8]}")
    assert engram(told, "encode", "I always drink tea when I work late.", "-s", "s1").code == 0
    assert engram(told, "consolidate").code == 0
    return told


def engram(up: Told, *arguments: str) -> Said:
    """Run a command in this process, attached to the one that is up: starting one takes long."""
    return cli.engram(*arguments, "-d", str(up.running.folder), env={"ENGRAM_USER": up.user})


def ask(up: Told, *arguments: str, code: int = 0) -> Any:
    """What a command prints as JSON, ending with this code."""
    done = engram(up, *arguments, "--json")
    assert done.code == code, done.stderr
    return json.loads(done.stdout)


def test_looking_at_memories(up: Told) -> None:
    """status, energy, promotions, health, validate and inspect answer, for people and programs."""
    status = ask(up, "status")
    assert status["types"]["episodic"]["memories"] == 1
    assert status["policy"] == "retention"
    assert ask(up, "energy")["faintest"]
    assert "promoted" in ask(up, "promotions")
    assert ask(up, "health")["diagnoses"] == []
    assert ask(up, "validate")["findings"] == []
    memory_id = ask(up, "briefing")[0]["memory"]["id"]
    assert ask(up, "inspect", memory_id)["states"]["lifecycle"] == "candidate"
    shown = engram(up, "inspect", memory_id).stdout
    assert "tea" in shown
    assert "salience" in shown
    assert "retention policy" in engram(up, "status").stdout


def test_passes_by_hand(up: Told) -> None:
    """Passes over one user and over all, tried out first; a promotion by hand."""
    ahead = ask(up, "decay", "--dry-run", "--at", "2099-01-01T00:00:00Z")
    assert ahead["dry_run"]
    assert ahead["changes"]
    assert ask(up, "decay")["transitions"] == []
    assert ask(up, "decay", "--test-only")["population"] == "test"
    assert ask(up, "promote", "--dry-run")["promoted"] == []
    ask(up, "decay", "--all")
    assert ask(up, "decay", "--all")["users"] == 0
    waiting = ask(up, "consolidate", "--all", "--dry-run")["users"]
    engram(up, "encode", "I like marimbas.", "-s", "s2")
    tried = ask(up, "consolidate", "--all", "--dry-run")
    assert tried["users"] == waiting + 1
    (own,) = [one for one in tried["of_users"] if one["scope"]["user_id"] == up.user]
    assert own["report"]["changes"] == ask(up, "consolidate", "--dry-run")["changes"]
    shown = engram(up, "consolidate", "--all", "--dry-run").stdout
    told = [line.split("\t") for line in shown.splitlines() if line.startswith("default/")]
    assert "marimbas" in next(row[-1] for row in told if row[0] == f"default/{up.user}")
    known = ask(up, "briefing")[0]["memory"]["id"]
    habit = ask(up, "force-promote", known)["habit_id"]
    assert ask(up, "inspect", habit)["memory"]["type"] == "procedural"
    assert ask(up, "confirm", known)["changes"]
    wrong = engram(up, "decay", "--at", "2099-01-01T00:00:00Z")
    assert wrong.code == 1
    assert "judged by the present" in wrong.stderr


_PASSES = ("consolidate", "decay", "promote")
_ON_ONE = ("force-promote", "confirm", "dispute", "protect", "unprotect", "demote", "repair")
_ON_TESTS = ("test create", "test boost", "test delete", "test scenario")
_LOOKS = ("status", "energy", "promotions", "health", "validate")
_ASKED = {
    **{f"{name}": ("--dry-run", "--test-only", "--json") for name in (*_PASSES, *_ON_ONE)},
    **{f"{name}": ("--dry-run", "--json") for name in _ON_TESTS},
    **{f"{name}": ("--test-only", "--json") for name in _LOOKS},
    **{f"{name}": ("--json",) for name in ("inspect", "test list", "briefing")},
    "migrate": ("--dry-run", "--json"),
}
"""The options that each of an operator's commands has to take."""


@pytest.mark.parametrize(("command", "options"), _ASKED.items())
def test_every_operators_command_can_be_tried_first(command: str, options: tuple[str, ...]) -> None:
    """What changes something takes --dry-run; what looks at many, --test-only; all, --json."""
    found: Any = typer.main.get_command(whole())
    for name in command.split():
        found = found.commands[name]
    assert set(options) <= {option for taken in found.params for option in taken.opts}


def test_a_dry_run_changes_no_memory(up: Told) -> None:
    """Neither count nor revision of any memory, real or test, differs after any dry run."""
    engram(up, "encode", "The weather was fine.", "-s", "dry")
    known = ask(up, "briefing")[0]["memory"]["id"]
    (made,) = ask(up, "test", "create", "I like marimbas.", "--conclusion")
    before = everything(up)
    assert {known, made["id"]} <= before.keys()
    tried: list[tuple[str, ...]] = [
        *((name, *whose, *tests) for name in _PASSES for whose in ((), ("--all",))
          for tests in ((), ("--test-only",))),
        *((name, one) for name in _ON_ONE for one in (known, made["id"])),
        *((name, made["id"], "--test-only") for name in _ON_ONE),
        ("test", "create", "I like bassoons."),
        ("test", "boost", made["id"]),
        ("test", "delete"),
        *(("test", "scenario", name) for name in ("fade", "stay", "use", "habit", "apart")),
    ]  # fmt: skip
    for command in tried:
        ask(up, *command, "--dry-run")
        assert everything(up) == before, command
    assert ask(up, "consolidate", "--dry-run")["episodes"] == 1
    habit = ask(up, "force-promote", made["id"], "--dry-run")["habit_id"]
    assert habit is not None
    assert habit not in everything(up)
    refused = engram(up, "protect", known, "--test-only")
    assert refused.code == 1
    assert "no test memory" in refused.stderr
    engram(up, "test", "delete")


def everything(up: Told) -> dict[str, tuple[int, str]]:
    """Revision and last write of every memory, test memories too."""

    async def read() -> dict[str, tuple[int, str]]:
        async with open_memory(up.running.folder, user_id=up.user) as memory:
            page = await memory.list(limit=1000, include_test=True)
            assert page.cursor is None
            return {one.id: (one.revision, one.write_id) for one in page.memories}

    return asyncio.run(read())


def test_test_memories(up: Told) -> None:
    """Made, boosted, played with, and removed; recall does not see them."""
    (made,) = ask(up, "test", "create", "I like xylophones.")
    (boosted,) = ask(up, "test", "boost", made["id"], "-n", "2")
    assert boosted["access_count"] == 2
    assert [memory["id"] for memory in ask(up, "test", "list")] == [made["id"]]
    assert not any(
        "xylophones" in hit["memory"]["content"] for hit in ask(up, "recall", "xylophones")
    )
    assert ask(up, "test", "scenario", "fade")["passed"]
    assert ask(up, "test", "delete", "--dry-run") == {"removed": 0, "found": 1}
    assert ask(up, "test", "delete") == {"removed": 1, "found": 1}
    refused = engram(up, "test", "scenario", "unheard-of")
    assert refused.code == 1
    assert "fade, stay, use, habit, apart" in refused.stderr


def test_mending_and_importing(up: Told, tmp_path: Path) -> None:
    """A file of another program is imported once; a bad line is named; repair finds nothing."""
    file = tmp_path / "old.jsonl"
    line = {"content": "I play the oboe.\u2028Daily.", "timestamp": "2020-05-01T10:00:00Z"}
    # As Windows' editors and other programs write it: a signature, and Unicode as it is.
    file.write_text("\ufeff" + json.dumps(line, ensure_ascii=False) + "\n", "utf-8")
    assert "1 memories can be read" in engram(up, "migrate", str(file), "--dry-run").stdout
    assert ask(up, "migrate", str(file))["episodes"] == 1
    assert ask(up, "migrate", str(file))["known"] == 1
    file.write_text('{"content": "no time"}\n')
    refused = engram(up, "migrate", str(file))
    assert refused.code == 1
    assert "Line 1" in refused.stderr
    memory_id = ask(up, "recall", "oboe")[0]["memory"]["id"]
    assert ask(up, "repair", memory_id) == {
        "memory_id": memory_id,
        "dry_run": False,
        "found": [],
        "mended": [],
    }


def test_schedules_and_replay(up: Told) -> None:
    """The schedules that `engram up` made are handled; what ran replays."""
    kinds = [info["kind"] for info in ask(up, "schedules", "list")]
    assert kinds == ["consolidation", "decay", "promotion"]
    engram(up, "schedules", "pause", "decay", "--note", "a look")
    assert ask(up, "schedules", "list")[1]["note"] == "a look"
    assert "paused: a look" in engram(up, "schedules", "list").stdout
    assert engram(up, "schedules", "resume", "decay").code == 0
    assert engram(up, "schedules", "trigger", "decay").code == 0
    assert engram(up, "schedules", "delete", "promotion").stdout.strip() == "promotion is removed."
    assert engram(up, "schedules", "delete", "promotion").stdout.strip() == "There was none."
    # In a process of its own, whose exit code programs go by.
    replayed = up.running.program("replay", f"session/default/{up.user}/s1", "--json")
    assert replayed.returncode == 0, replayed.stderr
    assert json.loads(replayed.stdout)["fits"]
    unknown = engram(up, "replay", f"session/default/{up.user}/never")
    assert unknown.code == 1
    assert "no history" in unknown.stderr
