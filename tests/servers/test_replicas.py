"""The store on three nodes that keep copies, while some of them are away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TypeVar
from uuid import uuid4

import httpx
import pytest

from engram.domain.memories import STORED_TYPES, AnyMemory, MemoryType
from engram.domain.scope import Scope
from engram.errors import LostUpdate, StorageUnavailable
from engram.ports import MaintenanceRepository, SearchRequest
from engram.settings import Settings
from engram.storage.payload import collection_names
from engram.storage.server import ServerRepository, connect_qdrant
from engram.storage.updates import MemoryChange, Updated, update_memories
from engram.system import new_id
from tests.support.engines import (
    ADA,
    BOB,
    DIMENSIONS,
    EMBEDDER,
    T0,
    episode,
    new,
    semantic,
    vectors,
)
from tests.support.qdrant_servers import PATIENCE, Cluster, Entrance, Node

pytestmark = pytest.mark.servers
EPISODIC, SEMANTIC = MemoryType.EPISODIC, MemoryType.SEMANTIC
Answer = TypeVar("Answer")


@pytest.fixture
def prefix(cluster: Cluster) -> Iterator[str]:
    """Of a store that no other test has; a node that comes back need not open it any more."""
    prefix = f"t{uuid4().hex[:8]}"
    yield prefix
    for name in collection_names(prefix).values():
        httpx.delete(f"{cluster.nodes[0].url}/collections/{name}", timeout=PATIENCE)


@asynccontextmanager
async def store_at(
    address: str, prefix: str, *, copies: int = 3
) -> AsyncIterator[MaintenanceRepository]:
    """The store as a program with these settings opens it."""
    settings = Settings.load(
        qdrant_url=address,
        collection_prefix=prefix,
        qdrant_replication_factor=copies,
        qdrant_write_consistency=min(copies, 2),
    )
    opened = await ServerRepository.open(
        connect_qdrant(settings),
        embedder_identity=EMBEDDER,
        dimensions=DIMENSIONS,
        settings=settings,
    )
    try:
        yield opened
    finally:
        await opened.close()


async def eventually(call: Callable[[], Awaitable[Answer]]) -> Answer:
    """What a call answers when it is made again for as long as that is said to help."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return await call()
        except (StorageUnavailable, LostUpdate):
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.1)


def adding(tag: str) -> MemoryChange:
    """The change that has a memory bear a tag; nothing to do where it does."""

    def add(memory: AnyMemory) -> AnyMemory | None:
        if tag in memory.tags:
            return None
        return memory.model_copy(update={"tags": (*memory.tags, tag)})

    return add


async def tagged(repository: MaintenanceRepository, ids: list[str], tag: str) -> Updated:
    """Add a tag, however often that takes; nothing is ever taken for missing."""

    async def update() -> Updated:
        done = await update_memories(repository, ADA, ids, adding(tag), new_write_id=new_id)
        assert done.missing == frozenset()
        return done

    return await eventually(update)


async def held_by(node: Node, prefix: str, scope: Scope) -> dict[str, AnyMemory]:
    """What a node shows of a user; each id once."""
    found: dict[str, AnyMemory] = {}
    async with store_at(node.url, prefix) as repository:
        for kind in STORED_TYPES:
            page = await repository.scroll(scope, kind, limit=1000)
            assert len(page.memories) == await repository.count(scope, kind)
            assert not found.keys() & {memory.id for memory in page.memories}
            found |= {memory.id: memory for memory in page.memories}
    return found


async def all_hold(
    cluster: Cluster, prefix: str, scope: Scope, expected: dict[str, AnyMemory]
) -> None:
    """Every node shows just these memories of a user."""
    for node in cluster.nodes:
        assert await held_by(node, prefix, scope) == expected


