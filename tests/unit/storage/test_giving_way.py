"""Work that nobody waits for leaves the event loop to calls that somebody waits for."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from engram.domain.memories import next_revision
from engram.ports import Replacement
from engram.storage.points import awaited, give_way, in_background
from tests.support.engines import ADA, episode, new, open_engine_at


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


async def test_a_write_in_the_background_lets_go_of_the_lock_while_it_pauses(
    folder: Path,
) -> None:
    """Between two replacements of a batch others can write, however long a pause is."""
    repository = await open_engine_at(folder)
    turns = [episode(ADA, f"turn {number}") for number in range(repository.batch)]
    await repository.insert(ADA, [new(turn) for turn in turns])
    changes = [
        Replacement(
            memory=next_revision(turn, turn, write_id=f"w{turn.id}"),
            expected_revision=turn.revision,
        )
        for turn in turns
    ]
    replacing = asyncio.create_task(repository.replace(ADA, changes))
    lock = repository._writes[turns[0].type].lock  # noqa: SLF001 - who has it is the point
    held = rounds = 0
    while not replacing.done():
        await asyncio.sleep(0)
        held += lock.locked()
        rounds += 1
    assert await replacing == {turn.id for turn in turns}
    assert held == 0
    assert rounds >= len(turns)
    await repository.close()
