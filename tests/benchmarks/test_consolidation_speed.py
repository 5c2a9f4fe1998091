"""How many turns a second consolidation reads by the rules: real server, real engine, one user.

The floor is what nobody can leave out, in the same process: the rules read these turns, and what
they state is embedded.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from temporalio.client import Client

from engram.agents.requests import ExtractionRequest
from engram.agents.rules import extract
from engram.embedding.choice import make_embedder
from engram.ports import MemoryRepository
from engram.settings import Settings
from tests.benchmarks.people import words
from tests.support.consolidation_workers import consolidating
from tests.support.slot_labels import view

TURNS = 1000
A_SESSION = 50
A_REQUEST = 20
LEAST_PER_SECOND = 15
"""Turns; on a machine that is busy with other things. A quiet one with two cores does several times
that."""
MOST_OF_THE_PROCESSOR = 0.016
"""Seconds a turn that the process takes; they hang less on what else the machine does."""
MOST_OF_THE_FLOOR = 16.0
"""The same in floors: 8.6 to 12.6 in ten runs, of which the floor hardly varies."""


async def _floor(turns: Sequence[tuple[str, datetime]]) -> float:
    """Seconds of the processor for a turn that is only read, and what it states embedded."""
    embedder = make_embedder("wordllama")
    requests = [
        ExtractionRequest(
            turns=tuple(
                view(place, {"text": said, "timestamp": at.isoformat()})
                for place, (said, at) in enumerate(turns[begin : begin + A_REQUEST], start=1)
            )
        )
        for begin in range(0, len(turns), A_REQUEST)
    ]
    began = time.process_time()
    for request in requests:
        stated = [statement.content for statement in extract(request).statements]
        if stated:
            await embedder.embed_documents(stated)
    return (time.process_time() - began) / len(turns)


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
    told: list[tuple[str, datetime]] = []
    async with consolidating(temporal_client, repository, settings) as memory:
        for session in range(TURNS // A_SESSION):
            at = start + timedelta(days=session)
            numbers = range(session * A_SESSION, (session + 1) * A_SESSION)
            turns = [
                (words(number), at + timedelta(minutes=place))
                for place, number in enumerate(numbers)
            ]
            await memory.say(*turns, session=f"s{session}")
            told += turns
        await _floor(told[:A_SESSION])  # Patterns are made when they are first needed.
        before = await _floor(told)
        began, worked = time.perf_counter(), time.process_time()
        report = await memory.consolidate()
        seconds, work = time.perf_counter() - began, time.process_time() - worked
        floor = (before + await _floor(told)) / 2  # What slows the machine meets both.
    with capsys.disabled():
        print(  # noqa: T201 - the figures are the point
            f"\nconsolidation: {TURNS / seconds:.0f} turns/s, {report.stored} memories stored, "
            f"{1e3 * work / TURNS:.1f} ms of the processor a turn, "
            f"{work / TURNS / floor:.1f} times the {1e3 * floor:.2f} ms of reading them and "
            "embedding what they state"
        )
    assert report.episodes == TURNS
    assert report.failures == ()
    assert TURNS / seconds >= LEAST_PER_SECOND
    assert work / TURNS <= MOST_OF_THE_PROCESSOR
    assert work / TURNS <= MOST_OF_THE_FLOOR * floor
