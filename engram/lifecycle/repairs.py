"""Auditing all memories of a user page by page, and repairing what is wrong with one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from engram.contracts.messages import Population
from engram.domain.memories import STORED_TYPES, AnyMemory, DerivedMemory
from engram.domain.rules import HealthRules
from engram.domain.scope import Scope
from engram.lifecycle.checks import (
    Census,
    Diagnosis,
    Finding,
    Problem,
    check,
    duplicate,
    folded_into,
    linked_back,
    mended,
    merged,
    references,
    same_as,
    without_one_way,
)
from engram.lifecycle.decisions import Rulebook
from engram.lifecycle.due import of_population
from engram.ports import Equals, Filter, MemoryRepository
from engram.storage.updates import NewWriteId, every_page, one_memory, update_memories, update_those

# --- reading all of a user's memories, page by page, and checking them on the way

_PAGE = 200
_SETTLES = (0.5, 2.0)
"""Seconds until what was found is looked at again, and once more. Work in the background writes one
half of a link after the other, and a replacement before it retires what it replaces: what is half
done is no fault, and done within less. After a crash the next attempt does the other half."""


async def pages(
    repository: MemoryRepository,
    scope: Scope,
    population: Population,
    where: Filter = (),
    unreadable: list[str] | None = None,
) -> AsyncIterator[Sequence[AnyMemory]]:
    """All memories, type by type, in the order in which they became known.

    ``unreadable`` takes the ids of those that this version cannot read.
    """
    conditions = (*where, of_population(population))
    for memory_type in STORED_TYPES:
        async for page in every_page(
            repository,
            scope,
            memory_type,
            where=conditions,
            at_once=_PAGE,
            unreadable=unreadable,
        ):
            yield page


async def known_to(
    repository: MemoryRepository, scope: Scope, memories: Sequence[AnyMemory]
) -> dict[str, AnyMemory]:
    """Those of the memories' references that exist."""
    wanted = {other for memory in memories for other in references(memory)}
    return await repository.get(scope, wanted) if wanted else {}


