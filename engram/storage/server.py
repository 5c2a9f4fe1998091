"""The store of the connected mode: a Qdrant server, or Qdrant Cloud."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Literal

import httpx
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.client_exceptions import QdrantException
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from engram.domain.memories import STORED_TYPES, MemoryType
from engram.errors import SchemaMismatch, StorageError, StorageUnavailable
from engram.ports import SparseVector, Stamp, StoreInfo, TextVectors, unstamped
from engram.settings import Settings, checked_address, checked_key
from engram.storage.base import MOST_VALUES, EngineRepository, found_values
from engram.storage.filters import Range, Translator
from engram.storage.payload import (
    DENSE,
    SCHEMA_VERSION,
    SPARSE,
    TENANT,
    FieldKind,
    check_identity,
    collection_names,
    identity_record,
    indexed_fields,
)
from engram.storage.points import (
    EXACT_BELOW_KB,
    GRAPH_EFFORT,
    TENANT_GRAPH_EDGES,
    NewPoint,
    Overwrite,
    Payload,
    RankedPoint,
    RankQuery,
    listed_payload,
    portions,
    stored_payload,
)

__all__ = ["ServerRepository", "connect_qdrant"]

# --- talking to a Qdrant server: the client, its errors, and its way of writing conditions down

OLDEST_SERVER: Final = (1, 19)
"""The first that counts IDF per user; an older one ignores the wish without a word."""

_UNAUTHORISED: Final = frozenset({401, 403})
_NOT_FOUND: Final = 404
_TOO_MANY: Final = 429
_SERVER_FAULT: Final = 500
_TIMED_OUT: Final = 408


def connect_qdrant(settings: Settings) -> AsyncQdrantClient:
    """A client for the server that the settings name. Sends nothing yet.

    Raises:
        InvalidSettings: the address or the key has a form that no address or key has.
    """
    url = checked_address(settings.qdrant_url, "Qdrant server", "ENGRAM_QDRANT_URL")
    key = settings.qdrant_api_key
    with warnings.catch_warnings():
        # Told by deploy/README.md. As a warning of Python's it would stand, with a line of our
        # code, before each command's answer and between the JSON lines of a log.
        warnings.filterwarnings("ignore", "Api key is used with an insecure connection")
        return AsyncQdrantClient(
            url=url,
            api_key=checked_key(key.get_secret_value(), "Qdrant server", "ENGRAM_QDRANT_API_KEY")
            if key is not None
            else None,
            timeout=settings.qdrant_timeout,  # type: ignore[arg-type]  # rounded up by the client
            # Its own check runs in a thread and warns; ours is made on opening and raises.
            check_compatibility=False,
        )


@contextmanager
def server_errors(doing: str) -> Iterator[None]:
    """Turn the client's errors into typed ones.

    Args:
        doing: What was being done, in words, for the message.

    Raises:
        StorageUnavailable: unreachable, timed out, overloaded or failing: try again.
        StorageError: refused for good.
    """
    try:
        yield
    except ResponseHandlingException as error:
        raise _unanswered(doing, error) from error
    except QdrantException as error:
        # With a delay of whole seconds it is a ResourceExhaustedResponse. A date or a fraction
        # the client cannot read, and says so with this.
        wait = getattr(error, "retry_after_s", None)
        raise StorageUnavailable(
            f"The Qdrant server is over its rate limit while {doing}.",
            details={"retry_after": wait} if wait is not None else None,
        ) from error
    except UnexpectedResponse as error:
        raise _refused(doing, error.status_code) from error


def _unanswered(doing: str, error: ResponseHandlingException) -> StorageError:
    if isinstance(error.source, httpx.TransportError):
        late = isinstance(error.source, httpx.TimeoutException)
        return StorageUnavailable(
            f"The Qdrant server {'did not answer in time' if late else 'was not reached'} "
            f"while {doing}.",
            hint="Is it running, and is ENGRAM_QDRANT_URL right? It may still be starting.",
            details={"reason": type(error.source).__name__},
        )
    return StorageError(
        f"The Qdrant server gave an answer that could not be understood while {doing}.",
        hint="Is ENGRAM_QDRANT_URL the address of a Qdrant server?",
        details={"reason": type(error.source).__name__},
    )


def _refused(doing: str, status: int | None) -> StorageError:
    details = {"status": status}
    if status in _UNAUTHORISED:
        return StorageError(
            f"The Qdrant server refused access while {doing} (HTTP {status}).",
            hint="Check ENGRAM_QDRANT_API_KEY: it is missing, wrong, or may only read.",
            details=details,
        )
    if status is not None and (status >= _SERVER_FAULT or status in {_TOO_MANY, _TIMED_OUT}):
        return StorageUnavailable(
            f"The Qdrant server failed while {doing} (HTTP {status}).", details=details
        )
    if status == _NOT_FOUND:
        return StorageError(
            f"The Qdrant server does not know the collection any more, while {doing}.",
            hint="It was removed since the store was opened; open it again to make it anew.",
            details=details,
        )
    return StorageError(
        f"The Qdrant server refused while {doing} (HTTP {status}).", details=details
    )


def check_server_version(version: str) -> None:
    """Refuse a server that is too old to keep users' scores apart.

    Raises:
        StorageError: naming both versions.
    """
    parts = version.split(".")
    if not all(part.isdigit() for part in parts[:2]) or len(parts) < len(OLDEST_SERVER):
        return  # A build of someone's own: they know what it can do.
    if tuple(map(int, parts[:2])) < OLDEST_SERVER:
        raise StorageError(
            f"The Qdrant server has version {version}.",
            allowed=f"{'.'.join(map(str, OLDEST_SERVER))} or newer",
            hint="Upgrade it: older versions mix all users' texts into each user's scores.",
            details={"version": version},
        )


class ServerDialect:
    """Conditions as the client's models."""

    def equals(self, field: str, value: str | int) -> models.Filter:
        """The field holds the value."""
        return _one(models.FieldCondition(key=field, match=models.MatchValue(value=value)))

    def any_of(self, field: str, values: list[str]) -> models.Filter:
        """The field holds one of the values."""
        return _one(models.FieldCondition(key=field, match=models.MatchAny(any=values)))

    def within(self, field: str, bounds: Range, *, time: bool) -> models.Filter:
        """The field lies within the bounds."""
        given: dict[str, Any] = {
            name: value
            for name in ("gte", "lte", "gt", "lt")
            if (value := getattr(bounds, name)) is not None
        }
        limits = models.DatetimeRange(**given) if time else models.Range(**given)
        return _one(models.FieldCondition(key=field, range=limits))

    def missing(self, field: str) -> models.Filter:
        """The field is absent, null or empty."""
        return _one(models.IsEmptyCondition(is_empty=models.PayloadField(key=field)))

    def ids(self, ids: list[str]) -> models.Filter:
        """The point is one of these."""
        return _one(models.HasIdCondition(has_id=[*ids]))

    def every(self, filters: Sequence[models.Filter]) -> models.Filter:
        """All of these hold; plain conjunctions are flattened."""
        must: list[Any] = []
        for inner in filters:
            plain = inner.should is None and inner.must_not is None and inner.min_should is None
            if plain and isinstance(inner.must, list):
                must.extend(inner.must)
            else:
                must.append(inner)
        return models.Filter(must=must)

    def either(self, filters: Sequence[models.Filter]) -> models.Filter:
        """At least one of these holds."""
        return models.Filter(should=[*filters])

    def negation(self, inner: models.Filter) -> models.Filter:
        """This does not hold."""
        return models.Filter(must_not=[inner])


