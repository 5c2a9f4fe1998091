"""Memory that runs elsewhere: behind an HTTP API, or on Temporal and Qdrant servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import structlog

from engram.client.engine import MemoryEngine
from engram.client.http import remote_engine
from engram.client.local import EmbedderSpec, direct_engine
from engram.client.memory import MemoryStore
from engram.domain.confidence import ConfidenceWeights
from engram.domain.scope import Scope
from engram.embedding.embedder import PydanticEmbedder, make_embedder
from engram.errors import KeyRefused, clock_refused
from engram.lifecycle.due import review_stamp
from engram.logging import configure_default_logging
from engram.ports import Clock, MaintenanceRepository
from engram.settings import Settings
from engram.storage.server import ServerRepository, connect_qdrant
from engram.storage.trail import keeping_trail
from engram.system import new_id, new_secret, system_clock
from engram.temporal.connection import connect_temporal, key_store

# --- opening the store on a Qdrant server; apart, because its client is slow to import


async def open_server_repository(
    settings: Settings, embedder: PydanticEmbedder
) -> MaintenanceRepository:
    """The store on the Qdrant server that the settings name; it stamps what it writes.

    Raises:
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


# --- memory that runs elsewhere: behind an HTTP API, or on Temporal and Qdrant servers

_log = structlog.get_logger("engram.client")


@asynccontextmanager
async def connect(
    url: str | None = None,
    *,
    user_id: str,
    namespace: str | None = None,
    api_key: str | None = None,
    qdrant_url: str | None = None,
    temporal_address: str | None = None,
    settings: Settings | None = None,
    embedder: EmbedderSpec | None = None,
    confidence_weights: ConfidenceWeights | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[MemoryStore]:
    """One user's memory that runs elsewhere: behind an HTTP API, or on servers.

    With a URL (or ``ENGRAM_URL``), through `engram up` or `engram serve`, with an API key;
    the server decides about everything. Without one, through Temporal and Qdrant, where
    `engram worker` decides about models, and a client needs the embedder of the store.

    Args:
        url: Of an HTTP API: ``https://memory.example.org``.
        user_id: Whose memory. ``for_user`` gives that of others.
        namespace: Keeps applications apart; ``settings.namespace`` when absent.
        api_key: Of the HTTP API; ``settings.api_key`` (``ENGRAM_API_KEY``) when absent.
        qdrant_url: Overrides ``settings.qdrant_url``.
        temporal_address: Overrides ``settings.temporal_address``.
        settings: Addresses, keys, TLS and the rest; from ``ENGRAM_...`` when absent.
        embedder: Overrides ``settings.embedder``.
        confidence_weights: Overrides those of the settings.
        clock: Refused: who decides elsewhere has a clock. ``Turn(timestamp=...)`` dates turns.

    Returns:
        A context manager that gives the user's :class:`engram.MemoryStore`.

    Raises:
        InvalidScope: the user id or namespace has a form that is refused.
        InvalidSettings: the URL is none, or a clock is given.
        KeyRefused: the API key is missing, unknown, revoked or expired.
        OwnerUnavailable: nobody answers at the URL.
        TemporalUnavailable: Temporal cannot be reached.
        StorageUnavailable: Qdrant cannot be reached.
        SchemaMismatch: the store belongs to another schema version or embedder.
    """
    configure_default_logging()
    if clock is not None:
        raise clock_refused("This memory is kept elsewhere")
    active = _overridden(settings, qdrant_url, temporal_address, confidence_weights)
    # Whoever names servers means servers.
    address = url or (None if qdrant_url or temporal_address else active.url)
    scope = Scope.of(namespace or active.namespace, user_id)
    if address and (embedder is not None or confidence_weights is not None):
        _log.warning("the server decides about embedder and weights")
    async with AsyncExitStack() as stack:
        if address:
            engine: MemoryEngine = await _remote_engine(stack, address, api_key, active)
        else:
            engine = await connected_engine(stack, active, embedder=embedder)
        store = MemoryStore(engine, scope, active, system_clock, new_id)
        stack.callback(store.close)
        yield store


def _overridden(
    settings: Settings | None,
    qdrant_url: str | None,
    temporal_address: str | None,
    weights: ConfidenceWeights | None,
) -> Settings:
    given = {
        "qdrant_url": qdrant_url,
        "temporal_address": temporal_address,
        "confidence_weights": weights,
    }
    return (settings or Settings.load()).model_copy(
        update={name: value for name, value in given.items() if value is not None}
    )


async def _remote_engine(
    stack: AsyncExitStack, url: str, api_key: str | None, settings: Settings
) -> MemoryEngine:
    key = api_key or (settings.api_key.get_secret_value() if settings.api_key else None)
    if not key:
        raise KeyRefused(
            "The HTTP API takes an API key, and none is given.",
            allowed="api_key=..., or ENGRAM_API_KEY",
            hint="`engram keys create NAME --access write` makes one, where the server runs.",
        )
    engine = remote_engine(url, key)
    stack.push_async_callback(engine.close)
    # Finds out at once whether somebody answers, and takes the key.
    await engine.greet()
    return engine


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
        InvalidSettings: an audit trail is wanted, and there are no keys for it.
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
