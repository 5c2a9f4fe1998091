"""The store of the connected mode: a Qdrant server, or Qdrant Cloud."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Literal

from qdrant_client import AsyncQdrantClient, models

from engram.domain.memories import MemoryType
from engram.ports import SparseVector, StoreInfo
from engram.settings import Settings
from engram.storage.base import EngineRepository
from engram.storage.everybody import MOST_VALUES, found_values
from engram.storage.filters import Translator
from engram.storage.paging import Payload
from engram.storage.points import NewPoint, Overwrite
from engram.storage.ranking import Ranked, RankQuery
from engram.storage.schema import DENSE, SCHEMA_VERSION, SPARSE, collection_names
from engram.storage.server_client import ServerDialect, connect_qdrant, server_errors
from engram.storage.server_collections import open_collections

__all__ = ["ServerRepository", "connect_qdrant"]

_STRONG = models.WriteOrdering.STRONG


class ServerRepository(EngineRepository[models.Filter]):
    """Memories on a server that any number of processes share.

    Every write waits until it is applied and goes through one leader (strong
    ordering), so that of two writers at one revision exactly one wins.
    """

    # With turns of the largest size and long vectors still far below the 32 MB of a request.
    batch = 100

    def __init__(
        self,
        client: AsyncQdrantClient,
        *,
        names: dict[MemoryType, str],
        engine: Literal["server", "local"],
        embedder_identity: str,
        dimensions: int,
        owns_client: bool,
    ) -> None:
        """Use :meth:`open`."""
        super().__init__(Translator(ServerDialect()), dimensions=dimensions)
        self._client = client
        self._names = names
        self._engine: Literal["server", "local"] = engine
        self._embedder = embedder_identity
        self._owns_client = owns_client

    @classmethod
    async def open(
        cls,
        client: AsyncQdrantClient,
        *,
        embedder_identity: str,
        dimensions: int,
        settings: Settings,
        owns_client: bool = True,
    ) -> ServerRepository:
        """Check the store on the server, or make it.

        Args:
            client: See :func:`connect_qdrant`. ``AsyncQdrantClient(":memory:")`` serves
                as a stand-in for tests.
            embedder_identity: Of the embedder whose vectors it keeps.
            dimensions: Length of the dense vectors.
            settings: For the collection prefix.
            owns_client: Whether closing the store closes the client.

        Raises:
            SchemaMismatch: another schema version or another embedder wrote it.
            StorageUnavailable: the server cannot be reached.
            StorageError: it refuses, or is too old.
        """
        names = collection_names(settings.collection_prefix)
        options = client.init_options
        is_local = options.get("location") == ":memory:" or options.get("path") is not None
        await open_collections(
            client,
            names,
            embedder=embedder_identity,
            dimensions=dimensions,
            # The stand-in has none, and says so with a warning each time.
            make_indexes=not is_local,
        )
        return cls(
            client,
            names=names,
            engine="local" if is_local else "server",
            embedder_identity=embedder_identity,
            dimensions=dimensions,
            owns_client=owns_client,
        )

    async def info(self) -> StoreInfo:
        """See :meth:`engram.ports.MemoryRepository.info`."""
        self._check_open()
        with server_errors("asking for its version"):
            version = await self._client.info()
        return StoreInfo(
            engine=self._engine,
            schema_version=SCHEMA_VERSION,
            embedder=self._embedder,
            details=MappingProxyType({"version": version.version, "dimensions": self._dimensions}),
        )

    async def flush(self) -> None:
        """Does nothing: the server flushes on its own."""
        self._check_open()

    async def close(self) -> None:
        """Close the connection, if it is ours. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._owns_client:
            await self._client.close()

    # --- engine calls ---------------------------------------------------------------

    async def _insert(self, memory_type: MemoryType, points: list[NewPoint]) -> None:
        prepared = [
            models.PointStruct(
                id=point.memory_id,
                vector={DENSE: list(point.vectors.dense), SPARSE: _sparse(point.vectors.sparse)},
                payload=point.payload,
            )
            for point in points
        ]
        with server_errors("inserting"):
            await self._client.upsert(
                self._names[memory_type],
                prepared,
                wait=True,
                ordering=_STRONG,
                update_mode=models.UpdateMode.INSERT_ONLY,
            )

    async def _overwrite(
        self, memory_type: MemoryType, changes: list[Overwrite[models.Filter]]
    ) -> None:
        # By filter, not as a conditional upsert: that one inserts a point which is missing.
        operations = [
            models.OverwritePayloadOperation(
                overwrite_payload=models.SetPayload(payload=change.payload, filter=change.where)
            )
            for change in changes
        ]
        with server_errors("replacing"):
            await self._client.batch_update_points(
                self._names[memory_type], operations, wait=True, ordering=_STRONG
            )

    async def _by_id(
        self,
        memory_type: MemoryType,
        where: models.Filter,
        *,
        limit: int,
        after: str | None = None,
    ) -> list[Payload]:
        # The server's offset is the first id included.
        skip = 0 if after is None else 1
        with server_errors("reading"):
            records, _ = await self._client.scroll(
                self._names[memory_type],
                scroll_filter=where,
                limit=limit + skip,
                offset=after,
                with_payload=True,
            )
        payloads = [record.payload or {} for record in records]
        return [payload for payload in payloads if payload.get("id") != after][:limit]

    async def _retrieve(
        self, memory_type: MemoryType, ids: list[str], *, fresh: bool = False
    ) -> list[Payload]:
        consistency = models.ReadConsistencyType.MAJORITY if fresh else None
        with server_errors("reading"):
            records = await self._client.retrieve(
                self._names[memory_type], ids, with_payload=True, consistency=consistency
            )
        return [record.payload or {} for record in records]

    async def _by_time(
        self,
        memory_type: MemoryType,
        where: models.Filter,
        *,
        field: str,
        descending: bool,
        limit: int,
    ) -> list[Payload]:
        direction = models.Direction.DESC if descending else models.Direction.ASC
        with server_errors("listing"):
            records, _ = await self._client.scroll(
                self._names[memory_type],
                scroll_filter=where,
                limit=limit,
                order_by=models.OrderBy(key=field, direction=direction),
                with_payload=True,
            )
        return [record.payload or {} for record in records]

    async def _rank(
        self,
        memory_type: MemoryType,
        where: models.Filter,
        corpus: models.Filter,
        queries: list[RankQuery],
    ) -> list[list[Ranked]]:
        idf = models.SearchParams(idf=models.IdfCorpusParams(corpus=corpus))
        requests = [
            models.QueryRequest(
                query=_nearest(query),
                using=query.side,
                filter=where,
                params=idf if query.side == "sparse" else None,
                limit=query.limit,
                with_payload=False,
            )
            for query in queries
        ]
        with server_errors("searching"):
            answers = await self._client.query_batch_points(self._names[memory_type], requests)
        return [
            [Ranked(str(point.id), point.score) for point in answer.points] for answer in answers
        ]

    async def _count(self, memory_type: MemoryType, where: models.Filter) -> int:
        with server_errors("counting"):
            answer = await self._client.count(
                self._names[memory_type], count_filter=where, exact=True
            )
        return answer.count

    async def _values(self, memory_type: MemoryType, field: str) -> set[str | None]:
        name = self._names[memory_type]
        with server_errors("listing values"):
            answer = await self._client.facet(name, field, limit=MOST_VALUES)
            points = (await self._client.get_collection(name)).points_count or 0
        return found_values({str(hit.value): hit.count for hit in answer.hits}, points)

    async def _delete(self, memory_type: MemoryType, where: models.Filter) -> None:
        with server_errors("deleting"):
            await self._client.delete(
                self._names[memory_type],
                models.FilterSelector(filter=where),
                wait=True,
                ordering=_STRONG,
            )


def _sparse(vector: SparseVector) -> models.SparseVector:
    return models.SparseVector(indices=list(vector.indices), values=list(vector.values))


def _nearest(query: RankQuery) -> Any:
    vector = query.vector
    nearest = _sparse(vector) if isinstance(vector, SparseVector) else list(vector)
    return models.NearestQuery(nearest=nearest)
