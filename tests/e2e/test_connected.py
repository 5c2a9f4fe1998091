"""The connected mode: a real Temporal server, and the server store's API over its stand-in.

And over a real Qdrant server, among the tests marked ``servers``.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock
from uuid import uuid4

import httpx
import pytest
from qdrant_client import AsyncQdrantClient
from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode, WorkflowService

import engram
from engram.cli.serving import serve_api
from engram.client import servers
from engram.contracts import names
from engram.domain.access import Access
from engram.domain.memories import MemoryType
from engram.errors import (
    EncryptionKeysUnusable,
    InvalidSettings,
    PayloadRefused,
    StorageUnavailable,
    TemporalUnavailable,
)
from engram.server.keys import KeyFile, new_key
from engram.settings import Settings
from engram.storage.server import ServerRepository
from engram.system import new_secret, system_clock
from engram.temporal.connection import connect_temporal
from engram.temporal.keys import FolderKeyStore
from tests.support.connected_workers import worker
from tests.support.ports import free_port


@pytest.fixture(params=["stand-in", pytest.param("server", marks=pytest.mark.servers)])
def settings(
    request: pytest.FixtureRequest,
    temporal_address: str,
    temporal_namespace: str,
    encryption_keys: FolderKeyStore,
    monkeypatch: pytest.MonkeyPatch,
) -> Settings:
    """Settings of a cluster and of an application that nobody else uses.

    Runs are named after namespace and user: of two tests with the same, the second would
    join what the first left, whose worker has ended.
    """
    unique = uuid4().hex[:8]
    url = "http://127.0.0.1:6333"
    if request.param == "server":
        url = request.getfixturevalue("qdrant_server").url
    else:
        # One stand-in for all connections of the test, as one server would be.
        shared = AsyncQdrantClient(":memory:")
        shared_close = AsyncQdrantClient.close

        async def keep_open(client: AsyncQdrantClient, **options: object) -> None:
            if client is not shared:
                await shared_close(client)

        monkeypatch.setattr(AsyncQdrantClient, "close", keep_open)
        monkeypatch.setattr(servers, "connect_qdrant", lambda _: shared)
    return Settings.load(
        temporal_address=temporal_address,
        temporal_namespace=temporal_namespace,
        encryption_keys=encryption_keys.folder,
        qdrant_url=url,
        namespace=f"n{unique}",
        collection_prefix=f"t{unique}",
        store_queue=f"store-{unique}",
        model_queue=f"model-{unique}",
    )


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


async def test_serving_over_servers(
    temporal_client: Client,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`engram serve` waits for its servers, answers by key without doing the work, and ends."""
    keys = KeyFile(tmp_path / "keys.json")
    now = system_clock()
    token, key = new_key(
        new_secret(), name="k", access=Access.ADMIN, namespace="default", user_id=None, now=now
    )
    keys.add(key, now)
    chosen = settings.model_copy(update={"keys_file": keys.path, "http_port": free_port()})
    url = f"http://127.0.0.1:{chosen.http_port}"
    refusals = [TemporalUnavailable("Not yet.")]

    async def late(given: Settings, *keys: Any) -> Client:
        if refusals:
            raise refusals.pop()
        return await connect_temporal(given, *keys)

    monkeypatch.setattr(servers, "connect_temporal", late)
    serving = asyncio.create_task(serve_api(chosen))
    async with asyncio.timeout(60), httpx.AsyncClient(base_url=url) as web:
        said = ""
        while "Ctrl-C stops" not in said:
            assert not serving.done()
            await asyncio.sleep(0.05)
            said += capsys.readouterr().out
        assert "Waiting for Temporal and Qdrant: Not yet." in said
        assert (await web.get("/v1/ready")).json()["temporal"] == "answers"
        async with (
            worker(temporal_client, chosen),
            engram.connect(url, user_id="ada", api_key=token) as memory,
        ):
            await memory.encode("Mail ada@example.org.", session_id="s1")
            assert (await memory.recall("email"))[0].memory.user_id == "ada"
        os.kill(os.getpid(), signal.SIGTERM)
        await serving
        with pytest.raises(httpx.ConnectError):
            await web.get("/v1/ready")


