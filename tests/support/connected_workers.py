"""A worker of the connected mode, for tests against servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from temporalio.client import Client

from engram.agents.asking import Rules
from engram.client.servers import open_server_repository
from engram.embedding.choice import make_embedder
from engram.settings import Settings
from engram.system import new_id
from engram.workflows.worker import running_workers


@asynccontextmanager
async def worker(client: Client, settings: Settings) -> AsyncIterator[None]:
    """What `engram worker` runs."""
    embedder = make_embedder("wordllama")
    repository = await open_server_repository(settings, embedder)
    async with running_workers(
        client, repository, embedder, Rules(), settings, new_write_id=new_id
    ):
        yield
    await repository.close()
