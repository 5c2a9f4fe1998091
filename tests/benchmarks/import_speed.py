"""How fast a history comes in: ``uv run python -m tests.benchmarks.import_speed [TURNS]``.

Prints the rate from the file to searchable (episodes and pattern facts, through
Temporal), the processor time per turn, and the rate of the bare work in one
process: extracting, embedding and inserting the same turns with nothing around
it. A slower machine slows both, so the bar moves with the second. On a busy one
there is no second core to use; only the processor time tells something there.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import engram
from engram import Settings
from engram.domain.memories import Episode, MemoryType
from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.language.extractor import Extractor
from engram.lifecycle.due import review_stamp
from engram.ports import NewMemory
from tests.support.edge_stores import borrowed_store

BAR = 1500.0
"""Turns a second, on a machine with two cores and nothing else to do."""
BARE_WORK = 1550.0
"""Turns a second of the bare work in one process, on that machine."""
QUIET = 0.9
"""The share of a core that a single process gets, from which on a machine counts as quiet."""
_DATA = Path(__file__).parents[1] / "data"
_BEGAN = datetime(2021, 5, 1, tzinfo=UTC)
_BARE_TURNS = 1500
_A_SESSION = 20
_BATCH = 256


@dataclass(frozen=True, slots=True)
class Speed:
    """What was measured.

    Attributes:
        turns: How many came in.
        rate: Turns a second, from the file to searchable.
        bare: Turns a second of the bare work, before and after, on average.
        bare_ms: Processor time per turn of the bare work, in milliseconds.
        own_ms: Processor time per turn of this process, in milliseconds.
        aside_ms: Processor time per turn of the processes beside it.
        facts: Facts and negations found.
    """

    turns: int
    rate: float
    bare: float
    bare_ms: float
    own_ms: float
    aside_ms: float
    facts: int

    @property
    def bar(self) -> float:
        """The bar on a machine of this speed."""
        return BAR * min(1.0, self.bare / BARE_WORK)

    @property
    def quiet(self) -> bool:
        """Whether the machine had little else to do: the bare work got its processor."""
        return self.bare * self.bare_ms / 1e3 > QUIET

    def __str__(self) -> str:
        """One line."""
        return (
            f"{self.turns:,} turns at {self.rate:,.0f}/s (bar {self.bar:,.0f}/s: {BAR:,.0f}/s "
            f"where the bare work does {BARE_WORK:,.0f}/s, here now {self.bare:,.0f}/s); "
            f"processor time per turn {self.own_ms:.2f} ms here and {self.aside_ms:.2f} ms beside, "
            f"of the bare work {self.bare_ms:.2f} ms; "
            f"{self.facts} facts and negations; load {os.getloadavg()[0]:.1f}"
        )


def talk(count: int) -> Iterator[dict[str, str]]:
    """Turns of a user and an assistant: one or two sentences, and three to five."""
    lines = [
        json.loads(line)
        for file in sorted(_DATA.glob("*.seen.jsonl"))
        for line in file.read_text("utf-8").splitlines()
    ]
    turns = (turn for one in lines for turn in one.get("turns", [one]))
    texts = [turn["text"] for turn in turns if "text" in turn]
    for number in range(count):
        asked = number % 2 == 0
        several = 1 + number % 4 // 2 if asked else 3 + number % 3
        words = " ".join(texts[(number * 13 + n * 31) % len(texts)] for n in range(several))
        yield {
            "role": "user" if asked else "assistant",
            "content": f"{words} ({number})",
            "session_id": f"s{number // _A_SESSION}",
            "timestamp": (_BEGAN + timedelta(minutes=number)).isoformat(),
        }


async def bare_work() -> tuple[float, float]:
    """Seconds and processor seconds per turn of extracting, embedding and inserting."""
    settings = Settings.load()
    embedder, extractor = make_embedder("wordllama"), Extractor(settings)
    scope = Scope.of("default", "bare")
    await embedder.embed_documents(["Load the model."])
    extractor.extract("My mail is ada@example.org, I was born on 3 May 1990.", "user", None, _BEGAN)
    async with borrowed_store(review_stamp(settings.lifecycle_rules)) as repository:
        turns = list(talk(_BARE_TURNS))
        began, busy = time.perf_counter(), time.process_time()
        for start in range(0, len(turns), _BATCH):
            episodes = [_episode(scope, n, one) for n, one in enumerate(turns[start:][:_BATCH])]
            for one in episodes:
                extractor.extract(one.content, one.role, None, one.timestamp)
            vectors = await embedder.embed_documents([one.indexed_text for one in episodes])
            pairs = zip(episodes, vectors, strict=True)
            await repository.insert(scope, [NewMemory(one, vector) for one, vector in pairs])
        took = (time.perf_counter() - began, time.process_time() - busy)
        return took[0] / len(turns), took[1] / len(turns)


def _episode(scope: Scope, number: int, turn: dict[str, str]) -> Episode:
    when = datetime.fromisoformat(turn["timestamp"])
    return Episode(
        id=str(uuid4()),
        namespace=scope.namespace,
        user_id=scope.user_id,
        content=turn["content"],
        known_at=when,
        created_at=when,
        session_id=turn["session_id"],
        role=turn["role"],
        timestamp=when,
        message_id=f"m{number}",
        sequence=number,
    )


async def measure(count: int, folder: Path) -> Speed:
    """Import so many turns into a fresh folder."""
    file = folder / "talk.jsonl"
    file.write_text("".join(json.dumps(turn) + "\n" for turn in talk(count)), "utf-8")
    settings = Settings.load(data_dir=folder / "data", temporal_ui=False, schedules=False)
    first = await bare_work()
    # The processes beside this one count once they have ended.
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    async with engram.open(folder / "data", user_id="ada", settings=settings) as memory:
        own, began = time.process_time(), time.perf_counter()
        done = await memory.import_file(file, consolidate=False)
        took, own = time.perf_counter() - began, time.process_time() - own
        assert (done.tally.stored, done.tally.conflicts) == (count, 0)
        assert (await memory.stats()).counts[MemoryType.EPISODIC] == count
        (last,) = await memory.recall(f"({count - 1})", memory_types="episodic", limit=1)
        assert last.memory.content.endswith(f"({count - 1})")
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    aside = ended.ru_utime + ended.ru_stime - children.ru_utime - children.ru_stime
    second = await bare_work()
    bare, busy = (sum(both) / 2 for both in zip(first, second, strict=True))
    facts = done.tally.facts + done.tally.negations
    return Speed(
        turns=count,
        rate=count / took,
        bare=1 / bare,
        bare_ms=busy * 1e3,
        own_ms=own / count * 1e3,
        aside_ms=aside / count * 1e3,
        facts=facts,
    )


def main() -> None:
    """Measure and print; exit status 1 below the bar."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    with tempfile.TemporaryDirectory(prefix="engram-import-") as folder:
        speed = asyncio.run(measure(count, Path(folder)))
    print(speed)  # noqa: T201 - a command
    sys.exit(speed.quiet and speed.rate < speed.bar)


if __name__ == "__main__":
    main()
