"""A running Engram answers others while somebody pastes what no rule was written for."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

import engram
from tests.support.pumped_texts import pumped

SIZE = 32 * 1000
PASTED = (
    pumped("I live in Oslo", " ", suffix="x", size=SIZE),
    pumped("", "a", " Bob.", size=SIZE),
    pumped("not ", ".", suffix="a", size=SIZE),
    pumped("", "```a\n", size=SIZE),
    pumped("a", "\u0316\u0301", size=SIZE),
    pumped("my name is ", "I live in Oslo. ", size=SIZE),
)


class Pulse:
    """The longest that the event loop worked on one thing, in seconds of the processor."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def beat(self) -> None:
        """Look again every hundredth of a second, until cancelled."""
        last = time.thread_time()
        while True:
            await asyncio.sleep(0.01)
            now = time.thread_time()
            self.longest = max(self.longest, now - last)
            last = now


@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_others_are_answered_while_hostile_turns_are_read(tmp_path: Path) -> None:
    """Encoding and consolidating turns of 32 KB never keeps the event loop for 200 ms."""
    async with engram.open(tmp_path / "data", user_id="ada") as memory:
        await memory.encode("I live in Rome.", session_id="before")
        await memory.consolidate()
        pulse = Pulse()
        beating = asyncio.create_task(pulse.beat())
        for one in PASTED:
            await memory.encode(one.text, session_id="s1")
        await memory.end_session("s1")
        report = await memory.consolidate()
        beating.cancel()
        assert (report.refused, report.failures) == (0, ())
        assert pulse.longest <= 0.2
