"""What both engines share: everything but the engine calls themselves."""

from __future__ import annotations

import asyncio
import marshal
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat
from typing import ClassVar, Final, Generic

import structlog
from pydantic import ValidationError

from engram.domain.identity import operation_id
from engram.domain.memories import STORED_TYPES, AnyMemory, MemoryType
from engram.domain.scope import Scope
from engram.errors import InvalidQuery, LostUpdate, MemoryClosed, StorageError, UserErased
from engram.giving_way import give_way, yielding_to_event_loop
from engram.ports import (
    Candidate,
    Equals,
    Filter,
    HasId,
    Match,
    NewMemory,
    Not,
    Page,
    Replacement,
    SearchRequest,
    SparseVector,
    Stamp,
)
from engram.storage.filters import EngineFilter, Translator
from engram.storage.ledger import Ledger, aside, burials, ledger_id, mark_payload
from engram.storage.payload import (
    TENANT,
    FieldKind,
    check_order,
    decode,
    decode_change,
    encode,
    field_kind,
    format_time,
    is_memory_id,
)
from engram.storage.points import (
    MAX_LIMIT,
    HeldMemory,
    Listing,
    NewPoint,
    Overwrite,
    Payload,
    Position,
    RankedPoint,
    RankQuery,
    check_limit,
    check_vectors,
    cut,
    prepare,
    read_cursor,
    read_page,
    sides,
    unique_batches,
    wider,
    write_cursor,
)

# --- memories that were decoded before: reading one again costs a comparison, not a validation

MOST: Final = 4096
"""Memories kept."""
MOST_BYTES: Final = 4 * 2**20
"""Of the payloads of all memories kept; decoded, a memory takes a few times as much."""
_KEPT_OF_LISTINGS: Final = 256
"""Pages up to this size are likely to be read again; longer ones are walks through everything."""
# Later formats write what is shared as a reference, so that equal payloads could look different.
_MARSHAL_FORMAT: Final = 2


@dataclass(slots=True)
class _KeptPayload:
    """What is kept of one memory.

    Attributes:
        data: Its payload.
        memory: As it was read; None where it was written, and not read since.
        before: The one that it came of, where that is known.
        changed: The names in its payload that differ from those of ``before``.
    """

    data: bytes
    memory: AnyMemory | None
    before: AnyMemory | None = None
    changed: Set[str] = frozenset()

    def payload(self) -> Payload:
        """A copy of its payload."""
        payload: Payload = marshal.loads(self.data)  # noqa: S302 - written here, in this process
        return payload

    def read(self) -> AnyMemory:
        """The memory: what was written is only read when somebody asks for it."""
        if self.memory is None:
            payload = self.payload()
            if self.before is None:
                self.memory = decode(payload)
            else:
                self.memory = decode_change(self.before, payload, self.changed)
            self.before, self.changed = None, frozenset()
        return self.memory