@pytest.mark.parametrize("rank", range(3))
async def test_work_goes_on_while_a_node_is_away(
    cluster: Cluster, entrance: Entrance, prefix: str, rank: int
) -> None:
    """Whichever node it is; what it missed is on it when it is back, and what went stays away."""
    turns = [episode(ADA, f"turn {number}") for number in range(12)]
    known = [semantic(ADA, f"known {number}", T0 + timedelta(hours=number)) for number in range(6)]
    missed = [episode(ADA, f"missed {number}") for number in range(6)]
    others = [episode(BOB, f"other {number}") for number in range(6)]
    everything = {memory.id for memory in (*turns, *known, *missed)}
    async with store_at(entrance.url, prefix) as repository:
        await repository.insert(ADA, [*map(new, turns), *map(new, known)])
        await repository.insert(BOB, map(new, others))
        node = cluster.by_rank[rank]
        node.kill()

        assert await eventually(lambda: repository.insert(ADA, map(new, missed))) == frozenset()
        found = await eventually(lambda: repository.get(ADA, everything, fresh=True))
        assert found.keys() == everything
        await tagged(repository, [memory.id for memory in known], "meanwhile")
        hits = await eventually(
            lambda: repository.search(ADA, SearchRequest(vectors(), (EPISODIC, SEMANTIC), 50))
        )
        assert {hit.memory.id for hit in hits} == everything

        gone = {turns[0].id, missed[0].id}
        key = uuid4().hex
        await eventually(lambda: repository.bury(ADA, gone, drawn={}, key=key))
        await eventually(lambda: repository.delete(ADA, EPISODIC, gone))
        again = [new(turns[0]), new(missed[0])]
        assert await eventually(lambda: repository.insert(ADA, again)) == gone
        await eventually(lambda: repository.raise_epoch(BOB, "one", key=uuid4().hex))
        await eventually(lambda: repository.erase(BOB))

        left = await eventually(lambda: repository.get(ADA, everything, fresh=True))
        assert left.keys() == everything - gone
        assert all("meanwhile" in left[memory.id].tags for memory in known)
        node.start()
        await asyncio.to_thread(cluster.wait_until_whole)
        assert await repository.get(ADA, everything, fresh=True) == left
    await all_hold(cluster, prefix, ADA, left)
    await all_hold(cluster, prefix, BOB, {})


@pytest.mark.parametrize("rank", range(2))
async def test_no_acknowledged_change_is_lost_while_a_node_dies(
    cluster: Cluster, prefix: str, rank: int
) -> None:
    """Writers that come in through different nodes change the same memories all the while."""
    memories = [semantic(ADA, f"known {number}") for number in range(3)]
    ids = [memory.id for memory in memories]
    killed, *living = sorted(cluster.nodes, key=lambda node: node is not cluster.by_rank[rank])
    halfway = asyncio.Event()

    async def write(node: Node, name: str) -> None:
        async with store_at(node.url, prefix) as repository:
            for number in range(20):
                await tagged(repository, ids, f"{name}-{number}")
                if number == 7:
                    halfway.set()

    async def kill() -> None:
        await halfway.wait()
        killed.kill()

    async with store_at(living[0].url, prefix) as repository:
        await repository.insert(ADA, map(new, memories))
    names = {f"w{number}": living[number % 2] for number in range(4)}
    await asyncio.gather(kill(), *(write(node, name) for name, node in names.items()))
    killed.start()
    await asyncio.to_thread(cluster.wait_until_whole)
    shown = [await held_by(node, prefix, ADA) for node in cluster.nodes]
    assert shown[1:] == shown[:-1]
    tags = {f"{name}-{number}" for name in names for number in range(20)}
    for one in ids:
        assert sorted(shown[0][one].tags) == sorted(tags)


async def test_without_a_majority_everything_waits(
    cluster: Cluster, entrance: Entrance, prefix: str
) -> None:
    """Two of three away: retryable errors and nothing taken for missing; then it goes on."""
    turn, later = episode(ADA, "turn"), episode(ADA, "later")
    async with store_at(entrance.url, prefix) as repository:
        await repository.insert(ADA, [new(turn)])
        for node in cluster.by_rank[:2]:
            node.kill()
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: repository.insert(ADA, [new(later)]),
            lambda: repository.get(ADA, [turn.id, later.id], fresh=True),
            lambda: update_memories(repository, ADA, [turn.id], adding("t"), new_write_id=new_id),
            lambda: repository.bury(ADA, {turn.id}, drawn={}, key=uuid4().hex),
        ]
        for call in calls:
            with pytest.raises(StorageUnavailable) as refused:
                await call()
            assert refused.value.retryable
        for node in cluster.by_rank[:2]:
            node.start()
        assert await eventually(lambda: repository.insert(ADA, [new(later)])) == frozenset()
        await tagged(repository, [turn.id, later.id], "back")
        await asyncio.to_thread(cluster.wait_until_whole)
        left = await repository.get(ADA, [turn.id, later.id], fresh=True)
        assert left.keys() == {turn.id, later.id}
    await all_hold(cluster, prefix, ADA, left)
