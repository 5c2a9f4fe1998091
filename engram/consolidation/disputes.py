"""Settling disputes on both ends: what is refuted, what stands, and who no longer argues."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from engram.consolidation.apply import PlanWriter
from engram.consolidation.findings import FindingsStore
from engram.consolidation.places import places, timeline_of
from engram.consolidation.reconcile import in_force
from engram.consolidation.timeline import TimelineEntry, history
from engram.contracts.reviews import DisputeFound, DisputeState
from engram.domain.memories import (
    AnyMemory,
    DerivedMemory,
    Episode,
    Fact,
    MemoryStatus,
    NegationFact,
    ProceduralMemory,
    SemanticMemory,
    not_replaced,
    replacing,
)
from engram.domain.plan import ConsolidationPlan
from engram.domain.rules import LifecycleRules
from engram.domain.scope import Scope
from engram.domain.slots import ends_something
from engram.lifecycle import decisions
from engram.lifecycle.decisions import disputed
from engram.lifecycle.policies import disputed_with, is_refuted
from engram.lifecycle.promotion_pass import follow_sources
from engram.ports import Embedder, MemoryRepository
from engram.storage.updates import NewWriteId, update_memories

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
        embedder: Gives a memory its vectors that comes into being where another comes back in
            the middle of what it says.
    """

    repository: MemoryRepository
    rules: LifecycleRules
    new_write_id: NewWriteId
    embedder: Embedder

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
            await self._update(scope, ended, lambda memory: _freed(memory, disputed_with(memory)))
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
                after = replacing(after, refuted)
            if isinstance(after, SemanticMemory):
                told = _with(after.settled_with, sorted(beside))
                after = after.model_copy(update={"settled_with": told})
            return after

        await self._update(scope, kept, stand)
        await self.place_again(scope, kept, now)
        await follow_sources(self.repository, scope, kept, self.new_write_id)

    async def rivals(self, scope: Scope, memory: AnyMemory) -> tuple[str, ...]:
        """What gives way if a person confirms ``memory``.

        That is what it contradicts and what was kept for it; of what answered until it was
        refuted, also what would have taken its place: its timeline went on without it.
        """
        beaten = decisions.rivals_of(memory)
        if not isinstance(memory, DerivedMemory) or not _left_when_refuted(memory):
            return beaten
        if isinstance(memory, Fact):
            return _with(beaten, await self._facts.told_after(scope, memory))
        timeline = await timeline_of(self.repository, scope, memory)
        if memory.id not in timeline:
            return beaten
        # What was kept for it and is older is no rival any more: it held until this began to.
        beaten = tuple(one for one in beaten if one not in timeline)
        return _with(beaten, closing(timeline, memory.id))

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
            await self.bring_back(scope, (await self._read(scope, memory_ids)).values())

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
        rivals = {one for memory in found.values() for one in disputed_with(memory)}
        others = rivals - {*memory_ids, heir}
        await self._update(scope, sorted(others), lambda memory: _freed(memory, memory_ids))

    async def bring_back(self, scope: Scope, refuted: Iterable[AnyMemory]) -> None:
        """Let what memories replaced hold again: nothing took its place if they are not so.

        Where something replaced such a memory in turn, this is what took its place. To be called
        before they are refuted: whoever does it again finds what is left to do.

        Args:
            scope: Whose they are.
            refuted: What is going to be refuted.
        """
        going = {one.id: one for one in refuted if isinstance(one, DerivedMemory)}
        for memory in going.values():
            timeline = await timeline_of(self.repository, scope, memory)
            await self._bring_back(scope, memory, timeline)
            without = (_as_refuted(one) if key in going else one for key, one in timeline.items())
            await self._write(scope, places(scope, without, memory.derived_at))

    async def _bring_back(
        self, scope: Scope, refuted: DerivedMemory, timeline: Collection[str]
    ) -> None:
        """What it replaced beyond its timeline, and the promises that it ended."""
        by = None if is_refuted(refuted) else refuted.superseded_by  # type: ignore[arg-type]  # every derived memory is an AnyMemory
        heir = (await self._read(scope, (by,))).get(by) if by else None
        beyond = tuple(one for one in refuted.supersedes if one not in timeline)
        if heir is not None and beyond:
            await self._update(
                scope, (heir.id,), lambda memory: decisions.in_place_of(memory, beyond)
            )

        def back(memory: AnyMemory) -> AnyMemory:
            memory = _promised_still(memory, refuted)
            return _without_successor(memory, refuted, heir) if memory.id in beyond else memory

        await self._update(scope, refuted.supersedes, back)
        await follow_sources(self.repository, scope, refuted.supersedes, self.new_write_id)

    async def place_again(self, scope: Scope, memory_ids: Collection[str], now: datetime) -> None:
        """Give memories that were confirmed their place among what holds, and held before.

        To be called after they are: whoever does it again changes nothing.

        Args:
            scope: Whose they are.
            memory_ids: What was confirmed.
            now: The present.
        """
        for memory in (await self._read(scope, memory_ids)).values():
            if isinstance(memory, Fact):
                await self._facts.place_again(scope, memory)
            timeline = await timeline_of(self.repository, scope, memory)
            await self._write(scope, places(scope, timeline.values(), now))

    async def _write(self, scope: Scope, plan: ConsolidationPlan) -> None:
        if plan.actions:
            writer = PlanWriter(self.repository, self.embedder, self.new_write_id)
            await writer.apply(scope, plan)

    @property
    def _facts(self) -> FindingsStore:
        return FindingsStore(self.repository, self.embedder, self.new_write_id)

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
    # What has left the answers does not hold, however new it is, and however many turns say it.
    left = {one for one in found if found[one].status is not MemoryStatus.ACTIVE}
    newest.sort(key=left.__contains__)
    supported = sorted(
        newest, key=lambda one: (one in left, -found[one].confidence.supporting_episodes)
    )
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
        for other in disputed_with(memory)
        if other in found
    }
    if not argued:
        return DisputeState.SETTLED
    over = {one for one, memory in found.items() if _is_over(memory)}
    return DisputeState.HALFWAY if refuted or over else DisputeState.OPEN


