"""Resolving commitments, and who carries it out."""

from __future__ import annotations

from typing import Any, Final

from engram.client.operations.handlers import Handlers
from engram.client.operations.operation import Operation, Question
from engram.domain.access import Access
from engram.domain.lifecycle.actions import resolve
from engram.domain.memories import AnyMemory, MemoryType, Resolution, SemanticMemory
from engram.domain.scope import Scope
from engram.errors import InvalidInput, MemoryNotFound
from engram.ports import Clock, MemoryRepository
from engram.writing.lookup import one_memory
from engram.writing.updates import NewWriteId, update_memories


class Resolve(Question):
    """How a commitment ended."""

    memory_id: str
    resolution: Resolution


RESOLVE: Final = Operation(
    "resolve",
    Resolve,
    SemanticMemory,
    "Say that a commitment was kept, or came to nothing.",
    access=Access.WRITE,
)

COMMITMENT_OPERATIONS: Final[tuple[Operation[Any, Any], ...]] = (RESOLVE,)


class CommitmentHandlers:
    """Carries out the operations of this module.

    Args:
        repository: Where memories are kept.
        clock: The present.
        new_write_id: Makes a fresh value for each write.
    """

    def __init__(
        self, repository: MemoryRepository, clock: Clock, new_write_id: NewWriteId
    ) -> None:
        self._repository = repository
        self._clock = clock
        self._new_write_id = new_write_id

    def register(self, handlers: Handlers) -> None:
        """Add every operation of this module."""
        handlers.add(RESOLVE, self.resolve)

    async def resolve(self, scope: Scope, asked: Resolve) -> SemanticMemory:
        """Note how a commitment ended; noting it again changes nothing.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: it is no commitment.
        """
        now = self._clock()

        def change(memory: AnyMemory) -> AnyMemory | None:
            after = resolve(memory, asked.resolution, now).memory
            return None if after == memory else after

        # Refused before anything is written, where it cannot be resolved.
        change(await one_memory(self._repository, scope, asked.memory_id))
        done = await update_memories(
            self._repository,
            scope,
            [asked.memory_id],
            change,
            new_write_id=self._new_write_id,
            types=(MemoryType.SEMANTIC,),
        )
        if done.missing:
            raise MemoryNotFound(
                "The memory was forgotten while it was being resolved.",
                details={"memory_id": asked.memory_id},
            )
        memory = await one_memory(self._repository, scope, asked.memory_id)
        if not isinstance(memory, SemanticMemory):
            raise InvalidInput("Only commitments can be resolved.")
        return memory
