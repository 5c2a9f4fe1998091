"""What a memory store tells about its conclusions."""

from __future__ import annotations

from engram.client.facade.base import StoreMethods
from engram.client.operations import knowledge as operations
from engram.client.operations.operation import AboutMemory
from engram.domain.verifying import Verification


class KnowledgeMethods(StoreMethods):
    """Checking conclusions, and what is known about whom."""

    async def verify(self, memory_id: str) -> Verification:
        """Check a memory against the turns it was drawn from.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        return await self._perform(operations.VERIFY, AboutMemory(memory_id=memory_id))
