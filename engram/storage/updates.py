"""Reading memories, and changing one: read, decide, write on condition, look again."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from engram.domain.memories import (
    AnyMemory,
    Episode,
    Memory,
    MemoryType,
    next_revision,
    types_of,
)
from engram.domain.scope import Scope
from engram.errors import LostUpdate, MemoryNotFound
from engram.giving_way import yielding_to_event_loop
from engram.ports import Filter, MemoryRepository, Replacement, Stamp
from engram.storage.payload import is_memory_id

# --- finding one memory of a user, or saying that there is none


async def one_memory(repository: MemoryRepository, scope: Scope, memory_id: str) -> AnyMemory:
    """The memory with this id.

    Raises:
        MemoryNotFound: no such memory of this user.
    """
    found = await repository.get(scope, [memory_id])
    if memory_id not in found:
        raise no_memory(memory_id)
    return found[memory_id]


def no_memory(memory_id: str) -> MemoryNotFound:
    """The error for an id that no memory of the user has; one that cannot be an id stays out."""
    return MemoryNotFound(
        "No memory with this id belongs to this user.",
        hint="Ids come from receipts, recall and listings.",
        details={"memory_id": memory_id} if is_memory_id(memory_id) else {},
    )


# --- reads that many parts share: memories of a class by id, and listings to their end

M = TypeVar("M", bound=Memory)
_PAGE: Final = 500


async def by_id(
    repository: MemoryRepository,
    scope: Scope,
    kind: type[M],
    ids: Iterable[str],
    *,
    fresh: bool = False,
) -> dict[str, M]:
    """Those of the ids that are of a class, in the order of the ids.

    ``fresh``: as a quorum of replicas agrees, for whoever writes by what is read.
    """
    wanted = list(dict.fromkeys(ids))
    found = await repository.get(scope, wanted, types_of(kind), fresh=fresh) if wanted else {}
    return {key: memory for key, memory in found.items() if isinstance(memory, kind)}


async def episodes_by_id(
    repository: MemoryRepository, scope: Scope, ids: Iterable[str], *, fresh: bool = False
) -> dict[str, Episode]:
    """Those of the ids that are episodes: see :func:`by_id`."""
    return await by_id(repository, scope, Episode, ids, fresh=fresh)


async def existing(
    repository: MemoryRepository,
    scope: Scope,
    ids: Iterable[str],
    types: Sequence[MemoryType] | None = None,
) -> frozenset[str]:
    """Those of the ids that exist, as most replicas agree."""
    wanted = frozenset(ids)
    return frozenset(await repository.get(scope, wanted, types, fresh=True)) if wanted else wanted


async def every_page(
    repository: MemoryRepository,
    scope: Scope,
    memory_type: MemoryType,
    *,
    where: Filter = (),
    descending: bool = False,
    at_once: int = _PAGE,
    unreadable: list[str] | None = None,
) -> AsyncIterator[Sequence[AnyMemory]]:
    """A listing in the order in which memories became known, page by page; no page is empty.

    Args:
        repository: Where memories are kept.
        scope: Whose.
        memory_type: Which.
        where: Conditions on indexed fields.
        descending: The latest known first.
        at_once: Memories of a page.
        unreadable: Takes the ids of those that this version cannot read.
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
        if unreadable is not None:
            unreadable += page.unreadable
        if page.memories:
            yield page.memories
        cursor = page.cursor
        if cursor is None:
            return


async def all_of(
    repository: MemoryRepository,
    scope: Scope,
    kind: type[M],
    *,
    where: Filter = (),
    most: int | None = None,
) -> list[M]:
    """A listing of a class to its end: type by type, each in the order in which it became known.

    Args:
        repository: Where memories are kept.
        scope: Whose.
        kind: Of which class.
        where: Conditions on indexed fields.
        most: The latest known alone, so many; all of them if None.
    """
    found: list[M] = []
    for memory_type in types_of(kind):
        async for page in every_page(
            repository,
            scope,
            memory_type,
            where=where,
            descending=most is not None,
            at_once=_PAGE if most is None else min(_PAGE, most),
        ):
            found += [memory for memory in page if isinstance(memory, kind)]
            if most is not None and len(found) >= most:
                return found[:most]
    return found


