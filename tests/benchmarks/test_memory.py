"""How much memory `engram up` takes with its server: idle, and after conversations.

What counts is private anonymous memory of all its processes; Pss is printed beside it.
``uv run pytest -n 0 -m benchmark tests/benchmarks/test_memory.py -s`` prints the figures;
with another ``ENGRAM_MEMORY_TURNS`` than 3,000 or 12,000 nothing is asserted of what follows them.
"""

from __future__ import annotations

import asyncio
import math
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import engram
from engram import Turn
from engram.domain.memories import MemoryType
from tests.benchmarks.people import words
from tests.support.ports import free_port
from tests.support.process_memory import Held, held_by, peak_of
from tests.support.running_up import running_up

TURNS = int(os.environ.get("ENGRAM_MEMORY_TURNS", "3000"))
USERS, A_CALL = 12, 50
IDLE, WORKED = 132, {3000: 330, 12_000: 450}
"""Megabytes at most: at first, and after so many turns."""
SETTLED = float(os.environ.get("ENGRAM_MEMORY_SETTLED", "30"))
"""Seconds after which whatever only starting or working needed can be given back."""

pytestmark = [
    pytest.mark.benchmark,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="asks Linux"),
]


def say(what: str, held: Held) -> None:
    """The figure is what it is run for."""
    print(f"\n{what}: {held}", flush=True)  # noqa: T201 - see above


async def told(folder: Path, user: str, turns: int) -> None:
    """Have a user say so many turns, and consolidate them."""
    began = datetime(2025, 1, 1, tzinfo=UTC)
    async with engram.open(folder, user_id=user) as memory:
        for first in range(0, turns, A_CALL):
            await memory.encode(
                [
                    Turn(content=words(number), timestamp=began + timedelta(minutes=number))
                    for number in range(first, min(turns, first + A_CALL))
                ],
                session_id=f"s{first // A_CALL}",
            )
        report = await memory.consolidate()
        assert report.failures == ()
        assert (await memory.stats()).counts[MemoryType.EPISODIC] == turns


async def test_idle_and_after_conversations(tmp_path: Path) -> None:
    """Idle 132 MB with the HTTP API; 330 after 3,000 turns, 450 after 12,000, also at most."""
    served = {"ENGRAM_HTTP_ENABLED": "true", "ENGRAM_HTTP_PORT": str(free_port())}
    with running_up(tmp_path, **served) as up:
        await asyncio.sleep(SETTLED)
        idle = held_by(up.process.pid)
        say("idle", idle)
        with peak_of(up.process.pid) as peak:
            for user in range(USERS):
                await told(up.folder, f"user{user}", TURNS // USERS)
                say(f"after {user + 1} of {USERS} users", held_by(up.process.pid))
        await asyncio.sleep(SETTLED)
        after = held_by(up.process.pid)
        say("at most", peak.most)
        say(f"after {TURNS} turns and their consolidation", after)
    assert idle.private <= IDLE
    assert max(after.private, peak.most.private) <= WORKED.get(TURNS, math.inf)
