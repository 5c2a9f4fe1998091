"""The only reads that span users: who has such memories, and which values a field has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Final, Generic

from engram.domain.memories import MemoryType
from engram.domain.scope import Scope
from engram.errors import InvalidQuery
from engram.ports import Equals, Filter, HasId
from engram.storage.filters import EngineFilter, Translator
from engram.storage.paging import Payload
from engram.storage.schema import FieldKind, check_order, field_kind

MOST_VALUES: Final = 1000
_AT_ONCE: Final = 64


class EverybodysReads(ABC, Generic[EngineFilter]):
    """The part of :class:`engram.ports.MaintenanceRepository` that other stores' parts build on."""

    _filters: Translator[EngineFilter]

    @abstractmethod
    def _check_open(self) -> None:
        """Refuse when the store was closed."""

    @abstractmethod
    async def _by_time(
        self,
        memory_type: MemoryType,
        where: EngineFilter,
        *,
        field: str,
        descending: bool,
        limit: int,
    ) -> list[Payload]:
        """Payloads in order of an indexed time field, ties in any order."""

    @abstractmethod
    async def _delete(self, memory_type: MemoryType, where: EngineFilter) -> None:
        """Remove what matches."""

    @abstractmethod
    async def _values(self, memory_type: MemoryType, field: str) -> set[str | None]:
        """Every value of an indexed keyword field."""

    async def scopes(
        self,
        memory_type: MemoryType,
        where: Filter,
        *,
        order_by: str,
        limit: int,
        skip: Collection[Scope] = (),
    ) -> tuple[Scope, ...]:
        """See :meth:`engram.ports.MaintenanceRepository.scopes`."""
        self._check_open()
        check_order(memory_type, order_by)
        if limit < 1:
            raise InvalidQuery(f"{limit} users were asked for.", allowed="1 or more")
        found: dict[Scope, None] = {}
        while len(found) < limit:
            # Who was found is left out from then on, however much of theirs matches.
            rest = self._filters.everybody(memory_type, where, without=[*skip, *found])
            payloads = await self._by_time(
                memory_type, rest, field=order_by, descending=False, limit=_AT_ONCE
            )
            if not payloads:
                break
            for payload in payloads:
                scope = Scope(namespace=payload["namespace"], user_id=payload["user_id"])
                found.setdefault(scope)
        return tuple(found)[:limit]

    async def values(self, memory_type: MemoryType, field: str) -> frozenset[str | None]:
        """See :meth:`engram.ports.MaintenanceRepository.values`."""
        self._check_open()
        if field_kind(memory_type, field) is not FieldKind.KEYWORD:
            raise InvalidQuery(
                f"The values of the field {field!r} cannot be listed.", allowed="keyword fields"
            )
        return frozenset(await self._values(memory_type, field))

    async def delete_unchanged(
        self, scope: Scope, memory_type: MemoryType, revisions: Mapping[str, int]
    ) -> None:
        """See :meth:`engram.ports.MaintenanceRepository.delete_unchanged`."""
        self._check_open()
        for memory_id, revision in revisions.items():
            only = (HasId((memory_id,)), Equals("revision", revision))
            await self._delete(memory_type, self._filters.within(scope, memory_type, only))


def found_values(counts: Mapping[str, int], points: int) -> set[str | None]:
    """The values that are counted, and None if they do not account for all points."""
    named: set[str | None] = {value for value, count in counts.items() if count}
    return named | {None} if sum(counts.values()) < points else named
