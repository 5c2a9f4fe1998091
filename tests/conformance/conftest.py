"""Every test of this folder runs on every engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from engram.ports import MaintenanceRepository
from tests.support.engines import ENGINES, Store, make_store


@pytest.fixture(params=ENGINES)
def unopened(request: pytest.FixtureRequest, folder: Path) -> Store:
    """A store that is not there yet."""
    engine = str(request.param)
    address = None
    if engine in {"server", "cluster"}:
        address = request.getfixturevalue(f"qdrant_{engine}").url
    return make_store(engine, folder, address)


@pytest.fixture
async def store(unopened: Store) -> AsyncIterator[Store]:
    """The same, removed afterwards."""
    yield unopened
    await unopened.remove()


@pytest.fixture
async def repository(store: Store) -> AsyncIterator[MaintenanceRepository]:
    """An open, empty store."""
    opened = await store.empty()
    yield opened
    await opened.close()
