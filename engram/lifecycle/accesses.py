"""Recalls as accesses: what one adds to a memory, and how they are noted in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import structlog
from pydantic import BaseModel, ConfigDict, Field

from engram.domain.memories import (
    AnyMemory,
    DerivedMemory,
    LinkKind,
    MemoryType,
    Together,
    Vitals,
    is_summary,
)
from engram.domain.rules import LifecycleRules
from engram.domain.scope import Scope
from engram.errors import EngramError, UnforeseenFailure
from engram.giving_way import lull, wanted
from engram.lifecycle.links import Observed, linked
from engram.lifecycle.policies import Energy
from engram.ports import MemoryRepository
from engram.storage.updates import NewWriteId, update_memories

# --- being recalled: what it adds to a memory, exactly once

REMEMBERED_INSTANCES: Final = 16
"""Processes whose last batch a memory remembers; only running ones can repeat a batch."""
MOST_TOGETHER: Final = 32
# A link that ten common recalls speak for is as sure as one can be.
_SURE: Final = 10


class Recalls(BaseModel):
    """Recalls of one memory that one process collected.

    Attributes:
        count: How many.
        at: When the last of them was; they all count as of then, which is
            seconds after the first.
        instance_id: The process.
        batch: Counts the batches of that process; each is noted once.
        together: Memories in the same answers, and in how many.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    count: int = Field(ge=1)
    at: datetime
    instance_id: str
    batch: int = Field(ge=0)
    together: tuple[Together, ...] = ()


def accessed(memory: AnyMemory, recalls: Recalls, rules: LifecycleRules) -> AnyMemory | None:
    """``memory`` after these recalls; None if they are noted on it already.

    E <- E x e^(-decay x hours since) + 1 for each. Batches of several processes
    give the same in whichever order they arrive.
    """
    vitals = memory.vitals or Vitals()
    if _noted(vitals.flushes, recalls):
        return None
    policy = Energy(rules.energy)
    energy, energy_at = _risen(memory, policy, recalls)
    peak = max(energy, vitals.peak_energy or 0.0)
    lived = vitals.model_copy(
        update={
            "energy": energy,
            "energy_at": energy_at,
            "peak_energy": peak,
            "flushes": _with_batch(vitals.flushes, recalls),
            "together": _counted(vitals.together, recalls.together),
        }
    )
    last = memory.last_accessed_at
    after = memory.model_copy(
        update={
            "access_count": memory.access_count + recalls.count,
            "last_accessed_at": recalls.at if last is None else max(last, recalls.at),
            "vitals": lived,
        }
    )
    return _coactivated(after, recalls, rules)


def _risen(memory: AnyMemory, policy: Energy, recalls: Recalls) -> tuple[float, datetime]:
    energy, at = policy.written(memory)
    latest = max(at, recalls.at)
    added = recalls.count * policy.rules.per_access * policy.left(memory, recalls.at, latest)
    return energy * policy.left(memory, at, latest) + added, latest


def _noted(flushes: Iterable[str], recalls: Recalls) -> bool:
    for entry in flushes:
        instance, _, batch = entry.rpartition(":")
        if instance == recalls.instance_id:
            return int(batch) >= recalls.batch
    return False


def _with_batch(flushes: tuple[str, ...], recalls: Recalls) -> tuple[str, ...]:
    prefix = f"{recalls.instance_id}:"
    others = tuple(entry for entry in flushes if not entry.startswith(prefix))
    return (*others, f"{prefix}{recalls.batch}")[-REMEMBERED_INSTANCES:]


def _counted(before: tuple[Together, ...], added: tuple[Together, ...]) -> tuple[Together, ...]:
    # The new ones first, so that of equal counts the oldest is forgotten.
    counts = {one.memory_id: one.count for one in added}
    for one in before:
        counts[one.memory_id] = counts.get(one.memory_id, 0) + one.count
    best = sorted(counts.items(), key=lambda item: -item[1])[:MOST_TOGETHER]
    return tuple(Together(memory_id=memory_id, count=count) for memory_id, count in best)


def _coactivated(memory: AnyMemory, recalls: Recalls, rules: LifecycleRules) -> AnyMemory:
    """Linked with what was recalled with it often enough (from three times on)."""
    if not isinstance(memory, DerivedMemory) or memory.vitals is None:
        return memory
    seen_now = {one.memory_id for one in recalls.together}
    after: DerivedMemory = memory
    for one in memory.vitals.together:
        if one.memory_id in seen_now and one.count >= rules.edges.coactivations:
            sure = min(one.count / _SURE, 1.0)
            kind, observed = LinkKind.COACTIVATED, Observed.at(recalls.at)
            more = linked(after, one.memory_id, kind, sure, observed, rules=rules.edges)
            after = more or after
    return after  # type: ignore[return-value]  # a copy of an AnyMemory is one