def _vector(vectors: TextVectors | None) -> dict[str, Any]:
    if vectors is None:
        return {}
    return {DENSE: list(vectors.dense), SPARSE: _sparse(vectors.sparse)}


def _one(condition: Any) -> models.Filter:
    return models.Filter(must=[condition])


# --- making and checking the collections of a store on a Qdrant server

_RECORD: Final = "engram"
_CONFLICT: Final = 409


async def open_collections(
    client: AsyncQdrantClient,
    names: dict[MemoryType, str],
    *,
    embedder: str,
    dimensions: int,
    make_indexes: bool,
    copies: Copies,
) -> bool:
    """Make what is missing and check what is there; any number of processes may do so at once.

    Returns:
        Whether any of them is kept on several nodes.

    Raises:
        SchemaMismatch: another schema version, another embedder, or not Engram, made them.
        StorageError: the server is too old, or refuses.
        StorageUnavailable: it cannot be reached.
    """
    with server_errors("asking for its version"):
        version = await client.info()
    check_server_version(version.version)
    record = identity_record(embedder=embedder, dimensions=dimensions)
    # The first alone: two embedders opening at once then meet at one collection, not half each.
    first, *rest = STORED_TYPES

    def opened(memory_type: MemoryType) -> Coroutine[Any, Any, bool]:
        name = names[memory_type]
        return _open(client, memory_type, name, record, copies, make_indexes=make_indexes)

    return any([await opened(first), *await asyncio.gather(*map(opened, rest))])


