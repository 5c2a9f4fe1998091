"""Reading all of a user's memories, page by page, and checking them on the way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from engram.contracts.lifecycle import Population
from engram.domain.checks import Finding, Problem, check, duplicate, references, same_as
from engram.domain.health import Census, Diagnosis, HealthRules
from engram.domain.lifecycle.decisions import Rulebook
from engram.domain.memories import STORED_TYPES, AnyMemory, MemoryType
from engram.domain.scope import Scope
from engram.ports import Filter, MemoryRepository
from engram.writing.reads import every_page
from engram.writing.walks import of_population

_PAGE = 200


async def pages(
    repository: MemoryRepository,
    scope: Scope,
    population: Population,
    types: Sequence[MemoryType] = STORED_TYPES,
    where: Filter = (),
) -> AsyncIterator[Sequence[AnyMemory]]:
    """All memories, type by type, in the order in which they became known."""
    conditions = (*where, of_population(population))
    for memory_type in types:
        async for page in every_page(
            repository, scope, memory_type, where=conditions, at_once=_PAGE
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
) -> tuple[int, list[Finding]]:
    """How many memories there are, and everything that is wrong with them."""
    found: list[Finding] = []
    first: dict[str, str] = {}
    seen = 0
    async for page in pages(repository, scope, population):
        known = await known_to(repository, scope, page)
        seen += len(page)
        for memory in page:
            found += check(memory, known, now, book)
            said = same_as(memory)
            if said is not None and first.setdefault(said, memory.id) != memory.id:
                found.append(duplicate(memory, first[said]))
    return seen, found


async def health(
    repository: MemoryRepository,
    scope: Scope,
    population: Population,
    now: datetime,
    book: Rulebook,
    rules: HealthRules,
) -> tuple[int, list[Diagnosis]]:
    """How many memories there are, and how they do."""
    census = Census(rules, book, now)
    async for page in pages(repository, scope, population):
        known = await known_to(repository, scope, page)
        for memory in page:
            findings = check(memory, known, now, book)
            orphan = any(finding.problem is Problem.ORPHAN for finding in findings)
            census.count(memory, orphan=orphan)
    return census.seen, census.diagnose()
