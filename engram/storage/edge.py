"""The store of the embedded mode: Qdrant's own engine inside this process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import MappingProxyType
from typing import Final
from uuid import UUID

from engram.domain.memories import STORED_TYPES, MemoryType
from engram.ports import SparseVector, StoreInfo
from engram.settings import Settings
from engram.storage.base import EngineRepository
from engram.storage.edge_engine import EdgeDialect, engine, engine_errors
from engram.storage.edge_shards import OpenStore, open_store
from engram.storage.everybody import MOST_VALUES, found_values
from engram.storage.filters import Translator
from engram.storage.paging import Payload
from engram.storage.points import NewPoint, Overwrite
from engram.storage.ranking import Ranked, RankQuery
from engram.storage.schema import DENSE, SCHEMA_VERSION, SPARSE

_DELETED_AT_ONCE: Final = 256
# About 150 bytes each.
_IDS_KEPT: Final = 50_000


class EdgeRepository(EngineRepository[engine.Filter]):
    """Memories in a folder that one process owns.

    The engine holds the interpreter lock while it works, so threads would gain
    nothing: calls run on the event loop, each a few milliseconds at most, and
    large batches let the loop go round in between. That also serialises every
    write. Importing this module raises EmbeddedPartMissing where the engine is
    not installed.
    """

    # About 6 ms of inserting.
    batch = 32

    def __init__(
        self,
        store: OpenStore,
        *,
        path: Path,
        embedder_identity: str,
        dimensions: int,
    ) -> None:
        """Use :meth:`open`."""
        super().__init__(Translator(EdgeDialect()), dimensions=dimensions)
        self._store = store
        self._shards = store.shards
        self._path = path
        self._embedder = embedder_identity
        self._unflushed: set[MemoryType] = set()
        self._ids: dict[int, str] = {}
        # Types that nobody has memories of are not searched: five engine calls become one or two.
        self._empty = {
            kind for kind, shard in self._shards.items() if not shard.info().points_count
        }

    @classmethod
    async def open(
        cls, path: Path, *, embedder_identity: str, dimensions: int, settings: Settings
    ) -> EdgeRepository:
        """Load the store in the folder ``path``, or make it.

        Args:
            path: A folder of its own; made if it is not there.
            embedder_identity: Of the embedder whose vectors it keeps.
            dimensions: Length of the dense vectors.
            settings: For the collection prefix.

        Raises:
            SchemaMismatch: another schema version or another embedder wrote it.
            DataFolderInUse: another process has it open.
            StorageError: the engine cannot read it.
        """
        store = open_store(
            path,
            prefix=settings.collection_prefix,
            embedder=embedder_identity,
            dimensions=dimensions,
        )
        return cls(store, path=path, embedder_identity=embedder_identity, dimensions=dimensions)

    async def info(self) -> StoreInfo:
        """See :meth:`engram.ports.MemoryRepository.info`."""
        self._check_open()
        points = {
            memory_type.value: shard.info().points_count
            for memory_type, shard in self._shards.items()
        }
        return StoreInfo(
            engine="edge",
            schema_version=SCHEMA_VERSION,
            embedder=self._embedder,
            details=MappingProxyType(
                {"path": str(self._path), "dimensions": self._dimensions, "points": points}
            ),
        )

    async def flush(self) -> None:
        """Put on disk what was written since the last flush; does nothing if nothing was."""
        self._check_open()
        for memory_type in STORED_TYPES:
            if memory_type in self._unflushed:
                with engine_errors("flushing"):
                    self._shards[memory_type].flush()
                self._unflushed.discard(memory_type)
                await asyncio.sleep(0)

    async def close(self) -> None:
        """Flush and let go of the folder. A second call does nothing."""
        if self._closed:
            return
        try:
            await self.flush()
        finally:
            self._closed = True
            self._store.close()

    def optimize(self) -> None:
        """Merge segments and drop what was deleted from the files.

        Blocks the whole process, for seconds in a large store: only for start-up,
        idle time or an explicit command, never while serving.
        """
        self._check_open()
        with engine_errors("optimising"):
            for shard in self._shards.values():
                shard.optimize()

    # --- engine calls ---------------------------------------------------------------

    def _update(
        self, memory_type: MemoryType, operation: engine.UpdateOperation, doing: str
    ) -> None:
        self._unflushed.add(memory_type)
        with engine_errors(doing):
            self._shards[memory_type].update(operation)

    async def _insert(self, memory_type: MemoryType, points: list[NewPoint]) -> None:
        with engine_errors("preparing an insert"):
            prepared = [_point(point) for point in points]
            operation = engine.UpdateOperation.upsert_points(
                prepared, update_mode=engine.UpdateMode.InsertOnly
            )
        self._empty.discard(memory_type)
        self._update(memory_type, operation, "inserting")
        await asyncio.sleep(0)

    async def _overwrite(
        self, memory_type: MemoryType, changes: list[Overwrite[engine.Filter]]
    ) -> None:
        # By filter, not as a conditional upsert: that one inserts a point which is missing.
        for change in changes:
            with engine_errors("preparing a replacement"):
                operation = engine.UpdateOperation.overwrite_payload_by_filter(
                    change.where, change.payload
                )
            self._update(memory_type, operation, "replacing")

    async def _by_id(
        self,
        memory_type: MemoryType,
        where: engine.Filter,
        *,
        limit: int,
        after: str | None = None,
    ) -> list[Payload]:
        if memory_type in self._empty:
            return []
        # The engine's offset is the first id included.
        skip = 0 if after is None else 1
        request = engine.ScrollRequest(
            offset=after, limit=limit + skip, filter=where, with_payload=True, with_vector=False
        )
        with engine_errors("reading"):
            records, _ = self._shards[memory_type].scroll(request)
        payloads = [record.payload or {} for record in records]
        return [payload for payload in payloads if payload.get("id") != after][:limit]

    async def _retrieve(
        self,
        memory_type: MemoryType,
        ids: list[str],
        *,
        fresh: bool = False,  # There is one copy only.
    ) -> list[Payload]:
        wanted: list[engine.PointId] = [*ids]
        with engine_errors("reading"):
            records = self._shards[memory_type].retrieve(wanted, True, False)
        return [record.payload or {} for record in records]

    async def _by_time(
        self,
        memory_type: MemoryType,
        where: engine.Filter,
        *,
        field: str,
        descending: bool,
        limit: int,
    ) -> list[Payload]:
        if memory_type in self._empty:
            return []
        direction = engine.Direction.Desc if descending else engine.Direction.Asc
        request = engine.ScrollRequest(
            limit=limit,
            filter=where,
            with_payload=True,
            with_vector=False,
            order_by=engine.OrderBy(field, direction),
        )
        with engine_errors("listing"):
            records, _ = self._shards[memory_type].scroll(request)
        return [record.payload or {} for record in records]

    async def _rank(
        self,
        memory_type: MemoryType,
        where: engine.Filter,
        corpus: engine.Filter,
        queries: list[RankQuery],
    ) -> list[list[Ranked]]:
        await asyncio.sleep(0)
        if memory_type in self._empty:
            return [[] for _ in queries]
        idf = engine.SearchParams(idf=engine.IdfParams(corpus=corpus))
        requests = [
            engine.QueryRequest(
                limit=query.limit,
                query=_nearest(query),
                filter=where,
                params=idf if query.side == "sparse" else None,
            )
            for query in queries
        ]
        # One by one: a batch takes the engine a third longer.
        shard = self._shards[memory_type]
        with engine_errors("searching"):
            answers = [shard.query(request) for request in requests]
        return [
            [Ranked(self._text(point.id), point.score) for point in answer] for answer in answers
        ]

    def _text(self, point_id: engine.PointId) -> str:
        """The id as memories have it; spelling one out takes longer than finding it again."""
        if not isinstance(point_id, UUID):
            return str(point_id)
        known = self._ids.get(point_id.int)
        if known is None:
            if len(self._ids) >= _IDS_KEPT:
                self._ids.clear()
            known = self._ids[point_id.int] = str(point_id)
        return known

    async def _count(self, memory_type: MemoryType, where: engine.Filter) -> int:
        with engine_errors("counting"):
            return self._shards[memory_type].count(engine.CountRequest(exact=True, filter=where))

    async def _values(self, memory_type: MemoryType, field: str) -> set[str | None]:
        shard = self._shards[memory_type]
        with engine_errors("listing values"):
            hits = shard.facet(engine.FacetRequest(field, MOST_VALUES)).hits
            points = shard.info().points_count
        return found_values({str(hit.value): hit.count for hit in hits}, points)

    async def _delete(self, memory_type: MemoryType, where: engine.Filter) -> None:
        # A filter that matches a whole user would block for as long as that takes.
        request = engine.ScrollRequest(
            limit=_DELETED_AT_ONCE, filter=where, with_payload=False, with_vector=False
        )
        while True:
            with engine_errors("deleting"):
                records, _ = self._shards[memory_type].scroll(request)
            if not records:
                return
            ids = [record.id for record in records]
            self._update(memory_type, engine.UpdateOperation.delete_points(ids), "deleting")
            await asyncio.sleep(0)


def _point(new: NewPoint) -> engine.Point:
    sparse = new.vectors.sparse
    vector: dict[str, engine.NamedVector] = {
        DENSE: list(new.vectors.dense),
        SPARSE: engine.SparseVector(list(sparse.indices), list(sparse.values)),
    }
    return engine.Point(new.memory_id, vector, new.payload)


def _nearest(query: RankQuery) -> engine.Query:
    vector = query.vector
    if isinstance(vector, SparseVector):
        sparse = engine.SparseVector(list(vector.indices), list(vector.values))
        return engine.Query.Nearest(sparse, SPARSE)
    return engine.Query.Nearest(list(vector), DENSE)
