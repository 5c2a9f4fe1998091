"""What cannot be undone is asked for, of a person at a terminal and of nobody else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from engram.cli import exits
from tests.support.cli import engram
from tests.support.programs import environment

MEMORY = "6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11"
ASKED = {"forget": ("forget", MEMORY), "erase": ("erase",)}


@pytest.mark.parametrize("command", ASKED)
@pytest.mark.parametrize("said", ["", "y\n"])
def test_without_a_terminal_nobody_is_asked(command: str, said: str, tmp_path: Path) -> None:
    """A program gets a typed error that says what to say, as JSON too; nothing is opened."""
    asked = (*ASKED[command], "-u", "ada", "-d", str(tmp_path))
    for_people = engram(*asked, stdin=said)
    assert (for_people.code, for_people.stdout) == (exits.FAILED, "")
    assert "hint: Say --yes" in for_people.stderr
    for_programs = engram(*asked, "--json", stdin=said)
    assert for_programs.code == exits.FAILED
    assert json.loads(for_programs.stdout)["error"]["code"] == "invalid_input"
    assert list(tmp_path.iterdir()) == []


@contextmanager
def at_a_terminal(*words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The program while it waits for an answer, and where somebody would type that."""
    pty = pytest.importorskip("pty")
    typing, keyboard = pty.openpty()
    program = subprocess.Popen(
        [sys.executable, "-m", "engram.cli", *words],
        stdin=keyboard,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    os.close(keyboard)
    assert program.stderr is not None
    try:
        asked = b"Erase everything of ada for good? [y/N] "
        assert program.stderr.read(len(asked)) == asked
        yield program, typing
    finally:
        program.kill()
        program.communicate()
        os.close(typing)


@pytest.mark.parametrize("typed", [b"\n", b"n\n", b"\xff\n", b"\x04"])
def test_whoever_does_not_say_yes_keeps_everything(typed: bytes, tmp_path: Path) -> None:
    """Asked on standard error alone; anything else, and the end of what is typed, is a no."""
    with at_a_terminal("erase", "-u", "ada", "-d", str(tmp_path)) as (program, typing):
        os.write(typing, typed)
        stdout, stderr = program.communicate(timeout=30)
    assert (program.returncode, stdout) == (exits.FAILED, b"")
    assert stderr == b"Nothing was done.\n"
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_question_is_told_from_a_no(tmp_path: Path) -> None:
    """Ctrl-C where something is asked ends as it does everywhere."""
    with at_a_terminal("erase", "-u", "ada", "-d", str(tmp_path)) as (program, _):
        program.send_signal(signal.SIGINT)
        stdout, _ = program.communicate(timeout=30)
    assert (program.returncode, stdout) == (exits.INTERRUPTED, b"")


def test_whoever_says_yes_is_taken_at_their_word(tmp_path: Path) -> None:
    """The command goes on: here to a data folder that is a file, which is what it says then."""
    (tmp_path / "file").write_text("")
    with at_a_terminal("erase", "-u", "ada", "-d", str(tmp_path / "file")) as (program, typing):
        os.write(typing, b"Yes\n")
        _, stderr = program.communicate(timeout=30)
    assert b"is, or lies under, a file" in stderr
