"""Work that nobody waits for leaves the event loop to calls that somebody waits for."""

from __future__ import annotations

import asyncio
import time

import pytest

from engram.storage.giving_way import awaited, give_way, in_background


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long each giving way takes, in seconds; nobody waits for that long."""
    taken: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        taken.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    return taken


def work(seconds: float) -> None:
    """Hold the event loop."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        pass


async def test_work_in_the_background_pauses_while_a_call_is_awaited(pauses: list[float]) -> None:
    """For a share of the time it took; for one turn of the loop before, after and in answers."""
    with in_background():
        work(0.004)
        await give_way()
        with awaited():
            work(0.004)
            await give_way()
        work(0.004)
        await give_way()
    with awaited():
        work(0.004)
        await give_way()
    before, beside, after, answering = pauses
    assert before == after == answering == 0
    assert 0.001 < beside < 0.01


async def test_short_steps_pause_together(pauses: list[float]) -> None:
    """Fifty writes of a tenth of a millisecond pause a few times, not fifty times."""
    with in_background(), awaited():
        for _ in range(50):
            work(0.0001)
            await give_way()
    assert 0 < sum(pause > 0 for pause in pauses) < 10
