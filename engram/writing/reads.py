"""Reads that many parts share: episodes by id, and listings to their end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

from engram.domain.memories import AnyMemory, Episode, MemoryType
from engram.domain.scope import Scope
from engram.ports import Filter, MemoryRepository

_EPISODIC: Final = (MemoryType.EPISODIC,)
_PAGE: Final = 500


async def episodes_by_id(
    repository: MemoryRepository, scope: Scope, ids: Iterable[str], *, fresh: bool = False
) -> dict[str, Episode]:
    """Those of the ids that are episodes, in the order of the ids.

    ``fresh``: as most replicas agree, for whoever writes by what is read.
    """
    wanted = list(dict.fromkeys(ids))
    found = await repository.get(scope, wanted, _EPISODIC, fresh=fresh) if wanted else {}
    return {key: memory for key, memory in found.items() if isinstance(memory, Episode)}


async def every_page(
    repository: MemoryRepository,
    scope: Scope,
    memory_type: MemoryType,
    *,
    where: Filter = (),
    descending: bool = False,
    at_once: int = _PAGE,
) -> AsyncIterator[Sequence[AnyMemory]]:
    """A listing in the order in which memories became known, page by page; no page is empty.

    Args:
        repository: Where memories are kept.
        scope: Whose.
        memory_type: Which.
        where: Conditions on indexed fields.
        descending: The latest known first.
        at_once: Memories of a page.
    """
    cursor: str | None = None
    while True:
        page = await repository.scroll(
            scope,
            memory_type,
            where=where,
            descending=descending,
            limit=at_once,
            cursor=cursor,
        )
        if page.memories:
            yield page.memories
        cursor = page.cursor
        if cursor is None:
            return
