"""``uv run python -m tests.benchmarks.recall_scale [SIZE ...]``: recall by size of a memory.

For one user's memories, by default 1,000, 10,000 and 100,000: how long a recall
takes, how long the engine's own two queries take, and how long a hybrid query takes in
the local mode of qdrant-client, which other libraries use by default; and how much
memory each process needs beyond what it needed with an empty store: all of it, and what
is private and no file's. Each is measured in a process of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final

from qdrant_client import AsyncQdrantClient, models

from engram.domain.memories import AnyMemory, MemoryType
from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.language.negation_scope import covers
from engram.ports import Embedder, NewMemory, SearchRequest
from engram.recall.pipeline import Recaller
from engram.recall.request import RecallRequest
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from tests.benchmarks.people import NOW, embedded, everything, questions
from tests.support.process_memory import held_by

SIZES: Final = (1_000, 10_000, 100_000)
WAYS: Final = ("recall", "engine", "local mode")
_SCOPE: Final = Scope(namespace="default", user_id="somebody")
_BATCH: Final = 2_000
_ROUNDS: Final = 60
_ROUNDS_OF_SLOW: Final = 10
_LIMIT: Final = 48

Ask = Callable[[str], Awaitable[object]]


def main() -> None:
    """Measure every way at every size and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--one", choices=WAYS, help="measure this in this process, as JSON")
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(asyncio.run(measure(chosen.one, chosen.sizes[0]))))  # noqa: T201 - a command
        return
    print(f"{'memories':>9}  {'way':<11}{'p50 ms':>8}{'p99 ms':>8}{'MB':>7}{'own':>7}")  # noqa: T201 - a command
    for size in chosen.sizes:
        for way in WAYS:
            found = json.loads(in_a_process(way, size))
            row = f"{found['p50']:>8.1f}{found['p99']:>8.1f}"
            row += f"{found['megabytes']:>7.0f}{found['own']:>7.0f}"
            print(f"{size:>9}  {way:<11}{row}", flush=True)  # noqa: T201 - a command


def in_a_process(way: str, size: int) -> str:
    """What :func:`measure` gives in a process of its own, as JSON."""
    command = [sys.executable, "-m", "tests.benchmarks.recall_scale", str(size), "--one", way]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[-1]


async def measure(way: str, size: int) -> dict[str, float]:
    """Median and 99th percentile in milliseconds, and megabytes, of one way at one size."""
    settings = Settings.load()
    embedder = make_embedder(settings.embedder)
    await embedder.embed_query("so that the model is loaded")
    with tempfile.TemporaryDirectory(prefix="engram-scale-") as folder:
        if way == "local mode":
            return await _local_mode(embedder, size)
        repository = await EdgeRepository.open(
            Path(folder) / "store",
            embedder_identity=embedder.identity,
            dimensions=await embedder.dimensions(),
            settings=settings,
        )
        try:
            before = _megabytes()
            for batch in _batches(size):
                await repository.insert(_SCOPE, await embedded(embedder, batch))
            await repository.flush()
            ask = (_recall if way == "recall" else _engine)(repository, embedder, settings)
            return await _timed(ask, _ROUNDS, before)
        finally:
            await repository.close()


def _batches(size: int) -> Iterator[list[AnyMemory]]:
    made = list(everything(_SCOPE, size))
    for start in range(0, len(made), _BATCH):
        yield made[start : start + _BATCH]


def _recall(repository: EdgeRepository, embedder: Embedder, settings: Settings) -> Ask:
    recaller = Recaller(repository, embedder, settings.confidence_weights, settings, covers)

    async def ask(query: str) -> object:
        request = RecallRequest.of(query, settings=settings, include_sources=True)
        return await recaller.recall(_SCOPE, request, NOW)

    return ask


def _engine(repository: EdgeRepository, embedder: Embedder, settings: Settings) -> Ask:
    async def ask(query: str) -> object:
        request = SearchRequest(
            vectors=await embedder.embed_query(query),
            types=(MemoryType.EPISODIC, MemoryType.SEMANTIC),
            limit=settings.recall_candidates,
        )
        return await repository.rank(_SCOPE, request)

    return ask


async def _local_mode(embedder: Embedder, size: int) -> dict[str, float]:
    client = AsyncQdrantClient(":memory:")
    await client.create_collection(
        "memories",
        vectors_config={
            "dense": models.VectorParams(
                size=await embedder.dimensions(), distance=models.Distance.COSINE
            )
        },
        sparse_vectors_config={"sparse": models.SparseVectorParams(modifier=models.Modifier.IDF)},
    )
    before = _megabytes()
    for batch in _batches(size):
        points = [_point(new) for new in await embedded(embedder, batch)]
        await client.upsert("memories", points)

    async def ask(query: str) -> object:
        vectors = await embedder.embed_query(query)
        words = models.SparseVector(
            indices=list(vectors.sparse.indices), values=list(vectors.sparse.values)
        )
        return await client.query_points(
            "memories",
            prefetch=[
                models.Prefetch(query=list(vectors.dense), using="dense", limit=_LIMIT),
                models.Prefetch(query=words, using="sparse", limit=_LIMIT),
            ],
            query=models.FusionQuery(fusion=models.Fusion.RRF),
            limit=10,
        )

    try:
        return await _timed(ask, _ROUNDS_OF_SLOW, before)
    finally:
        await client.close()


def _point(new: NewMemory) -> models.PointStruct:
    sparse = new.vectors.sparse
    return models.PointStruct(
        id=new.memory.id,
        vector={
            "dense": list(new.vectors.dense),
            "sparse": models.SparseVector(indices=list(sparse.indices), values=list(sparse.values)),
        },
        payload=new.memory.model_dump(mode="json", exclude_none=True),
    )


async def _timed(ask: Ask, rounds: int, before: tuple[float, float]) -> dict[str, float]:
    asked = questions(rounds + 3)
    took: list[float] = []
    for query in asked:
        started = time.perf_counter()
        await ask(query)
        took.append((time.perf_counter() - started) * 1000)
    warm = sorted(took[3:])
    held, own = _megabytes()
    return {
        "p50": statistics.median(warm),
        "p99": warm[min(int(len(warm) * 0.99), len(warm) - 1)],
        "megabytes": held - before[0],
        "own": own - before[1],
    }


def _megabytes() -> tuple[float, float]:
    """What this process holds in memory, and what of it is private and no file's."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        # The system does not say.
        return 0.0, 0.0
    resident = int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return resident, held_by(os.getpid()).private


if __name__ == "__main__":
    main()
