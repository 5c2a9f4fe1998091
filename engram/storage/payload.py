"""Memories as the payload of points, and back.

Times have one form only, UTC with six digits of microseconds, so that equality
and order are the same whether an engine compares texts or instants.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

from pydantic import ValidationError

from engram.domain.memories import MEMORY_ADAPTER, AnyMemory, DerivedMemory, Memory
from engram.domain.scope import Scope
from engram.errors import InvalidInput, StorageError
from engram.storage.schema import TENANT

_RELATED: Final = "related_ids"
_METADATA: Final = "metadata"
_UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_EMPTY: Final[tuple[object, ...]] = ((), {})


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
    return _UUID.fullmatch(value) is not None


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
    # What is empty is left out: every field costs an engine some microseconds each way.
    data = {name: _plain(value) for name, value in dumped.items() if value not in _EMPTY}
    data[TENANT] = scope.tenant
    if memory.metadata:
        # As text: an engine's JSON changes integers past 64 bits and refuses NaN.
        data[_METADATA] = _metadata_text(memory)
    if isinstance(memory, DerivedMemory) and memory.links:
        data[_RELATED] = list(memory.related_ids)
    return data


def decode(payload: Mapping[str, Any]) -> AnyMemory:
    """The memory of a payload.

    Raises:
        StorageError: this version of Engram cannot read it.
    """
    data = dict(payload)
    data.pop(TENANT, None)
    data.pop(_RELATED, None)
    try:
        if _METADATA in data:
            data[_METADATA] = json.loads(data[_METADATA])
        return MEMORY_ADAPTER.validate_python(data)
    except (ValidationError, TypeError, ValueError) as error:
        # The cause would quote the memory's content, so it is left out.
        raise StorageError(
            "A stored memory cannot be read by this version of Engram.",
            hint="It was written by a newer version, or changed by another program.",
            details={"id": str(data.get("id")), "reason": type(error).__name__},
        ) from None


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


def _converted(value: object) -> str | int:
    match value:
        case datetime():
            return format_time(value)
        case bool():
            return int(value)
        case Enum():
            return str(value.value)
    raise InvalidInput(f"A memory holds a {type(value).__name__}, which cannot be stored.")


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
