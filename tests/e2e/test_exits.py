"""Ending an embedded Engram: the exit code says how, nothing is left, the folder opens again.

Three exits by default. Fifty:
ENGRAM_CHAOS_ROUNDS=50 uv run pytest -n 0 -m chaos tests/e2e/test_exits.py -s
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import engram
from engram import MemoryStore, Settings
from engram.errors import EngramError
from tests.support.durability_checks import episodes
from tests.support.programs import SMALL, Program, processes_of, started, until

ROUNDS = int(os.environ.get("ENGRAM_CHAOS_ROUNDS", "3"))
SEED = int(os.environ.get("ENGRAM_CHAOS_SEED", "20260311"))
PATIENCE = 60.0
# What the console command is, without relying on where scripts are installed.
ENGRAM = [
    *(sys.executable, "-c"),
    # Other tests, or this machine's user, may have the port.
    "import os; os.environ['ENGRAM_HTTP_ENABLED'] = 'false'; from engram.cli import main; main()",
]
LEAVES = """
import asyncio, sys, engram
async def main():
    async with engram.open(sys.argv[1], user_id="ada") as memory:
        await memory.encode(f"We saw exhibit {sys.argv[2]}.", session_id="left")
asyncio.run(main())
"""
KINDS = (signal.SIGINT, signal.SIGTERM, None)
"""Ctrl-C, asked to end, and a program that leaves the context."""

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(120 + 30 * ROUNDS)]


def dice() -> random.Random:
    """The same numbers in every run with the same seed."""
    return random.Random(SEED)  # noqa: S311 - chooses moments, guards nothing


def up(folder: Path) -> list[str]:
    """The command that serves a folder."""
    return [*ENGRAM, "up", "-d", str(folder)]


async def ended(program: Program) -> int:
    """The exit code; negative for the number of a signal that nobody handled."""
    assert await until(lambda: not program.alive(), PATIENCE), "does not end"
    return program.process.wait()


async def is_up(program: Program) -> None:
    """Wait until ``engram up`` says so."""
    came = await until(lambda: "Engram is up" in program.said(), PATIENCE, program)
    assert came, program.said()


@asynccontextmanager
async def talking(folder: Path, told: list[str], day: int) -> AsyncIterator[MemoryStore]:
    """A program beside it that keeps encoding, and notes what was acknowledged."""
    settings = Settings.load(data_dir=folder, attach_timeout="PT60S")
    async with engram.open(user_id="ada", settings=settings) as memory:

        async def talk() -> None:
            # Until the owner is gone: then a typed error says so.
            for number in itertools.count():
                content = f"We saw painting {number} on day {day}."
                await memory.encode(content, session_id="talk")
                told.append(content)

        task = asyncio.create_task(talk())
        try:
            yield memory
        finally:
            task.cancel()
            (outcome,) = await asyncio.gather(task, return_exceptions=True)
            assert isinstance(outcome, EngramError | asyncio.CancelledError), outcome


async def test_exits_say_how_and_leave_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ctrl-C: 130; SIGTERM, or leaving the context: 0; nothing runs on, the folder opens again."""
    chance, told, folder = dice(), list[str](), tmp_path / "data"
    left, took, seen = list[str](), list[float](), Counter[tuple[str, int]]()
    for number in range(ROUNDS):
        kind = KINDS[number % len(KINDS)]
        log = tmp_path / f"{number}.log"
        if kind is None:
            command = [sys.executable, "-c", LEAVES, str(folder), str(number)]
            with started(command, log) as program:
                code = await ended(program)
            left.append(f"We saw exhibit {number}.")
        else:
            with started(up(folder), log) as program:
                await is_up(program)
                async with talking(folder, told, number):
                    await asyncio.sleep(chance.uniform(0.0, 1.0))
                    began = time.monotonic()
                    program.signal(kind)
                    code = await ended(program)
                    took.append(time.monotonic() - began)
        assert code == (130 if kind is signal.SIGINT else 0), program.said()
        assert "Traceback" not in program.said()
        assert processes_of(folder) == {}
        seen[kind.name if kind else "left", code] += 1
    settings = Settings.load(data_dir=folder)
    async with engram.open(user_id="ada", settings=settings) as memory:
        kept = Counter(episode.content for episode in await episodes(memory))
    assert not [content for content in (*told, *left) if kept[content] != 1]
    with capsys.disabled():
        print(  # noqa: T201 - the figures are what the test is run for
            f"\nexits: seed {SEED}, {dict(seen)}; ends in {sorted(took)[len(took) // 2]:.1f} s "
            f"(median), {max(took):.1f} s (worst); {len(told) + len(left)} turns, each there once"
        )


@pytest.mark.slow
async def test_ended_while_starting(tmp_path: Path) -> None:
    """Interrupted at any moment of its start, no server and no lock is left behind."""
    chance, folder = dice(), tmp_path / "data"
    for number in range(max(2, ROUNDS // 2)):
        kind = (signal.SIGINT, signal.SIGTERM)[number % 2]
        with started(up(folder), tmp_path / f"{number}.log") as program:
            # From when it has the folder; before that there is nothing to leave behind.
            assert await until((folder / "owner.json").exists, PATIENCE, program), program.said()
            await asyncio.sleep(chance.uniform(0.0, 1.0))
            program.signal(kind)
            code = await ended(program)
        assert code == (130 if kind is signal.SIGINT else 0), program.said()
        assert processes_of(folder) == {}
        assert not (folder / "owner.json").exists()
    with started(
        [*ENGRAM, "encode", "We are back.", "-u", "ada", "-d", str(folder)],
        tmp_path / "back.log",
        SMALL,
    ) as program:
        assert await ended(program) == 0, program.said()
    assert processes_of(folder) == {}
