"""A session workflow on a real server, with its worker and store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from temporalio.client import Client

from engram.contracts import names
from engram.contracts.session import EncodeCall, EncodeReply, EncodeRequest
from engram.domain.memories import Episode, MemoryType
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.storage.edge import EdgeRepository
from engram.temporal.gateway import WorkflowGateway
from engram.workflows.session import SessionWorkflow
from tests.support.clock import NOW
from tests.support.edge_stores import borrowed_store
from tests.support.stores import worker_settings
from tests.support.workers import Requests, session_worker


def turn(text: str, message_id: str | None = None) -> Turn:
    """A turn of the user said now."""
    return Turn(message_id=message_id or uuid4().hex, role="user", content=text, timestamp=NOW)


def call(*turns: Turn) -> EncodeRequest:
    """One caller's turns as a request."""
    return EncodeRequest(calls=(EncodeCall(turns=turns),))


class Session:
    """A session under test."""

    def __init__(
        self, client: Client, repository: EdgeRepository, requests: Requests, settings: Any
    ) -> None:
        self.scope = Scope.of("default", f"u-{uuid4().hex[:8]}")
        self.gateway = WorkflowGateway(client, settings)
        self.repository = repository
        self.requests = requests
        self.handle = client.get_workflow_handle(names.session_workflow_id(self.scope, "s1"))

    async def encode(self, *turns: Turn) -> EncodeReply:
        """Encode as one call."""
        return await self.gateway.encode(self.scope, "s1", call(*turns))

    async def episodes(self) -> list[Episode]:
        """What is stored, in order."""
        page = await self.repository.scroll(self.scope, MemoryType.EPISODIC, limit=1000)
        found = [memory for memory in page.memories if isinstance(memory, Episode)]
        return sorted(found, key=lambda episode: episode.sequence)


@asynccontextmanager
async def running_session(
    client: Client,
    *,
    wrap: Any = lambda store: store,
    requests: Requests | None = None,
    in_sandbox: bool = True,
    **values: Any,
) -> AsyncIterator[Session]:
    """A worker, a store, and a session nobody else uses."""
    settings = worker_settings(**values)
    requests = requests or Requests()
    async with (
        borrowed_store() as repository,
        session_worker(
            client,
            settings,
            repository,
            requests,
            workflows=[SessionWorkflow],
            wrap=wrap,
            in_sandbox=in_sandbox,
        ),
    ):
        session = Session(client, repository, requests, settings)
        try:
            yield session
        finally:
            await session.gateway.end_session(session.scope, "s1")
