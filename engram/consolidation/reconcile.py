"""Reconciliation of new statements with what is known: a pure function to a plan.

Each statement confirms a memory, joins what is told of its slot, or becomes a memory of its own
(``_PlanBuilder.take``). What replaces what is decided in ``engram/consolidation/timeline.py``, from
all that was told of a slot; here it becomes actions, each with its reason. What a linking model
says of two memories is judged in ``engram/consolidation/decisions.py``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from engram.consolidation.amendments import (
    corroborated,
    evident,
    folded,
    has_read,
    has_source,
    until_told,
    with_traits,
)
from engram.consolidation.decisions import settled
from engram.consolidation.implied import with_implied
from engram.consolidation.keep import Circumstances, keep_verbatim
from engram.consolidation.summaries import summaries
from engram.consolidation.timeline import TimelineEntry, change, history
from engram.domain.identity import normalise
from engram.domain.memories import (
    Category,
    Episode,
    Evidence,
    MemoryForm,
    MemoryKind,
    MemoryStatus,
    Resolution,
    SemanticMemory,
    Slot,
    Telling,
)
from engram.domain.plan import (
    Action,
    ConsolidationPlan,
    Discard,
    Ending,
    Reason,
    Statement,
    StoreEpisode,
    StoreNote,
    UpdateNote,
    eligibility_of,
)
from engram.domain.slots import (
    ends_something,
    held_predicate,
    is_functional,
    replaced_by,
    slot_of,
    timeline_key,
)
from engram.language.text import bare_stems
from engram.lifecycle.policies import is_outcome

_THE_USER = re.compile(r"\bthe user\b")

# --- why a plan does what it does: as a code for counting, and in words for people


def storing(memory: SemanticMemory, contents: dict[str, str]) -> Action:
    """Storing a memory: what happened is an episode, what holds is a note."""
    kind = StoreEpisode if memory.kind is MemoryKind.EPISODE else StoreNote
    reason = Reason.HOLDS_AGAIN if memory.generation else Reason.NEW
    return kind(
        why=_why_new(memory, contents),
        reason=reason,
        eligibility=eligibility_of(memory),
        memory=memory,
    )


def why_changed(
    before: SemanticMemory, after: SemanticMemory, contents: dict[str, str]
) -> tuple[Reason, str]:
    """What an update that makes one of the other is for."""
    if after.superseded_by is not None and after.superseded_by != before.superseded_by:
        why = f"replaced by what began to hold then: {contents[after.superseded_by]}"[:500]
        return Reason.REPLACED, why
    if after.superseded_by is None and before.superseded_by is not None:
        return Reason.REINSTATED, "holds after all, by everything that was said"
    if set(after.disputed_with) - set(before.disputed_with):
        return Reason.DISPUTED, "another value was told of the same moment, and nothing orders them"
    if after.disputed_with != before.disputed_with:
        return Reason.SETTLED, "a later telling says which value holds"
    if len(after.tellings) > len(before.tellings):
        return Reason.SAID_AGAIN, "said again"
    return Reason.PLACED, "its place in the history became known"


def _why_new(memory: SemanticMemory, contents: dict[str, str]) -> str:
    if memory.superseded_by is not None:
        return f"history already, replaced by: {contents[memory.superseded_by]}"[:500]
    if memory.supersedes and memory.supersedes[-1] in contents:
        return f"replaces what held before: {contents[memory.supersedes[-1]]}"[:500]
    if memory.generation:
        return "holds again after it had been replaced"
    if memory.slot is None:
        return "not known before"
    kind = "one value at a time" if is_functional(memory.slot) else "not known before"
    return f"{memory.slot.subject}, {memory.slot.predicate}: {kind}"[:500]


# --- what new statements mean for what is known: a pure function to a plan


def reconcile(
    statements: Sequence[Statement],
    known: Iterable[SemanticMemory],
    circumstances: Circumstances,
    verbatim: Iterable[Episode] = (),
    *,
    summed_up: bool = True,
) -> ConsolidationPlan:
    """Decide what becomes of each statement.

    Args:
        statements: What a model found, in any order.
        known: Every memory that could matter: all generations of the same
            contents, whatever shares a timeline, current or replaced.
        circumstances: Scope, time, episodes and provenance.
        verbatim: Turns with words to be kept as they are.
        summed_up: Whether summaries follow in the same plan; known are then theirs, too.

    Returns:
        The plan. Reconciling the same statements with what the plan leads to
        gives a plan that changes nothing.
    """
    remembered, actions, quoted = tuple(known), list[Action](), tuple(verbatim)
    for is_test in (False, True):
        # What test turns state never meets what real ones do.
        side = circumstances.side(is_test=is_test)
        about = [m for m in remembered if m.is_test == is_test]
        told = with_implied([s for s in statements if side.sources(s)], about, side)
        stated = _with_whose_words(_with_what_changed(told, about), about, side)
        to_keep = [episode for episode in quoted if episode.is_test == is_test]
        here = {m.id: m for m in remembered if m.is_test == is_test}
        done = _reconciled(stated, here, side)
        actions += [*done, *keep_verbatim(to_keep, here, done, side)]
        if summed_up:
            actions += summaries(here, done, side)
    unsourced = [
        Discard(
            why=f"none of its sources exists any more: {s.content}"[:500], reason=Reason.NO_SOURCE
        )
        for s in statements
        if not circumstances.sources(s)
    ]
    return ConsolidationPlan(actions=(*actions, *unsourced))


def _with_what_changed(
    statements: Sequence[Statement], known: Sequence[SemanticMemory]
) -> list[Statement]:
    """Each statement, and those of a change ("moved to Friday") as of what it changed.

    All generations count, so that a second run decides the same.
    """
    of: dict[str, dict[Slot, tuple[str, tuple[str, ...]]]] = {}
    for memory in sorted(known, key=lambda one: (one.known_at, one.id)):
        if memory.slot is not None and memory.refuted_at is None:
            words = memory.content, memory.source_episode_ids
            of.setdefault(memory.slot.subject, {}).setdefault(memory.slot, words)
    found: list[Statement] = []
    for stated in statements:
        statement, slot = stated, _slot(stated)
        if slot is None:
            found.append(statement)
            continue
        about = of.setdefault(slot.subject, {})
        said = statement.object or ""
        changes = statement.begins and statement.holds
        old = replaced_by(slot, said, about) if changes else None
        if old is None:
            about.setdefault(slot, (statement.content, statement.episode_ids))
        else:
            before, sources = about[old]
            reworded = _reworded(before, old.object, said)
            # That it changed happened once; what it changed to holds.
            now = {
                "predicate": old.predicate,
                "content": reworded or statement.content,
                "kind": MemoryKind.NOTE,
                "worded_by": sources if reworded else (),
            }
            statement = statement.model_copy(update=now)
        found.append(statement)
    return found


def _with_whose_words(
    statements: Sequence[Statement], known: Sequence[SemanticMemory], circumstances: Circumstances
) -> list[Statement]:
    """Each ending with the turn that told what it ends, where only that names it.

    "I sent it over" ends a promise that another conversation put into words.
    """
    told: dict[Slot | None, list[Telling]] = {}
    for memory in known:
        told.setdefault(memory.slot, []).extend(memory.tellings)
    for one in statements:
        telling = circumstances.telling(one)
        if telling is not None:
            told.setdefault(_slot(one), []).append(telling)
    found: list[Statement] = []
    for one in statements:
        slot, telling = _slot(one), circumstances.telling(one)
        said = " ".join(episode.content for episode in circumstances.sources(one))
        named = bare_stems(one.object or "") <= bare_stems(said)
        if slot is None or telling is None or one.holds or one.worded_by or named:
            found.append(one)
            continue
        held = slot.model_copy(update={"predicate": held_predicate(slot)})
        before = [each for each in told.get(held, ()) if each.known_at <= telling.known_at]
        # However they came in batches, the first of them is the same.
        first = min(before, key=lambda each: (each.known_at, each.episode_ids), default=None)
        worded_by = () if first is None else first.episode_ids
        found.append(one.model_copy(update={"worded_by": worded_by}))
    return found


def _reworded(content: str, old: str, new: str) -> str | None:
    """The sentence with the new value in place of the old one, if it ends with that."""
    before = content.rstrip(".")
    if not normalise(before).endswith(f" {old}"):
        return None
    kept = before.split()[: -len(old.split())]
    while kept and kept[-1].lower() in {"a", "an", "the"}:
        kept.pop()
    return f"{' '.join(kept)} {new}." if kept else None


def _reconciled(
    statements: Sequence[Statement],
    known: dict[str, SemanticMemory],
    circumstances: Circumstances,
) -> list[Action]:
    slots = [_slot(statement) for statement in statements]
    timelines: dict[tuple[str, ...], list[TimelineEntry]] = {
        timeline_key(s): [] for s in slots if s
    }
    told_of = {key: m for key, m in known.items() if m.form is MemoryForm.STATEMENT}
    desk = _PlanBuilder(circumstances, told_of, timelines)
    told = [(circumstances.telling(s), s) for s in statements]
    sourced = [(telling, s) for telling, s in told if telling is not None]
    for telling, statement in sorted(sourced, key=lambda pair: _order(*pair)):
        desk.take(statement, telling)
    return desk.actions()


@dataclass
class _PlanBuilder:
    circumstances: Circumstances
    known: dict[str, SemanticMemory]
    # What is told of each timeline that is known as a whole. Also of those of which
    # nothing new is told: an earlier run may have ended half way.
    timelines: dict[tuple[str, ...], list[TimelineEntry]]
    new: dict[str, SemanticMemory] = field(default_factory=dict)
    updates: dict[str, UpdateNote] = field(default_factory=dict)
    discards: list[Discard] = field(default_factory=list)
    taken: dict[str, list[TimelineEntry]] = field(default_factory=dict)
    # How what it ends ended, by which ending was told when.
    endings: dict[tuple[Slot | None, Telling], Resolution] = field(default_factory=dict)

    def take(self, statement: Statement, telling: Telling) -> None:
        """Let one statement confirm what is known, or become something new."""
        identity = self.circumstances.identity(statement)
        alike = self._of_identity(identity)
        slot = _slot(statement)
        read = next((m for m in alike if has_read(m, telling.episode_ids)), None)
        if read is not None or self._has_taken(identity, telling):
            self._repeat(read, telling, statement)
            return
        refuted = next((m for m in alike if _is_refuted_after(m, telling)), None)
        if refuted is not None:
            why = f"told before it was refuted: {statement.content}"[:500]
            self._discard(Reason.REFUTED, why, refuted)
            return
        holds = next((m for m in alike if _holds(m)), None)
        if holds is not None and not self.circumstances.brought_in and _is_echo(statement):
            why = f"repeats a memory in Engram's own words: {statement.content}"[:500]
            self._discard(Reason.ECHO, why, holds)
            return
        same = self._in_the_same_words(alike, slot, telling)
        if same is not None:
            slot = same.slot
        elif slot is None and identity in self.taken:
            # The same words in the same batch, understood a moment before.
            slot = self.taken[identity][0].slot
        if statement.kind is MemoryKind.EPISODE and same is None:
            # What happened stands for itself: nothing ever takes its place.
            slot = None
        if slot is not None and timeline_key(slot) in self.timelines:
            told = TimelineEntry(slot, telling, statement=statement)
            self.timelines[timeline_key(slot)].append(told)
            self.taken.setdefault(identity, []).append(told)
            self._note_ending(slot, telling, statement)
        elif same is None:
            self._new(statement, telling)
        else:
            self._confirm(same, telling, statement)

    def actions(self) -> list[Action]:
        """The plan so far: new memories, confirmations, and who gives way to whom."""
        for key, told in self.timelines.items():
            self._settle(key, told)
        contents = {m.id: m.content for m in self._all()}
        stored = [storing(folded(self._joined(m)), contents) for m in self.new.values()]
        self._end_commitments()
        settled(self.known, self.updates)
        updates = [u for u in self.updates.values() if u.amends or u.supersession is not None]
        return [*stored, *updates, *self.discards]

    def _joined(self, memory: SemanticMemory) -> SemanticMemory:
        """A new memory with what it has of all the turns that came to tell it."""
        known = self.circumstances.episodes
        turns = [known[e] for e in memory.source_episode_ids if e in known]
        return until_told(with_traits(memory, turns))

    def _repeat(self, read: SemanticMemory | None, telling: Telling, statement: Statement) -> None:
        if read is None or read.id not in self.known:
            return
        # What it ends may still be open: an earlier run may have ended half way.
        self._note_ending(read.slot, telling, statement)
        why = f"read before from the same turns: {statement.content}"[:500]
        self._discard(Reason.READ_BEFORE, why, read)

    def _discard(self, reason: Reason, why: str, memory: SemanticMemory) -> None:
        self.discards.append(Discard(why=why, reason=reason, eligibility=eligibility_of(memory)))

    def _note_ending(self, slot: Slot | None, telling: Telling, statement: Statement) -> None:
        if statement.ended is not None:
            self.endings[slot, telling] = statement.ended

    def _has_taken(self, identity: str, telling: Telling) -> bool:
        taken = self.taken.get(identity, ())
        return any(set(telling.episode_ids) <= set(told.telling.episode_ids) for told in taken)

    def _in_the_same_words(
        self, alike: Sequence[SemanticMemory], slot: Slot | None, telling: Telling
    ) -> SemanticMemory | None:
        """What says this in these words, if it was understood to be about something else.

        A promise that was resolved before this was told is made anew.
        """
        if slot is not None:
            about = self._of_timeline.get(timeline_key(slot), ())
            if any(m in alike or m.slot == slot for m in about):
                return None
        alike = [m for m in alike if not _is_resolved_before(m, telling)]
        standing = (m for m in alike if m.status is not MemoryStatus.SUPERSEDED)
        return next(standing, None) or self._of_which_it_is_a_duplicate(alike)

    def _of_which_it_is_a_duplicate(self, alike: Sequence[SemanticMemory]) -> SemanticMemory | None:
        """What says the same as these words in other words, and stands for both."""
        for memory in alike:
            seen = {memory.id}
            found = self.known.get(memory.duplicate_of or "")
            while found is not None and found.duplicate_of and found.id not in seen:
                seen.add(found.id)
                found = self.known.get(found.duplicate_of)
            if found is not None and found.status is not MemoryStatus.SUPERSEDED:
                return found
        return None

    def _new(self, statement: Statement, telling: Telling) -> None:
        memory = self._unused(self.circumstances.memory(statement, telling, None))
        self.new[memory.id] = memory

    def _confirm(self, same: SemanticMemory, telling: Telling, statement: Statement) -> None:
        if same.id in self.new:
            # Two turns of one batch say it: one memory with two sources.
            sources = self.circumstances.sources(statement)
            more = corroborated(same, sources) or same
            self.new[same.id] = evident(more, statement.evidence)
            return
        update = self._update(same, Reason.SAID_AGAIN, "said again")
        fresh = tuple(
            e
            for e in telling.episode_ids
            if e not in update.add_sources and not has_source(same, e)
        )
        if not fresh:
            return
        tellings = () if same.slot is None else (*update.add_tellings, telling)
        self.updates[same.id] = update.model_copy(
            update={
                "add_sources": (*update.add_sources, *fresh),
                "add_tellings": tellings,
                "add_evidence": (*update.add_evidence, *statement.evidence),
            }
        )

    def _settle(self, key: tuple[str, ...], told: Sequence[TimelineEntry]) -> None:
        there = self._of_timeline.get(key, ())
        known = in_force(there)
        after = history(known, told, self._begun)
        contents = {memory.id: memory.content for memory in after}
        for memory in after:
            if memory.id in known:
                before = known[memory.id]
                reason, why = why_changed(before, memory, contents)
                update = self._update(before, reason, why)
                changed = change(before, memory, update, {m.id for m in there})
                quotes = _quotes(before, changed.add_tellings, told)
                if quotes:
                    evidence = tuple(dict.fromkeys((*changed.add_evidence, *quotes)))
                    changed = changed.model_copy(update={"add_evidence": evidence})
                self.updates[memory.id] = changed
            else:
                self.new[memory.id] = evident(memory, _quotes(memory, memory.tellings, told))

    def _begun(self, told: TimelineEntry) -> SemanticMemory:
        if told.statement is not None:
            memory = self.circumstances.memory(told.statement, told.telling, told.slot)
        else:
            memory = self.circumstances.part(self.known[told.carriers[0]])
        memory = self._unused(memory)
        # Noted at once, so that the next of the same words gets the next generation.
        self.new[memory.id] = memory
        return memory

    def _unused(self, memory: SemanticMemory) -> SemanticMemory:
        used = (m.generation for m in self._of_identity(memory.identity))
        return self.circumstances.generation(memory, 1 + max(used, default=-1))

    def _end_commitments(self) -> None:
        """A promise that no longer holds was kept, unless the turn says otherwise."""
        for update in tuple(self.updates.values()):
            memory, by = self.known[update.memory_id], update.supersession
            if by is None or memory.category is not Category.COMMITMENT or memory.resolution:
                continue
            closer = self.new.get(by.superseded_by) or self.known.get(by.superseded_by)
            if closer is None or closer.slot is None or not ends_something(closer.slot):
                continue
            told = ((closer.slot, telling) for telling in closer.tellings)
            said = next((self.endings[one] for one in told if one in self.endings), None)
            ending = Ending(resolution=said or Resolution.FULFILLED, at=by.superseded_known_at)
            self.updates[memory.id] = update.model_copy(update={"ending": ending})

    def _update(self, memory: SemanticMemory, reason: Reason, why: str) -> UpdateNote:
        return self.updates.get(memory.id) or UpdateNote(
            memory_id=memory.id, reason=reason, why=why, eligibility=eligibility_of(memory)
        )

    @cached_property
    def _of_timeline(self) -> Mapping[tuple[str, ...], Sequence[SemanticMemory]]:
        """What is known of each timeline."""
        found: dict[tuple[str, ...], list[SemanticMemory]] = {}
        for memory in self.known.values():
            if memory.slot is not None:
                found.setdefault(timeline_key(memory.slot), []).append(memory)
        return found

    @cached_property
    def _known_as(self) -> Mapping[str, Sequence[SemanticMemory]]:
        """What is known, by identity."""
        found: dict[str, list[SemanticMemory]] = {}
        for memory in self.known.values():
            found.setdefault(memory.identity, []).append(memory)
        return found

    def _of_identity(self, identity: str) -> list[SemanticMemory]:
        new = (m for m in self.new.values() if m.identity == identity)
        return [*self._known_as.get(identity, ()), *new]

    def _all(self) -> Iterable[SemanticMemory]:
        return (*self.known.values(), *self.new.values())


def placed_again(known: Iterable[SemanticMemory], circumstances: Circumstances) -> list[Action]:
    """What changes where a timeline is read again, because something of it was refuted, or is gone.

    Args:
        known: All of it; what is refuted says so.
        circumstances: Whose, and when.
    """
    told = {m.id: m for m in known if m.form is MemoryForm.STATEMENT}
    keys = {timeline_key(m.slot) for m in told.values() if m.slot is not None}
    return _PlanBuilder(circumstances, told, {key: [] for key in keys}).actions()


def in_force(timeline: Iterable[SemanticMemory]) -> dict[str, SemanticMemory]:
    """Those that have a place in it.

    What was refuted has none: it begins anew where it is told again. Nor has what says the
    same as something that was refuted, and stands behind it.
    """
    found = {m.id: m for m in timeline}
    refuted = {key: m for key, m in found.items() if m.refuted_at is not None}
    for memory_id, memory in tuple(found.items()):
        by = refuted.get(memory.superseded_by or "")
        same = by is not None and memory.slot == by.slot and memory_id not in by.supersedes
        if memory_id in refuted or same or (by is not None and memory.duplicate_of == by.id):
            del found[memory_id]
    return found


def _is_refuted_after(memory: SemanticMemory, telling: Telling) -> bool:
    return memory.refuted_at is not None and telling.known_at <= memory.refuted_at


def _is_resolved_before(memory: SemanticMemory, telling: Telling) -> bool:
    ended = None if is_outcome(memory) else memory.resolved_at
    return ended is not None and ended < telling.known_at


def _slot(statement: Statement) -> Slot | None:
    return slot_of(statement.subject, statement.predicate, statement.object, holds=statement.holds)


def _order(telling: Telling, statement: Statement) -> tuple[datetime, datetime, str]:
    return telling.event_at, telling.known_at, statement.content


def _holds(memory: SemanticMemory) -> bool:
    return memory.status is MemoryStatus.ACTIVE and memory.refuted_at is None


def _is_echo(statement: Statement) -> bool:
    """Whether the turn says of its user, letter by letter, what Engram says of "the user".

    Of others, everybody speaks in the third person.
    """
    words = normalise(statement.content)
    of_the_user = _THE_USER.search(words) is not None
    return of_the_user and any(normalise(quote.words) == words for quote in statement.evidence)


def _quotes(
    memory: SemanticMemory, tellings: Iterable[Telling], told: Iterable[TimelineEntry]
) -> list[Evidence]:
    """The words by which these tellings say what the memory says; a turn may say more than that."""
    of = {(memory.slot, telling) for telling in tellings}
    return [
        quote
        for one in told
        if one.statement is not None and (one.slot, one.telling) in of
        for quote in one.statement.evidence
    ]
