"""What is handed to engines, and in which portions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from engram.domain.memories import STORED_TYPES, MemoryType
from engram.domain.scope import Scope
from engram.errors import InvalidInput
from engram.ports import Replacement, TextVectors
from engram.storage.filters import EngineFilter
from engram.storage.paging import Payload
from engram.storage.payload import encode

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class NewPoint:
    """What an engine stores of a new memory."""

    memory_id: str
    vectors: TextVectors
    payload: Payload


@dataclass(frozen=True, slots=True)
class Overwrite(Generic[EngineFilter]):
    """A payload to be put in place of the one that the filter matches, if it matches one."""

    where: EngineFilter
    payload: Payload


def successor(scope: Scope, item: Replacement) -> Payload:
    """The payload of a replacement.

    Raises:
        InvalidInput: nobody could tell whether it won, or it cannot be stored.
    """
    if not item.memory.write_id or item.memory.revision <= item.expected_revision:
        raise InvalidInput(
            "A replacement has no write id, or no higher revision than the one it replaces.",
            allowed="successors made by engram.domain.revisions.next_revision",
            details={"id": item.memory.id},
        )
    return encode(scope, item.memory)


Prepared: TypeAlias = tuple[Replacement, Payload]
"""A replacement and its payload."""


def unique_batches(items: list[Prepared], size: int) -> Iterator[tuple[MemoryType, list[Prepared]]]:
    """Batches of one type in which no id comes twice: a second write would hide the first."""
    batch: dict[str, Prepared] = {}
    current: MemoryType | None = None
    for item in sorted(items, key=lambda prepared: STORED_TYPES.index(prepared[0].memory.type)):
        memory = item[0].memory
        if current is not None and (
            memory.type is not current or memory.id in batch or len(batch) >= size
        ):
            yield current, list(batch.values())
            batch = {}
        current = memory.type
        batch[memory.id] = item
    if current is not None:
        yield current, list(batch.values())


async def breathing(items: Iterable[T], every: int) -> AsyncIterator[T]:
    """The items, letting the event loop go round in between."""
    for number, item in enumerate(items):
        if number and number % every == 0:
            await asyncio.sleep(0)
        yield item
