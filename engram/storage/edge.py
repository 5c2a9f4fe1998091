"""The store of the embedded mode: Qdrant's own engine inside this process."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import Final

from engram.domain.memories import STORED_TYPES, AnyMemory, MemoryStatus, MemoryType
from engram.domain.scope import Scope
from engram.errors import StorageError
from engram.giving_way import give_way, yielding_to_event_loop
from engram.ports import Match, SparseVector, Stamp, StoreInfo, unstamped
from engram.settings import Settings
from engram.storage.base import MOST_VALUES, DecodedPayloads, EngineRepository, found_values
from engram.storage.edge_engine import (
    EdgeDialect,
    engine,
    engine_errors,
    nearest,
    new_point,
    sparse,
    spelled,
)
from engram.storage.edge_files import (
    ROOM_TO_DELETE,
    ROOM_TO_WRITE,
    Disk,
    OpenStore,
    Writes,
    log_of,
    open_store,
    rebuild,
    sync_files,
)
from engram.storage.filters import Translator
from engram.storage.ledger import Ledger, ledger_id
from engram.storage.payload import SCHEMA_VERSION, SPARSE, TENANT
from engram.storage.points import (
    NewPoint,
    Overwrite,
    Payload,
    RankedPoint,
    RankQuery,
    listed_payload,
    lost_payload,
    stored_payload,
)

_DELETED_AT_ONCE: Final = 256
_TENANTS_KEPT: Final = 10_000
_ARRIVALS_KEPT: Final = 1_000
_LEDGERS_KEPT: Final = 1_000
# Of a type, written since it was flushed. Until then the engine keeps in a table for each index
# where they are written to, and no table gets smaller again: 2 KB a memory. The next size of
# these tables comes after 1,792; until then nobody waits for a flush that is under way.
_UNFLUSHED_AT_MOST: Final = 1_700
_NEXT_TABLES: Final = 1_792
# Seconds between two types that are flushed: each holds the interpreter lock for some 30 ms, and
# five in a row for longer than anybody should wait for an answer.
_BREATH: Final = 0.02
# What tells which turns something replaced was concluded from.
_TELLING: Final = frozenset({"status", "source_episode_ids"})
_IF_DAMAGED: Final = (
    "If it comes again, restore a backup of the whole data folder; engram validate says how many "
    "memories cannot be read."
)
# What is concluded is on disk before the turns that then count as read: nobody reads them again.
_CONCLUSIONS: Final[tuple[MemoryType, ...]] = tuple(
    kind for kind in STORED_TYPES if kind is not MemoryType.EPISODIC
)


class TenantSteps:
    """When something last happened to the memories of each tenant, in steps."""

    def __init__(self) -> None:
        self._step = 0
        self._of_all = 0
        self._latest: dict[str, int] = {}

    def of(self, tenant: str) -> int:
        """The step in which it last happened, 0 if it never has."""
        return max(self._of_all, self._latest.get(tenant, 0))

    def note(self, tenants: Iterable[str]) -> None:
        """It may have happened to these."""
        self._step += 1
        self._latest.update(dict.fromkeys(tenants, self._step))
        if len(self._latest) > _TENANTS_KEPT:
            self.note_of_all()

    def note_of_all(self) -> None:
        """It may have happened to anybody."""
        self._step += 1
        self._of_all = self._step
        self._latest.clear()


class Arrivals(TenantSteps):
    """When memories of one type last came or went, and which came last."""

    def __init__(self) -> None:
        super().__init__()
        self._recent: deque[tuple[int, str, str]] = deque(maxlen=_ARRIVALS_KEPT)
        self._forgotten = 0

    def note_new(self, new: Sequence[tuple[str, str]]) -> None:
        """These may have come, each with whose it is."""
        self.note(tenant for tenant, _ in new)
        for tenant, memory_id in new:
            if len(self._recent) == _ARRIVALS_KEPT:
                self._forgotten = self._recent[0][0]
            self._recent.append((self._step, tenant, memory_id))

    def since(self, tenant: str, step: int) -> list[str] | None:
        """What came after the step; None if something may have gone, or it is too long ago."""
        if step < max(self._of_all, self._forgotten):
            return None
        return [one for when, whose, one in self._recent if when > step and whose == tenant]


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
        stamp: Stamp = unstamped,
    ) -> None:
        """Use :meth:`open`."""
        super().__init__(Translator(EdgeDialect()), dimensions=dimensions, stamp=stamp)
        self._store, self._shards = store, store.shards
        self._path = path
        self._disk = Disk(path)
        self._embedder = embedder_identity
        # Held while types are flushed one after the other: two at once would flush each twice.
        self._flushing = asyncio.Lock()
        # How many memories were written since a flush.
        self._unflushed: dict[MemoryType, int] = {}
        self._unsynced: set[MemoryType] = set()
        # Counts writes, so that what is read beside one is not trusted.
        self._written = 0
        # What the engine fails to read, by id, until it is written to.
        self._damaged: set[str] = set()
        # Each write of a memory looks twice into what its user had forgotten.
        self._ledgers: dict[str, Ledger] = {}
        self._replacements = TenantSteps()
        self._arrivals = {memory_type: Arrivals() for memory_type in STORED_TYPES}
        self._writes = {memory_type: Writes() for memory_type in STORED_TYPES}
        self._rebuilding = asyncio.Lock()
        # Held while turns are marked, and while their marks go to the disk.
        self._marking = asyncio.Lock()
        # Types that nobody has memories of are not searched: five engine calls become one or two.
        self._empty = {kind for kind, count in store.counts().items() if not count}

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        embedder_identity: str,
        dimensions: int,
        settings: Settings,
        stamp: Stamp = unstamped,
    ) -> EdgeRepository:
        """Load the store in the folder ``path``, or make it.

        Args:
            path: A folder of its own; made if it is not there.
            embedder_identity: Of the embedder whose vectors it keeps.
            dimensions: Length of the dense vectors.
            settings: For the collection prefix.
            stamp: Applied to every memory that is written.

        Raises:
            SchemaMismatch: another schema version or another embedder wrote it.
            DataFolderInUse: another process has it open.
            StorageUnavailable: the disk is full.
            StorageError: the engine cannot read it, or a part of it is missing.
        """
        store = open_store(
            path,
            prefix=settings.collection_prefix,
            embedder=embedder_identity,
            dimensions=dimensions,
        )
        return cls(
            store,
            path=path,
            embedder_identity=embedder_identity,
            dimensions=dimensions,
            stamp=stamp,
        )

    @property
    def shards(self) -> dict[MemoryType, engine.EdgeShard]:
        """The engine's own, one per type: to look into what they hold, not to write past this."""
        return self._shards

    async def info(self) -> StoreInfo:
        """See :meth:`engram.ports.MemoryRepository.info`."""
        self._check_open()
        points = {kind.value: count for kind, count in self._store.counts().items()}
        return StoreInfo(
            engine="edge",
            schema_version=SCHEMA_VERSION,
            embedder=self._embedder,
            details=MappingProxyType(
                {
                    "path": str(self._path),
                    "dimensions": self._dimensions,
                    "points": points,
                    "unreadable": len(self._unreadable),
                    "missing": sum(self._store.known.missing.values()),
                }
            ),
        )

    async def flush(self) -> None:
        """Put on disk what was written since the last flush; does nothing if nothing was."""
        self._check_open()
        async with self._flushing:
            await self._flush_all()

    async def _flush_all(self) -> None:
        for memory_type in _CONCLUSIONS:
            if self._flush(memory_type):
                await asyncio.sleep(_BREATH)
        # In one go: whoever went on meanwhile may have marked turns, and concluded before.
        for memory_type in (*_CONCLUSIONS, MemoryType.EPISODIC):
            self._flush(memory_type)
        self._store.known.note()

    def _flush(self, memory_type: MemoryType) -> bool:
        if memory_type not in self._unflushed:
            return False
        with self._errors("flushing", memory_type):
            self._shards[memory_type].flush()
            self._store.known.flushed(memory_type, self._shards[memory_type].info().points_count)
        del self._unflushed[memory_type]
        self._unsynced.discard(memory_type)
        return True

    async def _flush_many(self) -> None:
        """Before a write: put on disk what has added up, where no flush came in between."""
        if self._most_unflushed() < (
            _NEXT_TABLES if self._flushing.locked() else _UNFLUSHED_AT_MOST
        ):
            return
        async with self._flushing:
            # Another one that was waited for may have done it.
            if self._most_unflushed() >= _UNFLUSHED_AT_MOST:
                await self._flush_all()

    def _most_unflushed(self) -> int:
        """Of any type, how many were written since it was flushed."""
        return max(self._unflushed.values(), default=0)

    async def sync(self) -> bool:
        """Have the engine's log of what was written on disk, so that no power loss takes it.

        :meth:`flush` does more, and holds the interpreter lock for tens of milliseconds a type;
        this is a thread's work. Until a flush, opening the store reads from the log what is
        only there (2.4 s for 100,000 memories).

        Returns:
            Whether anything was written since the last time.

        Raises:
            OSError: the disk failed; the same call can be made again.
        """
        self._check_open()
        if not self._unsynced:
            return False
        await self._sync_conclusions()
        if MemoryType.EPISODIC in self._unsynced:
            async with self._marking:
                # Those of turns that were marked since; mostly there are none.
                await self._sync_conclusions()
                await self._sync(MemoryType.EPISODIC)
        return True

    async def _sync_conclusions(self) -> None:
        for memory_type in _CONCLUSIONS:
            await self._sync(memory_type)

    async def _sync(self, memory_type: MemoryType) -> None:
        if memory_type not in self._unsynced:
            return
        self._unsynced.discard(memory_type)
        try:
            await asyncio.to_thread(sync_files, log_of(self._store.folders[memory_type]))
        except BaseException:
            self._unsynced.add(memory_type)
            raise

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
        """Merge segments. Blocks the process, for seconds in a large store: never while serving."""
        self._check_open()
        with engine_errors("optimising"):
            for shard in self._shards.values():
                shard.optimize()

    async def rebuild(self) -> int:
        """Copy every memory into fresh files, and remove the old ones with all that was deleted.

        Reads and writes go on meanwhile; only the end of each type makes its writes
        wait. The disk holds a type twice for as long. Returns how many memories there are.

        Raises:
            StorageUnavailable: the disk has no room; nothing is lost, some types may be as before.
            StorageError: the engine failed, likewise.
            OSError: the disk failed, likewise.
            MemoryClosed: the store was closed meanwhile, likewise.
        """
        points = 0
        async with self._rebuilding:
            for kind in STORED_TYPES:
                self._check_open()
                # A fresh copy is on disk at once, with its marks.
                points += await rebuild(
                    self._store,
                    kind,
                    self._writes[kind],
                    check_open=self._check_open,
                    first=self._sync_conclusions,
                )
        # Nor does memory keep what files do not.
        self._decoded = DecodedPayloads()
        return points - await self._count(MemoryType.EPISODIC, self._filters.aside())

    async def get(
        self,
        scope: Scope,
        ids: Iterable[str],
        types: Sequence[MemoryType] | None = None,
        *,
        fresh: bool = False,
    ) -> dict[str, AnyMemory]:
        """See :meth:`engram.ports.MemoryRepository.get`.

        What was read before and not written since is not read again: nobody else writes here.
        """
        self._check_open()
        wanted = list(dict.fromkeys(ids))
        held: dict[str, AnyMemory] = {}
        for memory_id in wanted:
            memory = self._decoded.trusted(memory_id)
            if memory is None or (types is not None and memory.type not in types):
                continue
            if (memory.namespace, memory.user_id) == (scope.namespace, scope.user_id):
                held[memory_id] = memory
        rest = [memory_id for memory_id in wanted if memory_id not in held]
        if rest:
            note = self._reading()
            read = await super().get(scope, rest, types, fresh=fresh)
            note(read.values())
            held |= read
        return {memory_id: held[memory_id] for memory_id in wanted if memory_id in held}

    def _reading(self) -> Callable[[Iterable[AnyMemory]], None]:
        written = self._written

        def read(memories: Iterable[AnyMemory]) -> None:
            if written == self._written:
                self._decoded.trust(memories)

        return read

    async def _ledger(self, scope: Scope) -> Ledger:
        key = ledger_id(scope)
        held = self._ledgers.get(key)
        if held is None:
            written = self._written
            held = await super()._ledger(scope)
            if written == self._written:
                if len(self._ledgers) >= _LEDGERS_KEPT:
                    self._ledgers.clear()
                self._ledgers[key] = held
        return held

    def arrivals(self, scope: Scope, memory_type: MemoryType) -> int:
        """See :meth:`engram.ports.MemoryRepository.arrivals`."""
        return self._arrivals[memory_type].of(scope.tenant)

    def arrived(self, scope: Scope, memory_type: MemoryType, since: int) -> list[str] | None:
        """See :meth:`engram.ports.MemoryRepository.arrived`."""
        return self._arrivals[memory_type].since(scope.tenant, since)

    def replacements(self, scope: Scope) -> int:
        """See :meth:`engram.ports.MemoryRepository.replacements`."""
        return self._replacements.of(scope.tenant)

    def _note_replaced(self, written: Iterable[tuple[Payload, Payload | None]]) -> None:
        """Payloads as they are now, each with what was changed of it; None for all."""
        self._replacements.note(
            payload[TENANT]
            for payload, few in written
            if payload.get("status") == MemoryStatus.SUPERSEDED.value
            and (few is None or not _TELLING.isdisjoint(few))
        )

    # --- engine calls ---------------------------------------------------------------

    def _update(
        self,
        memory_type: MemoryType,
        operation: engine.UpdateOperation,
        ids: Collection[str],
        doing: str,
        room: int = ROOM_TO_WRITE,
    ) -> None:
        """Write to these; only while holding the lock of the type's writes."""
        self._check_open()
        self._disk.require(room, doing)
        self._unflushed[memory_type] = self._unflushed.get(memory_type, 0) + len(ids)
        self._unsynced.add(memory_type)
        try:
            with self._errors(doing, memory_type):
                self._shards[memory_type].update(operation)
        finally:
            self._written += 1
            self._decoded.doubt(ids)
            self._damaged.difference_update(ids)
            for one in ids:
                self._ledgers.pop(one, None)

    async def _insert(self, memory_type: MemoryType, points: list[NewPoint]) -> None:
        await self._flush_many()
        with engine_errors("preparing an insert"):
            prepared = [new_point(point) async for point in yielding_to_event_loop(points)]
            operation = engine.UpdateOperation.upsert_points(
                prepared, update_mode=engine.UpdateMode.InsertOnly
            )
        writes = self._writes[memory_type]
        async with writes.lock:
            writes.note(point.memory_id for point in points)
            if memory_type in self._empty:
                with engine_errors("preparing for the first memories of a type"):
                    for make in self._store.missing_indexes(memory_type):
                        make()
                        # Each is some files: ten milliseconds, in which nobody else goes on.
                        await give_way()
                self._empty.discard(memory_type)
            ids = [point.memory_id for point in points]
            try:
                self._update(memory_type, operation, ids, "inserting")
            finally:
                new = [(point.payload[TENANT], point.memory_id) for point in points]
                self._arrivals[memory_type].note_new(new)
                self._note_replaced((point.payload, None) for point in points)
        await give_way()

    async def _overwrite(
        self, memory_type: MemoryType, changes: list[Overwrite[engine.Filter]]
    ) -> None:
        # By filter, not as a conditional upsert: that one inserts a point which is missing.
        writes = self._writes[memory_type]
        # Until the last one: whoever wrote on top before they are read back would make them look
        # lost, and they would be made again. For the same reason nothing is awaited behind it.
        await self._flush_many()
        marking = self._marking if memory_type is MemoryType.EPISODIC else nullcontext()
        async with marking, writes.lock:
            writes.note(change.payload["id"] for change in changes)
            async for change in yielding_to_event_loop(changes):
                ids, writes_as = [change.payload["id"]], engine.UpdateOperation
                # The engine takes microseconds over each field, and writes each to its log.
                few = self._changed(change)
                with engine_errors("preparing a replacement"):
                    operation = (
                        writes_as.overwrite_payload_by_filter(change.where(), change.payload)
                        if few is None
                        else writes_as.set_payload([*ids], few)
                    )
                try:
                    self._update(memory_type, operation, ids, "replacing")
                finally:
                    self._note_replaced([(change.payload, few)])
                if few is not None:
                    # Nobody else writes here: it held the revision that was expected.
                    self._decoded.written(change.payload, few.keys())

    def _errors(self, doing: str, memory_type: MemoryType) -> AbstractContextManager[None]:
        return engine_errors(f"{doing} in {self._store.folders[memory_type].name}", _IF_DAMAGED)

    def _changed(self, change: Overwrite[engine.Filter]) -> Payload | None:
        """What differs from what is stored, with None for what goes; None if that is not known.

        A revision alone does not tell: what was deleted and stored anew begins at the same one.
        """
        after, made = change.payload, change.prepared
        held = self._decoded.held(after["id"])
        if held is None:
            return None
        if made is not None and made.came_of is held and made.few is not None:
            return made.few if held.read().revision == change.revision else None
        before = held.payload()
        if before.get("revision") != change.revision:
            return None
        names = before.keys() | after.keys()
        return {name: after.get(name) for name in names if before.get(name) != after.get(name)}

    async def _write_ids(
        self, scope: Scope, memory_type: MemoryType, ids: Sequence[str]
    ) -> dict[str, str | None]:
        found: dict[str, str | None] = {}
        for start in range(0, len(ids), self.batch):
            part: list[engine.PointId] = [*ids[start : start + self.batch]]
            with self._errors("reading", memory_type):
                # Half of what a payload takes is to hand it over.
                records = self._shards[memory_type].retrieve(part, [TENANT, "write_id"], False)
            for record in records:
                if (shown := record.payload or {}).get(TENANT) == scope.tenant:
                    found[str(record.id)] = shown.get("write_id")
        return found

    async def _reword(
        self, memory_type: MemoryType, where: engine.Filter, words: Mapping[str, SparseVector]
    ) -> None:
        with engine_errors("preparing other words"):
            prepared = [
                engine.PointVectors(memory_id, {SPARSE: sparse(vector)})
                for memory_id, vector in words.items()
            ]
            # The engine refuses all of them for one that is not there; the condition spares it.
            operation = engine.UpdateOperation.update_vectors(prepared, where)
        writes = self._writes[memory_type]
        async with writes.lock:
            writes.note(words)
            self._update(memory_type, operation, words, "replacing words")

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
            offset=after, limit=limit + skip, filter=where, with_payload=False, with_vector=False
        )
        with self._errors("reading", memory_type):
            records, _ = self._shards[memory_type].scroll(request)
        found = [record for record in records if str(record.id) != after]
        return await self._payloads(memory_type, found[:limit], None)

    async def _retrieve(
        self,
        memory_type: MemoryType,
        ids: list[str],
        *,
        fresh: bool = False,  # There is one copy only.
    ) -> list[Payload]:
        return await self._stored(memory_type, ids)

    async def _stored(self, memory_type: MemoryType, ids: Sequence[str]) -> list[Payload]:
        """What is stored of those of these that are there; of what is damaged, its id alone."""
        wanted: list[engine.PointId] = [one for one in ids if one not in self._damaged]
        lost = [lost_payload(one) for one in ids if one in self._damaged]
        try:
            with self._errors("reading", memory_type):
                records = self._shards[memory_type].retrieve(wanted, True, False)
        except StorageError:
            # One that is damaged fails all that are read with it.
            found = [payload async for payload in self._one_by_one(memory_type, wanted)]
            return [*lost, *found]
        return [*lost, *map(stored_payload, records)]

    async def _one_by_one(
        self, memory_type: MemoryType, ids: Iterable[engine.PointId]
    ) -> AsyncIterator[Payload]:
        async for one in yielding_to_event_loop(ids):
            try:
                with self._errors("reading", memory_type):
                    records = self._shards[memory_type].retrieve([one], True, False)
            except StorageError:
                # To fail takes the engine a thousand times as long: it is not asked again.
                self._damaged.add(str(one))
                yield lost_payload(str(one))
            else:
                for record in records:
                    yield stored_payload(record)

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
            with_payload=False,
            with_vector=False,
            order_by=engine.OrderBy(field, direction),
        )
        with self._errors("listing", memory_type):
            records, _ = self._shards[memory_type].scroll(request)
        return await self._payloads(memory_type, records, field)

    async def _payloads(
        self, memory_type: MemoryType, records: Sequence[engine.Record], field: str | None
    ) -> list[Payload]:
        """What is stored of these, in their order: a listing that reads it takes twice as long."""
        listed = {str(record.id): record for record in records}
        held: dict[str, Payload | None] = {
            text: self._decoded.listed(text, field) for text in listed
        }
        rest = [text for text, payload in held.items() if payload is None]
        if rest:
            held |= {payload["id"]: payload for payload in await self._stored(memory_type, rest)}
        return [
            listed_payload(field, record, payload)
            for text, record in listed.items()
            if (payload := held[text]) is not None
        ]

    async def _matches(
        self,
        corpus: engine.Filter,
        memory_type: MemoryType,
        where: engine.Filter,
        queries: list[RankQuery],
        limit: int,
    ) -> list[Match]:
        if memory_type in self._empty:
            return []
        return await super()._matches(corpus, memory_type, where, queries, limit)

    async def _rank(
        self,
        memory_type: MemoryType,
        where: engine.Filter,
        corpus: engine.Filter,
        queries: list[RankQuery],
    ) -> Sequence[Sequence[RankedPoint]]:
        idf = engine.SearchParams(idf=engine.IdfParams(corpus=corpus))
        requests = [
            engine.QueryRequest(
                limit=query.limit,
                query=query.spoken,
                filter=where,
                params=idf if query.side == "sparse" else None,
            )
            for query in queries
        ]
        # One by one: a batch takes the engine a third longer.
        shard = self._shards[memory_type]
        with self._errors("searching", memory_type):
            return [shard.query(request) for request in requests]

    def _nearest(self, query: RankQuery) -> engine.Query:
        return nearest(query)

    def _spelled(self, points: Sequence[RankedPoint]) -> list[str]:
        return spelled(points)

    async def _of_each(
        self, asking: Sequence[Callable[[], Awaitable[list[Match]]]]
    ) -> list[list[Match]]:
        # The engine works in this thread: side by side, they would only wait for each other.
        await give_way()
        return [await ask() async for ask in yielding_to_event_loop(asking)]

    async def _count(self, memory_type: MemoryType, where: engine.Filter) -> int:
        if memory_type in self._empty:
            return 0
        with self._errors("counting", memory_type):
            return self._shards[memory_type].count(engine.CountRequest(exact=True, filter=where))

    async def _values(self, memory_type: MemoryType, field: str) -> set[str | None]:
        if memory_type in self._empty:
            return set()
        shard = self._shards[memory_type]
        with self._errors("listing values", memory_type):
            hits = shard.facet(engine.FacetRequest(field, MOST_VALUES)).hits
            points = shard.info().points_count
        points -= await self._count(memory_type, self._filters.aside())
        return found_values({str(hit.value): hit.count for hit in hits}, points)

    async def _delete(self, memory_type: MemoryType, where: engine.Filter) -> None:
        if memory_type in self._empty:
            return
        # A filter that matches a whole user would block for as long as that takes.
        request = engine.ScrollRequest(
            limit=_DELETED_AT_ONCE, filter=where, with_payload=False, with_vector=False
        )
        writes = self._writes[memory_type]
        while True:
            await self._flush_many()
            async with writes.lock:
                with self._errors("deleting", memory_type):
                    records, _ = self._shards[memory_type].scroll(request)
                if not records:
                    return
                ids = [record.id for record in records]
                gone = [str(point_id) for point_id in ids]
                writes.note(gone)
                operation = engine.UpdateOperation.delete_points(ids)
                self._store.known.deleting(memory_type)
                try:
                    self._update(memory_type, operation, gone, "deleting", ROOM_TO_DELETE)
                finally:
                    self._arrivals[memory_type].note_of_all()
                self._decoded.drop(gone)
            await asyncio.sleep(0)
