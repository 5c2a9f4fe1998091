"""The schema of the store, and memories as the payload of points."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Set
from datetime import UTC, datetime
from enum import Enum, StrEnum
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Final

from pydantic import TypeAdapter, ValidationError

from engram.domain.memories import (
    MEMORY_ADAPTER,
    STORED_TYPES,
    AnyMemory,
    DerivedMemory,
    Memory,
    MemoryType,
    plain_pairs,
)
from engram.domain.scope import Scope
from engram.domain.slots import named_now
from engram.errors import InvalidInput, InvalidQuery, SchemaMismatch, StorageError, UnindexedField

# --- what the store looks like: collections, vectors and the fields that have an index
#
# Engines answer differently, and slowly, about fields without an index. So a
# query may only name what is listed here; adding a field here is all it takes,
# because opening a store creates the indexes that are missing.

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
    # Provenance is kept as one text; this is its part by which what a run wrote is found.
    "run_id": FieldKind.KEYWORD,
    "tags": FieldKind.KEYWORD,
    # Metadata is kept as one text; this is its plain part, a key with its value at a time.
    "metadata_pairs": FieldKind.KEYWORD,
    "lifecycle": FieldKind.KEYWORD,
    "is_test": FieldKind.BOOL,
    "expires_at": FieldKind.DATETIME,
    "revision": FieldKind.INTEGER,
    "review_at": FieldKind.DATETIME,
    "policy_fingerprint": FieldKind.KEYWORD,
}
_DERIVED_FIELDS: Final[Mapping[str, FieldKind]] = {
    "source_episode_ids": FieldKind.KEYWORD,
    "valid_from": FieldKind.DATETIME,
    "valid_to": FieldKind.DATETIME,
    "related_ids": FieldKind.KEYWORD,
}
_OWN: Final[Mapping[MemoryType, Mapping[str, FieldKind]]] = {
    MemoryType.EPISODIC: {
        "timestamp": FieldKind.DATETIME,
        "consolidated_at": FieldKind.DATETIME,
        "role": FieldKind.KEYWORD,
        "speaker": FieldKind.KEYWORD,
        "sequence": FieldKind.INTEGER,
    },
    MemoryType.FACTUAL: {
        **_DERIVED_FIELDS,
        "category": FieldKind.KEYWORD,
        "slot.subject": FieldKind.KEYWORD,
        "slot.predicate": FieldKind.KEYWORD,
    },
    MemoryType.SEMANTIC: {
        **_DERIVED_FIELDS,
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
    MemoryType.PROCEDURAL: _DERIVED_FIELDS,
    MemoryType.NEGATION: _DERIVED_FIELDS,
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


def check_identity(
    stored: Mapping[str, object], *, embedder: str, dimensions: int | None = None
) -> None:
    """Refuse a store of another schema version or another embedder.

    Args:
        stored: What the store recorded when it was made, see :func:`identity_record`.
        embedder: Identity of the embedder about to be used.
        dimensions: Length of its dense vectors; None where it would have to be asked for it.

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
    if there != (embedder, there[1] if dimensions is None else dimensions):
        size = "" if dimensions is None else f" ({dimensions} dimensions)"
        raise SchemaMismatch(
            f"The store was written with embedder {there[0]!r} ({there[1]} dimensions); "
            f"the settings ask for {embedder!r}{size}.",
            hint="Set ENGRAM_EMBEDDER back to the first, or start a new store "
            "(ENGRAM_DATA_DIR, ENGRAM_COLLECTION_PREFIX) for the second: "
            "vectors of different models cannot be compared.",
            details={"stored": list(there), "expected": [embedder, dimensions]},
        )


def identity_record(*, embedder: str, dimensions: int) -> dict[str, object]:
    """What a new store records about itself."""
    return {"schema_version": SCHEMA_VERSION, "embedder": embedder, "dimensions": dimensions}


# --- memories as the payload of points, and back
#
# Times have one form only, UTC with six digits of microseconds, so that equality
# and order are the same whether an engine compares texts or instants.

_RELATED: Final = "related_ids"
_METADATA: Final = "metadata"
_PAIRS: Final = "metadata_pairs"
_RUN: Final = "run_id"
# Kept as one text each: no query is about them, and an engine takes some microseconds for every
# name and value in them, whenever the memory is read or written.
_LINKS: Final = "links"
_TEXTS: Final = frozenset({_LINKS, "provenance", "confidence", "occasions", "tellings"})
# What queries are about in what a digest carries, and in a memory's life; the rest is one text.
_ASKED: Final[Mapping[str, str]] = {"detail": "keys", "vitals": "promotion_attempts"}
_REST: Final = "rest"
# Of a life, an earlier version kept only this as text.
_TOGETHER: Final = "together"
_SLOT, _PREDICATE = "slot", "predicate"
# Beside the fields of a memory: whose it is, and what is drawn from which.
_BESIDE: Final = frozenset({TENANT, _RELATED, _PAIRS, _RUN})
_DRAWN: Final[Mapping[str, frozenset[str]]] = {
    _METADATA: frozenset({_METADATA, _PAIRS}),
    "provenance": frozenset({_RUN}),
    _LINKS: frozenset({_RELATED}),
}
_WHOSE: Final = frozenset({"id", "namespace", "user_id", "type"})
MEMORY_ID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_EMPTY: Final[tuple[object, ...]] = ((), {})


