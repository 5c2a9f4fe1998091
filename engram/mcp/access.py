"""The memory that a server works on, opened anew when the process that had it is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Protocol, Self, TypeVar

import structlog

from engram.client.keeper import Keeper
from engram.client.store import MemoryStore
from engram.domain.access import Access
from engram.errors import MemoryClosed, OwnerUnavailable

Answer = TypeVar("Answer")
_log = structlog.get_logger("engram.mcp")


class Memories(Protocol):
    """What tools and resources work on, whoever calls them."""

    async def ask(
        self, work: Callable[[MemoryStore], Awaitable[Answer]], *, needs: Access = Access.READ
    ) -> Answer:
        """Do ``work`` with the caller's memory; raises AccessDenied where they may not."""
        ...


class MemoryAccess:
    """One user's memory for as long as a server runs.

    Several MCP clients start a server each. The first owns the data folder, the
    others work through it; when it ends, the next call of another opens the
    memory again, and so takes over.

    Args:
        opener: Opens the memory; called again after its owner went away.
    """

    def __init__(self, opener: Callable[[], AbstractAsyncContextManager[MemoryStore]]) -> None:
        self._opener = opener
        self._opening = asyncio.Lock()
        self._keeper: Keeper[MemoryStore] | None = None
        self._memory: MemoryStore | None = None

    @classmethod
    def to(cls, memory: MemoryStore) -> MemoryAccess:
        """Access to a memory that somebody else opened and closes."""
        return cls(lambda: nullcontext(memory))

    async def __aenter__(self) -> Self:
        await self._current()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def ask(
        self, work: Callable[[MemoryStore], Awaitable[Answer]], *, needs: Access = Access.READ
    ) -> Answer:
        """Do ``work`` with the memory; once more if its owner went away meanwhile.

        Who started the server owns the memory: nothing that is needed is refused.

        Raises:
            EngramError: whatever the work, or opening, raises.
        """
        del needs
        memory = await self._current()
        try:
            return await work(memory)
        except OwnerUnavailable:
            _log.info("the process that had the memory is gone; opening it again")
            return await work(await self._current(instead_of=memory))

    async def close(self) -> None:
        """Let go of the memory."""
        async with self._opening:
            await self._let_go()

    async def _current(self, instead_of: MemoryStore | None = None) -> MemoryStore:
        async with self._opening:
            # Whoever waited here finds what another call has opened.
            if self._memory is None or self._memory is instead_of:
                await self._let_go()
                self._keeper = Keeper(self._opener())
                self._memory = await self._keeper.open()
            return self._memory

    async def _let_go(self) -> None:
        keeper, self._keeper, self._memory = self._keeper, None, None
        if keeper is not None:
            try:
                await keeper.close()
            except (OwnerUnavailable, MemoryClosed):
                _log.info("the memory was closed already")
