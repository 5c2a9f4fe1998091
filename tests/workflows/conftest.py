"""What several files of lifecycle tests share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from temporalio.client import Client

from engram.lifecycle.due import review_stamp
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from tests.support.edge_stores import borrowed_store
from tests.support.lifecycle_workers import LifecycleUser, lifecycle_workers


@pytest.fixture
async def store(settings: Settings) -> AsyncIterator[EdgeRepository]:
    """A fresh store that stamps by the usual rules."""
    async with borrowed_store(review_stamp(settings.lifecycle_rules)) as opened:
        yield opened


@pytest.fixture
async def lives(
    temporal_client: Client, store: EdgeRepository, settings: Settings
) -> AsyncIterator[LifecycleUser]:
    """A user with nothing stored yet."""
    async with lifecycle_workers(temporal_client, store, settings) as opened:
        yield opened
