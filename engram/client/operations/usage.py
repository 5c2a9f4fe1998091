"""The operation that says what a user's memory took of language models."""

from __future__ import annotations

from typing import Any, Final

from engram.client.operations.handlers import Handlers
from engram.client.operations.operation import Operation, Question
from engram.client.spending import SpendingReader
from engram.contracts.usage import UserUsage
from engram.domain.access import Access
from engram.domain.scope import Scope

USAGE: Final = Operation(
    "usage",
    Question,
    UserUsage,
    "What this user's memory took of language models, and its cost.",
    access=Access.READ,
)

USAGE_OPERATIONS: Final[tuple[Operation[Any, Any], ...]] = (USAGE,)


class UsageHandlers:
    """Carries out the operations of this module.

    Args:
        spending: Reads what consolidations noted.
    """

    def __init__(self, spending: SpendingReader) -> None:
        self._spending = spending

    def register(self, handlers: Handlers) -> None:
        """Add every operation of this module."""
        handlers.add(USAGE, self.usage)

    async def usage(self, scope: Scope, _: Question) -> UserUsage:
        """What models were asked for this user.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        return await self._spending.of(scope)