# --- the one way in which a stored memory changes: read, decide, write on condition, look again

MemoryChange: TypeAlias = Callable[[AnyMemory], AnyMemory | None]
"""Pure. What the memory becomes, or None when there is nothing to do."""
NewWriteId: TypeAlias = Callable[[], str]
"""A value that no other write has or will have."""

DEFAULT_ATTEMPTS = 8
_UPDATED_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Updated:
    """What came of an update.

    Attributes:
        changed: Ids that were written now.
        unchanged: Ids for which there was nothing to do.
        missing: Ids that do not exist (any more); nothing is brought back.
    """

    changed: frozenset[str] = frozenset()
    unchanged: frozenset[str] = frozenset()
    missing: frozenset[str] = frozenset()

    def plus(self, other: Updated) -> Updated:
        """Both together."""
        return Updated(
            self.changed | other.changed,
            self.unchanged | other.unchanged,
            self.missing | other.missing,
        )


async def update_memories(
    repository: MemoryRepository,
    scope: Scope,
    ids: Iterable[str],
    change: MemoryChange,
    *,
    new_write_id: NewWriteId,
    types: Sequence[MemoryType] | None = None,
    attempts: int = DEFAULT_ATTEMPTS,
    stamp: Stamp | None = None,
) -> Updated:
    """Change memories so that no writer's change is lost, however many write at once.

    Who loses a race reads again and applies ``change`` to what the winner wrote.

    Args:
        repository: Where they are kept.
        scope: Whose they are.
        ids: Which ones.
        change: What becomes of one; called again after each lost race.
        new_write_id: Makes a fresh value for each write.
        types: Where to look; everywhere when absent.
        attempts: How often a memory is tried at most.
        stamp: In place of the repository's own.

    Raises:
        LostUpdate: others kept winning; what did win stays written.
    """
    wanted = tuple(dict.fromkeys(ids))
    done = Updated()
    for start in range(0, len(wanted), _UPDATED_AT_ONCE):
        part = wanted[start : start + _UPDATED_AT_ONCE]
        done = done.plus(
            await _update_chunk(
                repository, scope, part, change, new_write_id, types, attempts, stamp
            )
        )
    return done


async def update_those(
    repository: MemoryRepository,
    scope: Scope,
    kind: type[M],
    ids: Iterable[str],
    change: Callable[[M], M | None],
    *,
    new_write_id: NewWriteId,
) -> Updated:
    """Change memories of one class: see :func:`update_memories`."""

    def changed(memory: AnyMemory) -> AnyMemory | None:
        if not isinstance(memory, kind):
            return None
        return change(memory)  # type: ignore[return-value]  # a copy of an AnyMemory is one

    return await update_memories(
        repository, scope, ids, changed, new_write_id=new_write_id, types=types_of(kind)
    )


async def _update_chunk(
    repository: MemoryRepository,
    scope: Scope,
    ids: tuple[str, ...],
    change: MemoryChange,
    new_write_id: NewWriteId,
    types: Sequence[MemoryType] | None,
    attempts: int,
    stamp: Stamp | None,
) -> Updated:
    done, waiting = Updated(), frozenset(ids)
    for _ in range(attempts):
        found = await repository.get(scope, waiting, types, fresh=True)
        pending: list[Replacement] = []
        unchanged: set[str] = set()
        async for memory in yielding_to_event_loop(found.values()):
            after = change(memory)
            if after is None:
                unchanged.add(memory.id)
                continue
            successor = next_revision(memory, after, write_id=new_write_id())
            pending.append(Replacement(memory=successor, expected_revision=memory.revision))
        won = await repository.replace(scope, pending, stamp=stamp) if pending else frozenset[str]()
        done = done.plus(Updated(won, frozenset(unchanged), waiting - found.keys()))
        waiting = frozenset(r.memory.id for r in pending) - won
        if not waiting:
            return done
    raise LostUpdate(
        f"{len(waiting)} memories kept changing while they were being updated.",
        hint="Other writers were faster each time; the same call can succeed later.",
        details={"attempts": attempts, "ids": sorted(waiting)[:10]},
    )
