"""Every test of this folder runs on every engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from engram.ports import MaintenanceRepository
from tests.support.engines import ENGINES, Store, make_store
from tests.support.folders import quick_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder for one store."""
    with quick_folder() as made:
        yield made


@pytest.fixture(params=ENGINES)
async def store(request: pytest.FixtureRequest, folder: Path) -> AsyncIterator[Store]:
    """A store that is not there yet, removed afterwards."""
    made = make_store(str(request.param), folder)
    yield made
    await made.remove()


@pytest.fixture
async def repository(store: Store) -> AsyncIterator[MaintenanceRepository]:
    """An open, empty store."""
    opened = await store.empty()
    yield opened
    await opened.close()
