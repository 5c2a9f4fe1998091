"""What a turn costs where twelve users say and ask something all the time, and how soon it is read.

``uv run pytest -n 0 -m benchmark tests/benchmarks/test_mix_cost.py -s`` prints the figures.
"""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import pytest

import engram
from engram import MemoryStore
from tests.benchmarks.people import words
from tests.support.process_memory import worked_by
from tests.support.running_up import running_up

USERS, TURNS = 12, 60
PAUSE = 0.6
"""Seconds at most between an answer and the next turn."""
MILLISECONDS = 60
"""Of the processor, of all processes, for a turn and a question: a guard; 76.8 were measured beside
other work, which makes a turn cost more."""
BEHIND = 60.0
"""Seconds after the last turn in which all of them are read."""

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks Linux"),
]


async def _talk(memory: MemoryStore, chance: random.Random) -> None:
    for number in range(TURNS):
        await memory.encode(words(number), session_id="s")
        await memory.recall(words(chance.randrange(TURNS)))
        await asyncio.sleep(chance.random() * PAUSE)
    await memory.end_session("s")


async def _read(memory: MemoryStore) -> None:
    """Wait until no turn waits for consolidation, without asking for it."""
    while (await memory.stats()).waiting:  # noqa: ASYNC110 - another process tells
        await asyncio.sleep(0.5)


async def test_what_a_turn_costs_in_the_mix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A turn with a question takes 60 ms of the processor; all are read within a minute."""
    with running_up(tmp_path) as up:
        async with engram.open(up.folder, user_id="nobody") as store:
            people = [store.for_user(f"u{number}") for number in range(USERS)]
            for memory in people:
                await memory.encode("Hello.", session_id="before")
                await memory.recall("hello")
            worked, here = worked_by(up.process.pid), time.process_time()
            began = time.perf_counter()
            # A seed makes a run repeatable.
            chances = [random.Random(number) for number in range(USERS)]  # noqa: S311
            await asyncio.gather(*map(_talk, people, chances))
            told = time.perf_counter()
            for memory in people:
                await memory.end_session("before")
            await asyncio.gather(*map(_read, people))
            behind = time.perf_counter() - told
            # What follows the last mark: links and digests.
            await asyncio.sleep(5)
            here = time.process_time() - here
            each = 1e3 * (worked_by(up.process.pid) - worked + here) / (USERS * TURNS)
    with capsys.disabled():
        print(  # noqa: T201 - the figures are what the test is run for
            f"\n{USERS * TURNS / (told - began):.1f} turns a second, {each:.1f} ms of the "
            f"processor each; all are read {behind:.1f} s after the last"
        )
    assert behind <= BEHIND
    assert each <= MILLISECONDS