async def validate(
    repository: MemoryRepository,
    scope: Scope,
    population: Population,
    now: datetime,
    book: Rulebook,
    rest: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> tuple[int, list[Finding], int]:
    """How many memories there are, all that stays wrong with them, and how many cannot be read.

    What is found is looked at again after a ``rest`` of some seconds.
    """
    found: list[Finding] = []
    unreadable: list[str] = []
    first: dict[str, str] = {}
    seen = 0
    async for page in pages(repository, scope, population, unreadable=unreadable):
        known = await known_to(repository, scope, page)
        seen += len(page)
        for memory in page:
            found += check(memory, known, now, book)
            said = same_as(memory)
            if said is not None and first.setdefault(said, memory.id) != memory.id:
                found.append(duplicate(memory, first[said]))
    for seconds in _SETTLES:
        if found:
            await rest(seconds)
            found = await _still_wrong(repository, scope, found, now, book)
    return seen, found, len(unreadable)


async def _still_wrong(
    repository: MemoryRepository,
    scope: Scope,
    found: Sequence[Finding],
    now: datetime,
    book: Rulebook,
) -> list[Finding]:
    """Those of the findings that the memories as they are now have as well."""
    ids = {one.memory_id for one in found}
    ids |= {one.other_id for one in found if one.problem is Problem.DUPLICATE and one.other_id}
    memories = await repository.get(scope, ids, fresh=True)
    known = await known_to(repository, scope, [*memories.values()])
    still = {one for memory in memories.values() for one in check(memory, known, now, book)}
    return [one for one in found if one in still or _is_doubled(one, memories)]


def _is_doubled(finding: Finding, memories: Mapping[str, AnyMemory]) -> bool:
    """Whether it says of two of the memories that they say the same, and they do."""
    one, other = memories.get(finding.memory_id), memories.get(finding.other_id or "")
    if finding.problem is not Problem.DUPLICATE or one is None or other is None:
        return False
    return same_as(one) is not None and same_as(one) == same_as(other)


async def health(
    repository: MemoryRepository,
    scope: Scope,
    population: Population,
    now: datetime,
    book: Rulebook,
    rules: HealthRules,
    missing: int = 0,
) -> tuple[int, list[Diagnosis]]:
    """How many memories there are, and how they do; ``missing``: of the whole store."""
    census = Census(rules, book, now, missing)
    unreadable: list[str] = []
    async for page in pages(repository, scope, population, unreadable=unreadable):
        known = await known_to(repository, scope, page)
        for memory in page:
            findings = check(memory, known, now, book)
            orphan = any(finding.problem is Problem.ORPHAN for finding in findings)
            census.count(memory, orphan=orphan)
    return census.seen, census.diagnose(unreadable=len(unreadable))


# --- mending what is wrong with one memory and its neighbours; doing it twice is doing it once


@dataclass(frozen=True, slots=True)
class Repairer:
    """Finds and mends.

    Args:
        repository: Where memories are kept; it stamps what it writes.
        book: By which the memories live.
        new_write_id: Makes a fresh value for each write.
    """

    repository: MemoryRepository
    book: Rulebook
    new_write_id: NewWriteId

    async def findings(self, scope: Scope, memory_id: str, now: datetime) -> list[Finding]:
        """What is wrong with one memory.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        memory = await one_memory(self.repository, scope, memory_id)
        known = await self.repository.get(scope, references(memory))
        found = check(memory, known, now, self.book)
        twin = await self._twin(scope, memory)
        return found if twin is None else [*found, duplicate(memory, twin.id)]

    async def repair(self, scope: Scope, memory_id: str, now: datetime) -> list[Finding]:
        """Mend it; what was wrong and is not any more.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        wrong = await self.findings(scope, memory_id, now)
        if not wrong:
            return []
        await self._mend(scope, memory_id, now)
        if any(finding.problem is Problem.ONE_WAY_LINK for finding in wrong):
            await self._link_back(scope, memory_id)
        if any(finding.problem is Problem.DUPLICATE for finding in wrong):
            await self._fold(scope, memory_id)
        left = {_what(f) for f in await self.findings(scope, memory_id, now)}
        return [finding for finding in wrong if _what(finding) not in left]

    async def _mend(self, scope: Scope, memory_id: str, now: datetime) -> None:
        memory = await one_memory(self.repository, scope, memory_id)
        known = await self.repository.get(scope, references(memory))
        await update_memories(
            self.repository,
            scope,
            [memory_id],
            lambda m: mended(m, known, now, self.book),
            new_write_id=self.new_write_id,
            types=(memory.type,),
        )

    async def _link_back(self, scope: Scope, memory_id: str) -> None:
        """Have the other ends know its links; where one has no room, the link goes."""
        memory = await one_memory(self.repository, scope, memory_id)
        if not isinstance(memory, DerivedMemory):
            return
        await self._update(scope, memory.related_ids, partial(linked_back, memory=memory))
        known = await self.repository.get(scope, memory.related_ids, fresh=True)
        await self._update(scope, (memory_id,), partial(without_one_way, known=known))

    async def _fold(self, scope: Scope, memory_id: str) -> None:
        """Keep the one that was known first; write it, and only then retire the other."""
        memory = await one_memory(self.repository, scope, memory_id)
        twin = await self._twin(scope, memory)
        if twin is None or not isinstance(memory, DerivedMemory):
            return
        pair: list[DerivedMemory] = [memory, twin]
        kept, other = sorted(pair, key=lambda m: (m.known_at, m.id))
        await self._update(scope, (kept.id,), partial(merged, other=other))
        await self._update(scope, (other.id,), partial(folded_into, kept=kept))

    async def _twin(self, scope: Scope, memory: AnyMemory) -> DerivedMemory | None:
        """Another conclusion that says the same."""
        said = same_as(memory)
        if said is None:
            return None
        where = (Equals("status", memory.status.value), Equals("is_test", memory.is_test))
        async for page in every_page(self.repository, scope, memory.type, where=where):
            for other in page:
                if other.id != memory.id and same_as(other) == said:
                    return other if isinstance(other, DerivedMemory) else None
        return None

    async def _update(
        self,
        scope: Scope,
        ids: Iterable[str],
        change: Callable[[DerivedMemory], DerivedMemory | None],
    ) -> None:
        await update_those(
            self.repository, scope, DerivedMemory, ids, change, new_write_id=self.new_write_id
        )


def _what(finding: Finding) -> tuple[str, str, str | None]:
    return (finding.problem.value, finding.what, finding.other_id)
