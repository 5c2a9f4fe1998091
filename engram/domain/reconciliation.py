"""What new statements mean for what is known: a pure function to a plan (rows K5, W6, C3)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from engram.domain.circumstances import Circumstances
from engram.domain.corroboration import corroborated
from engram.domain.histories import change, history
from engram.domain.memories import MemoryStatus, SemanticMemory, Slot, Telling
from engram.domain.plan import (
    Action,
    ActionSource,
    ConsolidationPlan,
    Discard,
    Eligibility,
    LifecycleState,
    StoreNote,
    UpdateNote,
)
from engram.domain.slots import is_functional, slot_of, timeline_key
from engram.domain.statements import Statement
from engram.domain.timeline import Told

__all__ = ["Circumstances", "reconcile"]


def reconcile(
    statements: Sequence[Statement],
    known: Iterable[SemanticMemory],
    circumstances: Circumstances,
) -> ConsolidationPlan:
    """Decide what becomes of each statement.

    Args:
        statements: What a model found, in any order.
        known: Every memory that could matter: all generations of the same
            contents, whatever shares a timeline, current or replaced.
        circumstances: Scope, time, episodes and provenance.

    Returns:
        The plan. Reconciling the same statements with what the plan leads to
        gives a plan that changes nothing.
    """
    remembered, actions = tuple(known), list[Action]()
    for is_test in (False, True):
        # What test turns state never meets what real ones do (row D14).
        side = circumstances.side(is_test=is_test)
        stated = [s for s in statements if side.sources(s)]
        if stated:
            here = {m.id: m for m in remembered if m.is_test == is_test}
            actions += _reconciled(stated, here, side)
    unsourced = [
        Discard(why=f"none of its sources exists any more: {s.content}"[:500])
        for s in statements
        if not circumstances.sources(s)
    ]
    return ConsolidationPlan(actions=(*actions, *unsourced))


def _reconciled(
    statements: Sequence[Statement],
    known: dict[str, SemanticMemory],
    circumstances: Circumstances,
) -> list[Action]:
    slots = [_slot(statement) for statement in statements]
    timelines: dict[tuple[str, ...], list[Told]] = {timeline_key(s): [] for s in slots if s}
    desk = _Desk(circumstances, known, timelines)
    told = [(circumstances.telling(s), s) for s in statements]
    sourced = [(telling, s) for telling, s in told if telling is not None]
    for telling, statement in sorted(sourced, key=lambda pair: _order(*pair)):
        desk.take(statement, telling)
    return desk.actions()


@dataclass
class _Desk:
    circumstances: Circumstances
    known: dict[str, SemanticMemory]
    # What is told of each timeline that is known as a whole. Also of those of which
    # nothing new is told: an earlier run may have ended half way.
    timelines: dict[tuple[str, ...], list[Told]]
    new: dict[str, SemanticMemory] = field(default_factory=dict)
    updates: dict[str, UpdateNote] = field(default_factory=dict)
    repeats: list[Discard] = field(default_factory=list)
    taken: dict[str, list[Told]] = field(default_factory=dict)

    def take(self, statement: Statement, telling: Telling) -> None:
        """Let one statement confirm what is known, or become something new."""
        identity = self.circumstances.identity(statement)
        alike = [m for m in self._all() if m.identity == identity]
        slot = _slot(statement)
        read = next((m for m in alike if _has_read(m.source_episode_ids, telling)), None)
        if read is not None or self._has_taken(identity, telling):
            self._repeat(read, statement)
            return
        same = self._in_the_same_words(alike, slot)
        if same is not None:
            slot = same.slot
        elif slot is None and identity in self.taken:
            # The same words in the same batch, understood a moment before.
            slot = self.taken[identity][0].slot
        if slot is not None and timeline_key(slot) in self.timelines:
            told = Told(slot, telling, statement=statement)
            self.timelines[timeline_key(slot)].append(told)
            self.taken.setdefault(identity, []).append(told)
        elif same is None:
            self._new(statement, telling)
        else:
            self._confirm(same, telling, statement)

    def actions(self) -> list[Action]:
        """The plan so far: new memories, confirmations, and who gives way to whom."""
        for key, told in self.timelines.items():
            self._settle(key, told)
        contents = {m.id: m.content for m in self._all()}
        stored = [
            StoreNote(why=_why_new(m, contents), eligibility=_eligibility(m), memory=m)
            for m in self.new.values()
        ]
        updates = [u for u in self.updates.values() if u.amends or u.supersession is not None]
        return [*stored, *updates, *self.repeats]

    def _repeat(self, read: SemanticMemory | None, statement: Statement) -> None:
        if read is None or read.id not in self.known:
            return
        why = f"read before from the same turns: {statement.content}"[:500]
        self.repeats.append(Discard(why=why, eligibility=_eligibility(read)))

    def _has_taken(self, identity: str, telling: Telling) -> bool:
        taken = self.taken.get(identity, ())
        return any(_has_read(told.telling.episode_ids, telling) for told in taken)

    def _in_the_same_words(
        self, alike: Sequence[SemanticMemory], slot: Slot | None
    ) -> SemanticMemory | None:
        """What says this in these words, if it was understood to be about something else."""
        key = None if slot is None else timeline_key(slot)
        about = [m for m in self._all() if m.slot is not None and timeline_key(m.slot) == key]
        if any(m in alike or m.slot == slot for m in about):
            return None
        return next((m for m in alike if m.status is not MemoryStatus.SUPERSEDED), None)

    def _new(self, statement: Statement, telling: Telling) -> None:
        memory = self._unused(self.circumstances.memory(statement, telling, None))
        self.new[memory.id] = memory

    def _confirm(self, same: SemanticMemory, telling: Telling, statement: Statement) -> None:
        if same.id in self.new:
            # Two turns of one batch say it: one memory with two sources.
            sources = self.circumstances.sources(statement)
            self.new[same.id] = corroborated(same, sources) or same
            return
        update = self._update(same, "said again")
        known = {*same.source_episode_ids, *update.add_sources}
        fresh = tuple(e for e in telling.episode_ids if e not in known)
        tellings = () if same.slot is None else (*update.add_tellings, telling)
        self.updates[same.id] = update.model_copy(
            update={"add_sources": (*update.add_sources, *fresh), "add_tellings": tellings}
        )

    def _settle(self, key: tuple[str, ...], told: Sequence[Told]) -> None:
        known = {m.id: m for m in self.known.values() if m.slot and timeline_key(m.slot) == key}
        after = history(known, told, self._begun)
        contents = {memory.id: memory.content for memory in after}
        for memory in after:
            if memory.id in known:
                before = known[memory.id]
                update = self._update(before, _why_changed(before, memory, contents))
                self.updates[memory.id] = change(before, memory, update, known)
            else:
                self.new[memory.id] = memory

    def _begun(self, told: Told) -> SemanticMemory:
        if told.statement is not None:
            memory = self.circumstances.memory(told.statement, told.telling, told.slot)
        else:
            memory = self.circumstances.part(self.known[told.carriers[0]])
        memory = self._unused(memory)
        # Noted at once, so that the next of the same words gets the next generation.
        self.new[memory.id] = memory
        return memory

    def _unused(self, memory: SemanticMemory) -> SemanticMemory:
        used = (m.generation for m in self._all() if m.identity == memory.identity)
        return self.circumstances.generation(memory, 1 + max(used, default=-1))

    def _update(self, memory: SemanticMemory, why: str) -> UpdateNote:
        return self.updates.get(memory.id) or UpdateNote(
            memory_id=memory.id, why=why, eligibility=_eligibility(memory)
        )

    def _all(self) -> Iterable[SemanticMemory]:
        return (*self.known.values(), *self.new.values())


def _slot(statement: Statement) -> Slot | None:
    return slot_of(statement.subject, statement.predicate, statement.object, holds=statement.holds)


def _order(telling: Telling, statement: Statement) -> tuple[datetime, datetime, str]:
    return telling.event_at, telling.known_at, statement.content


def _has_read(sources: Iterable[str], telling: Telling) -> bool:
    return set(telling.episode_ids) <= set(sources)


def _eligibility(memory: SemanticMemory) -> Eligibility:
    return Eligibility(
        confidence=memory.confidence.extraction,
        state=LifecycleState.CANDIDATE,
        importance=memory.importance,
        source=ActionSource.EXTRACTION,
    )


def _why_changed(before: SemanticMemory, after: SemanticMemory, contents: dict[str, str]) -> str:
    if after.superseded_by is not None and after.superseded_by != before.superseded_by:
        return f"replaced by what began to hold then: {contents[after.superseded_by]}"[:500]
    if after.superseded_by is None and before.superseded_by is not None:
        return "holds after all, by everything that was said"
    if len(after.tellings) > len(before.tellings):
        return "said again"
    return "its place in the history became known"


def _why_new(memory: SemanticMemory, contents: dict[str, str]) -> str:
    if memory.superseded_by is not None:
        return f"history already, replaced by: {contents[memory.superseded_by]}"[:500]
    if memory.supersedes:
        return f"replaces what held before: {contents[memory.supersedes[-1]]}"[:500]
    if memory.generation:
        return "holds again after it had been replaced"
    if memory.slot is None:
        return "not known before"
    kind = "one value at a time" if is_functional(memory.slot) else "not known before"
    return f"{memory.slot.subject}, {memory.slot.predicate}: {kind}"[:500]
