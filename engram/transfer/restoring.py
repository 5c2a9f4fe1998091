"""Putting memories of an export back as they were; what is there already stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from engram.contracts.importing import ExportedMemory, ImportTally, StoreBatchInput
from engram.domain.identity import derived_id, episode_id
from engram.domain.memories import MEMORY_ADAPTER, AnyMemory, Episode
from engram.domain.scope import Scope
from engram.errors import InvalidInput
from engram.ports import Embedder, MemoryRepository, NewMemory
from engram.transfer.packing import MEMORIES, unpack
from engram.transfer.storing import same_words

_EMBEDDED_AT_ONCE: Final = 64


@dataclass(frozen=True, slots=True)
class _Entry:
    memory: AnyMemory
    before: str | None
    place: str


class MemoryRestorer:
    """Stores exported memories that are not there.

    Args:
        repository: Where memories are kept.
        embedder: Gives them their vectors anew.
        new_write_id: Gives a fresh id for each write.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        embedder: Embedder,
        new_write_id: Callable[[], str],
    ) -> None:
        self._repository = repository
        self._embedder = embedder
        self._new_write_id = new_write_id

    async def store(self, request: StoreBatchInput) -> ImportTally:
        """Store what is not there; count it.

        Raises:
            InvalidInput: the batch cannot be read, or a memory is not this user's.
        """
        entries = [_read(request.scope, one) for one in unpack(request.batch, MEMORIES)]
        there = await self._repository.get(
            request.scope, [one.memory.id for one in entries], fresh=True
        )
        new = [one for one in entries if one.memory.id not in there]
        for start in range(0, len(new), _EMBEDDED_AT_ONCE):
            await self._insert(request.scope, new[start : start + _EMBEDDED_AT_ONCE])
        other = [one.place for one in entries if _differs(there.get(one.memory.id), one.memory)]
        return ImportTally(
            stored=len(new),
            known=len(entries) - len(new) - len(other),
            conflicts=len(other),
            conflict_places=tuple(other),
        )

    async def _insert(self, scope: Scope, entries: Sequence[_Entry]) -> None:
        vectors = await self._embedder.embed_documents(
            [one.memory.indexed_text for one in entries], [one.before for one in entries]
        )
        await self._repository.insert(
            scope,
            [
                NewMemory(one.memory.model_copy(update={"write_id": self._new_write_id()}), vector)
                for one, vector in zip(entries, vectors, strict=True)
            ],
        )


def _differs(there: AnyMemory | None, memory: AnyMemory) -> bool:
    """Whether the id is taken by something else: a turn of other words."""
    return (
        isinstance(there, Episode) and isinstance(memory, Episode) and not same_words(there, memory)
    )


def _read(scope: Scope, entry: ExportedMemory) -> _Entry:
    try:
        memory: AnyMemory = MEMORY_ADAPTER.validate_python(entry.memory)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        raise InvalidInput(
            f"The memory of {entry.place or 'a line'} cannot be read.",
            hint="It was written by a newer version of Engram, or changed by another program.",
            details={"reason": str(first["type"])},
        ) from None
    if memory.scope != scope or memory.id != id_of(scope, memory):
        raise InvalidInput(
            f"The memory of {entry.place or 'a line'} belongs to another user, "
            "or its id is not derived from what it is.",
            details={"id": memory.id},
        )
    return _Entry(memory, entry.before, entry.place)


def id_of(scope: Scope, memory: AnyMemory) -> str:
    """The id that a memory has by what it is."""
    if isinstance(memory, Episode):
        return episode_id(scope, memory.session_id or "", memory.message_id)
    return derived_id(scope, memory.type, memory.identity, memory.generation)