def closing(timeline: Mapping[str, SemanticMemory], memory_id: str) -> tuple[str, ...]:
    """What a memory would have given way to, were it not refuted, and to what then, and so on.

    And what was told of the same moment. What is older gives way to it instead; what says the
    same stands for both.

    Args:
        timeline: All of it.
        memory_id: The memory.
    """
    known = dict(timeline)
    memory = known[memory_id] = decisions.taken_back(known[memory_id])
    beaten: list[str] = []
    while True:
        carriers: dict[str, str] = {}

        def part(told: TimelineEntry, carriers: dict[str, str] = carriers) -> SemanticMemory:
            whose = known[told.carriers[0]]
            made = whose.model_copy(update={"id": f"{whose.id}-{len(carriers)}"})
            carriers[made.id] = whose.id
            return made

        placed = {one.id: one for one in history(in_force(known.values()), (), part)}
        by = placed[memory_id].superseded_by or ""
        closer = known.get(carriers.get(by, by))
        # What it says again since stands for it.
        again = any(m.superseded_by is None and m.slot == memory.slot for m in placed.values())
        if closer is None or again:
            return (*beaten, *placed[memory_id].disputed_with)
        beaten.append(closer.id)
        del known[closer.id]


def _left_when_refuted(memory: DerivedMemory) -> bool:
    """Whether it answered until it was refuted; what was history by then, is history again."""
    at, left = memory.refuted_at, memory.superseded_known_at
    return at is not None and (left is None or left >= at)


def _as_refuted(memory: SemanticMemory) -> SemanticMemory:
    return memory.model_copy(update={"refuted_at": memory.refuted_at or memory.derived_at})


def _promised_still(memory: AnyMemory, refuted: DerivedMemory) -> AnyMemory:
    """A promise whose end is refuted: it is none."""
    slot = refuted.slot if isinstance(refuted, SemanticMemory) else None
    if slot is None or not ends_something(slot) or not isinstance(memory, SemanticMemory):
        return memory
    if memory.superseded_by != refuted.id or is_refuted(memory):
        return memory
    return memory.model_copy(update={"resolution": None, "resolved_at": None})


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
    if isinstance(memory, SemanticMemory) and memory.duplicate_of == refuted.id:
        return memory
    if heir is None:
        return decisions.holding_again(memory)
    return _succeeded(not_replaced(memory), heir)


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


def _with(ids: tuple[str, ...], more: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*ids, *more)))


def _age(memory: Conclusion) -> tuple[datetime, datetime, datetime]:
    return memory.event_at, memory.confidence.last_confirmed, memory.derived_at
