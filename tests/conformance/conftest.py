"""Every test of this folder runs on every engine."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from engram.ports import MemoryRepository
from tests.support.engines import ENGINES, Store, make_store


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for one store, in memory where there is one: making a store syncs a lot."""
    memory = Path("/dev/shm")  # noqa: S108  # a fast disk, not a shared name
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as made:
        yield Path(made)


@pytest.fixture(params=ENGINES)
async def store(request: pytest.FixtureRequest, folder: Path) -> AsyncIterator[Store]:
    """A store that is not there yet, removed afterwards."""
    made = make_store(str(request.param), folder)
    yield made
    await made.remove()


@pytest.fixture
async def repository(store: Store) -> AsyncIterator[MemoryRepository]:
    """An open, empty store."""
    opened = await store.open()
    yield opened
    await opened.close()
