"""What the repository adds to the raw engine, at 100,000 memories of 10 users."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any, Final
from uuid import UUID

import numpy as np
import pytest
import qdrant_edge as engine

from engram.domain.memories import Episode, MemoryType
from engram.domain.scope import Scope
from engram.ports import NewMemory, SearchRequest, SparseVector, TextVectors
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from engram.storage.payload import decode, encode

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(180)]

USERS: Final = 10
PER_USER: Final = 10_000
DIMENSIONS: Final = 256
QUERIES: Final = 40
LIMIT: Final = 50
BAR: Final = 3.0
T0: Final = datetime(2025, 1, 1, tzinfo=UTC)
EPISODIC: Final = MemoryType.EPISODIC
SCOPES: Final = [Scope.of("default", f"user-{number}") for number in range(USERS)]


class Source:
    """Vectors and memories, the same in every run."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(11)

    def vectors(self, terms: int) -> TextVectors:
        """A random direction, and words as frequent as in a language: few often, most rarely."""
        dense = tuple(self._random.standard_normal(DIMENSIONS).tolist())
        drawn = np.minimum(self._random.pareto(0.5, terms), 30_000).astype(int)
        words = sorted(set(drawn.tolist()))
        weights = self._random.uniform(0.5, 2, len(words)).tolist()
        return TextVectors(dense, SparseVector(tuple(words), tuple(weights)))

    def turn(self, scope: Scope, number: int) -> NewMemory:
        """A turn of ordinary length."""
        said_at = T0 + timedelta(minutes=number)
        memory = Episode(
            id=str(UUID(bytes=self._random.bytes(16))),
            namespace=scope.namespace,
            user_id=scope.user_id,
            content="A sentence of about the length of what people write in a chat. " * 2,
            known_at=said_at,
            created_at=said_at,
            timestamp=said_at,
            role="user",
            message_id=f"m{number}",
            session_id=f"s{number // 50}",
            sequence=number,
            write_id="w",
        )
        return NewMemory(memory, self.vectors(20))


@pytest.fixture
async def repository(tmp_path: Path) -> AsyncIterator[EdgeRepository]:
    """An empty store."""
    opened = await EdgeRepository.open(
        tmp_path / "store",
        embedder_identity="random",
        dimensions=DIMENSIONS,
        settings=Settings.load(),
    )
    yield opened
    await opened.close()


def raw_hybrid(shard: engine.EdgeShard, scope: Scope, vectors: TextVectors) -> list[Any]:
    """The engine's own hybrid query, as one would write it without Engram."""
    mine = engine.Filter(
        must=[engine.FieldCondition("tenant", match=engine.MatchValue(scope.tenant))]
    )
    sparse = engine.SparseVector(list(vectors.sparse.indices), list(vectors.sparse.values))
    idf = engine.SearchParams(idf=engine.IdfParams(corpus=mine))
    dense_side = engine.Query.Nearest(list(vectors.dense), "dense")
    sparse_side = engine.Query.Nearest(sparse, "sparse")
    found = shard.query(
        engine.QueryRequest(
            limit=LIMIT,
            prefetches=[
                engine.Prefetch(LIMIT, dense_side, filter=mine),
                engine.Prefetch(LIMIT, sparse_side, filter=mine, params=idf),
            ],
            query=engine.Fusion.Rrf(k=60),  # type: ignore[arg-type]  # its stub leaves out the base class
            with_payload=True,
        )
    )
    return [point.payload for point in found]


async def _timed(call: Callable[[], Awaitable[Any]]) -> float:
    started = time.perf_counter()
    await call()
    return time.perf_counter() - started


@pytest.mark.slow
async def test_search_costs_at_most_three_raw_queries(repository: EdgeRepository) -> None:
    """Search among one user's 10,000 of 100,000: p50 within 3x of the engine's hybrid query."""
    source = Source()
    writing = 0.0
    for scope in SCOPES:
        turns = [source.turn(scope, number) for number in range(PER_USER)]
        writing += await _timed(lambda scope=scope, turns=turns: repository.insert(scope, turns))  # type: ignore[misc]  # mypy cannot type a lambda's defaults
    shard = repository.shards[EPISODIC]
    raw: list[float] = []
    ours: list[float] = []
    for number in range(QUERIES):
        scope, question = SCOPES[number % USERS], source.vectors(6)

        async def ask_raw(scope: Scope = scope, question: TextVectors = question) -> None:
            assert len(raw_hybrid(shard, scope, question)) == LIMIT

        async def ask(scope: Scope = scope, question: TextVectors = question) -> None:
            found = await repository.search(scope, SearchRequest(question, (EPISODIC,), LIMIT))
            assert len(found) >= LIMIT

        raw.append(await _timed(ask_raw))
        ours.append(await _timed(ask))
    ratio = median(ours) / median(raw)
    print(  # noqa: T201  # the figures are the point
        f"\ninserted {USERS * PER_USER / writing:,.0f}/s; "
        f"raw hybrid p50 {median(raw) * 1e3:.2f} ms; "
        f"search p50 {median(ours) * 1e3:.2f} ms, worst {max(ours) * 1e3:.2f} ms; ratio {ratio:.2f}"
    )
    assert ratio <= BAR


@pytest.mark.slow
async def test_large_inserts_leave_the_loop_alive(repository: EdgeRepository) -> None:
    """While 5,000 memories are inserted, the event loop is rarely held for over 20 ms."""
    source = Source()
    turns = [source.turn(SCOPES[0], number) for number in range(5_000)]
    pauses: list[float] = []
    done = asyncio.Event()

    async def watch() -> None:
        while not done.is_set():
            pauses.append(await _timed(lambda: asyncio.sleep(0)))

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    await repository.insert(SCOPES[0], turns)
    done.set()
    await watching
    held = sorted(pauses)
    p95 = held[int(len(held) * 0.95)]
    print(f"\nloop held p50 {median(held) * 1e3:.1f} ms, p95 {p95 * 1e3:.1f} ms")  # noqa: T201  # the figures are the point
    assert p95 < 0.02


def test_a_memory_is_decoded_fast() -> None:
    """Encoding and decoding a turn costs well under the engine's share of a query."""
    turn = Source().turn(SCOPES[0], 1).memory
    payload = encode(SCOPES[0], turn)
    rounds = 5_000
    started = time.perf_counter()
    for _ in range(rounds):
        decode(payload)
    decoding = (time.perf_counter() - started) / rounds * 1e6
    started = time.perf_counter()
    for _ in range(rounds):
        encode(SCOPES[0], turn)
    encoding = (time.perf_counter() - started) / rounds * 1e6
    print(f"\ndecode {decoding:.0f} µs, encode {encoding:.0f} µs")  # noqa: T201  # the figures are the point
    assert decoding < 100
