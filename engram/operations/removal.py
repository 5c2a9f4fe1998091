"""Operations that remove memories for good, and who carries them out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, cast

from engram.contracts.removal import SERVERS_MAY_KEEP, CompactReceipt, ErasureReceipt, ForgetReceipt
from engram.domain.access import Access
from engram.domain.kept import let_go
from engram.domain.scope import Scope
from engram.errors import InvalidQuery
from engram.operations.registry import AboutMemory, Operation, Question, RunningQuota, handles
from engram.ports import Scrubber
from engram.storage.payload import is_memory_id
from engram.storage.updates import no_memory

if TYPE_CHECKING:
    # Who only asks for an operation needs nothing of what carries it out.
    from engram.temporal.gateway import WorkflowGateway


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


class AboutErasure(Question):
    """Wait for what goes on behind an erasure. There is nothing to choose."""


ERASED: Final = Operation(
    "erased",
    AboutErasure,
    # A union is no type to mypy, but is one to Pydantic.
    cast("type[ErasureReceipt | None]", ErasureReceipt | None),
    "Answers when histories and files are scrubbed behind the last erasure; null: there is none.",
    access=Access.ADMIN,
)


class Compact(Question):
    """Rewrite all files. There is nothing to choose."""


COMPACT: Final = Operation(
    "compact",
    Compact,
    CompactReceipt,
    "Rewrite all files of a data folder without what was deleted; no API key opens this.",
    access=Access.ADMIN,
    operator_only=True,
)


class ForgettingHandlers:
    """Carries out the operations of this module.

    Args:
        gateway: Reaches the workflows.
        scrubber: Rewrites the files, in the process that owns them; None elsewhere.
        running: What counts what this process began for a user, which an erasure ends.
    """

    def __init__(
        self,
        gateway: WorkflowGateway,
        scrubber: Scrubber | None,
        running: Sequence[RunningQuota],
    ) -> None:
        self._gateway = gateway
        self._scrubber = scrubber
        self._running = running

    @handles(ERASE)
    async def erase(self, scope: Scope, asked: EraseUser) -> ErasureReceipt:
        """Erase everything of a user; ends when the store counts zero."""
        del asked
        erasing = partial(self._gateway.erase, scope)
        if self._scrubber is None:
            receipt = await erasing()
        else:
            receipt = await self._scrubber.erase(
                self._gateway.erasure_id(scope), erasing, partial(self._gateway.erased, scope)
            )
        # Also here: whoever deletes may be another process.
        let_go()
        for quota in self._running:
            quota.forget(scope)
        return receipt

    @handles(ERASED)
    async def erased(self, scope: Scope, asked: AboutErasure) -> ErasureReceipt | None:
        """Wait for what goes on behind the last erasure."""
        del asked
        erased = partial(self._gateway.erased, scope)
        if self._scrubber is not None:
            return await self._scrubber.erased(self._gateway.erasure_id(scope), erased)
        receipt = await erased()
        if receipt is None:
            return None
        remains = (*receipt.may_remain, *SERVERS_MAY_KEEP)
        return receipt.model_copy(update={"may_remain": remains})

    @handles(FORGET)
    async def forget(self, scope: Scope, asked: AboutMemory) -> ForgetReceipt:
        """Forget one memory.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        # The id names a workflow, which must not take a name that is none of ours.
        if not is_memory_id(asked.memory_id):
            raise no_memory(asked.memory_id)
        receipt = await self._gateway.forget(scope, asked.memory_id)
        let_go()
        return receipt

    @handles(COMPACT)
    async def compact(self, scope: Scope, asked: Compact) -> CompactReceipt:
        """Rewrite all files, whoever's memories they hold.

        Raises:
            InvalidQuery: the files belong to servers.
        """
        del scope, asked
        if self._scrubber is None:
            raise InvalidQuery(
                "Only a data folder can be compacted.",
                allowed="the embedded mode",
                hint="Have Qdrant optimise its collections, and Temporal's database reclaim space.",
            )
        return await self._scrubber.compact()