@dataclass(frozen=True, slots=True)
class Copies:
    """On how many nodes new collections are kept.

    Attributes:
        replicas: Copies of each memory; None for what the server is set to.
        acknowledged: How many of them a write waits for; None likewise.
        shards: Parts that lie on nodes of their own. A cluster makes as many as it has nodes
            unless it is told, and each part counts for itself in how many memories a word stands.
    """

    replicas: int | None = None
    acknowledged: int | None = None
    shards: int = 1


async def _open(
    client: AsyncQdrantClient,
    memory_type: MemoryType,
    name: str,
    record: dict[str, object],
    copies: Copies,
    *,
    make_indexes: bool,
) -> bool:
    with server_errors(f"opening the collection {name}"):
        if not await client.collection_exists(name):
            await _make(client, name, record, copies)
        found = await client.get_collection(name)
    stored = (found.config.metadata or {}).get(_RECORD)
    if not isinstance(stored, dict):
        raise SchemaMismatch(
            f"The collection {name} was not made by Engram.",
            hint="Choose another ENGRAM_COLLECTION_PREFIX.",
        )
    check_identity(
        stored, embedder=str(record["embedder"]), dimensions=int(str(record["dimensions"]))
    )
    if make_indexes:
        await _make_indexes(client, memory_type, name, there=set(found.payload_schema))
    return (found.config.params.replication_factor or 1) > 1


async def _make(
    client: AsyncQdrantClient, name: str, record: dict[str, object], copies: Copies
) -> None:
    try:
        # The record is part of the collection, so the two appear together or not at all.
        await client.create_collection(
            name,
            vectors_config={
                DENSE: models.VectorParams(
                    size=int(str(record["dimensions"])), distance=models.Distance.COSINE
                )
            },
            sparse_vectors_config={SPARSE: models.SparseVectorParams(modifier=models.Modifier.IDF)},
            hnsw_config=models.HnswConfigDiff(
                m=0,
                payload_m=TENANT_GRAPH_EDGES,
                ef_construct=GRAPH_EFFORT,
                full_scan_threshold=EXACT_BELOW_KB,
            ),
            shard_number=copies.shards,
            replication_factor=copies.replicas,
            write_consistency_factor=copies.acknowledged,
            metadata={_RECORD: record},
        )
    except UnexpectedResponse as error:
        if error.status_code != _CONFLICT:
            raise
        # Another process made it in between: what it recorded is checked next.


async def _make_indexes(
    client: AsyncQdrantClient, memory_type: MemoryType, name: str, *, there: set[str]
) -> None:
    wanted: dict[str, Any] = {
        TENANT: models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
    }
    wanted |= {field: _index(kind) for field, kind in indexed_fields(memory_type).items()}
    for field, params in wanted.items():
        if field not in there:
            with server_errors(f"indexing the collection {name}"):
                await client.create_payload_index(name, field, field_schema=params, wait=True)


def _index(kind: FieldKind) -> Any:
    # Only the tenant gets a graph; one for every field would be built and never used.
    match kind:
        case FieldKind.KEYWORD:
            return models.KeywordIndexParams(
                type=models.KeywordIndexType.KEYWORD, enable_hnsw=False
            )
        case FieldKind.INTEGER | FieldKind.BOOL:
            return models.IntegerIndexParams(
                type=models.IntegerIndexType.INTEGER, lookup=True, range=True, enable_hnsw=False
            )
        case FieldKind.FLOAT:
            return models.FloatIndexParams(type=models.FloatIndexType.FLOAT, enable_hnsw=False)
        case FieldKind.DATETIME:
            return models.DatetimeIndexParams(
                type=models.DatetimeIndexType.DATETIME, enable_hnsw=False
            )


# --- the store of the connected mode: a Qdrant server, or Qdrant Cloud

# Through the highest replica that is alive. With strong ordering it is the highest of all, and
# while that node is away nothing is written, however many copies there are.
_ORDERING = models.WriteOrdering.MEDIUM
# Of one request, far below the 32 MB that a server accepts: turns of the largest size, escaped,
# and long vectors would pass that a hundred at a time.
_MOST_BYTES: Final = 12 * 2**20
# Seconds between looks at what replicas do not agree on yet.
_LOOK_AGAIN: Final = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)
# Bytes that a number takes in a request, at most.
_NUMBER_BYTES: Final = 24


