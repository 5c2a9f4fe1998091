"""Memory over Temporal and Qdrant servers: apart, because what it needs is slow to import."""

from __future__ import annotations

from contextlib import AsyncExitStack

from engram.client.engine import MemoryEngine
from engram.client.local import EmbedderSpec, direct_engine
from engram.embedding.choice import make_embedder
from engram.lifecycle.due import review_stamp
from engram.ports import Embedder, MaintenanceRepository
from engram.settings import Settings
from engram.storage.server import ServerRepository, connect_qdrant
from engram.storage.trail import keeping_trail
from engram.system import new_secret, system_clock
from engram.temporal.connection import connect_temporal, key_store


async def open_server_repository(settings: Settings, embedder: Embedder) -> MaintenanceRepository:
    """The store on the Qdrant server that the settings name; it stamps what it writes.

    Raises:
        InvalidSettings: the address or the key of the server is none.
        StorageUnavailable: the server cannot be reached.
        SchemaMismatch: another schema version or another embedder wrote it.
    """
    client = connect_qdrant(settings)
    try:
        return await ServerRepository.open(
            client,
            embedder_identity=embedder.identity,
            dimensions=await embedder.dimensions(),
            settings=settings,
            stamp=review_stamp(settings.lifecycle_rules),
        )
    except BaseException:
        await client.close()
        raise


async def connected_engine(
    stack: AsyncExitStack,
    settings: Settings,
    *,
    embedder: EmbedderSpec | None = None,
) -> MemoryEngine:
    """An engine over the servers that settings name; ``stack`` closes it.

    Raises:
        TemporalUnavailable: Temporal cannot be reached.
        StorageUnavailable: Qdrant cannot be reached.
        SchemaMismatch: the store belongs to another schema version or embedder.
        InvalidSettings: an audit trail is wanted, and there are no keys for it; or the address or
            the key of a server is none.
        AuditUnwritable: its folder cannot be used.
    """
    vectors, keys = make_embedder(embedder or settings.embedder), key_store(settings)
    async with AsyncExitStack() as opening:
        trail = await opening.enter_async_context(
            keeping_trail(settings.audit_folder, keys, settings, system_clock, new_secret)
        )
        repository = await open_server_repository(settings, vectors)
        opening.push_async_callback(repository.close)
        client = await connect_temporal(settings, keys)
        engine = direct_engine(
            client,
            repository,
            vectors,
            settings,
            system_clock,
            ui_url=settings.temporal_ui_url,
            trail=trail,
        )
        opening.push_async_callback(engine.close)
        await stack.enter_async_context(opening.pop_all())
    return engine