# --- being recalled is an access: collected in memory, noted in batches
#
# Collecting costs a few dictionary entries per answer. What waits is noted every
# few seconds, in a lull, when much waits, and on a clean stop; a batch that was written but
# not acknowledged is written again and counts once.

MOST_TRIES: Final = 5
"""How often what was refused for good is tried; whoever cannot be reached is tried on and on."""
NOTED_AT_ONCE: Final = 16
"""Memories that are noted in one go, in some milliseconds; whoever recalls waits so long."""
# With so many others a memory is counted between two batches; of all of them it keeps the best 32.
_MOST_COUNTED_TOGETHER = 8 * MOST_TOGETHER
# Seconds between two such goes, which belong to whoever recalls.
_PAUSE: Final = 0.01
MOST_HELD: Final = 50_000
"""Memories whose recalls wait or are being noted; what comes on top of them is counted and dropped.

Some 50 MB: so many gather where a store that can be read takes no writes for hours."""
MOST_PAIRED: Final = 6
"""Only the best so many answers count as recalled together: 15 pairs at most."""

_log = structlog.get_logger("engram.accesses")


@dataclass(slots=True)
class _WaitingAccesses:
    """What was recalled of one memory since the last batch."""

    kind: MemoryType
    at: datetime
    count: int = 0
    together: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Batch:
    number: int
    memories: Mapping[str, _WaitingAccesses]
    tries: int = 0


