"""The command line as a whole: help, examples, completion, start, exit codes, pipes, colours."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from engram.cli import exits
from engram.cli.admin import SCENARIOS
from engram.cli.app import for_words, panels
from engram.cli.passes import KINDS
from engram.cli.running import (
    ANSWERING_FORMS,
    MEMORY_FORMS,
    MEMORY_STATES,
    MEMORY_TYPES,
    OPTION_VARIABLES,
    ROLES,
)
from engram.contracts.lifecycle import PassKind
from engram.domain import memories, turns
from engram.domain.memories import MemoryForm, MemoryStatus, MemoryType
from engram.errors import EngramError, MemoryNotFound, TemporalUnavailable
from engram.operations.trials import Scenario
from tests.support.cli import COMMANDS, engram, examples

ENGRAM = [sys.executable, "-m", "engram.cli"]
# What talks to servers, computes or serves: no help text and no <Tab> should wait for it.
# (pydantic itself is typer's own way of reading arguments.)
HEAVY = {
    *("temporalio", "qdrant_client", "qdrant_edge", "pydantic_ai", "pydantic_settings"),
    *("fastapi", "structlog", "httpx", "numpy", "wordllama", "asyncio"),
    *("engram.settings", "engram.domain.memories", "engram.domain.scope", "engram.client"),
    "engram.embedded",
}


# --- help


def test_every_command_has_a_place_in_the_help() -> None:
    """Each command stands in one panel, and each name of a panel is a command."""
    there = {path.split()[0] for path in COMMANDS}
    named = [name for names in panels().values() for name in names]
    assert sorted(named) == sorted(there)


def test_help_shows_the_panels_in_order() -> None:
    """`engram --help` lists commands by purpose, in the order that a new user needs."""
    shown = re.findall(r"─ ([A-Z][\w ]+?) ─", engram("--help").stdout)
    assert shown == ["Options", *panels()]


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_explains_itself(path: str) -> None:
    """Each has a sentence, an example that its own parser accepts, and a word on each option."""
    command = COMMANDS[path]
    assert re.match(r"[A-Z].*[.;:,?]", command.help), path
    assert examples(command), f"engram {path} has no example"
    for parameter in command.params:
        assert parameter.name in ("help", "context") or parameter.help, (path, parameter.name)
    for example in examples(command):
        words = shlex.split(example.split(" < ")[0].split(" | ")[0])
        while "=" in words[0]:
            words.pop(0)
        assert words[0] == "engram"
        own = words[1 + len(path.split()) :]
        assert " ".join(words[1 : 1 + len(path.split())]) == path
        # Parses only: raises for whatever the command would refuse.
        command.make_context(path, own)


def test_options_are_called_the_same_everywhere() -> None:
    """User, folder, servers and JSON have one name, one letter and one meaning in all commands."""
    seen: dict[str, set[tuple[Any, ...]]] = {}
    for command in COMMANDS.values():
        for parameter in command.params:
            if parameter.name in ("data_dir", "connected", "as_json", "limit"):
                seen.setdefault(parameter.name, set()).add(tuple(parameter.opts))
            elif parameter.name == "user":
                assert parameter.opts == ["--user", "-u"]
    assert seen == {
        "data_dir": {("--data-dir", "-d")},
        "connected": {("--connected",)},
        "as_json": {("--json",)},
        "limit": {("--limit", "-n")},
    }


def test_variables_that_options_read_are_known() -> None:
    """What is no setting, and sets something all the same, is named in one place."""
    read = {
        parameter.envvar
        for command in COMMANDS.values()
        for parameter in command.params
        if parameter.envvar is not None
    }
    assert read == set(OPTION_VARIABLES)


def test_names_that_complete_are_those_that_are_known() -> None:
    """What the options offer without loading the domain is what the domain knows."""
    assert set(MEMORY_TYPES) == set(MemoryType)
    assert set(MEMORY_STATES) == set(MemoryStatus)
    assert set(MEMORY_FORMS) == set(MemoryForm)
    assert set(ANSWERING_FORMS) == set(memories.ANSWERING_FORMS)
    assert set(ROLES) == set(turns.ROLES)
    assert set(KINDS) == set(PassKind)
    assert set(SCENARIOS) == set(Scenario)


# --- completion and start


def completed(line: str, shell: str = "bash") -> list[str]:
    """What <Tab> offers at the end of a line."""
    words = line.split(" ")
    done = subprocess.run(
        ENGRAM,
        capture_output=True,
        text=True,
        check=True,
        env={
            **os.environ,
            "_ENGRAM_COMPLETE": f"complete_{shell}",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
            "_TYPER_COMPLETE_ARGS": line,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        },
    )
    return done.stdout.split("\n")


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("engram conf", {"confirm", "config"}),
        ("engram recall tea --so", {"--sources"}),
        ("engram recall tea --type s", {"semantic"}),
        ("engram list --status a", {"active", "archived"}),
        ("engram schedules pause d", {"decay"}),
        ("engram config health.y", {"health.young_days", "health.young_left_share"}),
    ],
)
def test_bash_completes(line: str, offered: set[str]) -> None:
    """Commands, options, memory types, states, kinds of passes and settings complete."""
    assert set(completed(line)) - {""} == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete(shell: str) -> None:
    """Zsh and fish are offered commands with a word on each."""
    offered = "\n".join(completed("engram conf", shell))
    assert "confirm" in offered
    assert "Show what is set" in offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_can_be_shown(shell: str) -> None:
    """--show-completion prints a script for the shell that runs it."""
    done = subprocess.run(
        [*ENGRAM, "--show-completion", shell],
        capture_output=True,
        text=True,
        check=True,
        # Else it is found out from the process above, which is no shell here.
        env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
    )
    assert "_ENGRAM_COMPLETE" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        (["--help"], {}),
        (["--version"], {}),
        (["recall", "--help"], {}),
        ([], {"_ENGRAM_COMPLETE": "complete_bash", "COMP_WORDS": "engram re", "COMP_CWORD": "1"}),
    ],
)
def test_help_and_completion_load_nothing_heavy(
    arguments: list[str], variables: dict[str, str]
) -> None:
    """No library that talks to servers, computes or serves is loaded to show help or complete."""
    program = (
        "import sys, atexit\n"
        "atexit.register(lambda: print('LOADED', *sys.modules, file=sys.stderr))\n"
        f"sys.argv = ['engram', *{arguments!r}]\n"
        "from engram.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.split("LOADED ")[1].split())
    assert "typer" in loaded
    assert loaded & HEAVY == set()


def test_a_command_is_found_in_the_module_that_is_loaded_for_it() -> None:
    """The module that a command line loads has the command that it names, and not all others."""
    whole = {path.split()[0] for path in COMMANDS}
    for name in sorted(whole):
        group: Any = typer.main.get_command(for_words(["--url", "http://localhost", name]))
        assert name in group.commands
        assert set(group.commands) < whole


def test_the_help_from_an_outline_is_that_of_all_commands() -> None:
    """`engram --help` says what it would say if it loaded what every command takes."""
    done = subprocess.run(
        [*ENGRAM, "--help"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "200", "TERMINAL_WIDTH": "200"},
    )
    assert done.stdout.split() == engram("--help").stdout.split()


# --- how commands end


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (EngramError("x"), exits.FAILED),
        (MemoryNotFound("x"), exits.NOT_FOUND),
        (TemporalUnavailable("x"), exits.TRY_AGAIN),
    ],
)
def test_exit_codes_tell_errors_apart(error: EngramError, code: int) -> None:
    """A program can tell what is wrong for good, what is not there, and what to try again."""
    assert exits.code_of(error) == code


def test_an_error_for_people_and_for_programs() -> None:
    """Standard error tells what is wrong, what is allowed and what to do; --json one document."""
    broken = {"ENGRAM_BUFFER_TURNS": "0", "ENGRAM_USER": "ada"}
    for_people = engram("recall", "tea", env=broken)
    assert for_people.code == exits.FAILED
    assert for_people.stdout == ""
    assert for_people.stderr.startswith("error: Settings cannot be used: ENGRAM_BUFFER_TURNS")
    assert "\nhint: " in for_people.stderr
    for_programs = engram("recall", "tea", "--json", env=broken)
    assert for_programs.code == exits.FAILED
    told = json.loads(for_programs.stdout)["error"]
    assert told["code"] == "invalid_settings"
    assert told["retryable"] is False
    assert "ENGRAM_BUFFER_TURNS" in told["message"]
    assert for_programs.stderr == for_people.stderr


def test_wrong_usage_is_told_apart() -> None:
    """An unknown command, a missing argument and a user that nobody named end in 2."""
    for arguments in (["imagine"], ["recall"], ["consolidate"], ["schedules", "pause", "naps"]):
        done = engram(*arguments)
        assert done.code == exits.WRONG_USAGE, arguments
        assert done.stdout == ""
        assert done.stderr


def test_a_stage_that_is_none_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    """Whoever mistypes what to wait for is told so, and can say the turn again."""
    asked = ("encode", "hi", "-u", "ada", "-d", str(tmp_path), "--wait", "lnked")
    done = engram(*asked)
    assert done.code == exits.FAILED
    assert "allowed: stored, extracted, linked" in done.stderr
    assert list(tmp_path.iterdir()) == []
    assert engram(*asked[:-1], "linked", "--within", "-1").code == exits.WRONG_USAGE


def test_what_is_no_text_is_refused() -> None:
    """Bytes on standard input that are no UTF-8 end with a typed error."""
    done = engram("encode", "-", "-u", "ada", stdin=b"\xff\xfe\xfa")
    assert done.code == exits.FAILED
    assert "allowed: UTF-8" in done.stderr


@pytest.mark.parametrize(
    "asked",
    [
        ("migrate", "DEEP", "-u", "ada", "--dry-run"),
        ("replay", "--file", "DEEP"),
        ("test", "learning", "DEEP", "--learning", "DEEP"),
    ],
)
def test_json_nested_without_end_is_refused(asked: tuple[str, ...], tmp_path: Path) -> None:
    """A file of a hundred thousand brackets ends with a typed error, wherever JSON is read."""
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000)
    done = engram(*(word.replace("DEEP", str(deep)) for word in asked))
    assert done.code == exits.FAILED
    assert done.stderr.startswith("error: ")


def test_whoever_stops_reading_gets_no_complaint() -> None:
    """`engram config | head -1`: one line, no traceback, the code of a program that was cut off."""
    pipeline = f"{shlex.join([*ENGRAM, 'config'])} | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", pipeline],
        capture_output=True,
        text=True,
        check=True,
        # So much that it does not fit into the pipe's buffer at once.
        env={**os.environ, "ENGRAM_NAMESPACE": "n" * 120_000},
    )
    first, code = done.stdout.splitlines()
    assert first == "setting\tvalue\tfrom"
    assert code == str(exits.UNREAD)
    assert done.stderr == ""


@pytest.mark.parametrize("asked", ["config buffer_turns", "config --json", "config"])
def test_where_nothing_can_be_written_is_told(asked: str) -> None:
    """Standard output on a full disk: a line on standard error and code 1, no traceback."""
    done = subprocess.run(
        ["bash", "-c", f"{shlex.join(ENGRAM)} {asked} > /dev/full"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == exits.FAILED
    assert done.stderr == f"{exits.NO_ROOM}\n"


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_lead_nowhere(closed: str, tmp_path: Path) -> None:
    """A command without standard streams works, and what it opens does not take their place."""
    done = subprocess.run(
        ["bash", "-c", f"{shlex.join(ENGRAM)} config buffer_turns {closed}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (exits.DONE, "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_the_output_has_no_character_for_is_escaped(encoding: str) -> None:
    """A locale of old: lines have escapes in them, and JSON stays JSON with every character."""
    name = "tēa ☕ 🫖"
    told = {**os.environ, "PYTHONIOENCODING": encoding, "ENGRAM_NAMESPACE": name}
    done = subprocess.run(
        [*ENGRAM, "config", "namespace"], capture_output=True, env=told, check=True
    )
    assert rb"t\u0113a \u2615 \U0001fad6" in done.stdout
    done = subprocess.run(
        [*ENGRAM, "config", "namespace", "--json"], capture_output=True, env=told, check=True
    )
    assert json.loads(done.stdout)["settings"][0]["value"] == name


def test_interrupted_before_it_began() -> None:
    """Ctrl-C while modules load ends with the code of an interruption and no traceback."""
    program = (
        "import sys\n"
        "class Impatient:\n"
        "    def find_spec(self, name, path, target=None):\n"
        "        if name == 'engram.cli.app': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Impatient())\n"
        "from engram.cli import main\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (exits.INTERRUPTED, b"")


def test_a_folder_that_is_named_from_nowhere_is_refused(tmp_path: Path) -> None:
    """A relative path where the current folder was removed: a typed error, and no traceback."""
    gone = shlex.quote(str(tmp_path / "gone"))
    command = shlex.join([*ENGRAM, "recall", "tea", "-u", "ada", "-d", "here"])
    done = subprocess.run(
        ["bash", "-c", f"mkdir {gone} && cd {gone} && rmdir {gone} && {command}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == exits.FAILED
    assert done.stderr.startswith("error: The data folder here cannot be found from here.")


# --- colours


@pytest.mark.parametrize(
    ("variables", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colours_are_for_terminals_that_want_them(
    variables: dict[str, str], coloured: bool
) -> None:
    """A terminal gets colours unless NO_COLOR or its kind says otherwise."""
    pty = pytest.importorskip("pty")
    reading, writing = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR")}
    done = subprocess.Popen(
        # What ends with an error needs little of Engram.
        [*ENGRAM, "recall", "tea", "-u", "ada"],
        stdout=writing,
        stderr=writing,
        env={**environment, "TERM": "xterm-256color", "ENGRAM_BUFFER_TURNS": "0", **variables},
    )
    os.close(writing)
    said = b""
    # The reading end says that the other one is closed with an error.
    try:
        while block := os.read(reading, 65536):
            said += block
    except OSError:
        assert said
    os.close(reading)
    done.wait(60)
    assert b"Settings cannot be used" in said
    # Bold is no colour, and dumb terminals do without that too.
    assert (re.search(rb"\x1b\[[\d;]*3\d", said) is not None) is coloured


def test_a_pipe_gets_plain_lines() -> None:
    """Without a terminal: a line for each row, tabs between cells, nothing wrapped or coloured."""
    done = subprocess.run(
        [*ENGRAM, "config", "recall_weights"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "20"},
    )
    lines = done.stdout.splitlines()
    assert {len(line.split("\t")) for line in lines} == {3}
    assert "\x1b" not in done.stdout
    assert done.stderr == ""
