"""Finding one memory of a user, or saying that there is none."""

from __future__ import annotations

from engram.domain.memories import AnyMemory
from engram.domain.scope import Scope
from engram.errors import MemoryNotFound
from engram.ports import MemoryRepository


async def one_memory(repository: MemoryRepository, scope: Scope, memory_id: str) -> AnyMemory:
    """The memory with this id.

    Raises:
        MemoryNotFound: no such memory of this user.
    """
    found = await repository.get(scope, [memory_id])
    if memory_id not in found:
        raise MemoryNotFound(
            "No memory with this id belongs to this user.",
            hint="Ids come from receipts, recall and list.",
            details={"memory_id": memory_id},
        )
    return found[memory_id]
