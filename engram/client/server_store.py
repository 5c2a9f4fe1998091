"""Opening the store on a Qdrant server; apart, because its client is slow to import."""

from __future__ import annotations

from engram.embedding.embedder import PydanticEmbedder
from engram.settings import Settings
from engram.storage.server import ServerRepository
from engram.storage.server_client import connect_qdrant


async def open_server_repository(
    settings: Settings, embedder: PydanticEmbedder
) -> ServerRepository:
    """The store on the Qdrant server that the settings name.

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
        )
    except BaseException:
        await client.close()
        raise
