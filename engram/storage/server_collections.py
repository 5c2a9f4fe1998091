"""Making and checking the collections of a store on a Qdrant server."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from qdrant_client import AsyncQdrantClient, models
from qdrant_client.http.exceptions import UnexpectedResponse

from engram.domain.memories import STORED_TYPES, MemoryType
from engram.errors import SchemaMismatch
from engram.storage.schema import (
    DENSE,
    SPARSE,
    TENANT,
    FieldKind,
    check_identity,
    identity_record,
    indexed_fields,
)
from engram.storage.server_client import check_server_version, server_errors

_RECORD: Final = "engram"
_CONFLICT: Final = 409
# As on Edge: a user's memories are searched exactly up to this many KB of
# vectors, by a graph of that user's own memories beyond, never by one of all.
_EXACT_BELOW_KB: Final = 20_000
_TENANT_GRAPH_EDGES: Final = 16
_GRAPH_EFFORT: Final = 128


async def open_collections(
    client: AsyncQdrantClient,
    names: dict[MemoryType, str],
    *,
    embedder: str,
    dimensions: int,
    make_indexes: bool,
) -> None:
    """Make what is missing and check what is there; any number of processes may do so at once.

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
    await _open(client, first, names[first], record, make_indexes=make_indexes)
    await asyncio.gather(
        *(
            _open(client, memory_type, names[memory_type], record, make_indexes=make_indexes)
            for memory_type in rest
        )
    )


async def _open(
    client: AsyncQdrantClient,
    memory_type: MemoryType,
    name: str,
    record: dict[str, object],
    *,
    make_indexes: bool,
) -> None:
    with server_errors(f"opening the collection {name}"):
        if not await client.collection_exists(name):
            await _make(client, name, record)
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


async def _make(client: AsyncQdrantClient, name: str, record: dict[str, object]) -> None:
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
                payload_m=_TENANT_GRAPH_EDGES,
                ef_construct=_GRAPH_EFFORT,
                full_scan_threshold=_EXACT_BELOW_KB,
            ),
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
