"""The one place that says when each memory is to be looked at next, at every write.

Whoever writes memories gets a repository that is wrapped in this, so no caller
can forget to: ``review_at`` is what passes read by, and the fingerprint tells
them which memories were judged by other rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from engram.domain.lifecycle.decisions import Rulebook
from engram.domain.lifecycle.rules import LifecycleRules
from engram.domain.memories import AnyMemory, MemoryType
from engram.domain.scope import Scope
from engram.ports import (
    Candidate,
    Filter,
    Match,
    MemoryRepository,
    NewMemory,
    Page,
    Replacement,
    SearchRequest,
    StoreInfo,
)

# Namespaces whose rulebooks are kept; each costs a few kilobytes.
_KEPT = 1000


class ReviewedRepository:
    """:class:`engram.ports.MemoryRepository` that stamps what it writes, and passes on the rest.

    Args:
        inner: Where memories are kept.
        rules: By which they fade.
    """

    def __init__(self, inner: MemoryRepository, rules: LifecycleRules) -> None:
        self._inner = inner
        self._rules = rules
        self._books: dict[str, Rulebook] = {}

    @property
    def inner(self) -> MemoryRepository:
        """The repository underneath."""
        return self._inner

    async def insert(self, scope: Scope, memories: Iterable[NewMemory]) -> None:
        """See :meth:`engram.ports.MemoryRepository.insert`."""
        book = self._book(scope)
        stamped = (replace(new, memory=book.stamped(new.memory)) for new in memories)
        await self._inner.insert(scope, stamped)

    async def replace(self, scope: Scope, replacements: Iterable[Replacement]) -> frozenset[str]:
        """See :meth:`engram.ports.MemoryRepository.replace`."""
        book = self._book(scope)
        stamped = (replace(one, memory=book.stamped(one.memory)) for one in replacements)
        return await self._inner.replace(scope, stamped)

    async def get(
        self,
        scope: Scope,
        ids: Iterable[str],
        types: Sequence[MemoryType] | None = None,
        *,
        fresh: bool = False,
    ) -> dict[str, AnyMemory]:
        """See :meth:`engram.ports.MemoryRepository.get`."""
        return await self._inner.get(scope, ids, types, fresh=fresh)

    async def rank(self, scope: Scope, request: SearchRequest) -> list[Match]:
        """See :meth:`engram.ports.MemoryRepository.rank`."""
        return await self._inner.rank(scope, request)

    async def search(self, scope: Scope, request: SearchRequest) -> list[Candidate]:
        """See :meth:`engram.ports.MemoryRepository.search`."""
        return await self._inner.search(scope, request)

    async def scroll(
        self,
        scope: Scope,
        memory_type: MemoryType,
        *,
        where: Filter = (),
        order_by: str = "known_at",
        descending: bool = False,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """See :meth:`engram.ports.MemoryRepository.scroll`."""
        return await self._inner.scroll(
            scope,
            memory_type,
            where=where,
            order_by=order_by,
            descending=descending,
            limit=limit,
            cursor=cursor,
        )

    async def count(self, scope: Scope, memory_type: MemoryType, where: Filter = ()) -> int:
        """See :meth:`engram.ports.MemoryRepository.count`."""
        return await self._inner.count(scope, memory_type, where)

    async def delete(self, scope: Scope, memory_type: MemoryType, ids: Iterable[str]) -> None:
        """See :meth:`engram.ports.MemoryRepository.delete`."""
        await self._inner.delete(scope, memory_type, ids)

    async def erase(self, scope: Scope) -> dict[MemoryType, int]:
        """See :meth:`engram.ports.MemoryRepository.erase`."""
        return await self._inner.erase(scope)

    async def info(self) -> StoreInfo:
        """See :meth:`engram.ports.MemoryRepository.info`."""
        return await self._inner.info()

    async def flush(self) -> None:
        """See :meth:`engram.ports.MemoryRepository.flush`."""
        await self._inner.flush()

    async def close(self) -> None:
        """See :meth:`engram.ports.MemoryRepository.close`."""
        await self._inner.close()

    def _book(self, scope: Scope) -> Rulebook:
        book = self._books.get(scope.namespace)
        if book is None:
            if len(self._books) >= _KEPT:
                self._books.clear()
            book = self._books[scope.namespace] = Rulebook(self._rules, scope.namespace)
        return book
