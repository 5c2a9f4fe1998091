"""``uv run python -m tests.benchmarks.growth [USERSxMEMORIES ...]``: what grows with a store.

Each data folder holds so many memories of each of so many users, four in five of them turns that
are consolidated. Engram is opened on it as an application opens it, and a few of the users say,
ask, consolidate and fade. By default that is 1, 10, 100 and 1,000 users of 1,000 memories, and one
of 300,000: the last two take half an hour and some gigabytes of disk and of memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import engram
from engram import Turn
from engram.domain.memories import AnyMemory, Episode
from engram.domain.scope import Scope
from engram.embedded.folder import DataFolder
from engram.embedding.choice import make_embedder
from engram.lifecycle.due import review_stamp
from engram.ports import Embedder, NewMemory, TextVectors
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from tests.benchmarks.people import NOW, embedded, everything, questions, words
from tests.support.process_memory import held_by

CASES: Final = ("1x1000", "10x1000", "100x1000", "1000x1000", "1x300000")
ASKED: Final = 100
SAID: Final = 100
_TALKING: Final = 5
"""Users who say and ask something, at most."""
_BATCH: Final = 2_000
_PRESENT: Final = NOW + timedelta(days=1)


@dataclass(frozen=True)
class Grown:
    """What was measured of one folder.

    Attributes:
        start: Seconds until Engram is open and has answered a first question.
        recall: Milliseconds of a recall, median.
        recall_tail: Its 99th percentile.
        encode: Milliseconds of an encode, median.
        encode_tail: Its 99th percentile.
        consolidation: Milliseconds of the processor a turn, of turns that were just told.
        decay: Seconds of a decay pass of a user of whom nothing is due.
        private: Megabytes of this process and Temporal's server, after all of it.
        pss: The same with the files that they look into.
        disk: Megabytes that the folder takes.
    """

    start: float
    recall: float
    recall_tail: float
    encode: float
    encode_tail: float
    consolidation: float
    decay: float
    private: float
    pss: float
    disk: float


def main() -> None:
    """Measure each case, each step in a process of its own, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), metavar="USERSxMEMORIES")
    parser.add_argument("--fill", type=Path, help="make this folder, in this process")
    parser.add_argument("--measure", type=Path, help="measure this folder, in this process; JSON")
    chosen = parser.parse_args()
    if chosen.fill:
        asyncio.run(fill(chosen.fill, *sizes(chosen.cases[0])))
    elif chosen.measure:
        found = asyncio.run(measure(chosen.measure, sizes(chosen.cases[0])[0]))
        print(json.dumps(asdict(found)))  # noqa: T201 - a command
    else:
        for case in chosen.cases:
            print(row(case, in_processes(case)), flush=True)  # noqa: T201 - a command


def sizes(case: str) -> tuple[int, int]:
    """How many users of how many memories a case means."""
    users, _, each = case.partition("x")
    return int(users), int(each)


def row(case: str, found: Grown) -> str:
    """A line of the table, as docs/benchmarks.md has it."""
    users, each = sizes(case)
    return (
        f"| {users:,} of {each:,} | {found.start:.1f} s | {found.recall:.1f} / "
        f"{found.recall_tail:.1f} ms | {found.encode:.1f} / {found.encode_tail:.1f} ms | "
        f"{found.consolidation:.1f} ms | {found.decay:.2f} s | {found.private:,.0f} MB | "
        f"{found.pss:,.0f} MB | {found.disk:,.0f} MB |"
    )


def in_processes(case: str) -> Grown:
    """Fill a folder and measure it, in two processes one after the other."""
    with tempfile.TemporaryDirectory(prefix="engram-growth-") as made:
        folder = str(Path(made) / "data")
        command = [sys.executable, "-m", "tests.benchmarks.growth", case]
        subprocess.run([*command, "--fill", folder], check=True)
        done = subprocess.run(
            [*command, "--measure", folder], check=True, capture_output=True, text=True
        )
    return Grown(**json.loads(done.stdout.splitlines()[-1]))


