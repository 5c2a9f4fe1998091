"""Finding one memory of a user, or saying that there is none."""

from __future__ import annotations

from engram.domain.memories import AnyMemory
from engram.domain.scope import Scope
from engram.errors import MemoryNotFound
from engram.ports import MemoryRepository
from engram.storage.payload import is_memory_id


async def one_memory(repository: MemoryRepository, scope: Scope, memory_id: str) -> AnyMemory:
    """The memory with this id.

    Raises:
        MemoryNotFound: no such memory of this user.
    """
    found = await repository.get(scope, [memory_id])
    if memory_id not in found:
        raise no_memory(memory_id)
    return found[memory_id]


def no_memory(memory_id: str) -> MemoryNotFound:
    """The error for an id that no memory of the user has; one that cannot be an id stays out."""
    return MemoryNotFound(
        "No memory with this id belongs to this user.",
        hint="Ids come from receipts, recall and list.",
        details={"memory_id": memory_id} if is_memory_id(memory_id) else {},
    )
