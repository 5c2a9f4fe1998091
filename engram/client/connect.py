"""The connected mode: Temporal and Qdrant servers, any number of workers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from engram.client.assembly import EmbedderSpec, direct_engine
from engram.client.engine import MemoryEngine
from engram.client.quiet import quiet_unless_configured
from engram.client.server_store import open_server_repository
from engram.client.store import MemoryStore
from engram.client.system import new_id, system_clock
from engram.client.temporal_connection import connect_temporal
from engram.domain.confidence import ConfidenceWeights
from engram.domain.scope import Scope
from engram.embedding.embedder import make_embedder
from engram.ports import Clock
from engram.settings import Settings


@asynccontextmanager
async def connect(
    *,
    user_id: str,
    namespace: str | None = None,
    qdrant_url: str | None = None,
    temporal_address: str | None = None,
    settings: Settings | None = None,
    embedder: EmbedderSpec | None = None,
    confidence_weights: ConfidenceWeights | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[MemoryStore]:
    """One user's memory on servers that run elsewhere; `engram worker` does the work.

    Addresses, keys and TLS come from settings (environment ``ENGRAM_…``) unless
    given here. The worker decides about language models; a client needs only
    the embedder, and it must be the one the store was made with.

    Raises:
        InvalidScope: the user id or namespace has a form that is refused.
        TemporalUnavailable: Temporal cannot be reached.
        StorageUnavailable: Qdrant cannot be reached.
        SchemaMismatch: the store belongs to another schema version or embedder.
    """
    quiet_unless_configured()
    base = settings or Settings.load()
    given = {"qdrant_url": qdrant_url, "temporal_address": temporal_address}
    chosen: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if confidence_weights is not None:
        chosen["confidence_weights"] = confidence_weights
    active = base.model_copy(update=chosen)
    scope = Scope.of(namespace or active.namespace, user_id)
    now = clock or system_clock
    async with AsyncExitStack() as stack:
        engine = await connected_engine(stack, active, embedder=embedder, clock=now)
        store = MemoryStore(engine, scope, active, now, new_id)
        stack.callback(store.close)
        yield store


async def connected_engine(
    stack: AsyncExitStack,
    settings: Settings,
    *,
    embedder: EmbedderSpec | None = None,
    clock: Clock = system_clock,
) -> MemoryEngine:
    """An engine over the servers that settings name; ``stack`` closes it.

    Raises:
        TemporalUnavailable: Temporal cannot be reached.
        StorageUnavailable: Qdrant cannot be reached.
        SchemaMismatch: the store belongs to another schema version or embedder.
    """
    vectors = make_embedder(embedder or settings.embedder)
    async with AsyncExitStack() as opening:
        repository = await open_server_repository(settings, vectors)
        opening.push_async_callback(repository.close)
        client = await connect_temporal(settings)
        engine = direct_engine(
            client, repository, vectors, settings, clock, ui_url=settings.temporal_ui_url
        )
        opening.push_async_callback(engine.close)
        await stack.enter_async_context(opening.pop_all())
    return engine
