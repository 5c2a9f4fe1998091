"""Two environments, each with a store of its own, on one Temporal namespace."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from uuid import uuid4

import pytest
from pydantic_ai.embeddings import TestEmbeddingModel
from temporalio.client import Client

from engram.agents.asking import Rules
from engram.client.local import direct_engine
from engram.client.memory import MemoryStore
from engram.domain.memories import MemoryType
from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.errors import SchemaMismatch, TemporalUnavailable
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from engram.system import new_id, system_clock
from engram.temporal.gateway import list_workflows
from engram.workflows.worker import running_workers
from tests.support.edge_stores import borrowed_store

_SESSIONS = 10


@dataclass
class Environment:
    """A store, its worker, and a client of both."""

    settings: Settings
    repository: EdgeRepository
    memory: MemoryStore

    async def stored(self) -> set[str]:
        """What the store has of the user."""
        page = await self.repository.scroll(self.memory.scope, MemoryType.EPISODIC, limit=1000)
        return {memory.content for memory in page.memories}


@asynccontextmanager
async def environment(
    client: Client, scope: Scope, settings: Settings
) -> AsyncIterator[Environment]:
    """Its worker runs while it is used."""
    embedder = make_embedder("wordllama")
    async with (
        borrowed_store() as repository,
        running_workers(client, repository, embedder, Rules(), settings, new_write_id=new_id),
    ):
        engine = direct_engine(client, repository, embedder, settings, system_clock, ui_url=None)
        memory = MemoryStore(engine, scope, settings, system_clock, new_id)
        yield Environment(settings, repository, memory)
        await engine.close()


@asynccontextmanager
async def two(client: Client, **queues: str) -> AsyncIterator[tuple[Environment, Environment]]:
    """Production and staging, which have a user of the same name."""
    unique = uuid4().hex[:8]
    scope = Scope.of("default", f"u-{unique}")
    settings = [
        Settings.load(collection_prefix=f"{name}-{unique}", **queues)
        for name in ("prod", "staging")
    ]
    # A connection takes one worker of a queue.
    other = await Client.connect(
        client.service_client.config.target_host,
        namespace=client.namespace,
        data_converter=client.data_converter,
    )
    async with (
        environment(client, scope, settings[0]) as prod,
        environment(other, scope, settings[1]) as staging,
    ):
        yield prod, staging


async def _say(one: Environment, turns: int) -> set[str]:
    """Have turns acknowledged in sessions that are called alike everywhere."""
    said = [f"{one.settings.collection_prefix} says number {n}." for n in range(turns)]
    each = [
        one.memory.encode(said[first::_SESSIONS], session_id=f"s{first}")
        for first in range(min(_SESSIONS, turns))
    ]
    await asyncio.gather(*each)
    return set(said)


async def _check_apart(client: Client, turns: int, *, erase: bool) -> None:
    async with two(client) as (prod, staging):
        told = await asyncio.gather(_say(prod, turns), _say(staging, turns))
        assert [await prod.stored(), await staging.stored()] == list(told)
        await asyncio.gather(prod.memory.consolidate(), staging.memory.consolidate())
        await asyncio.gather(prod.memory.decay(), staging.memory.promote())
        for one in (prod, staging):
            store = one.settings.collection_prefix
            # What erasing ends and deletes.
            runs = {run.id async for run in list_workflows(client, one.memory.scope, store)}
            assert len(runs) > min(_SESSIONS, turns)
            assert all(run.startswith(f"{store}:") for run in runs)
        if erase:
            assert (await staging.memory.erase()).complete
            assert await staging.stored() == set()
        assert await prod.stored() == told[0]
        # Nor was the session of the same name ended in the other environment.
        assert await prod.memory.working_memory("s0")


async def test_two_prefixes_on_one_temporal_namespace_do_not_mix(temporal_client: Client) -> None:
    """50 turns each: all are where they were acknowledged, and erasing sees its own runs only."""
    await _check_apart(temporal_client, 50, erase=False)


@pytest.mark.slow
async def test_a_thousand_turns_of_two_prefixes_do_not_mix(temporal_client: Client) -> None:
    """1,000 turns each, and erasing the user of one environment spares that of the other."""
    await _check_apart(temporal_client, 1000, erase=True)


async def test_work_for_another_store_is_left_to_its_own_workers(temporal_client: Client) -> None:
    """On queues that settings made them share, each turn still ends where it was acknowledged."""
    unique = uuid4().hex[:8]
    shared = {"store_queue": f"store-{unique}", "model_queue": f"model-{unique}"}
    async with two(temporal_client, **shared) as (prod, staging):
        told = await asyncio.gather(_say(prod, 10), _say(staging, 10))
        assert [await prod.stored(), await staging.stored()] == list(told)


async def _hello(memory: MemoryStore) -> None:
    await memory.encode("Hello.", session_id="s")


async def test_a_client_of_another_prefix_or_embedder_is_told(temporal_client: Client) -> None:
    """It gets a typed error; its turns are not acknowledged and then nowhere to be found."""
    async with two(temporal_client) as (prod, staging):
        embedder, scope = make_embedder("wordllama"), prod.memory.scope
        lost = prod.settings.model_copy(
            update={
                "collection_prefix": f"lost-{uuid4().hex[:8]}",
                "store_queue": f"lost-{uuid4().hex[:8]}",
                "encode_timeout": timedelta(seconds=0.5),
            }
        )
        nobody = direct_engine(
            temporal_client, prod.repository, embedder, lost, system_clock, ui_url=None
        )
        with pytest.raises(TemporalUnavailable, match="ENGRAM_COLLECTION_PREFIX"):
            await _hello(MemoryStore(nobody, scope, lost, system_clock, new_id))
        await nobody.close()
        # The settings agree, and the stores are not the same.
        model = make_embedder(TestEmbeddingModel())
        elsewhere = direct_engine(
            temporal_client, staging.repository, model, prod.settings, system_clock, ui_url=None
        )
        with pytest.raises(SchemaMismatch, match="ENGRAM_EMBEDDER"):
            await _hello(MemoryStore(elsewhere, scope, prod.settings, system_clock, new_id))
        await elsewhere.close()
        assert await prod.stored() == await staging.stored() == set()
