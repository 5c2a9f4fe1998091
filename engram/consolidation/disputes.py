"""Settling disputes on both ends: what is refuted, what stands, and who no longer argues."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from engram.contracts.reviews import DisputeFound, DisputeState
from engram.domain.memories import (
    NOT_REPLACED,
    AnyMemory,
    DerivedMemory,
    Episode,
    Fact,
    MemoryStatus,
    NegationFact,
    ProceduralMemory,
    SemanticMemory,
    Slot,
)
from engram.domain.rules import LifecycleRules
from engram.domain.scope import Scope
from engram.domain.slots import ends_something, related_predicates, timeline_key
from engram.lifecycle import decisions
from engram.lifecycle.decisions import disputed
from engram.lifecycle.policies import is_refuted
from engram.lifecycle.promotion_pass import follow_sources
from engram.ports import AnyOf, Equals, Filter, MemoryRepository
from engram.storage.updates import NewWriteId, every_page, update_memories

Conclusion: TypeAlias = Fact | SemanticMemory | ProceduralMemory | NegationFact


@dataclass(frozen=True, slots=True)
class DisputeSettler:
    """Settles disputes in the store. Every method may run twice, and go on after a crash.

    What stands is written last: until then it names what it was in dispute with, by which
    whoever comes next sees what is left to do.

    Args:
        repository: Where memories are kept; it stamps what it writes.
        rules: By which memories live.
        new_write_id: Makes a fresh value for each write.
    """

    repository: MemoryRepository
    rules: LifecycleRules
    new_write_id: NewWriteId

    async def settle(
        self,
        scope: Scope,
        now: datetime,
        *,
        kept: Sequence[str],
        refuted: Sequence[str],
        confirmed: bool,
    ) -> None:
        """Let some memories stand, and refute others.

        Args:
            scope: Whose they are.
            now: The present.
            kept: What stands; several stand side by side, and are not disputed again.
            refuted: What does not.
            confirmed: Whether a person says that what is kept holds. Where none does, what
                came to its own end is left as it is.
        """
        if not confirmed:
            ended = await self._ended(scope, refuted)
            await self.free_others(scope, ended)
            await self._update(scope, ended, lambda memory: _freed(memory, _disputed_with(memory)))
            refuted = tuple(one for one in refuted if one not in ended)
        elif len(kept) == 1:
            for memory in (await self._read(scope, kept)).values():
                refuted = _with(tuple(refuted), await self.rivals(scope, memory))
        heir = kept[0] if len(kept) == 1 else None
        await self.refute(scope, refuted, heir, now)
        together = frozenset(kept) if len(kept) > 1 else frozenset[str]()

        def stand(memory: AnyMemory) -> AnyMemory:
            if confirmed:
                memory = decisions.confirm(memory, now, self.rules).memory
            beside = together - {memory.id}
            after = _freed(memory, beside | {*refuted})
            if heir is not None and isinstance(after, DerivedMemory):
                after = after.model_copy(update={"supersedes": _with(after.supersedes, refuted)})
            if isinstance(after, SemanticMemory):
                told = _with(after.settled_with, sorted(beside))
                after = after.model_copy(update={"settled_with": told})
            return after

        await self._update(scope, kept, stand)
        await follow_sources(self.repository, scope, kept, self.new_write_id)

    async def rivals(self, scope: Scope, memory: AnyMemory) -> tuple[str, ...]:
        """What gives way if a person confirms ``memory``.

        That is what it contradicts and what was kept for it; of what was refuted, also what
        was told since: its timeline went on without it.
        """
        beaten = decisions.rivals_of(memory)
        if not isinstance(memory, SemanticMemory) or memory.slot is None or not is_refuted(memory):
            return beaten
        slot = memory.slot
        about: Filter = (
            Equals("slot.subject", slot.subject),
            AnyOf("slot.predicate", related_predicates(slot)),
        )
        since = [
            other.id
            async for page in every_page(self.repository, scope, memory.type, where=about)
            for other in page
            if isinstance(other, SemanticMemory) and _stands_instead(other, memory, slot)
        ]
        return _with(beaten, since)

    async def refute(
        self, scope: Scope, memory_ids: Sequence[str], heir: str | None, now: datetime
    ) -> None:
        """Refute memories; what else they were in dispute with is not so any more.

        Args:
            scope: Whose they are.
            memory_ids: What is refuted.
            heir: What stands in their place, and is written after this.
            now: The present.
        """
        await self.free_others(scope, memory_ids, heir)
        if heir is None:
            for memory in (await self._read(scope, memory_ids)).values():
                await self.bring_back(scope, memory)

        def refute(memory: AnyMemory) -> AnyMemory:
            after = decisions.dispute(memory, now, self.rules).memory
            if not isinstance(after, DerivedMemory) or after.refuted_at is None or heir is None:
                return after
            before = tuple(one for one in after.supersedes if one != heir)
            return after.model_copy(update={"superseded_by": heir, "supersedes": before})

        await self._update(scope, memory_ids, refute)
        await follow_sources(self.repository, scope, memory_ids, self.new_write_id)

    async def free_others(
        self, scope: Scope, memory_ids: Sequence[str], heir: str | None = None
    ) -> None:
        """Let whatever was in dispute with these, but for the heir, be so no more."""
        found = await self._read(scope, memory_ids)
        rivals = {one for memory in found.values() for one in _disputed_with(memory)}
        others = rivals - {*memory_ids, heir}
        await self._update(scope, sorted(others), lambda memory: _freed(memory, memory_ids))

    async def bring_back(self, scope: Scope, refuted: AnyMemory) -> None:
        """Let what a memory replaced hold again: nothing took its place if that is not so.

        Where something replaced that memory in turn, this is what took its place. To be called
        before the memory is refuted: whoever does it again finds what is left to do.

        Args:
            scope: Whose it is.
            refuted: What is going to be refuted.
        """
        if not isinstance(refuted, DerivedMemory) or not refuted.supersedes:
            return
        by = None if is_refuted(refuted) else refuted.superseded_by
        heir = (await self._read(scope, (by,))).get(by) if by else None
        if heir is not None:
            await self._update(
                scope, (heir.id,), lambda memory: decisions.in_place_of(memory, refuted.supersedes)
            )
        await self._update(
            scope, refuted.supersedes, lambda memory: _without_successor(memory, refuted, heir)
        )
        await follow_sources(self.repository, scope, refuted.supersedes, self.new_write_id)

    async def retire_again(self, scope: Scope, confirmed: AnyMemory) -> None:
        """Let a memory that comes back replace again what it replaced before it was refuted."""
        if isinstance(confirmed, DerivedMemory) and is_refuted(confirmed):
            await self._update(
                scope, confirmed.supersedes, lambda memory: _succeeded(memory, confirmed)
            )

    async def look(self, scope: Scope, memory_ids: Sequence[str]) -> DisputeFound:
        """How things stand between the memories of a review."""
        return found_between(await self._read(scope, memory_ids), memory_ids)

    async def in_dispute(
        self, scope: Scope, pairs: Iterable[tuple[str, ...]]
    ) -> list[tuple[str, ...]]:
        """Those pairs that are in dispute now."""
        wanted = list(pairs)
        found = await self._read(scope, {one for pair in wanted for one in pair})
        there = [pair for pair in wanted if found.keys() >= {*pair}]
        return [
            pair for pair in there if _state({one: found[one] for one in pair}) is DisputeState.OPEN
        ]

    async def _ended(self, scope: Scope, ids: Sequence[str]) -> tuple[str, ...]:
        found = await self._read(scope, ids)
        return tuple(one for one in ids if one in found and _is_over(found[one]))

    async def _read(self, scope: Scope, ids: Collection[str]) -> dict[str, Conclusion]:
        read = await self.repository.get(scope, ids, fresh=True)
        return {key: memory for key, memory in read.items() if not isinstance(memory, Episode)}

    async def _update(
        self, scope: Scope, ids: Collection[str], change: Callable[[AnyMemory], AnyMemory]
    ) -> None:
        def changed(memory: AnyMemory) -> AnyMemory | None:
            after = change(memory)
            return None if after == memory else after

        await update_memories(self.repository, scope, ids, changed, new_write_id=self.new_write_id)


def disputes_of(memory: AnyMemory | DerivedMemory) -> list[tuple[str, ...]]:
    """What reviews about a memory are about: each pair that it is in, or itself where refuted."""
    pairs = [(memory.id, other) for other in _disputed_with(memory)]
    alone = [(memory.id,)] if isinstance(memory, DerivedMemory) and memory.refuted_at else []
    return [*((min(pair), max(pair)) for pair in pairs), *alone]


def found_between(read: Mapping[str, AnyMemory], memory_ids: Sequence[str]) -> DisputeFound:
    """How things stand between the memories of a review.

    Args:
        read: What is stored, by id; of these memories, and perhaps of others.
        memory_ids: What the review is about.
    """
    found = {
        one: memory
        for one in memory_ids
        if (memory := read.get(one)) is not None and not isinstance(memory, Episode)
    }
    if len(found) < len(memory_ids):
        return DisputeFound(state=DisputeState.FORGOTTEN)
    newest = sorted(found, key=lambda one: (_age(found[one]), one), reverse=True)
    # What has left the answers does not hold, however new it is.
    newest.sort(key=lambda one: found[one].status is not MemoryStatus.ACTIVE)
    supported = sorted(newest, key=lambda one: -found[one].confidence.supporting_episodes)
    return DisputeFound(
        state=_state(found),
        newest_first=tuple(newest),
        best_supported_first=tuple(supported),
        refuted=tuple(one for one in memory_ids if is_refuted(found[one]) or _is_over(found[one])),
        replaced=tuple({one: None for memory in found.values() for one in memory.supersedes}),
    )


def _state(found: Mapping[str, Conclusion]) -> DisputeState:
    """How things stand between memories that all exist."""
    refuted = {one for one, memory in found.items() if is_refuted(memory)}
    if len(found) == 1:
        return DisputeState.OPEN if refuted else DisputeState.SETTLED
    argued = {
        (one, other)
        for one, memory in found.items()
        for other in _disputed_with(memory)
        if other in found
    }
    if not argued:
        return DisputeState.SETTLED
    over = {one for one, memory in found.items() if _is_over(memory)}
    return DisputeState.HALFWAY if refuted or over else DisputeState.OPEN


def _stands_instead(other: SemanticMemory, memory: SemanticMemory, slot: Slot) -> bool:
    """Whether it stands where ``memory``, of this slot, would; or has given way to it already."""
    if other.slot is None or other.id == memory.id or other.is_test != memory.is_test:
        return False
    if other.id in memory.supersedes and not is_refuted(other):
        # It gives way as what held before, and is not refuted by that.
        return False
    if timeline_key(other.slot) != timeline_key(slot):
        return False
    if ends_something(other.slot) and other.slot.object != slot.object:
        return False
    return other.status is MemoryStatus.ACTIVE or (
        is_refuted(other) and other.superseded_by == memory.id
    )


def _without_successor(
    memory: AnyMemory, refuted: DerivedMemory, heir: Conclusion | None
) -> AnyMemory:
    """``memory`` as if what is refuted had not replaced it; a duplicate says the same and stays.

    So does what the user disputes: it is refuted then.
    """
    if not isinstance(memory, DerivedMemory) or memory.superseded_by != refuted.id:
        return memory
    if is_refuted(memory) or memory.status is not MemoryStatus.SUPERSEDED:
        return memory
    semantic = isinstance(memory, SemanticMemory)
    if isinstance(memory, SemanticMemory) and memory.duplicate_of == refuted.id:
        return memory
    slot = refuted.slot if isinstance(refuted, SemanticMemory) else None
    if semantic and slot is not None and ends_something(slot):
        # It was no end of a promise, either.
        memory = memory.model_copy(update={"resolution": None, "resolved_at": None})
    if heir is None:
        return decisions.holding_again(memory)
    return _succeeded(memory.model_copy(update=NOT_REPLACED), heir)


def _succeeded(memory: AnyMemory, by: Conclusion) -> AnyMemory:
    """``memory`` as what held until the other began to."""
    if not isinstance(memory, DerivedMemory) or memory.status is not MemoryStatus.ACTIVE:
        return memory
    if is_refuted(memory) or memory.id == by.id:
        return memory
    return memory.model_copy(
        update={
            "status": MemoryStatus.SUPERSEDED,
            "superseded_by": by.id,
            "superseded_known_at": max(memory.known_at, by.known_at),
            "valid_to": max(memory.event_at, by.event_at),
        }
    )


def _is_over(memory: Conclusion) -> bool:
    """Whether it came to its own end, so that it contradicts nothing any more."""
    return memory.status is MemoryStatus.EXPIRED


def _freed(memory: AnyMemory, of: Collection[str]) -> AnyMemory:
    """``memory`` without its disputes with these."""
    return disputed(memory, with_=(), settled=of) if isinstance(memory, SemanticMemory) else memory


def _disputed_with(memory: AnyMemory | DerivedMemory) -> tuple[str, ...]:
    return memory.disputed_with if isinstance(memory, SemanticMemory) else ()


def _with(ids: tuple[str, ...], more: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*ids, *more)))


def _age(memory: Conclusion) -> tuple[datetime, datetime, datetime]:
    return memory.event_at, memory.confidence.last_confirmed, memory.derived_at
