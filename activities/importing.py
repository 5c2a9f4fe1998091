"""The activity of the importing workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from temporalio import activity

from engram.activities.runtime import heartbeating
from engram.contracts import names
from engram.contracts.activities import ImportActivities
from engram.contracts.importing import ImportKind, ImportTally, StoreBatchInput

if TYPE_CHECKING:
    from engram.transfer.store import MemoryRestorer, TurnImporter


class ImportActivitiesImpl(ImportActivities):
    """Storing batches of what is brought in.

    Args:
        turns: Stores turns of other programs.
        memories: Puts memories of an export back.
    """

    def __init__(self, turns: TurnImporter, memories: MemoryRestorer) -> None:
        self._turns = turns
        self._memories = memories

    @activity.defn(name=names.STORE_BATCH_ACTIVITY)
    async def store_batch(self, request: StoreBatchInput) -> ImportTally:
        """Store what is not there."""
        async with heartbeating():
            if request.kind is ImportKind.MEMORIES:
                return await self._memories.store(request)
            return await self._turns.store(request)
