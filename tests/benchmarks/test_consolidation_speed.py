"""How many turns a second consolidation reads by the rules: real server, real engine, one user."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.client import Client

from engram.ports import MemoryRepository
from engram.settings import Settings
from tests.benchmarks.people import words
from tests.support.consolidation_workers import consolidating

TURNS = 1000
A_SESSION = 50
LEAST_PER_SECOND = 15
"""Turns; on a machine that is busy with other things. A quiet one with two cores does several times
that."""
MOST_OF_THE_PROCESSOR = 0.016
"""Seconds a turn that the process takes; they hang less on what else the machine does."""


@pytest.mark.slow
@pytest.mark.benchmark
@pytest.mark.timeout(600)
async def test_consolidation_keeps_up(
    temporal_client: Client,
    repository: MemoryRepository,
    settings: Settings,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A thousand turns of one user, digests included, at no less than the bar."""
    start = datetime(2025, 1, 1, tzinfo=UTC)
    async with consolidating(temporal_client, repository, settings) as memory:
        for session in range(TURNS // A_SESSION):
            at = start + timedelta(days=session)
            numbers = range(session * A_SESSION, (session + 1) * A_SESSION)
            turns = [
                (words(number), at + timedelta(minutes=place))
                for place, number in enumerate(numbers)
            ]
            await memory.say(*turns, session=f"s{session}")
        began, worked = time.perf_counter(), time.process_time()
        report = await memory.consolidate()
        seconds, work = time.perf_counter() - began, time.process_time() - worked
    with capsys.disabled():
        print(  # noqa: T201 - the figures are the point
            f"\nconsolidation: {TURNS / seconds:.0f} turns/s, {report.stored} memories stored, "
            f"{1e3 * work / TURNS:.1f} ms of the processor a turn"
        )
    assert report.episodes == TURNS
    assert report.failures == ()
    assert TURNS / seconds >= LEAST_PER_SECOND
    assert work / TURNS <= MOST_OF_THE_PROCESSOR
