"""How a memory store is told what became of promises."""

from __future__ import annotations

from typing import Literal

from engram.client.facade.base import StoreMethods
from engram.client.operations import commitments as operations
from engram.domain.memories import Resolution, SemanticMemory
from engram.errors import InvalidInput


class CommitmentMethods(StoreMethods):
    """Ending commitments by hand; a later turn that says so ends them as well."""

    async def resolve(
        self, memory_id: str, resolution: Literal["fulfilled", "expired"] | Resolution
    ) -> SemanticMemory:
        """Say how a commitment ended; saying it again changes nothing.

        A resolved commitment stays readable, and leaves the answers after a while.

        Args:
            memory_id: Of a semantic memory of the category commitment.
            resolution: ``fulfilled`` if it was kept, ``expired`` if it came to nothing.

        Returns:
            The memory as it is now.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: it is no commitment, or no such resolution.
        """
        if resolution not in set(Resolution):
            raise InvalidInput(
                f"A commitment cannot be resolved as {resolution!r}.",
                allowed=", ".join(Resolution),
            )
        asked = operations.Resolve(memory_id=memory_id, resolution=Resolution(resolution))
        return await self._perform(operations.RESOLVE, asked)