class DecodedPayloads:
    """The last memories decoded, by id; memories never change, so they can be shared.

    A memory is only given again if the whole payload is the same as then, so that
    nothing depends on who changed it or how. Payloads are kept as bytes: a fifth of
    the memory, and nothing that the collector of garbage goes through.

    Args:
        most: So many memories at most.
        size: Bytes of their payloads at most.
    """

    def __init__(self, most: int = MOST, size: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = size
        self._bytes = 0
        self._kept: dict[str, _KeptPayload] = {}
        self._trusted: set[str] = set()

    def __call__(self, payload: Payload) -> AnyMemory:
        """The memory of a payload.

        Raises:
            StorageError: this version of Engram cannot read it.
        """
        known = self._kept.get(payload.get("id", ""))
        data = marshal.dumps(payload, _MARSHAL_FORMAT)
        if known is not None and known.data == data:
            return known.read()
        memory = decode(payload)
        self._keep(memory.id, _KeptPayload(data, memory))
        return memory

    def written(self, payload: Payload, changed: Set[str]) -> None:
        """This is what is stored of a trusted memory now, so that it need not be read again.

        Args:
            payload: The whole of it.
            changed: The names that differ from what was trusted.
        """
        memory_id = payload["id"]
        kept = _KeptPayload(marshal.dumps(payload, _MARSHAL_FORMAT), None)
        if (known := self._kept.get(memory_id)) is not None:
            kept.before = known.memory or known.before
            kept.changed = changed | known.changed
        self._keep(memory_id, kept)
        if memory_id in self._kept:
            self._trusted.add(memory_id)

    def trust(self, memories: Iterable[AnyMemory]) -> None:
        """These are stored as they were given, until :meth:`doubt` is called for them.

        What is kept of them may be older by now: a listing that began before a write decodes
        what it read then.
        """
        for memory in memories:
            known = self._kept.get(memory.id)
            if known is not None and known.memory is memory:
                self._trusted.add(memory.id)

    def doubt(self, memory_ids: Iterable[str]) -> None:
        """These were written to, whether or not it succeeded."""
        self._trusted.difference_update(memory_ids)

    def trusted(self, memory_id: str) -> AnyMemory | None:
        """A memory that need not be read again."""
        kept = self._asked_for(memory_id)
        return None if kept is None else kept.read()

    def held(self, memory_id: str) -> HeldMemory | None:
        """What is stored of a memory that need not be read again."""
        return self._asked_for(memory_id)

    def listed(self, memory_id: str, field: str | None) -> HeldPayload | None:
        """Of a trusted memory, what a listing by a time field goes by; all, if none is named."""
        kept = self._asked_for(memory_id)
        if kept is None:
            return None
        memory = kept.read()
        if field is None:
            return HeldPayload(memory, kept.payload())
        whose = {"id": memory_id, "namespace": memory.namespace, "user_id": memory.user_id}
        return HeldPayload(memory, {**whose, field: format_time(getattr(memory, field))})

    def drop(self, memory_ids: Iterable[str]) -> None:
        """These were deleted: nor does memory keep them."""
        for memory_id in memory_ids:
            self._drop(memory_id)

    def _asked_for(self, memory_id: str) -> _KeptPayload | None:
        """What is kept of a trusted memory; what nobody asks for is let go before it."""
        if memory_id not in self._trusted:
            return None
        kept = self._kept[memory_id] = self._kept.pop(memory_id)
        return kept

    def _keep(self, memory_id: str, kept: _KeptPayload) -> None:
        # Taken out first, so that what was read last stands last.
        self._drop(memory_id)
        self._kept[memory_id] = kept
        self._bytes += len(kept.data)
        while len(self._kept) > self._most or self._bytes > self._most_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, memory_id: str) -> None:
        self._trusted.discard(memory_id)
        dropped = self._kept.pop(memory_id, None)
        if dropped is not None:
            self._bytes -= len(dropped.data)


class HeldPayload(Payload):
    """In a listing: of a memory that need not be read again, what a listing goes by.

    Attributes:
        memory: The memory.
    """

    def __init__(self, memory: AnyMemory, fields: Payload) -> None:
        super().__init__(fields)
        self.memory: Final = memory


# --- what both engines share: everything but the engine calls themselves

MOST_VALUES: Final = 1000
_READ_AT_ONCE: Final = 64
_USERS_AT_ONCE: Final = 64
# Ids that are remembered, so that each is logged once.
_MOST_UNREADABLE: Final = 10_000

_log = structlog.get_logger("engram.storage")


# Forgetting of one user is rarely done by more than a few at once.
_LEDGER_ATTEMPTS: Final = 32


def _erased() -> UserErased:
    return UserErased(
        "Everything of this user was erased after this work had begun; none of it was written.",
        hint="What is begun from now on is kept.",
    )


