"""The connected mode: Temporal and Qdrant servers, any number of workers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from engram.client.assembly import EmbedderSpec, direct_engine
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
    vectors = make_embedder(embedder or active.embedder)
    now = clock or system_clock
    async with AsyncExitStack() as stack:
        repository = await open_server_repository(active, vectors)
        stack.push_async_callback(repository.close)
        client = await connect_temporal(active)
        engine = direct_engine(
            client, repository, vectors, active, now, ui_url=active.temporal_ui_url
        )
        stack.push_async_callback(engine.close)
        store = MemoryStore(engine, scope, active, now, new_id)
        stack.callback(store.close)
        yield store
