"""A decay pass costs what is due, not what is stored.

The suite compares 2,000 stored memories with 20,000. For a million:
``uv run python -m tests.benchmarks.test_decay_cost 10000 1000000``.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

import pytest

from engram.contracts.lifecycle import WalkInput
from engram.domain.memories import Episode, MemoryStatus, MemoryType
from engram.domain.rules import LifecycleRules
from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.lifecycle.decisions import rulebook
from engram.lifecycle.review import Reviewer
from engram.ports import SparseVector, TextVectors
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from engram.storage.payload import encode, format_time
from engram.storage.points import NewPoint

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(180)]

DUE: Final = 500
PASSES: Final = 3
BAR: Final = 1.5
SMALL: Final = 2_000
LARGE: Final = 20_000
SCOPE: Final = Scope.of("default", "ada")
RULES: Final = LifecycleRules()
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
VECTORS: Final = TextVectors((1.0, 0.0, 0.0, 0.1), SparseVector((1,), (1.0,)))


def batched(items: Iterator[NewPoint], size: int) -> Iterator[list[NewPoint]]:
    """The items in portions."""
    while batch := list(islice(items, size)):
        yield batch


@dataclass(frozen=True)
class Cost:
    """Seconds of the processor for one pass, the least of several."""

    stored: int
    seconds: float


def points(number: int) -> Iterator[NewPoint]:
    """Turns of one user: for each pass ``DUE`` that are due by then, the others far from it.

    As the store keeps them, from one that was made the usual way: a million of
    them shall not take an hour.
    """
    book = rulebook(RULES, SCOPE.namespace)
    first = book.stamped(_turn(NOW))
    assert first.review_at is not None
    made, lasts = encode(SCOPE, first), first.review_at - NOW
    for n in range(number):
        turn = n // DUE
        # The first few are due one after the other, an hour apart; the rest within the year.
        due = timedelta(hours=turn) if turn < PASSES else timedelta(days=9, seconds=n)
        born = format_time(NOW - lasts + due)
        times = {"known_at": born, "created_at": born, "timestamp": born, "consolidated_at": born}
        key = str(UUID(int=n + 1))
        own = {"id": key, "message_id": f"m{n}", "review_at": format_time(NOW + due)}
        yield NewPoint(key, VECTORS, {**made, **times, **own})


def _turn(at: datetime) -> Episode:
    return Episode(
        id=str(UUID(int=1)),
        namespace=SCOPE.namespace,
        user_id=SCOPE.user_id,
        content="A sentence of about the length of what people write in a chat.",
        known_at=at,
        created_at=at,
        timestamp=at,
        role="user",
        message_id="m",
        session_id="s1",
        consolidated_at=at,
        write_id="w",
    )


async def cost(folder: Path, stored: int) -> Cost:
    """What a pass with ``DUE`` due memories costs among so many."""
    repository = await EdgeRepository.open(
        folder, embedder_identity="unit:1", dimensions=4, settings=Settings.load()
    )
    try:
        for batch in batched(points(stored), 64):
            await repository._insert(MemoryType.EPISODIC, batch)  # noqa: SLF001 - a million points, made once
        reviewer = Reviewer(repository, make_embedder("wordllama"), lambda: uuid4().hex)
        best = float("inf")
        for number in range(PASSES):
            work = WalkInput(scope=SCOPE, now=NOW + timedelta(hours=number), rules=RULES, batch=100)
            began = time.process_time()
            done = await reviewer.review(work)
            best = min(best, time.process_time() - began)
            assert done.position is None
            assert done.report.reviewed == done.report.count("grown_stale") == DUE
        assert await repository.count(SCOPE, MemoryType.EPISODIC) == stored
        gone = await repository.scroll(SCOPE, MemoryType.EPISODIC, limit=1)
        assert gone.memories[0].status is MemoryStatus.ACTIVE
    finally:
        await repository.close()
    return Cost(stored, best)


async def test_a_pass_costs_what_is_due(tmp_path: Path) -> None:
    """Ten times as much stored costs less than 1.5 times as much."""
    few = await cost(tmp_path / "few", SMALL)
    many = await cost(tmp_path / "many", LARGE)
    ratio = many.seconds / few.seconds
    print(  # noqa: T201 - the figure for the page on benchmarks
        f"\n{DUE} due: {few.seconds * 1e3:.0f} ms of {SMALL}, "
        f"{many.seconds * 1e3:.0f} ms of {LARGE}: {ratio:.2f}"
    )
    assert ratio < BAR


async def _compare(numbers: list[int]) -> None:
    for stored in numbers:
        with tempfile.TemporaryDirectory() as folder:
            found = await cost(Path(folder), stored)
        print(f"{DUE} due of {stored:>9,}: {found.seconds * 1e3:.0f} ms", flush=True)  # noqa: T201 - a command


if __name__ == "__main__":
    asyncio.run(_compare([int(number) for number in sys.argv[1:]] or [10_000, 1_000_000]))
