"""Operations on what was concluded, and who carries them out."""

from __future__ import annotations

from typing import Any, Final

from engram.client.operations.handlers import Handlers
from engram.client.operations.operation import AboutMemory, Operation
from engram.domain.access import Access
from engram.domain.memories import DerivedMemory
from engram.domain.scope import Scope
from engram.domain.verifying import Verification, verify
from engram.ports import MemoryRepository
from engram.writing.lookup import one_memory
from engram.writing.reads import episodes_by_id

VERIFY: Final = Operation(
    "verify",
    AboutMemory,
    Verification,
    "Check a memory against the turns it was drawn from.",
    access=Access.READ,
)

KNOWLEDGE_OPERATIONS: Final[tuple[Operation[Any, Any], ...]] = (VERIFY,)


class KnowledgeHandlers:
    """Carries out the operations of this module.

    Args:
        repository: Where memories are kept.
    """

    def __init__(self, repository: MemoryRepository) -> None:
        self._repository = repository

    def register(self, handlers: Handlers) -> None:
        """Add every operation of this module."""
        handlers.add(VERIFY, self.verify)

    async def verify(self, scope: Scope, asked: AboutMemory) -> Verification:
        """Check a memory against its sources.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        memory = await one_memory(self._repository, scope, asked.memory_id)
        sources = memory.source_episode_ids if isinstance(memory, DerivedMemory) else ()
        return verify(memory, await episodes_by_id(self._repository, scope, sources))