def _check_applied(done: models.UpdateResult, doing: str) -> None:
    """Refuse what is accepted and not applied, where nothing reads back what it came to."""
    if done.status != models.UpdateStatus.COMPLETED:
        raise StorageUnavailable(
            f"The Qdrant server accepted what it was asked, and did not finish {doing}.",
            hint="The same call can be made again.",
            details={"status": str(done.status)},
        )


def _size(payload: Payload) -> int:
    """Bytes of a payload in a request, or more."""
    return len(json.dumps(payload))


def _size_with_vectors(point: NewPoint) -> int:
    if point.vectors is None:
        return _size(point.payload)
    dense, sparse = point.vectors.dense, point.vectors.sparse.indices
    return _size(point.payload) + _NUMBER_BYTES * (len(dense) + 2 * len(sparse))


class ServerRepository(EngineRepository[models.Filter]):
    """Memories on a server that any number of processes share.

    Every write waits until it is applied, and goes through one leader, the highest replica that
    is alive; what it came to is read back from a quorum. So of two writers at one revision at
    most one wins.
    """

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
        replicated: bool,
        stamp: Stamp,
    ) -> None:
        """Use :meth:`open`."""
        super().__init__(Translator(ServerDialect()), dimensions=dimensions, stamp=stamp)
        self._client = client
        self._names = names
        self._engine: Literal["server", "local"] = engine
        self._embedder = embedder_identity
        self._owns_client = owns_client
        self._replicated = replicated

    @classmethod
    async def open(
        cls,
        client: AsyncQdrantClient,
        *,
        embedder_identity: str,
        dimensions: int,
        settings: Settings,
        owns_client: bool = True,
        stamp: Stamp = unstamped,
    ) -> ServerRepository:
        """Check the store on the server, or make it.

        Args:
            client: See :func:`connect_qdrant`. ``AsyncQdrantClient(":memory:")`` serves
                as a stand-in for tests.
            embedder_identity: Of the embedder whose vectors it keeps.
            dimensions: Length of the dense vectors.
            settings: For the collection prefix, and how new collections are replicated.
            owns_client: Whether closing the store closes the client.
            stamp: Applied to every memory that is written.

        Raises:
            SchemaMismatch: another schema version or another embedder wrote it.
            StorageUnavailable: the server cannot be reached.
            StorageError: it refuses, or is too old.
        """
        names = collection_names(settings.collection_prefix)
        options = client.init_options
        is_local = options.get("location") == ":memory:" or options.get("path") is not None
        replicated = await open_collections(
            client,
            names,
            embedder=embedder_identity,
            dimensions=dimensions,
            # The stand-in has none, and says so with a warning each time.
            make_indexes=not is_local,
            copies=Copies(
                settings.qdrant_replication_factor,
                settings.qdrant_write_consistency,
                settings.qdrant_shards,
            ),
        )
        return cls(
            client,
            names=names,
            engine="local" if is_local else "server",
            embedder_identity=embedder_identity,
            dimensions=dimensions,
            owns_client=owns_client,
            replicated=replicated,
            stamp=stamp,
        )

    async def info(self) -> StoreInfo:
        """See :meth:`engram.ports.MemoryRepository.info`."""
        self._check_open()
        with server_errors("asking for its version"):
            version = await self._client.info()
        # A server tells that to everybody, with any key or none; not what it holds.
        with server_errors("looking at the collections"):
            await asyncio.gather(*map(self._client.get_collection, self._names.values()))
        return StoreInfo(
            engine=self._engine,
            schema_version=SCHEMA_VERSION,
            embedder=self._embedder,
            details=MappingProxyType(
                {
                    "version": version.version,
                    "dimensions": self._dimensions,
                    "unreadable": len(self._unreadable),
                }
            ),
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
                vector=_vector(point.vectors),
                payload=point.payload,
            )
            for point in points
        ]
        for part in portions(prepared, map(_size_with_vectors, points), _MOST_BYTES):
            with server_errors("inserting"):
                done = await self._client.upsert(
                    self._names[memory_type],
                    part,
                    wait=True,
                    ordering=_ORDERING,
                    update_mode=models.UpdateMode.INSERT_ONLY,
                )
            _check_applied(done, "inserting")

    async def _overwrite(
        self, memory_type: MemoryType, changes: list[Overwrite[models.Filter]]
    ) -> None:
        # By filter, not as a conditional upsert: that one inserts a point which is missing.
        operations = [
            models.OverwritePayloadOperation(
                overwrite_payload=models.SetPayload(payload=change.payload, filter=change.where())
            )
            for change in changes
        ]
        sizes = [_size(change.payload) for change in changes]
        for part in portions(operations, sizes, _MOST_BYTES):
            with server_errors("replacing"):
                await self._client.batch_update_points(
                    self._names[memory_type], part, wait=True, ordering=_ORDERING
                )

    async def _reword(
        self, memory_type: MemoryType, where: models.Filter, words: Mapping[str, SparseVector]
    ) -> None:
        points = [
            models.PointVectors(id=memory_id, vector={SPARSE: _sparse(vector)})
            for memory_id, vector in words.items()
        ]
        with server_errors("replacing words"):
            try:
                done = await self._client.update_vectors(
                    self._names[memory_type],
                    points,
                    wait=True,
                    ordering=_ORDERING,
                    update_filter=where,
                )
            except UnexpectedResponse as error:
                # It rewords all that it finds, and refuses for what went meanwhile.
                if error.status_code != _NOT_FOUND:
                    raise
                if len(await self._read(memory_type, list(words))) == len(words):
                    raise
                return
        _check_applied(done, "replacing words")

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
        payloads = [*map(stored_payload, records)]
        return [payload for payload in payloads if payload.get("id") != after][:limit]

    async def _retrieve(
        self, memory_type: MemoryType, ids: list[str], *, fresh: bool = False
    ) -> list[Payload]:
        if not (fresh and self._replicated):
            return await self._read(memory_type, ids)
        # A quorum answers while a minority of the replicas is away, and leaves out what these
        # do not hold alike. What it leaves out and one replica has is on its way, or half gone:
        # not missing, so it is looked at again.
        for pause in (*_LOOK_AGAIN, None):
            found = await self._read(memory_type, ids, models.ReadConsistencyType.QUORUM)
            missing = set(ids) - {payload["id"] for payload in found}
            if not missing or not await self._read(memory_type, sorted(missing)):
                return found
            if pause is not None:
                await asyncio.sleep(pause)
        raise StorageUnavailable(
            "The replicas of the Qdrant server do not agree on a memory.",
            hint="One of them may be recovering; the same call can be made again.",
            details={"memories": len(missing)},
        )

    async def _read(
        self,
        memory_type: MemoryType,
        ids: list[str],
        consistency: models.ReadConsistencyType | None = None,
    ) -> list[Payload]:
        with server_errors("reading"):
            records = await self._client.retrieve(
                self._names[memory_type], ids, with_payload=True, consistency=consistency
            )
        return [*map(stored_payload, records)]

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
        payloads = map(stored_payload, records)
        return [*map(partial(listed_payload, field), records, payloads)]

    async def _rank(
        self,
        memory_type: MemoryType,
        where: models.Filter,
        corpus: models.Filter,
        queries: list[RankQuery],
    ) -> Sequence[Sequence[RankedPoint]]:
        idf = models.SearchParams(idf=models.IdfCorpusParams(corpus=corpus))
        requests = [
            models.QueryRequest(
                query=query.spoken,
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
        return [answer.points for answer in answers]

    def _nearest(self, query: RankQuery) -> models.NearestQuery:
        vector = query.vector
        nearest = _sparse(vector) if isinstance(vector, SparseVector) else list(vector)
        return models.NearestQuery(nearest=nearest)

    def _spelled(self, points: Sequence[RankedPoint]) -> list[str]:
        return [str(point.id) for point in points]

    async def _count(self, memory_type: MemoryType, where: models.Filter) -> int:
        with server_errors("counting"):
            answer = await self._client.count(
                self._names[memory_type], count_filter=where, exact=True
            )
        return answer.count

    async def _values(self, memory_type: MemoryType, field: str) -> set[str | None]:
        name = self._names[memory_type]
        with server_errors("listing values"):
            answer = await self._client.facet(name, field, limit=MOST_VALUES, exact=True)
            points = (await self._client.count(name, exact=True)).count
        points -= await self._count(memory_type, self._filters.aside())
        return found_values({str(hit.value): hit.count for hit in answer.hits}, points)

    async def _delete(self, memory_type: MemoryType, where: models.Filter) -> None:
        with server_errors("deleting"):
            done = await self._client.delete(
                self._names[memory_type],
                models.FilterSelector(filter=where),
                wait=True,
                ordering=_ORDERING,
            )
        _check_applied(done, "deleting")


def _sparse(vector: SparseVector) -> models.SparseVector:
    return models.SparseVector(indices=list(vector.indices), values=list(vector.values))
