"""A whole Engram, its worker and its client, over three nodes while one of them dies."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from uuid import uuid4

import pytest
from temporalio.client import Client

import engram
from engram.errors import StorageUnavailable
from engram.settings import Settings
from engram.temporal.keys import FolderKeyStore
from tests.support.connected_workers import worker
from tests.support.durability_checks import episodes
from tests.support.numbered_turns import turn
from tests.support.qdrant_servers import Cluster, Entrance

pytestmark = pytest.mark.servers
_TURNS = 24
_AT_ONCE = 6
_ATTEMPTS = 5


@pytest.fixture
def settings(
    temporal_address: str,
    temporal_namespace: str,
    encryption_keys: FolderKeyStore,
    entrance: Entrance,
) -> Settings:
    """Of a program that keeps three copies and knows one address."""
    unique = uuid4().hex[:8]
    return Settings.load(
        temporal_address=temporal_address,
        temporal_namespace=temporal_namespace,
        encryption_keys=encryption_keys.folder,
        qdrant_url=entrance.url,
        qdrant_replication_factor=3,
        qdrant_write_consistency=2,
        namespace=f"n{unique}",
        collection_prefix=f"t{unique}",
    )


@pytest.mark.parametrize("rank", range(2))
async def test_acknowledged_turns_are_there_once_when_a_node_dies_meanwhile(
    cluster: Cluster, temporal_client: Client, settings: Settings, rank: int
) -> None:
    """Sent again where need be; consolidating and forgetting go on without it, and with it."""
    encoding = asyncio.Semaphore(_AT_ONCE)
    stored: list[str] = []
    node = cluster.by_rank[rank]
    async with (
        worker(temporal_client, settings),
        engram.connect(user_id="ada", settings=settings) as memory,
    ):

        async def said(number: int) -> engram.Receipt:
            # Who was talking to the node itself is told so, and sends the same turn again.
            for _ in range(_ATTEMPTS):
                with suppress(StorageUnavailable):
                    return await memory.encode(
                        turn(f"m-{number}"), session_id=f"s{number % _AT_ONCE}"
                    )
            pytest.fail("the store did not come back")

        async def encode(number: int) -> None:
            async with encoding:
                receipt = await said(number)
                stored.extend(receipt.episode_ids)
                if len(stored) == _TURNS // 3:
                    node.kill()

        await asyncio.gather(*map(encode, range(_TURNS)))
        kept = await episodes(memory)
        assert Counter(one.message_id for one in kept) == Counter(
            f"m-{number}" for number in range(_TURNS)
        )
        assert {one.id for one in kept} == set(stored)
        await memory.consolidate()
        assert await memory.recall("Which medicine is the user allergic to?")
        forgotten = stored[0]
        await memory.forget(forgotten)

        node.start()
        await asyncio.to_thread(cluster.wait_until_whole)
        kept = await episodes(memory)
        assert sorted(one.id for one in kept) == sorted(set(stored) - {forgotten})
        await memory.erase()
        assert await episodes(memory) == []
