"""Starting programs under test, looking at what runs, and leaving nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Small numbers, so that what happens rarely happens all the time.
SMALL = {
    "ENGRAM_UPDATES_PER_RUN": "7",
    "ENGRAM_BUFFER_TURNS": "3",
    "ENGRAM_EXTRACTION_BATCH_TURNS": "5",
    "ENGRAM_TEMPORAL_UI": "false",
    "ENGRAM_ATTACH_TIMEOUT": "PT60S",
    "ENGRAM_START_TIMEOUT": "PT60S",
    "ENGRAM_LOG_LEVEL": "warning",
}


def environment(**settings: str) -> dict[str, str]:
    """This process's, with no settings of Engram but the given ones."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("ENGRAM_")}
    return kept | settings


class Program:
    """A child process in a group and session of its own, its output in a file.

    Args:
        command: What to run.
        output: Where standard output and error go.
        settings: Environment of Engram.
    """

    def __init__(self, command: list[str], output: Path, settings: dict[str, str]) -> None:
        self.output = output
        with output.open("ab") as file:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                cwd=ROOT,
                env=environment(**settings),
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def alive(self) -> bool:
        """Whether it runs."""
        return self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        """Signal its whole group, as a terminal does; gone is fine."""
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            return

    def kill(self) -> None:
        """End it at once, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        self.process.wait(10)

    def said(self) -> str:
        """The end of its output, for messages about failures."""
        return self.output.read_text(errors="replace")[-3000:]


@contextmanager
def started(
    command: list[str], output: Path, settings: dict[str, str] | None = None
) -> Iterator[Program]:
    """A program that is gone when the block is left, however it is left."""
    program = Program(command, output, SMALL if settings is None else settings)
    try:
        yield program
    finally:
        program.kill()


def module(name: str, *arguments: object) -> list[str]:
    """The command that runs a module of the tests."""
    return [sys.executable, "-m", name, *map(str, arguments)]


async def until(holds: Callable[[], bool], seconds: float, *programs: Program) -> bool:
    """Whether it comes true in time; gives up when one of the programs ends."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline or not all(p.alive() for p in programs):
            return holds()
        await asyncio.sleep(0.02)
    return True


def processes_of(folder: Path) -> dict[int, str]:
    """Servers and guards of a data folder that live: command line by process id."""
    listed = subprocess.run(
        ["ps", "-ww", "-A", "-o", "pid=,stat=,args="], capture_output=True, text=True, check=True
    )
    found = {}
    for line in listed.stdout.splitlines():
        pid, state, command = line.split(None, 2)
        if str(folder) in command and "start-dev" in command and not state.startswith("Z"):
            found[int(pid)] = command
    return found


def servers_of(folder: Path) -> list[int]:
    """Process ids of the Temporal servers that work on a data folder."""
    return [pid for pid, command in processes_of(folder).items() if "guard.py" not in command]
