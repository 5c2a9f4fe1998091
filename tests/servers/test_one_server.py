"""The store on one real server: who gets in, what it survives, what the doctor says of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from engram.cli.doctor import servers as doctor
from engram.cli.doctor.installation import State
from engram.domain.memories import MemoryType
from engram.embedding.choice import make_embedder
from engram.errors import StorageError, StorageUnavailable
from engram.settings import Settings
from engram.storage.server import ServerRepository, connect_qdrant
from tests.support.certificates import write_certificates
from tests.support.doctor_results import around, says
from tests.support.engines import ADA, DIMENSIONS, EMBEDDER, episode, new
from tests.support.qdrant_servers import Node, one_server

pytestmark = pytest.mark.servers


@asynccontextmanager
async def store_at(address: str, *, key: str | None = None) -> AsyncIterator[ServerRepository]:
    """A store on that server."""
    settings = Settings.load(qdrant_url=address, qdrant_api_key=key)
    client = connect_qdrant(settings)
    try:
        yield await ServerRepository.open(
            client,
            embedder_identity=EMBEDDER,
            dimensions=DIMENSIONS,
            settings=settings,
            owns_client=False,
        )
    finally:
        await client.close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """A server that nobody else uses."""
    with one_server(tmp_path) as node:
        node.wait_until_ready()
        yield node


async def test_tls_and_a_key_of_one_who_may_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A private authority is known by SSL_CERT_FILE; other keys and authorities are refused."""
    authority, certificate, secret = write_certificates(tmp_path)
    chosen = {
        "QDRANT__SERVICE__ENABLE_TLS": "true",
        "QDRANT__TLS__CERT": str(certificate),
        "QDRANT__TLS__KEY": str(secret),
        "QDRANT__SERVICE__API_KEY": "may write",
        "QDRANT__SERVICE__READ_ONLY_API_KEY": "may read",
    }
    turn = episode(ADA, "turn")
    with one_server(tmp_path, scheme="https", settings=chosen) as node:
        monkeypatch.setenv("SSL_CERT_FILE", str(authority))
        node.wait_until_ready()
        for key in (None, "wrong", "may read"):
            with pytest.raises(StorageError, match="ENGRAM_QDRANT_API_KEY") as refused:
                async with store_at(node.url, key=key):
                    pass
            assert not refused.value.retryable
        async with store_at(node.url, key="may write") as repository:
            await repository.insert(ADA, [new(turn)])
            assert (await repository.info()).details["version"]
        async with store_at(node.url, key="may read") as reading:
            assert await reading.get(ADA, [turn.id])
            with pytest.raises(StorageError, match="may only read"):
                await reading.insert(ADA, [new(episode(ADA, "other"))])
        monkeypatch.delenv("SSL_CERT_FILE")
        with pytest.raises(StorageUnavailable):
            async with store_at(node.url, key="may write"):
                pass


async def test_what_was_acknowledged_survives_a_kill(node: Node) -> None:
    """Away, it is worth another try; back, it has all that it had acknowledged."""
    turns = [episode(ADA, f"turn {number}") for number in range(50)]
    ids = {turn.id for turn in turns}
    async with store_at(node.url) as repository:
        for turn in turns:
            await repository.insert(ADA, [new(turn)])
        node.kill()
        with pytest.raises(StorageUnavailable):
            await repository.get(ADA, ids)
        node.start()
        node.wait_until_ready()
        assert (await repository.get(ADA, ids)).keys() == ids
        assert await repository.count(ADA, MemoryType.EPISODIC) == len(turns)


async def test_the_largest_turns_are_accepted(node: Node) -> None:
    """Sixty megabytes of characters that JSON escapes, in requests that the server takes."""
    content = "\x01" * 256 * 1024
    turns = [episode(ADA, f"turn {number}", content=content) for number in range(40)]
    async with store_at(node.url) as repository:
        assert await repository.insert(ADA, map(new, turns)) == frozenset()
        assert await repository.count(ADA, MemoryType.EPISODIC) == len(turns)


async def test_many_processes_may_open_an_empty_server_at_once(node: Node) -> None:
    """Each finds a whole store, whoever made which of its collections."""
    async with AsyncExitStack() as stack:
        opening = (stack.enter_async_context(store_at(node.url)) for _ in range(6))
        stores = await asyncio.gather(*opening)
        for number, store in enumerate(stores):
            await store.insert(ADA, [new(episode(ADA, f"turn {number}"))])
        assert await stores[0].count(ADA, MemoryType.EPISODIC) == len(stores)


async def test_the_doctor_finds_a_real_server_well(node: Node, tmp_path: Path) -> None:
    """Its version, its clock and its collections, before and after there are any."""
    here = around(tmp_path, {"ENGRAM_QDRANT_URL": node.url})
    says(await doctor.qdrant(here), State.OK, node.url)
    says(await doctor.clock(here), State.OK, "agrees")
    says(await doctor.collections(here), State.OK, "none yet")
    embedder = make_embedder("wordllama")
    store = await ServerRepository.open(
        connect_qdrant(here.settings),
        embedder_identity=embedder.identity,
        dimensions=await embedder.dimensions(),
        settings=here.settings,
    )
    await store.close()
    says(await doctor.collections(here), State.OK, "with all indexes")