class AccessLog:
    """Collects what recall brings up, and notes it on the memories.

    Args:
        repository: Where memories are kept; it stamps what it writes.
        rules: By which energy rises.
        instance_id: Names this process, and no other, ever.
        new_write_id: Makes a fresh value for each write.
        interval: How long something waits at most before it is noted.
        most: So many waiting memories are noted at once.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        rules: LifecycleRules,
        *,
        instance_id: str,
        new_write_id: NewWriteId,
        interval: timedelta,
        most: int,
    ) -> None:
        self._repository = repository
        self._rules = rules
        self._instance_id = instance_id
        self._new_write_id = new_write_id
        self._interval = interval.total_seconds()
        self._most = most
        self._waiting: dict[Scope, dict[str, _WaitingAccesses]] = {}
        self._count = 0
        # Of the batches that are not known to be written.
        self._tried = 0
        self._dropped = 0
        self._refused = False
        # A batch keeps its number until it is known to be written.
        self._unwritten: dict[Scope, _Batch] = {}
        self._batches = 0
        self._timer: asyncio.TimerHandle | None = None
        self._running: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._closed = False

    @property
    def pending(self) -> bool:
        """Whether something is not known to be written yet."""
        return bool(self._waiting or self._unwritten)

    def note(self, scope: Scope, memories: Sequence[AnyMemory], now: datetime) -> None:
        """These memories, best first, were an answer at ``now``. Writes nothing yet."""
        if not memories:
            return
        waiting = self._waiting.setdefault(scope, {})
        for memory in memories:
            entry = waiting.get(memory.id)
            if entry is None:
                if self._count + self._tried >= MOST_HELD:
                    self._dropped += 1
                    continue
                entry = waiting[memory.id] = _WaitingAccesses(memory.type, now)
                self._count += 1
            entry.count += 1
            entry.at = max(entry.at, now)
        if not waiting:
            del self._waiting[scope]
            return
        _pair(waiting, memories[:MOST_PAIRED])
        # A store that takes none is asked by the clock, not with each recall.
        if self._count >= self._most and not self._refused:
            self._begin()
        elif self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._interval, self._begin)

    async def flush(self) -> None:
        """Note everything that waits.

        Raises:
            EngramError: some of it could not be noted. It waits on, and counts
                once however often this is tried.
        """
        async with self._lock:
            failed: EngramError | None = None
            # First what was tried before: batches of one memory are noted in order.
            for scope in [*self._unwritten, *self._waiting]:
                try:
                    await self._flush_scope(scope)
                except EngramError as error:
                    failed = error
            if failed is not None:
                raise failed

    async def close(self) -> None:
        """Note everything that waits, and stop. A store that is gone is reported in the log."""
        self._closed = True
        self._cancel_timer()
        if self._running is not None:
            with suppress(asyncio.CancelledError), wanted():
                await self._running
        try:
            await self.flush()
        except EngramError as error:
            _log.error(
                "recalls could not be noted before closing",
                code=error.code,
                memories=self._count + self._tried,
            )

    async def _flush_scope(self, scope: Scope) -> None:
        if scope in self._unwritten:
            await self._write(scope, self._unwritten[scope])
        waiting = self._waiting.pop(scope, None)
        if waiting:
            self._count -= len(waiting)
            self._tried += len(waiting)
            self._batches += 1
            batch = self._unwritten[scope] = _Batch(self._batches, waiting)
            await self._write(scope, batch)

    async def _write(self, scope: Scope, batch: _Batch) -> None:
        try:
            await self._write_those(scope, batch, batch.memories)
        except Exception as error:
            if isinstance(error, EngramError) and error.retryable:
                raise
            await self._write_each(scope, batch)
        self._tried -= len(self._unwritten.pop(scope).memories)

    async def _write_each(self, scope: Scope, batch: _Batch) -> None:
        """Note all that can be noted: what cannot must not hold up the others for ever.

        Raises:
            EngramError: why the rest could not; it is dropped when it was tried often enough.
        """
        left: dict[str, _WaitingAccesses] = {}
        why: EngramError | None = None
        for memory_id, entry in batch.memories.items():
            try:
                await self._write_those(scope, batch, (memory_id,))
            except EngramError as error:
                left[memory_id], why = entry, error
            except Exception as error:  # noqa: BLE001 - typed, and raised below
                kind = type(error).__name__
                left[memory_id], why = entry, UnforeseenFailure(f"Noting failed with {kind}.")
        if why is None:
            return
        if batch.tries + 1 < MOST_TRIES:
            self._tried -= len(batch.memories) - len(left)
            self._unwritten[scope] = _Batch(batch.number, left, batch.tries + 1)
            raise why
        _log.error("recalls cannot be noted and are dropped", memories=len(left), code=why.code)

    async def _write_those(self, scope: Scope, batch: _Batch, ids: Iterable[str]) -> None:
        def change(memory: AnyMemory) -> AnyMemory | None:
            return accessed(memory, self._recalls(batch, memory.id), self._rules)

        by_kind: dict[MemoryType, list[str]] = {}
        for memory_id in ids:
            by_kind.setdefault(batch.memories[memory_id].kind, []).append(memory_id)
        for kind, of_kind in by_kind.items():
            for start in range(0, len(of_kind), NOTED_AT_ONCE):
                await update_memories(
                    self._repository,
                    scope,
                    of_kind[start : start + NOTED_AT_ONCE],
                    change,
                    new_write_id=self._new_write_id,
                    types=(kind,),
                )
                if not self._closed and len(batch.memories) > NOTED_AT_ONCE:
                    await asyncio.sleep(_PAUSE)

    def _recalls(self, batch: _Batch, memory_id: str) -> Recalls:
        entry = batch.memories[memory_id]
        return Recalls(
            count=entry.count,
            at=entry.at,
            instance_id=self._instance_id,
            batch=batch.number,
            together=tuple(
                Together(memory_id=other, count=count) for other, count in entry.together.items()
            ),
        )

    def _begin(self) -> None:
        self._cancel_timer()
        if not self._closed and (self._running is None or self._running.done()):
            self._running = asyncio.get_running_loop().create_task(self._flush_quietly())

    async def _flush_quietly(self) -> None:
        try:
            if self._count < self._most:
                # Whoever asks often is answered with much the same: noted once for more of them.
                await lull()
            await self.flush()
            while self._count >= self._most and not self._closed:
                await self.flush()
            self._refused = False
        except EngramError as error:
            self._refused = True
            _log.warning("recalls could not be noted; trying again", code=error.code)
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            _log.error("too many recalls wait to be noted; some were dropped", recalls=dropped)
        if self.pending and self._timer is None and not self._closed:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._interval, self._begin)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _pair(waiting: Mapping[str, _WaitingAccesses], memories: Sequence[AnyMemory]) -> None:
    """Count conclusions that answered together; tests and what is real never meet.

    A summary gives way to the next one before it has come to be anybody's company.
    """
    paired = [m for m in memories if isinstance(m, DerivedMemory) and not is_summary(m)]
    for one in paired:
        if one.id not in waiting:
            continue
        together = waiting[one.id].together
        for other in paired:
            known = other.id in together or len(together) < _MOST_COUNTED_TOGETHER
            if known and other.id != one.id and other.is_test == one.is_test:
                together[other.id] = together.get(other.id, 0) + 1
