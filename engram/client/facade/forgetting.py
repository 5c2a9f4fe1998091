"""How a memory store forgets, because its user wants it to."""

from __future__ import annotations

from engram.client.facade.base import StoreMethods
from engram.client.operations import forgetting as operations
from engram.client.operations.operation import AboutMemory
from engram.contracts.erasure import CompactReceipt, ErasureReceipt
from engram.contracts.forgetting import ForgetReceipt


class ForgettingMethods(StoreMethods):
    """Removing memories for good."""

    async def forget(self, memory_id: str) -> ForgetReceipt:
        """Forget one memory for good, and whatever was derived only from it.

        Forgetting a turn takes the conclusions that no other turn supports; the
        others stay, without it among their sources. Profiles, topics and boxes
        that named what is gone are composed again. What a forgotten conclusion
        had replaced holds again. Temporal keeps the words of past runs until
        their retention ends; :meth:`erase` deletes those too.

        Raises:
            MemoryNotFound: no such memory of this user.
            TemporalUnavailable: the workflow could not be asked; a started one goes
                on, and calling again waits for the same.
        """
        return await self._perform(operations.FORGET, AboutMemory(memory_id=memory_id))

    async def erase(self) -> ErasureReceipt:
        """Erase everything of this user: memories, running workflows, histories.

        Ends when every collection counts zero and the Temporal service lists no
        workflow of the user any more. In the embedded mode all files are then
        rewritten, so that none holds a word of the user; the receipt says so, and
        what may remain elsewhere. What is encoded meanwhile may survive: stop
        writing for the user first.

        Raises:
            TemporalUnavailable: the workflow could not be started or asked; a
                started one goes on, and calling again waits for the same.
        """
        return await self._perform(operations.ERASE, operations.EraseUser())

    async def compact(self) -> CompactReceipt:
        """Rewrite the files of the data folder, whoever's memories they hold.

        Deleting leaves bytes in the files; this does not. Everybody goes on
        meanwhile, Temporal pauses for a moment. For operators, in the embedded mode.

        Raises:
            InvalidQuery: the files belong to servers.
        """
        return await self._perform(operations.COMPACT, operations.Compact())
