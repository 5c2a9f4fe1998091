"""How a memory store forgets, because its user wants it to."""

from __future__ import annotations

from engram.client.facade.base import StoreMethods
from engram.client.operations import forgetting as operations
from engram.contracts.erasure import ErasureReceipt


class ForgettingMethods(StoreMethods):
    """Removing memories for good."""

    async def erase(self) -> ErasureReceipt:
        """Erase everything of this user: memories, running workflows, histories.

        Ends when every collection counts zero and the Temporal service lists no
        workflow of the user any more. What is encoded meanwhile may survive: stop
        writing for the user first.

        Raises:
            TemporalUnavailable: the workflow could not be started or asked; a
                started one goes on, and calling again waits for the same.
        """
        return await self._perform(operations.ERASE, operations.EraseUser())
