"""Memory that runs elsewhere: behind an HTTP API, or on Temporal and Qdrant servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from engram.client.engine import MemoryEngine
from engram.client.memory import MemoryStore
from engram.domain.confidence import ConfidenceWeights
from engram.domain.scope import Scope
from engram.errors import KeyRefused, clock_refused
from engram.logging import configure_default_logging, get_logger
from engram.ports import Clock
from engram.settings import Settings
from engram.system import new_id, system_clock

if TYPE_CHECKING:
    from engram.client.local import EmbedderSpec

_log = get_logger("engram.client")


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
            engine = await _engine_over_servers(stack, active, embedder)
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


async def _engine_over_servers(
    stack: AsyncExitStack, settings: Settings, embedder: EmbedderSpec | None
) -> MemoryEngine:
    # Loads engine and models; whoever asks over HTTP needs neither.
    configure_default_logging()
    from engram.client.servers import connected_engine  # noqa: PLC0415 - see above

    return await connected_engine(stack, settings, embedder=embedder)


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
    # Loads a client for the network; whoever asks servers needs none of it.
    from engram.client.remote import remote_engine  # noqa: PLC0415 - see above

    engine = remote_engine(url, key)
    stack.push_async_callback(engine.close)
    # Finds out at once whether somebody answers, and takes the key.
    await engine.greet()
    return engine
