"""What a memory store tells about its costs."""

from __future__ import annotations

from engram.client.facade.base import StoreMethods
from engram.client.operations import usage as operations
from engram.client.operations.operation import Question
from engram.contracts.usage import UserUsage


class UsageMethods(StoreMethods):
    """What language models were asked for this user."""

    async def usage(self) -> UserUsage:
        """Requests, tokens, cost and attempts, in all and by model; failed ones included.

        It sums this user's consolidations that Temporal still knows; a pass that is
        going on is counted when it ends.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        return await self._perform(operations.USAGE, Question())
