"""Operations that remove memories for good, and who carries them out."""

from __future__ import annotations

from typing import Any, Final

from engram.client.operations.handlers import Handlers
from engram.client.operations.operation import AboutMemory, Operation, Question
from engram.client.temporal import WorkflowGateway
from engram.contracts.erasure import ErasureReceipt
from engram.contracts.forgetting import ForgetReceipt
from engram.domain.access import Access
from engram.domain.scope import Scope


class EraseUser(Question):
    """Erase everything of the user. There is nothing to choose."""


ERASE: Final = Operation(
    "erase",
    EraseUser,
    ErasureReceipt,
    "Erase everything of this user, for good.",
    access=Access.ADMIN,
)

FORGET: Final = Operation(
    "forget",
    AboutMemory,
    ForgetReceipt,
    "Forget one memory, and what rests only on it.",
    access=Access.WRITE,
)

FORGETTING_OPERATIONS: Final[tuple[Operation[Any, Any], ...]] = (ERASE, FORGET)


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
        handlers.add(FORGET, self.forget)

    async def forget(self, scope: Scope, asked: AboutMemory) -> ForgetReceipt:
        """Forget one memory.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        return await self._gateway.forget(scope, asked.memory_id)

    async def erase(self, scope: Scope, asked: EraseUser) -> ErasureReceipt:
        """Erase everything of a user; ends when nothing is left."""
        del asked
        return await self._gateway.erase(scope)