async def test_readiness_of_real_servers(
    temporal_address: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine says which of its servers is away, and that they answer when they do."""
    async with AsyncExitStack() as stack:
        engine = await servers.connected_engine(stack, settings)
        await engine.check()
        away = RPCError("away", RPCStatusCode.UNAVAILABLE, b"")
        monkeypatch.setattr(
            WorkflowService, "describe_namespace", AsyncMock(side_effect=away), raising=True
        )
        with pytest.raises(TemporalUnavailable):
            await engine.check()
        await engine.check(store_only=True)
        monkeypatch.setattr(ServerRepository, "info", AsyncMock(side_effect=StorageUnavailable("")))
        with pytest.raises(StorageUnavailable):
            await engine.check()


async def test_keys_that_are_not_there_are_a_typed_error(
    settings: Settings, tmp_path: Path
) -> None:
    """A folder that is not mounted: neither client nor worker goes on without keys."""
    unmounted = settings.model_copy(update={"encryption_keys": tmp_path / "unmounted"})
    with pytest.raises(EncryptionKeysUnusable, match="mounted"):
        await connect_temporal(unmounted)
    assert not (tmp_path / "unmounted").exists()


@pytest.mark.parametrize("has", ["none", "others"])
async def test_a_client_without_the_keys_is_refused_at_once(
    temporal_client: Client, settings: Settings, tmp_path: Path, has: str
) -> None:
    """Whatever it asks for is `payload_refused`, by one failed run; one with the keys goes on."""
    folder = None
    if has == "others":
        folder = FolderKeyStore.create(tmp_path / "o", new_secret=new_secret, since=None).folder
    stranger = settings.model_copy(update={"encryption_keys": folder})
    async with worker(temporal_client, settings):
        async with asyncio.timeout(30), engram.connect(user_id="ada", settings=stranger) as memory:
            for ask in (
                memory.encode("I live in Porto.", session_id="s1"),
                memory.consolidate(),
                memory.decay(),
                memory.forget(str(uuid4())),
            ):
                with pytest.raises(PayloadRefused, match="ENGRAM_ENCRYPTION_KEYS"):
                    await ask
        async with engram.connect(user_id="ada", settings=settings) as memory:
            session_id = names.in_store(
                settings.collection_prefix, names.session_workflow_id(memory.scope, "s1")
            )
            runs = [
                one async for one in temporal_client.list_workflows(f"WorkflowId='{session_id}'")
            ]
            assert [run.status for run in runs] == [WorkflowExecutionStatus.FAILED]
            assert (await memory.stats()).counts[MemoryType.EPISODIC] == 0
            await memory.encode("I moved to Lisbon.", session_id="s1")
            async with engram.connect(user_id="ada", settings=stranger) as other:
                with pytest.raises(PayloadRefused):
                    await other.encode("I live in Porto.", session_id="s1")
                with pytest.raises(PayloadRefused):
                    await other.working_memory("s1")


async def test_a_worker_without_the_keys_is_told_of(
    temporal_client: Client, settings: Settings
) -> None:
    """It ends no run: who waits hears why, and a worker with the keys goes on with what it left."""
    plain = settings.model_copy(update={"encryption_keys": None})
    short = settings.model_copy(update={"encode_timeout": timedelta(seconds=2)})
    async with (
        engram.connect(user_id="ada", settings=short) as memory,
        worker(await connect_temporal(plain), plain),
    ):
        for ask in (memory.encode("I live in Porto.", session_id="s1"), memory.decay()):
            with pytest.raises(PayloadRefused, match="worker without encryption keys"):
                await ask
    async with (
        worker(temporal_client, settings),
        engram.connect(user_id="ada", settings=settings) as memory,
    ):
        await memory.encode("I moved to Lisbon.", session_id="s1")
        assert (await memory.decay()).failures == ()
        runs = temporal_client.list_workflows(f"{names.USER_ATTRIBUTE} = '{memory.scope.tenant}'")
        assert WorkflowExecutionStatus.FAILED not in {run.status async for run in runs}
