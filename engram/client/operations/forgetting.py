"""Operations that remove memories for good, and who carries them out."""

from __future__ import annotations

from typing import Any, Final

from engram.client.operations.handlers import Handlers
from engram.client.operations.operation import Operation, Question
from engram.client.temporal import WorkflowGateway
from engram.contracts.erasure import ErasureReceipt
from engram.domain.scope import Scope


class EraseUser(Question):
    """Erase everything of the user. There is nothing to choose."""


ERASE: Final = Operation(
    "erase", EraseUser, ErasureReceipt, "Erase everything of this user, for good."
)

FORGETTING_OPERATIONS: Final[tuple[Operation[Any, Any], ...]] = (ERASE,)


class ForgettingHandlers:
    """Carries out the operations of this module.

    Args:
        gateway: Reaches the workflows.
    """

    def __init__(self, gateway: WorkflowGateway) -> None:
        self._gateway = gateway

    def register(self, handlers: Handlers) -> None:
        """Add every operation of this module."""
        handlers.add(ERASE, self.erase)

    async def erase(self, scope: Scope, asked: EraseUser) -> ErasureReceipt:
        """Erase everything of a user; ends when nothing is left."""
        del asked
        return await self._gateway.erase(scope)
