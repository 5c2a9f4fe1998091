"""What the store looks like: collections, vectors and the fields that have an index.

Engines answer differently, and slowly, about fields without an index. So a
query may only name what is listed here; adding a field here is all it takes,
because opening a store creates the indexes that are missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from engram.domain.memories import STORED_TYPES, MemoryType
from engram.errors import InvalidQuery, SchemaMismatch, UnindexedField

SCHEMA_VERSION: Final = 1
"""Raised when data written before cannot be read any more. New indexes do not raise it."""

DENSE: Final = "dense"
SPARSE: Final = "sparse"
TENANT: Final = "tenant"
"""The key every read and write is confined to; queries cannot name it."""


class FieldKind(StrEnum):
    """How a field is indexed, and so what can be asked about it."""

    KEYWORD = "keyword"
    INTEGER = "integer"
    FLOAT = "float"
    # Stored and indexed as 0 or 1: the in-process engine cannot match a boolean.
    BOOL = "bool"
    DATETIME = "datetime"


# Ids are keywords, not uuids: a uuid index takes "ABC…" for "abc…", a keyword
# index agrees with every other engine letter by letter.
_COMMON: Final[Mapping[str, FieldKind]] = {
    # For passes over all users, which go by other rules in some namespaces.
    "namespace": FieldKind.KEYWORD,
    "status": FieldKind.KEYWORD,
    "known_at": FieldKind.DATETIME,
    "superseded_known_at": FieldKind.DATETIME,
    "session_id": FieldKind.KEYWORD,
    "tags": FieldKind.KEYWORD,
    "is_test": FieldKind.BOOL,
    "expires_at": FieldKind.DATETIME,
    "revision": FieldKind.INTEGER,
    "review_at": FieldKind.DATETIME,
    "policy_fingerprint": FieldKind.KEYWORD,
}
_DERIVED: Final[Mapping[str, FieldKind]] = {
    "source_episode_ids": FieldKind.KEYWORD,
    "valid_from": FieldKind.DATETIME,
    "valid_to": FieldKind.DATETIME,
    "related_ids": FieldKind.KEYWORD,
}
_OWN: Final[Mapping[MemoryType, Mapping[str, FieldKind]]] = {
    MemoryType.EPISODIC: {
        "timestamp": FieldKind.DATETIME,
        "consolidated_at": FieldKind.DATETIME,
        "speaker": FieldKind.KEYWORD,
        "sequence": FieldKind.INTEGER,
    },
    MemoryType.FACTUAL: {**_DERIVED, "category": FieldKind.KEYWORD},
    MemoryType.SEMANTIC: {
        **_DERIVED,
        "form": FieldKind.KEYWORD,
        "detail.keys": FieldKind.KEYWORD,
        "category": FieldKind.KEYWORD,
        "importance": FieldKind.FLOAT,
        "selectivity": FieldKind.FLOAT,
        "vitals.promotion_attempts": FieldKind.INTEGER,
        "slot.subject": FieldKind.KEYWORD,
        "slot.predicate": FieldKind.KEYWORD,
        "slot.object": FieldKind.KEYWORD,
        "entities": FieldKind.KEYWORD,
    },
    MemoryType.PROCEDURAL: _DERIVED,
    MemoryType.NEGATION: _DERIVED,
}
_FIELDS: Final[Mapping[MemoryType, Mapping[str, FieldKind]]] = {
    memory_type: MappingProxyType({**_COMMON, **own}) for memory_type, own in _OWN.items()
}


def collection_name(prefix: str, memory_type: MemoryType) -> str:
    """The collection (on Edge: the folder) that holds one type."""
    return f"{prefix}_{memory_type.value}"


def collection_names(prefix: str) -> dict[MemoryType, str]:
    """All collections of a store."""
    return {memory_type: collection_name(prefix, memory_type) for memory_type in STORED_TYPES}


def indexed_fields(memory_type: MemoryType) -> Mapping[str, FieldKind]:
    """Every field of the type that can be asked about, with its kind. Without the tenant."""
    return _FIELDS[memory_type]


def field_kind(memory_type: MemoryType, name: str) -> FieldKind:
    """The kind of an indexed field.

    Raises:
        UnindexedField: naming the fields that are allowed.
    """
    fields = indexed_fields(memory_type)
    kind = fields.get(name)
    if kind is None:
        raise UnindexedField(
            f"The field {name!r} of {memory_type.value} memories has no index.",
            allowed=", ".join(sorted(fields)),
            details={"field": name, "type": memory_type.value},
        )
    return kind


def check_order(memory_type: MemoryType, name: str) -> None:
    """Refuse to order by anything but an indexed time field.

    Raises:
        UnindexedField: the field has no index.
        InvalidQuery: it is not a time.
    """
    if field_kind(memory_type, name) is not FieldKind.DATETIME:
        times = (
            field
            for field, kind in indexed_fields(memory_type).items()
            if kind is FieldKind.DATETIME
        )
        raise InvalidQuery(
            f"A listing cannot be ordered by {name!r}.", allowed=", ".join(sorted(times))
        )


def check_identity(stored: Mapping[str, object], *, embedder: str, dimensions: int) -> None:
    """Refuse a store of another schema version or another embedder.

    Args:
        stored: What the store recorded when it was made, see :func:`identity_record`.
        embedder: Identity of the embedder about to be used.
        dimensions: Length of its dense vectors.

    Raises:
        SchemaMismatch: saying which two do not fit, and what to do.
    """
    version = stored.get("schema_version")
    if version != SCHEMA_VERSION:
        raise SchemaMismatch(
            f"The store has schema version {version}; this Engram reads {SCHEMA_VERSION}.",
            hint="Open it with the Engram version that wrote it, or start a new store.",
            details={"stored": version, "expected": SCHEMA_VERSION},
        )
    there = (stored.get("embedder"), stored.get("dimensions"))
    if there != (embedder, dimensions):
        raise SchemaMismatch(
            f"The store was written with embedder {there[0]!r} ({there[1]} dimensions); "
            f"the settings ask for {embedder!r} ({dimensions} dimensions).",
            hint="Set ENGRAM_EMBEDDER back to the first, or start a new store "
            "(ENGRAM_DATA_DIR, ENGRAM_COLLECTION_PREFIX) for the second: "
            "vectors of different models cannot be compared.",
            details={"stored": list(there), "expected": [embedder, dimensions]},
        )


def identity_record(*, embedder: str, dimensions: int) -> dict[str, object]:
    """What a new store records about itself."""
    return {"schema_version": SCHEMA_VERSION, "embedder": embedder, "dimensions": dimensions}
