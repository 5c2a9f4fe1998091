"""Running commands in this process."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from engram.cli.app import whole

_WHOLE = typer.main.get_command(whole())


@dataclass(frozen=True)
class Said:
    """What a command came to."""

    code: int
    stdout: str
    stderr: str


def engram(
    *arguments: str, env: Mapping[str, str] | None = None, stdin: str | bytes | None = None
) -> Said:
    """Run a command; of the environment it sees no ENGRAM_ variable but these."""
    ours = {key: None for key in os.environ if key.startswith("ENGRAM_")}
    runner = CliRunner(env={**ours, "COLUMNS": "200", **(env or {})})
    with pytest.MonkeyPatch.context() as patched:
        # It would write to a stream that ends with the command, for the rest of the run.
        patched.setattr("engram.logging.configure_logging", lambda **_: None)
        patched.setattr("engram.logging.configure_logging_late", lambda **_: None)
        # Composing all commands anew takes longer than most of them.
        patched.setattr("typer.testing._get_command", lambda _: _WHOLE)
        # In a context of its own, as a process is: what --url gave is forgotten with it.
        done = copy_context().run(runner.invoke, whole(), list(arguments), input=stdin)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Said(done.exit_code, done.stdout, done.stderr)


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its path."""
    waiting: list[tuple[str, Any]] = [("", _WHOLE)]
    while waiting:
        path, command = waiting.pop()
        if (inner := getattr(command, "commands", None)) is None:
            yield path.strip(), command
        else:
            waiting.extend((f"{path} {name}", each) for name, each in inner.items())


COMMANDS = dict(sorted(commands()))


def examples(command: Any) -> list[str]:
    """The examples of a command's help."""
    return re.findall(r"^Example: (.+)$", command.help or "", re.MULTILINE)