@lru_cache(maxsize=2048)
def format_time(moment: datetime) -> str:
    """The one form of a time in the store, such as ``2024-05-01T10:00:00.000000Z``.

    Raises:
        InvalidInput: the time has no timezone, or lies outside the calendar in UTC.
    """
    if moment.utcoffset() is None:
        raise InvalidInput("A time without timezone cannot be stored.", allowed="aware datetimes")
    try:
        universal = moment.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(
            "A time lies outside the calendar.", allowed="the years 1 to 9999, in UTC"
        ) from None
    return universal.isoformat(timespec="microseconds")[:-6] + "Z"


def is_memory_id(value: str) -> bool:
    """Whether ``value`` can be an id: a UUID in its usual lower-case form with hyphens."""
    return MEMORY_ID.fullmatch(value) is not None


def encode(scope: Scope, memory: Memory) -> dict[str, Any]:
    """The payload of a memory.

    Raises:
        InvalidInput: the memory belongs to another scope, has no usable id, or
            holds something that cannot be stored faithfully.
    """
    if memory.namespace != scope.namespace or memory.user_id != scope.user_id:
        raise InvalidInput(
            "A memory of one user was to be written into the store of another.",
            details={"id": memory.id},
        )
    if not is_memory_id(memory.id):
        raise InvalidInput("The id of a memory is not a UUID.", allowed="lower-case UUIDs")
    dumped = memory.model_dump(exclude_none=True, exclude={_METADATA})
    data = _fields(dumped)
    if memory.unknown_fields:
        # What a newer version stored is not lost by a change that this one makes.
        data = {**memory.unknown_fields, **data}
    data[TENANT] = scope.tenant
    for name in _DRAWN:
        data |= _drawn_from(memory, name)
    return data


