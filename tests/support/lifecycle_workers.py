"""A user's memories with passes running on them, for the tests of decay and promotion."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.worker import Interceptor, UnsandboxedWorkflowRunner, Worker

from engram.activities.consolidation import DigestActivitiesImpl
from engram.activities.lifecycle import LifecycleActivitiesImpl
from engram.activities.runtime import TypedErrorInterceptor
from engram.activities.session import SessionActivitiesImpl
from engram.contracts import names
from engram.contracts.session import ConsolidationRequest
from engram.digests.stage import Digests
from engram.domain.confidence import Confidence, ExtractionMethod
from engram.domain.identity import derived_id, episode_id, normalise
from engram.domain.memories import AnyMemory, Episode, MemoryStatus, MemoryType, SemanticMemory
from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.lifecycle.due import review_stamp
from engram.ports import NewMemory, Stamp
from engram.settings import Settings
from engram.temporal.passes import PassRunner
from engram.workflows.lifecycle import DecayWorkflow, MaintenanceWorkflow, PromotionWorkflow
from engram.workflows.worker import sandbox_runner
from tests.support.workers import Requests

ATTRIBUTES = (names.USER_ATTRIBUTE, names.SESSION_ATTRIBUTE, names.STAGE_ATTRIBUTE)


def turn(scope: Scope, words: str, at: datetime, **more: Any) -> Episode:
    """A turn that was stored when it was said."""
    values: dict[str, Any] = {"session_id": "s1", **more}
    return Episode(
        id=episode_id(scope, values["session_id"], words),
        namespace=scope.namespace,
        user_id=scope.user_id,
        content=words,
        known_at=at,
        created_at=at,
        role="user",
        timestamp=at,
        message_id=words,
        **values,
    )


def knowledge(scope: Scope, words: str, at: datetime, **more: Any) -> SemanticMemory:
    """A conclusion that was drawn when it was said."""
    return SemanticMemory(
        **{
            "id": derived_id(scope, MemoryType.SEMANTIC, normalise(words), 0),
            "namespace": scope.namespace,
            "user_id": scope.user_id,
            "content": words,
            "known_at": at,
            "created_at": at,
            "source_episode_ids": (episode_id(scope, "s1", words),),
            "event_at": at,
            "derived_at": at,
            "identity": normalise(words),
            "confidence": Confidence(
                method=ExtractionMethod.EXTRACTED, extraction=0.9, last_confirmed=at
            ),
            **more,
        }
    )


@dataclass
class LifecycleUser:
    """One user's memories, and the means to pass over them."""

    client: Client
    store: Any
    settings: Settings
    scope: Scope
    passes: PassRunner
    requests: Requests

    @property
    def stamp(self) -> Stamp:
        """What the store would stamp memories with under this user's settings."""
        return review_stamp(self.settings.lifecycle_rules)

    async def keep(self, *memories: AnyMemory, scope: Scope | None = None) -> None:
        """Store memories as the write path would."""
        embedder = make_embedder("wordllama")
        vectors = await embedder.embed_documents([m.indexed_text for m in memories])
        pairs = zip(memories, vectors, strict=True)
        await self.store.insert(
            scope or self.scope,
            [NewMemory(memory, vector) for memory, vector in pairs],
            stamp=self.stamp,
        )

    async def now(self, memory: AnyMemory) -> AnyMemory:
        """A memory as it is stored now."""
        found = await self.store.get(memory.scope, [memory.id])
        stored: AnyMemory = found[memory.id]
        return stored

    async def statuses(self, memories: Iterable[AnyMemory]) -> set[MemoryStatus]:
        """Where these memories stand now."""
        return {(await self.now(memory)).status for memory in memories}

    def other(self, name: str) -> Scope:
        """Another user of this test alone."""
        return Scope.of(self.scope.namespace, f"{name}-{uuid4().hex[:8]}")


@asynccontextmanager
async def lifecycle_workers(
    client: Client,
    store: Any,
    settings: Settings,
    *,
    interceptors: Sequence[Interceptor] = (),
    workers: int = 1,
    in_sandbox: bool = True,
    wrap: Callable[[Any], Any] = lambda store: store,
) -> AsyncIterator[LifecycleUser]:
    """Workers of the passes, for a user of their own."""
    requests = Requests()

    async def request(scope: Scope, asked: ConsolidationRequest) -> None:
        await requests(scope, asked)

    acting = LifecycleActivitiesImpl(wrap(store), make_embedder("wordllama"), lambda: uuid4().hex)
    digests = Digests(store, make_embedder("wordllama"), lambda: uuid4().hex)
    digesting = DigestActivitiesImpl(digests)
    asking = SessionActivitiesImpl(None, request)  # type: ignore[arg-type]  # these tests store no turns
    clients = [client, *[await _again(client) for _ in range(workers - 1)]]
    running = [
        Worker(
            one,
            task_queue=settings.store_queue,
            workflows=[DecayWorkflow, PromotionWorkflow, MaintenanceWorkflow],
            activities=[
                acting.review,
                acting.promote,
                acting.promote_session,
                acting.find_due_users,
                digesting.digest_knowledge,
                digesting.digest_sessions,
                asking.request_consolidation,
            ],
            interceptors=[TypedErrorInterceptor(), *interceptors],
            workflow_runner=sandbox_runner() if in_sandbox else UnsandboxedWorkflowRunner(),
            graceful_shutdown_timeout=timedelta(seconds=2),
        )
        for one in clients
    ]
    lives = LifecycleUser(
        client=client,
        store=store,
        settings=settings,
        scope=Scope.of("default", f"user-{uuid4().hex[:8]}"),
        passes=PassRunner(client, settings),
        requests=requests,
    )
    async with AsyncExitStack() as stack:
        for worker in running:
            await stack.enter_async_context(worker)
        yield lives


async def _again(client: Client) -> Client:
    """Another connection, for another worker."""
    return await Client.connect(
        client.service_client.config.target_host,
        namespace=client.namespace,
        data_converter=pydantic_data_converter,
    )
