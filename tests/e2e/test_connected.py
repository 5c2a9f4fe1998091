"""The connected mode: a real Temporal server, and the server store's API over its stand-in.

A Qdrant server is used instead of the stand-in when ENGRAM_TEST_QDRANT_URL names one.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest
from qdrant_client import AsyncQdrantClient
from temporalio.client import Client

import engram
from engram.agents.models import make_model
from engram.client import server_store
from engram.client.server_store import open_server_repository
from engram.client.system import new_id
from engram.embedding.embedder import make_embedder
from engram.errors import InvalidSettings, StorageUnavailable, TemporalUnavailable
from engram.settings import Settings
from tests.conftest import free_port
from workflows.worker import running_workers

URL = os.environ.get("ENGRAM_TEST_QDRANT_URL")


@pytest.fixture
def settings(temporal_address: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings of a cluster that nobody else uses."""
    unique = uuid4().hex[:8]
    if URL is None:
        # One stand-in for all connections of the test, as one server would be.
        shared = AsyncQdrantClient(":memory:")
        shared_close = AsyncQdrantClient.close

        async def keep_open(client: AsyncQdrantClient, **options: object) -> None:
            if client is not shared:
                await shared_close(client)

        monkeypatch.setattr(AsyncQdrantClient, "close", keep_open)
        monkeypatch.setattr(server_store, "connect_qdrant", lambda _: shared)
    return Settings.load(
        temporal_address=temporal_address,
        qdrant_url=URL or "http://127.0.0.1:6333",
        collection_prefix=f"t{unique}",
        store_queue=f"store-{unique}",
        model_queue=f"model-{unique}",
    )


@asynccontextmanager
async def worker(client: Client, settings: Settings) -> AsyncIterator[None]:
    """What `engram worker` runs."""
    embedder = make_embedder("wordllama")
    repository = await open_server_repository(settings, embedder)
    async with running_workers(
        client, repository, embedder, make_model("rules"), settings, new_write_id=new_id
    ):
        yield
    await repository.close()


async def test_servers_and_a_worker_remember(temporal_client: Client, settings: Settings) -> None:
    """The same store API over servers: encode, consolidate, recall now and then."""
    async with (
        worker(temporal_client, settings),
        engram.connect(user_id="ada", settings=settings) as memory,
    ):
        await memory.encode("I live in Porto. Mail ada@example.org.", session_id="s1")
        await memory.encode("I moved to Lisbon.", session_id="s1")
        await memory.end_session("s1")
        await memory.consolidate()
        hits = await memory.recall("Where does the user live?", memory_types=["semantic"], limit=2)
        assert "Lisbon" in hits[0].memory.content
        history = await memory.history(hits[0].memory.id)
        assert [m.status for m in history] == ["superseded", "active"]
        assert (await memory.recall("email"))[0].memory.user_id == "ada"
        assert await memory.for_user("bob").recall("Where does the user live?") == []


async def test_no_temporal_is_a_typed_error(settings: Settings) -> None:
    """Nothing listens there: the error names the address and what to set."""
    nowhere = settings.model_copy(update={"temporal_address": f"127.0.0.1:{free_port()}"})
    with pytest.raises(TemporalUnavailable, match="ENGRAM_TEMPORAL_ADDRESS"):
        async with engram.connect(user_id="ada", settings=nowhere):
            pass


async def test_no_qdrant_is_a_typed_error(temporal_address: str) -> None:
    """Nothing listens there: retryable, and nothing was started."""
    nowhere = Settings.load(
        temporal_address=temporal_address, qdrant_url=f"http://127.0.0.1:{free_port()}"
    )
    with pytest.raises(StorageUnavailable):
        async with engram.connect(user_id="ada", settings=nowhere):
            pass


async def test_half_a_tls_identity_is_refused(settings: Settings) -> None:
    """A certificate without its key is a settings error, before anything connects."""
    half = settings.model_copy(update={"temporal_tls_client_cert": "/nowhere.pem"})
    with pytest.raises(InvalidSettings, match="one half"):
        async with engram.connect(user_id="ada", settings=half):
            pass