def encode_change(
    scope: Scope, before: Memory, stored: Mapping[str, Any], after: Memory
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The payload of a memory that came of another one: only what differs is spelled out.

    Args:
        scope: Whose it is.
        before: What it came of.
        stored: The payload that ``before`` was read from.
        after: The memory.

    Returns:
        The payload, and what differs in it from ``stored``, with None for what goes; None for
        that where all of it was spelled out.

    Raises:
        InvalidInput: as for :func:`encode`.
    """
    known = before.__dict__
    # What a copy took over is the same object: to compare the rest would take longer.
    names = {name for name, value in after.__dict__.items() if value is not known.get(name)}
    if (
        type(after) is not type(before)
        or not names.isdisjoint(_WHOSE)
        or after.unknown_fields != before.unknown_fields
        or (scope.namespace, scope.user_id) != (after.namespace, after.user_id)
        or not _in_present_form(stored)
        or (before.provenance.run_id is None) == (_RUN in stored)
    ):
        return encode(scope, after), None
    drawn = names & _DRAWN.keys()
    new = _fields(after.model_dump(exclude_none=True, include=names - {_METADATA}))
    for name in drawn:
        new |= _drawn_from(after, name)
    gone = names.union(*(_DRAWN[name] for name in drawn)) & stored.keys() - new.keys()
    differing = {name: value for name, value in new.items() if stored.get(name) != value}
    data = {name: value for name, value in stored.items() if name not in gone}
    return data | differing, differing | dict.fromkeys(gone)


def _in_present_form(stored: Mapping[str, Any]) -> bool:
    """Whether a payload is as this version writes it."""
    if any(type(stored.get(name, "")) is not str for name in _TEXTS):
        return False
    if any(name in stored and type(stored[name].get(_REST)) is not str for name in _ASKED):
        return False
    if _METADATA in stored and _PAIRS not in stored:
        return False
    if (_LINKS in stored) != (_RELATED in stored):
        return False
    slot = stored.get(_SLOT)
    return slot is None or named_now(slot[_PREDICATE]) == slot[_PREDICATE]


def _drawn_from(memory: Memory, name: str) -> dict[str, Any]:
    """What stands in a payload for the sake of queries, or as text, for one field of the memory."""
    drawn: dict[str, Any] = {}
    match name:
        case "metadata" if memory.metadata:
            # As text: an engine's JSON changes integers past 64 bits and refuses NaN.
            drawn[_METADATA] = _metadata_text(memory)
            if pairs := plain_pairs(memory.metadata):
                drawn[_PAIRS] = list(pairs)
        case "provenance" if memory.provenance.run_id is not None:
            drawn[_RUN] = memory.provenance.run_id
        case "links" if isinstance(memory, DerivedMemory) and memory.links:
            drawn[_RELATED] = list(memory.related_ids)
    return drawn


def _fields(dumped: Mapping[str, Any]) -> dict[str, Any]:
    # What is empty is left out: every field costs an engine some microseconds each way.
    data: dict[str, Any] = {}
    for name, value in dumped.items():
        # Most are short texts, and this runs for everything that is stored.
        if type(value) is str:
            data[name] = value if value.isascii() else _encodable(value)
        elif name in _ASKED:
            asked = _ASKED[name]
            rest = {key: one for key, one in value.items() if key != asked}
            data[name] = {asked: _plain(value[asked]), _REST: _as_text(rest)}
        elif value not in _EMPTY:
            data[name] = _as_text(value) if name in _TEXTS else _plain(value)
    return data


def decode(payload: Mapping[str, Any]) -> AnyMemory:
    """The memory of a payload.

    Raises:
        StorageError: this version of Engram cannot read it.
    """
    try:
        data = _values(payload)
        memory: AnyMemory = MEMORY_ADAPTER.validate_python(data)
    except (ValidationError, TypeError, ValueError) as error:
        # The cause would quote the memory's content, so it is left out.
        raise StorageError(
            "A stored memory cannot be read by this version of Engram.",
            hint="It was written by a newer version, or changed by another program.",
            details={"id": str(payload.get("id")), "reason": type(error).__name__},
        ) from None
    if unknown := data.keys() - type(memory).model_fields.keys():
        memory.keep_unknown({name: data[name] for name in unknown})
    return memory


def decode_change(before: AnyMemory, payload: Mapping[str, Any], names: Set[str]) -> AnyMemory:
    """The memory of a payload that differs in these names only from the one of ``before``.

    The payload is one that this version wrote: reading the whole of it gives the same.
    """
    fields = type(before).model_fields
    if not names <= fields.keys() | _BESIDE:
        return decode(payload)
    there = _values({name: payload[name] for name in names & payload.keys()})
    changed = {
        name: _reader(type(before), name).validate_python(there[name])
        if name in there
        else fields[name].get_default(call_default_factory=True, validated_data={})
        for name in names & fields.keys()
    }
    return before.model_copy(update=changed)


@cache
def _reader(kind: type[Memory], name: str) -> TypeAdapter[Any]:
    """Reads one field of a memory as reading the whole of it would."""
    field = kind.model_fields[name]
    described: Any = Annotated[field.annotation, field]
    return TypeAdapter(described)


def _values(payload: Mapping[str, Any]) -> dict[str, Any]:
    """The fields in a payload, from any form that was ever stored, still to be validated."""
    data = dict(payload)
    for beside in _BESIDE:
        data.pop(beside, None)
    if _METADATA in data:
        data[_METADATA] = json.loads(data[_METADATA])
    # Earlier versions kept these as they are.
    for name in _TEXTS:
        if isinstance(text := data.get(name), str):
            data[name] = json.loads(text)
    for name, asked in _ASKED.items():
        if isinstance(part := data.get(name), dict):
            data[name] = _whole(part, asked)
    # So that whoever reads a slot knows its predicate by one name only.
    if isinstance(slot := data.get(_SLOT), dict):
        named = slot.get(_PREDICATE)
        if isinstance(named, str) and (now := named_now(named)) != named:
            data[_SLOT] = {**slot, _PREDICATE: now}
    return data


def _whole(part: Mapping[str, Any], asked: str) -> dict[str, Any]:
    """A detail, or what is written down of a memory's life, from any form that was ever stored."""
    if isinstance(rest := part.get(_REST), str):
        return {**json.loads(rest), asked: part[asked]}
    if isinstance(together := part.get(_TOGETHER), str):
        return {**part, _TOGETHER: json.loads(together)}
    return dict(part)


def _converted(value: object) -> str | int:
    match value:
        case datetime():
            return format_time(value)
        case bool():
            return int(value)
        case Enum():
            return str(value.value)
    raise InvalidInput(f"A memory holds a {type(value).__name__}, which cannot be stored.")


_as_text: Final = json.JSONEncoder(separators=(",", ":"), default=_converted).encode


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return value if value.isascii() else _encodable(value)
    if value is None or kind is int or kind is float:
        return value
    if kind is dict:
        return {key: _plain(item) for key, item in value.items()}
    if kind is tuple or kind is list:
        return [_plain(item) for item in value]
    return _converted(value)


def _encodable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(
            "A memory holds a lone surrogate, so it is not valid Unicode.",
            allowed="text that can be encoded as UTF-8",
        ) from None
    return text


def _metadata_text(memory: Memory) -> str:
    try:
        # ASCII, so that a lone surrogate in it survives as well.
        return json.dumps(memory.metadata, ensure_ascii=True)
    except (TypeError, ValueError):
        raise InvalidInput(
            "The metadata of a memory is not plain JSON.",
            allowed="text, numbers, booleans, null, lists and objects",
            details={"id": memory.id},
        ) from None
