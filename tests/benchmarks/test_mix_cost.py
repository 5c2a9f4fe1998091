"""What a turn costs where twelve users say and ask something all the time, and how soon it is read.

``uv run pytest -n 0 -m benchmark tests/benchmarks/test_mix_cost.py -s`` prints the figures.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from temporalio.client import WorkflowHandle

import engram
from engram import MemoryStore
from engram.embedded.folder import DataFolder, ServerRecord
from tests.benchmarks.people import words
from tests.support.bare_sessions import BareSession, bare_sessions
from tests.support.process_memory import worked_by
from tests.support.running_up import running_up

USERS, TURNS = 12, 60
PAUSE = 0.6
"""Seconds at most between an answer and the next turn."""
TIMES = 5.0
"""Of the processor that a bare update takes in the same minutes, of all processes, for a turn and a
question with all that follows from them: a guard."""
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


async def _update(bare: WorkflowHandle[BareSession, None], chance: random.Random) -> None:
    for number in range(TURNS):
        await bare.execute_update(BareSession.encode, number)
        await asyncio.sleep(chance.random() * PAUSE)


async def _updates(folder: Path) -> None:
    """The floor: as many bare updates, with the same pauses, on the memory's own server."""
    server = ServerRecord.read(DataFolder(folder).server_record)
    assert server is not None
    async with bare_sessions(server.address, USERS) as bare:
        await asyncio.gather(*map(_update, bare, _chances()))


def _chances() -> list[random.Random]:
    # A seed makes a run repeatable.
    return [random.Random(number) for number in range(USERS)]  # noqa: S311


@dataclass
class Work:
    """Of a running `engram up` and of this process: seconds of the processor from here on."""

    up: int

    def __post_init__(self) -> None:
        self._before = self._so_far()

    def _so_far(self) -> float:
        return worked_by(self.up) + time.process_time()

    def each(self) -> float:
        """Milliseconds of a turn."""
        return 1e3 * (self._so_far() - self._before) / (USERS * TURNS)


async def _read(memory: MemoryStore) -> None:
    """Wait until no turn waits for consolidation, without asking for it."""
    while (await memory.stats()).waiting:  # noqa: ASYNC110 - another process tells
        await asyncio.sleep(0.5)


async def test_what_a_turn_costs_in_the_mix(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A turn with a question takes what five bare updates do; all are read within a minute."""
    with running_up(tmp_path) as up:
        async with engram.open(up.folder, user_id="nobody") as store:
            people = [store.for_user(f"u{number}") for number in range(USERS)]
            for memory in people:
                await memory.encode("Hello.", session_id="before")
                await memory.recall("hello")
            work, began = Work(up.process.pid), time.perf_counter()
            await asyncio.gather(*map(_talk, people, _chances()))
            told = time.perf_counter()
            for memory in people:
                await memory.end_session("before")
            await asyncio.gather(*map(_read, people))
            behind = time.perf_counter() - told
            # What follows the last mark: links and digests.
            await asyncio.sleep(5)
            each = work.each()
            work = Work(up.process.pid)
            await _updates(up.folder)
            bare = work.each()
    with capsys.disabled():
        print(  # noqa: T201 - the figures are what the test is run for
            f"\n{USERS * TURNS / (told - began):.1f} turns a second, {each:.1f} ms of the "
            f"processor each, a bare update {bare:.1f}: {each / bare:.1f} times; all are read "
            f"{behind:.1f} s after the last"
        )
    assert behind <= BEHIND
    assert each <= TIMES * bare