async def fill(path: Path, users: int, each: int) -> None:
    """Store the memories of all users, as consolidation left them."""
    settings = _settings(path)
    folder, embedder = DataFolder(path), make_embedder(settings.embedder)
    if not folder.try_lock():
        raise SystemExit(f"{path} is in use.")
    repository = await EdgeRepository.open(
        folder.store,
        embedder_identity=embedder.identity,
        dimensions=await embedder.dimensions(),
        settings=settings,
        stamp=review_stamp(settings.lifecycle_rules),
    )
    known: dict[str, TextVectors] = {}
    try:
        for user in range(users):
            scope = Scope.of("default", _name(user))
            for batch in _batches(scope, each):
                await repository.insert(scope, await _with_vectors(embedder, batch, known))
    finally:
        await repository.flush()
        await repository.close()
        folder.release()


def _batches(scope: Scope, each: int) -> Iterator[list[AnyMemory]]:
    made = [
        one.model_copy(update={"consolidated_at": one.timestamp})
        if isinstance(one, Episode)
        else one
        for one in everything(scope, each)
    ]
    for start in range(0, len(made), _BATCH):
        yield made[start : start + _BATCH]


async def _with_vectors(
    embedder: Embedder, batch: list[AnyMemory], known: dict[str, TextVectors]
) -> list[NewMemory]:
    """All users say the same: it is embedded once."""
    first, last = batch[0].content, batch[-1].content
    if first not in known or last not in known:
        new = await embedded(embedder, batch)
        known.update((one.memory.content, one.vectors) for one in new)
    return [NewMemory(one, known[one.content]) for one in batch]


async def measure(path: Path, users: int) -> Grown:
    """Open the folder and do with it what people wait for."""
    chance = random.Random(5)  # noqa: S311 - a repeatable choice, nothing secret
    talking = sorted(chance.sample(range(users), min(users, _TALKING)))
    asked = questions(ASKED)
    began = time.perf_counter()
    async with engram.open(
        path, user_id=_name(talking[0]), settings=_settings(path), clock=_present
    ) as memory:
        assert await memory.recall(asked[0])
        start = time.perf_counter() - began
        people = [memory.for_user(_name(user)) for user in talking]

        async def ask(number: int) -> None:
            assert await people[number % len(people)].recall(asked[number])

        async def say(number: int) -> None:
            await people[0].encode(words(number), session_id=f"now-{number // 50}")

        for person in people:
            await person.recall(asked[0])
        await _timed(say, 10)
        # Loads the rules, too.
        await people[0].consolidate()
        recall = await _timed(ask, ASKED)
        encode = await _timed(say, SAID)
        await people[0].consolidate()
        told = [("told", Turn(content=words(number))) for number in range(1000, 1000 + SAID)]
        await people[0].import_turns(told, consolidate=False)
        worked = time.process_time()
        report = await people[0].consolidate()
        consolidation = (time.process_time() - worked) / SAID
        assert report.episodes == SAID, report
        began = time.perf_counter()
        await people[-1].decay()
        decay = time.perf_counter() - began
        held, disk = held_by(os.getpid()), await asyncio.to_thread(_disk, path)
    return Grown(
        start=start,
        recall=statistics.median(recall),
        recall_tail=statistics.quantiles(recall, n=100)[-1],
        encode=statistics.median(encode),
        encode_tail=statistics.quantiles(encode, n=100)[-1],
        consolidation=consolidation * 1e3,
        decay=decay,
        private=held.private,
        pss=held.pss,
        disk=disk,
    )


async def _timed(call: Callable[[int], Awaitable[None]], count: int) -> list[float]:
    """Milliseconds of each call, one after the other."""
    took: list[float] = []
    for number in range(count):
        began = time.perf_counter()
        await call(number)
        took.append((time.perf_counter() - began) * 1e3)
    return took


def _settings(path: Path) -> Settings:
    # What is said is consolidated when it is asked for, not while encodes are measured.
    return Settings.load(data_dir=path, schedules=False, temporal_ui=False, buffer_turns=500)


def _present() -> datetime:
    return _PRESENT


def _name(user: int) -> str:
    return f"user-{user}"


def _disk(path: Path) -> float:
    """Megabytes, holes not counted."""
    found = (Path(where) / name for where, _, names in os.walk(path) for name in names)
    return sum(one.stat().st_blocks * 512 for one in found if one.is_file()) / 2**20


if __name__ == "__main__":
    main()
