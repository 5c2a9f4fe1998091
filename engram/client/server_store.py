"""Opening the store on a Qdrant server; apart, because its client is slow to import."""

from __future__ import annotations

from engram.embedding.embedder import PydanticEmbedder
from engram.ports import MemoryRepository
from engram.settings import Settings
from engram.storage.server import ServerRepository
from engram.storage.server_client import connect_qdrant
from engram.writing.reviewed import ReviewedRepository


async def open_server_repository(
    settings: Settings, embedder: PydanticEmbedder
) -> MemoryRepository:
    """The store on the Qdrant server that the settings name; it stamps what it writes.

    Raises:
        StorageUnavailable: the server cannot be reached.
        SchemaMismatch: another schema version or another embedder wrote it.
    """
    client = connect_qdrant(settings)
    try:
        opened = await ServerRepository.open(
            client,
            embedder_identity=embedder.identity,
            dimensions=await embedder.dimensions(),
            settings=settings,
        )
        return ReviewedRepository(opened, settings.lifecycle_rules)
    except BaseException:
        await client.close()
        raise
