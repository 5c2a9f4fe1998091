"""A store on the in-process engine, emptied for each test."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from engram.embedding.choice import make_embedder
from engram.ports import Embedder
from engram.storage.edge import EdgeRepository
from tests.support.recall_memories import EVERYBODY, SETTINGS, Memories


@pytest.fixture(scope="session")
def embedder() -> Embedder:
    """The offline model, loaded once."""
    return make_embedder("wordllama")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def repository(
    tmp_path_factory: pytest.TempPathFactory, embedder: Embedder
) -> AsyncIterator[EdgeRepository]:
    """One store for all: making one takes seconds on a busy disk."""
    store = await EdgeRepository.open(
        tmp_path_factory.mktemp("recall") / "store",
        embedder_identity=embedder.identity,
        dimensions=await embedder.dimensions(),
        settings=SETTINGS,
    )
    yield store
    await store.close()


@pytest.fixture
async def memories(repository: EdgeRepository, embedder: Embedder) -> Memories:
    """An empty store."""
    for scope in EVERYBODY:
        await repository.erase(scope)
    return Memories(repository, embedder)
