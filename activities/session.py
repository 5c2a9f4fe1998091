"""Activities of the session workflow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from temporalio import activity

from engram.activities.runtime import heartbeating
from engram.contracts import names
from engram.contracts.activities import SessionActivities
from engram.contracts.session import RequestConsolidationInput, StoreTurnsInput, StoreTurnsOutput

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from engram.consolidation.turns import TurnStore
    from engram.contracts.session import ConsolidationRequest
    from engram.domain.scope import Scope


class SessionActivitiesImpl(SessionActivities):
    """Storing turns, and reaching the user's consolidation.

    Args:
        turns: Stores them.
        request_consolidation: Signals the user's consolidation, starting it if need be.
    """

    def __init__(
        self,
        turns: TurnStore,
        request_consolidation: Callable[[Scope, ConsolidationRequest], Awaitable[None]],
    ) -> None:
        self._turns = turns
        self._request_consolidation = request_consolidation

    @activity.defn(name=names.STORE_TURNS_ACTIVITY)
    async def store_turns(self, request: StoreTurnsInput) -> StoreTurnsOutput:
        """Store turns with the facts and negations they state."""
        async with heartbeating():
            return StoreTurnsOutput(outcomes=await self._turns.store(request))

    @activity.defn(name=names.REQUEST_CONSOLIDATION_ACTIVITY)
    async def request_consolidation(self, request: RequestConsolidationInput) -> None:
        """Signal the user's consolidation."""
        await self._request_consolidation(request.scope, request.request)