def found_values(counts: Mapping[str, int], points: int) -> set[str | None]:
    """The values that are counted, and None if they do not account for all points."""
    named: set[str | None] = {value for value, count in counts.items() if count}
    return named | {None} if sum(counts.values()) < points else named


def _whose(payload: Payload) -> Scope | None:
    """The user that a payload names; None if it is damaged."""
    try:
        return Scope(namespace=payload["namespace"], user_id=payload["user_id"])
    except (KeyError, ValidationError):
        return None


class EngineRepository(ABC, Generic[EngineFilter]):
    """:class:`engram.ports.MaintenanceRepository` in terms of a few engine calls.

    Args:
        translator: Makes conditions the engine's.
        dimensions: Length of the dense vectors.
        stamp: Applied to every memory that is written.
    """

    batch: ClassVar[int] = 64
    """Points per engine call."""

    def __init__(
        self, translator: Translator[EngineFilter], *, dimensions: int, stamp: Stamp
    ) -> None:
        self._filters = translator
        self._dimensions = dimensions
        self._stamp = stamp
        self._closed = False
        self._unreadable: set[str] = set()
        self._decoded = DecodedPayloads()

    # --- the engine calls -----------------------------------------------------------

    @abstractmethod
    async def _insert(self, memory_type: MemoryType, points: list[NewPoint]) -> None:
        """Insert those whose ids are not there."""

    @abstractmethod
    async def _overwrite(
        self, memory_type: MemoryType, changes: list[Overwrite[EngineFilter]]
    ) -> None:
        """Put payloads in place of those that match, in order; never insert."""

    @abstractmethod
    async def _reword(
        self, memory_type: MemoryType, where: EngineFilter, words: Mapping[str, SparseVector]
    ) -> None:
        """Replace the sparse vectors of those that match; never insert."""

    @abstractmethod
    async def _by_id(
        self,
        memory_type: MemoryType,
        where: EngineFilter,
        *,
        limit: int,
        after: str | None = None,
    ) -> list[Payload]:
        """Payloads by ascending id, beyond ``after``."""

    @abstractmethod
    async def _retrieve(
        self, memory_type: MemoryType, ids: list[str], *, fresh: bool = False
    ) -> list[Payload]:
        """Payloads of these ids, of any tenant; ``fresh``: as a quorum of replicas agrees."""

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
    async def _rank(
        self,
        memory_type: MemoryType,
        where: EngineFilter,
        corpus: EngineFilter,
        queries: list[RankQuery],
    ) -> Sequence[Sequence[RankedPoint]]:
        """Best first, one list per query; ``corpus``: where IDF is counted."""

    @abstractmethod
    def _nearest(self, query: RankQuery) -> object:
        """What is nearest to its vector, in the engine's own words."""

    @abstractmethod
    def _spelled(self, points: Sequence[RankedPoint]) -> list[str]:
        """The ids of points as memories have them."""

    @abstractmethod
    async def _count(self, memory_type: MemoryType, where: EngineFilter) -> int:
        """How many match, exactly."""

    @abstractmethod
    async def _values(self, memory_type: MemoryType, field: str) -> set[str | None]:
        """Every value of an indexed keyword field."""

    @abstractmethod
    async def _delete(self, memory_type: MemoryType, where: EngineFilter) -> None:
        """Remove what matches."""

    # --- the port -------------------------------------------------------------------

    async def insert(
        self,
        scope: Scope,
        memories: Iterable[NewMemory],
        *,
        stamp: Stamp | None = None,
        epoch: int | None = None,
    ) -> frozenset[str]:
        """See :meth:`engram.ports.MemoryRepository.insert`."""
        self._check_open()
        stamped = stamp or self._stamp
        # All are checked before the first is written, so that bad input leaves nothing.
        given: dict[str, AnyMemory] = {}
        prepared: dict[MemoryType, list[NewPoint]] = {}
        async for new in yielding_to_event_loop(memories):
            check_vectors(new.vectors, self._dimensions)
            point = NewPoint(new.memory.id, new.vectors, encode(scope, stamped(new.memory)))
            prepared.setdefault(new.memory.type, []).append(point)
            given[new.memory.id] = new.memory
        before = await self._ledger(scope)
        if epoch is not None and epoch != before.epoch:
            raise _erased()
        refused = await self._refused(scope, before, given.values())
        # An attempt before this one may have died before it took back what it wrote.
        await self._take_back(scope, before, refused)
        for memory_type, points in prepared.items():
            allowed = [point for point in points if point.memory_id not in refused]
            for start in range(0, len(allowed), self.batch):
                await self._insert(memory_type, allowed[start : start + self.batch])
        # Forgetting notes first and deletes then: what it noted before this look is taken back
        # here, what it notes after it, is deleted there.
        after = await self._ledger(scope)
        if after.epoch != before.epoch:
            await self._take_back_writes(scope, given)
            raise _erased()
        if after != before:
            late = await self._refused(scope, after, given.values())
            await self._take_back(scope, after, late)
            refused |= late
        return refused

    async def get(
        self,
        scope: Scope,
        ids: Iterable[str],
        types: Sequence[MemoryType] | None = None,
        *,
        fresh: bool = False,
    ) -> dict[str, AnyMemory]:
        """See :meth:`engram.ports.MemoryRepository.get`."""
        self._check_open()
        wanted = list(dict.fromkeys(ids))
        found: dict[str, AnyMemory] = {}
        for memory_type in STORED_TYPES if types is None else types:
            payloads = await self._fetch(scope, memory_type, wanted, fresh=fresh)
            async for payload in yielding_to_event_loop(payloads):
                # Who writes by what is read must not take it for missing.
                memory = self._decoded(payload) if fresh else self._readable(payload, self._decoded)
                if memory is not None:
                    found[memory.id] = memory
        return {memory_id: found[memory_id] for memory_id in wanted if memory_id in found}

    async def replace(
        self, scope: Scope, replacements: Iterable[Replacement], *, stamp: Stamp | None = None
    ) -> frozenset[str]:
        """See :meth:`engram.ports.MemoryRepository.replace`.

        Raises:
            InvalidInput: a successor without ``write_id`` or without a higher revision:
                nobody could tell whether it won.
        """
        self._check_open()
        stamped = stamp or self._stamp
        prepared = [
            prepare(scope, item, stamped, self._decoded.held(item.memory.id))
            async for item in yielding_to_event_loop(replacements)
        ]
        won: set[str] = set()
        for memory_type, batch in unique_batches(prepared, self.batch):
            changes = [
                Overwrite(
                    partial(
                        self._filters.within,
                        scope,
                        memory_type,
                        (
                            HasId((of.item.memory.id,)),
                            Equals("revision", of.item.expected_revision),
                        ),
                    ),
                    of.payload,
                    of.item.expected_revision,
                    of,
                )
                for of in batch
            ]
            await self._overwrite(memory_type, changes)
            ids = [one.item.memory.id for one in batch]
            shown = await self._write_ids(scope, memory_type, ids)
            won.update(
                one.item.memory.id
                for one in batch
                if shown.get(one.item.memory.id) == one.item.memory.write_id
            )
            await give_way()
        return frozenset(won)

    async def reword(
        self, scope: Scope, memory_type: MemoryType, words: Mapping[str, SparseVector]
    ) -> None:
        """See :meth:`engram.ports.MemoryRepository.reword`."""
        self._check_open()
        ids = list(words)
        for start in range(0, len(ids), self.batch):
            part = ids[start : start + self.batch]
            there = await self._fetch(scope, memory_type, part, fresh=True)
            left = {payload["id"]: words[payload["id"]] for payload in there}
            if left:
                where = self._filters.within(scope, memory_type, (HasId(tuple(left)),))
                await self._reword(memory_type, where, left)

    async def rank(self, scope: Scope, request: SearchRequest) -> list[Match]:
        """See :meth:`engram.ports.MemoryRepository.rank`."""
        self._check_open()
        check_vectors(request.vectors, self._dimensions)
        if not 1 <= request.limit <= MAX_LIMIT:
            raise InvalidQuery(
                f"{request.limit} candidates were asked for.", allowed=f"1 to {MAX_LIMIT}"
            )
        types = [memory_type for memory_type in STORED_TYPES if memory_type in request.types]
        mine = self._filters.tenant(scope)
        # All are checked before the first is asked.
        filters = [
            self._filters.within(scope, memory_type, where) if where else mine
            for memory_type in types
            for where in (request.where.get(memory_type, ()),)
        ]
        queries = [replace(one, spoken=self._nearest(one)) for one in sides(request)]
        answers = await self._of_each(
            [
                partial(self._matches, mine, memory_type, where, queries, request.limit)
                for memory_type, where in zip(types, filters, strict=True)
            ]
        )
        return list(chain.from_iterable(answers))

    async def _of_each(
        self, asking: Sequence[Callable[[], Awaitable[list[Match]]]]
    ) -> list[list[Match]]:
        """The answers in order; all at once, because each is a way to a server and back."""
        return await asyncio.gather(*(ask() for ask in asking))

    async def search(self, scope: Scope, request: SearchRequest) -> list[Candidate]:
        """See :meth:`engram.ports.MemoryRepository.search`."""
        matches = await self.rank(scope, request)
        by_type: dict[MemoryType, list[str]] = {}
        for match in matches:
            by_type.setdefault(match.memory_type, []).append(match.memory_id)
        memories: dict[str, AnyMemory] = {}
        for memory_type, ids in by_type.items():
            memories |= await self.get(scope, ids, (memory_type,))
        return [
            Candidate(memories[match.memory_id], match.dense, match.sparse)
            for match in matches
            if match.memory_id in memories
        ]

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
        """See :meth:`engram.ports.MemoryRepository.scroll`.

        Memories without a value in ``order_by`` are not part of the listing.
        Ties are by ascending id in both directions.
        """
        self._check_open()
        check_order(memory_type, order_by)
        check_limit(limit)
        listing = Listing(memory_type, order_by, descending)
        position = read_cursor(listing, cursor) if cursor is not None else None
        note = self._reading()
        # One more than asked for tells whether there is a next page.
        payloads = await self._page(scope, listing, where, position, limit + 1)
        read_one = self._decoded if len(payloads) <= _KEPT_OF_LISTINGS else decode
        read = [
            (
                payload,
                payload.memory
                if isinstance(payload, HeldPayload)
                else self._readable(payload, read_one),
            )
            async for payload in yielding_to_event_loop(payloads[:limit])
        ]
        page = tuple(memory for _, memory in read if memory is not None)
        note(page)
        unreadable = tuple(str(payload["id"]) for payload, memory in read if memory is None)
        if len(payloads) <= limit:
            return Page(page, None, unreadable)
        last = payloads[limit - 1]
        cursor = write_cursor(listing, Position(last[order_by], last["id"]))
        return Page(page, cursor, unreadable)

    def _reading(self) -> Callable[[Iterable[AnyMemory]], None]:
        """A read begins: what is told what it read; where others write, nobody."""
        return lambda memories: None

    def arrivals(self, scope: Scope, memory_type: MemoryType) -> int | None:
        """See :meth:`engram.ports.MemoryRepository.arrivals`."""
        return None

    def arrived(self, scope: Scope, memory_type: MemoryType, since: int) -> list[str] | None:
        """See :meth:`engram.ports.MemoryRepository.arrived`."""
        return None

    def replacements(self, scope: Scope) -> int | None:
        """See :meth:`engram.ports.MemoryRepository.replacements`."""
        return None

    async def count(self, scope: Scope, memory_type: MemoryType, where: Filter = ()) -> int:
        """See :meth:`engram.ports.MemoryRepository.count`."""
        self._check_open()
        return await self._count(memory_type, self._filters.within(scope, memory_type, where))

    async def delete(self, scope: Scope, memory_type: MemoryType, ids: Iterable[str]) -> None:
        """See :meth:`engram.ports.MemoryRepository.delete`."""
        self._check_open()
        wanted = list(dict.fromkeys(ids))
        for start in range(0, len(wanted), self.batch):
            these = HasId(tuple(wanted[start : start + self.batch]))
            await self._delete(memory_type, self._filters.within(scope, memory_type, (these,)))

    async def erase(self, scope: Scope, *, until: int | None = None) -> dict[MemoryType, int]:
        """See :meth:`engram.ports.MemoryRepository.erase`."""
        self._check_open()
        erased: dict[MemoryType, int] = {}
        for memory_type in STORED_TYPES:
            everything = self._filters.within(scope, memory_type)
            erased[memory_type] = await self._count(memory_type, everything)
            # Last: whoever was held up on the way here may meet what was said since.
            if until is not None and (await self._ledger(scope)).epoch >= until:
                raise _erased()
            await self._delete(memory_type, everything)
        return erased

    # --- what was forgotten -----------------------------------------------------------

    async def epoch(self, scope: Scope) -> int:
        """See :meth:`engram.ports.MemoryRepository.epoch`."""
        self._check_open()
        return (await self._ledger(scope)).epoch

    async def raise_epoch(self, scope: Scope, operation: str, *, key: str) -> int:
        """See :meth:`engram.ports.MemoryRepository.raise_epoch`."""
        self._check_open()

        def change(ledger: Ledger) -> Ledger | None:
            return None if ledger.raised_by(operation) else ledger.raised(operation, key)

        raised, changed = await self._change_ledger(scope, change, key)
        if changed:
            others = (Not(HasId((ledger_id(scope),))),)
            marks = self._filters.within(aside(scope), MemoryType.EPISODIC, others)
            await self._delete(MemoryType.EPISODIC, marks)
        return raised.raised_by(operation) or raised.epoch

    async def bury(
        self,
        scope: Scope,
        ids: Collection[str],
        *,
        drawn: Mapping[str, Collection[str]],
        key: str,
    ) -> None:
        """See :meth:`engram.ports.MemoryRepository.bury`."""
        self._check_open()
        ledger = await self._ledger(scope)
        if ledger.key is None:
            ledger, _ = await self._change_ledger(scope, lambda one: one.keyed(key), key)
        marks = burials(ledger, ids, drawn)
        for start in range(0, len(marks), self.batch):
            part = marks[start : start + self.batch]
            points = [NewPoint(mark, None, mark_payload(scope, mark)) for mark in part]
            await self._insert(MemoryType.EPISODIC, points)
        # Whoever inserts looks at the record only, and at the marks if it has changed.
        await self._change_ledger(scope, lambda one: one.keyed(key), key)

    async def _ledger(self, scope: Scope) -> Ledger:
        found = await self._retrieve(MemoryType.EPISODIC, [ledger_id(scope)], fresh=True)
        return Ledger.of(found[0] if found else None)

    async def _change_ledger(
        self, scope: Scope, change: Callable[[Ledger], Ledger | None], key: str
    ) -> tuple[Ledger, bool]:
        for attempt in range(_LEDGER_ATTEMPTS):
            before = await self._ledger(scope)
            after = change(before)
            if after is None:
                return before, False
            # The key is secret and fresh; what is shown of it is a hash.
            write_id = operation_id("ledger", key, attempt, after.revision or 0)
            payload = after.payload(scope, write_id)
            if before.revision is None:
                point = NewPoint(ledger_id(scope), None, payload)
                await self._insert(MemoryType.EPISODIC, [point])
            else:
                only = (HasId((ledger_id(scope),)), Equals("revision", before.revision))
                where = partial(self._filters.within, aside(scope), MemoryType.EPISODIC, only)
                await self._overwrite(MemoryType.EPISODIC, [Overwrite(where, payload)])
            shown = await self._retrieve(MemoryType.EPISODIC, [ledger_id(scope)], fresh=True)
            if shown and shown[0]["write_id"] == write_id:
                return after, True
        raise LostUpdate(
            "The record of what was forgotten kept changing while it was being updated.",
            hint="The same call can succeed later.",
        )

    async def _refused(
        self, scope: Scope, ledger: Ledger, memories: Iterable[AnyMemory]
    ) -> frozenset[str]:
        """Those that are forgotten, or rest on what is. Marks of what may come back go."""
        if ledger.key is None:
            return frozenset()
        given = list(memories)
        marks = sorted({mark for memory in given for mark in ledger.marks_of(memory)})
        payloads = await self._fetch(aside(scope), MemoryType.EPISODIC, marks, fresh=True)
        found = {payload["id"] for payload in payloads}
        if not found:
            return frozenset()
        refused = frozenset(memory.id for memory in given if ledger.refuses(memory, found))
        back = {ledger.mark(memory.id) for memory in given if memory.id not in refused} & found
        if back:
            await self.delete(aside(scope), MemoryType.EPISODIC, back)
        return refused

    async def _take_back(self, scope: Scope, ledger: Ledger, refused: Collection[str]) -> None:
        """Delete those of the refused that are stored as they must not be."""
        if not refused:
            return
        stored = await self.get(scope, refused, fresh=True)
        for memory_id in await self._refused(scope, ledger, stored.values()):
            memory = stored[memory_id]
            await self.delete_unchanged(scope, memory.type, {memory.id: memory.revision})

    async def _take_back_writes(self, scope: Scope, given: Mapping[str, AnyMemory]) -> None:
        """Delete what this very call wrote, not what others wrote under the same ids."""
        for memory in (await self.get(scope, given, fresh=True)).values():
            if memory.write_id == given[memory.id].write_id:
                await self.delete_unchanged(scope, memory.type, {memory.id: memory.revision})

    async def delete_unchanged(
        self, scope: Scope, memory_type: MemoryType, revisions: Mapping[str, int]
    ) -> None:
        """See :meth:`engram.ports.MaintenanceRepository.delete_unchanged`."""
        self._check_open()
        for memory_id, revision in revisions.items():
            only = (HasId((memory_id,)), Equals("revision", revision))
            await self._delete(memory_type, self._filters.within(scope, memory_type, only))

    # --- the reads across tenants -----------------------------------------------------

    async def scopes(
        self,
        memory_type: MemoryType,
        where: Filter,
        *,
        order_by: str,
        limit: int,
        skip: Collection[Scope] = (),
    ) -> tuple[Scope, ...]:
        """See :meth:`engram.ports.CrossTenantReads.scopes`."""
        self._check_open()
        check_order(memory_type, order_by)
        if limit < 1:
            raise InvalidQuery(f"{limit} users were asked for.", allowed="1 or more")
        found: dict[Scope, None] = {}
        damaged: set[str] = set()
        while len(found) < limit:
            # Who was found is left out from then on, however much of theirs matches.
            left = (*where, Not(HasId(tuple(damaged)))) if damaged else where
            rest = self._filters.across_tenants(memory_type, left, without=[*skip, *found])
            payloads = await self._by_time(
                memory_type, rest, field=order_by, descending=False, limit=_USERS_AT_ONCE
            )
            if not payloads:
                break
            before = len(found)
            found |= dict.fromkeys(filter(None, map(_whose, payloads)))
            if len(found) == before:
                # Otherwise each would name somebody who is not found yet.
                damaged.update(payload["id"] for payload in payloads)
        return tuple(found)[:limit]

    async def values(self, memory_type: MemoryType, field: str) -> frozenset[str | None]:
        """See :meth:`engram.ports.CrossTenantReads.values`."""
        self._check_open()
        if field_kind(memory_type, field) is not FieldKind.KEYWORD:
            raise InvalidQuery(
                f"The values of the field {field!r} cannot be listed.", allowed="keyword fields"
            )
        return frozenset(await self._values(memory_type, field))

    # --- shared steps ---------------------------------------------------------------

    def _readable(self, payload: Payload, read: Callable[[Payload], AnyMemory]) -> AnyMemory | None:
        """The memory of a payload; None, counted and logged, if this version cannot read it."""
        try:
            return read(payload)
        except StorageError as error:
            memory_id = str(payload.get("id"))
            if memory_id not in self._unreadable and len(self._unreadable) < _MOST_UNREADABLE:
                self._unreadable.add(memory_id)
                _log.warning(
                    "a stored memory cannot be read and is left out",
                    memory_id=memory_id,
                    memory_type=payload.get("type"),
                    reason=error.details.get("reason"),
                )
            return None

    async def _fetch(
        self, scope: Scope, memory_type: MemoryType, ids: Sequence[str], *, fresh: bool = False
    ) -> list[Payload]:
        # The one read that an engine does not confine itself.
        usable = [memory_id for memory_id in ids if is_memory_id(memory_id)]
        found: list[Payload] = []
        for start in range(0, len(usable), _READ_AT_ONCE):
            part = usable[start : start + _READ_AT_ONCE]
            if start:
                await give_way()
            found += await self._retrieve(memory_type, part, fresh=fresh)
        # What is damaged does not say whose it is: it cannot be read, and is not missing either.
        return [payload for payload in found if payload.get(TENANT, scope.tenant) == scope.tenant]

    async def _write_ids(
        self, scope: Scope, memory_type: MemoryType, ids: Sequence[str]
    ) -> dict[str, str | None]:
        """Whose write each of these shows, as it is read back."""
        now = await self._fetch(scope, memory_type, ids, fresh=True)
        return {payload["id"]: payload.get("write_id") for payload in now}

    async def _matches(
        self,
        corpus: EngineFilter,
        memory_type: MemoryType,
        where: EngineFilter,
        queries: list[RankQuery],
        limit: int,
    ) -> list[Match]:
        scores: dict[str, dict[str, float]] = {}
        while queries:
            answers = await self._rank(memory_type, where, corpus, queries)
            again: list[RankQuery] = []
            for query, answer in zip(queries, answers, strict=True):
                more = wider(query, answer, limit)
                if more is not None:
                    again.append(more)
                scores[query.side] = cut(answer, query, limit, self._spelled)
            queries = again
        dense, sparse = scores.get("dense", {}), scores.get("sparse", {})
        ids = [*(dense | sparse)]
        # A recall has hundreds: made and filled without a step of Python for each.
        found = zip(repeat(memory_type), ids, map(dense.get, ids), map(sparse.get, ids))
        return [*map(partial(tuple.__new__, Match), found)]

    async def _page(
        self,
        scope: Scope,
        listing: Listing,
        where: Filter,
        position: Position | None,
        limit: int,
    ) -> list[Payload]:
        memory_type, field = listing.memory_type, listing.order_by

        async def tie(moment: str, after: str | None, limit: int) -> list[Payload]:
            same = self._filters.at(scope, memory_type, where, field, moment)
            found = await self._by_id(memory_type, same, limit=limit, after=after)
            for payload in found:
                payload.setdefault(field, moment)
            return found

        async def ordered(beyond: str | None, limit: int) -> list[Payload]:
            rest = self._filters.beyond(
                scope, memory_type, where, field, beyond, descending=listing.descending
            )
            return await self._by_time(
                memory_type, rest, field=field, descending=listing.descending, limit=limit
            )

        return await read_page(field, position, limit, tie=tie, ordered=ordered)

    def _check_open(self) -> None:
        if self._closed:
            raise MemoryClosed("The memory store was closed.", hint="Open it again.")
