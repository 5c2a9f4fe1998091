"""What a newer memory means for an older one, and when a dispute between two ends.

For pairs that a linking model, or a rule, names. Values of one slot replace each other without
being named: ``engram/consolidation/timeline.py`` decides that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from engram.domain.identity import normalise
from engram.domain.memories import (
    Category,
    MemoryForm,
    MemoryKind,
    MemoryStatus,
    PolicyClass,
    Resolution,
    SemanticMemory,
    Slot,
)
from engram.domain.plan import (
    Action,
    ActionSource,
    Discard,
    Eligibility,
    Ending,
    Reason,
    Supersession,
    UpdateNote,
    eligibility_of,
)
from engram.domain.slots import USER, is_functional, timeline_key
from engram.language.text import stem

# --- disputes end when one of those that contradict each other stops holding


def settled(known: Mapping[str, SemanticMemory], updates: MutableMapping[str, UpdateNote]) -> None:
    """Lift the disputes of everything that these updates retire, on both ends.

    Args:
        known: The memories that are updated, by id.
        updates: By memory; further ones are added where a dispute ends.
    """
    for update in tuple(updates.values()):
        memory = known.get(update.memory_id)
        if memory is None or update.supersession is None:
            continue
        for other in memory.disputed_with:
            _settle(memory.id, other, known, updates)
            _settle(other, memory.id, known, updates)


def _settle(
    one: str,
    other: str,
    known: Mapping[str, SemanticMemory],
    updates: MutableMapping[str, UpdateNote],
) -> None:
    memory = known.get(one)
    update = updates.get(one) or UpdateNote(
        memory_id=one,
        reason=Reason.SETTLED,
        why="what it contradicted does not hold any more",
        eligibility=Eligibility() if memory is None else eligibility_of(memory),
    )
    with_ = tuple(dict.fromkeys((*update.settle_with, other)))
    updates[one] = update.model_copy(update={"settle_with": with_})


# --- what a newer memory means for an older one, and what may come of it
#
# A model proposes; what is done about it is decided here, from the memories alone.

LEAST_OVERLAP: Final = 0.3
"""Part of the content words of the shorter of two memories that the other must share."""
LEAST_CONFIDENCE: Final = 0.5
"""Below this a proposal changes nothing."""
SURE: Final = 0.8
"""From here on a contradiction by something later replaces what it contradicts."""
MOST_RETIRED: Final = 0.2
"""Part of the memories shown that one answer may retire; one it always may."""
_SHORTEST_WORD: Final = 3
_FORM_WORDS: Final = frozenset("the a an to is are am be being that their his her its".split())
"""Words that change with the form of a sentence, not with what it says."""
_EMPTY_WORDS: Final = frozenset(
    "the user and for with that this has have had was were are not but from they their them his "
    "her its who what when where which will would can could about into than then also very "
    "longer more most some any all one".split()
)


class Relation(StrEnum):
    """How a newer memory stands to an older one."""

    SAME = "same"
    """Both say the same in other words."""
    UPDATES = "updates"
    """The newer one replaces the older one."""
    CONTRADICTS = "contradicts"
    """Both cannot be true."""
    FULFILS = "fulfils"
    """The newer one says that the promise of the older one was kept."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a model says of two memories.

    Attributes:
        confidence: How sure the model is, 0 to 1.
        why: In its words.
    """

    newer: SemanticMemory
    older: SemanticMemory
    relation: Relation
    confidence: float
    why: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is done about an answer.

    Attributes:
        actions: In order; what is refused is a discard with its reason.
        refused_retirements: How many it proposed, if that is more than one answer may.
    """

    actions: tuple[Action, ...]
    refused_retirements: int = 0


def most_retired(shown: int) -> int:
    """How many of the memories shown one answer may retire or count down."""
    return max(1, int(MOST_RETIRED * shown))


def judged(judgements: Iterable[Judgement], *, shown: int) -> Verdict:
    """What becomes of a model's judgements.

    An answer that proposes to retire more than it may retires nothing at all: it
    is mistaken, or somebody talked it into it. Each memory is retired once.

    Args:
        judgements: As the model gave them, references resolved.
        shown: How many memories it was shown.
    """
    proposed = list(judgements)
    gone = {j.older.id for j in proposed if j.relation in {Relation.UPDATES, Relation.CONTRADICTS}}
    gone |= {j.newer.id for j in proposed if j.relation is Relation.SAME}
    too_many = len(gone) > most_retired(shown)
    desk = _JudgementBuilder({}, {}, [])
    for judgement in proposed:
        refused = _refusal(judgement)
        if refused is None and too_many and judgement.relation is not Relation.FULFILS:
            refused = Reason.TOO_MANY
        if refused is None and desk.conflicts(judgement):
            refused = Reason.NOT_ELIGIBLE
        if refused is None:
            desk.carry_out(judgement)
        else:
            desk.refuse(judgement, refused)
    settled(desk.memories, desk.updates)
    return Verdict(
        actions=(*desk.updates.values(), *desk.discards),
        refused_retirements=len(gone) if too_many else 0,
    )


def related_in_words(first: SemanticMemory, second: SemanticMemory) -> bool:
    """Whether two memories can be about one thing: a subject slot, an entity or words shared."""
    if first.slot and second.slot:
        ours, theirs = first.slot, second.slot
        if ours.subject == theirs.subject and ours.predicate == theirs.predicate:
            return True
        if ours.subject == theirs.subject and ours.subject != USER:
            return True
    names = {normalise(e) for e in first.entities} & {normalise(e) for e in second.entities}
    if names - {USER, "the user"}:
        return True
    ours_said, theirs_said = _content_words(first.content), _content_words(second.content)
    shorter = min(len(ours_said), len(theirs_said))
    return shorter > 0 and len(ours_said & theirs_said) >= LEAST_OVERLAP * shorter


@dataclass(slots=True)
class _JudgementBuilder:
    memories: dict[str, SemanticMemory]
    updates: dict[str, UpdateNote]
    discards: list[Discard]

    def conflicts(self, judgement: Judgement) -> bool:
        """Whether one of the two is retired already, or what would leave has replaced another."""
        retired = {
            update.memory_id: update.supersession.superseded_by
            for update in self.updates.values()
            if update.supersession is not None
        }
        same = judgement.relation is Relation.SAME
        leaving = judgement.newer if same else judgement.older
        if leaving.id in retired.values() and judgement.relation is not Relation.FULFILS:
            return True
        return not retired.keys().isdisjoint({judgement.newer.id, judgement.older.id})

    def carry_out(self, judgement: Judgement) -> None:
        newer, older = judgement.newer, judgement.older
        self.memories |= {newer.id: newer, older.id: older}
        match judgement.relation:
            case Relation.SAME:
                self._merge(judgement)
            case Relation.FULFILS:
                ending = Ending(resolution=Resolution.FULFILLED, at=newer.known_at)
                self._update(older, Reason.RESOLVED, judgement.why, ending=ending)
            case Relation.CONTRADICTS if not _is_plainly_later(judgement):
                for one, other in ((newer, older), (older, newer)):
                    self._update(one, Reason.DISPUTED, judgement.why, dispute_with=(other.id,))
            case Relation.UPDATES | Relation.CONTRADICTS:
                self._replace(judgement)

    def refuse(self, judgement: Judgement, reason: Reason) -> None:
        why = f"{judgement.relation} refused ({reason}): {judgement.why}"[:500]
        eligibility = eligibility_of(judgement.older, ActionSource.CONSOLIDATION)
        self.discards.append(Discard(why=why, reason=reason, eligibility=eligibility))

    def _merge(self, judgement: Judgement) -> None:
        """The older one gains all that speaks for the newer one, which stays as its duplicate."""
        newer, older = judgement.newer, judgement.older
        self._update(
            older,
            Reason.DUPLICATE,
            judgement.why,
            add_sources=newer.source_episode_ids,
            add_evidence=newer.evidence,
            add_tellings=newer.tellings if older.slot is not None else (),
        )
        end = Supersession(
            superseded_by=older.id,
            # A history of no length: it never held apart from the older one.
            valid_to=newer.event_at,
            superseded_known_at=newer.known_at,
            duplicate=True,
        )
        self._update(newer, Reason.DUPLICATE, judgement.why, supersession=end)

    def _replace(self, judgement: Judgement) -> None:
        newer, older = judgement.newer, judgement.older
        self._update(newer, Reason.REPLACED, judgement.why, supersedes=(older.id,))
        end = Supersession(
            superseded_by=newer.id,
            valid_to=max(older.event_at, newer.event_at),
            superseded_known_at=max(older.known_at, newer.known_at),
        )
        self._update(older, Reason.REPLACED, judgement.why, supersession=end)

    def _update(self, memory: SemanticMemory, reason: Reason, why: str, **changes: object) -> None:
        before = self.updates.get(memory.id) or UpdateNote(
            memory_id=memory.id,
            reason=reason,
            why=why.strip()[:500] or reason,
            eligibility=eligibility_of(memory, ActionSource.CONSOLIDATION),
        )
        more = {
            name: (*getattr(before, name), *value) if isinstance(value, tuple) else value
            for name, value in changes.items()
        }
        self.updates[memory.id] = before.model_copy(update=more)


def _refusal(judgement: Judgement) -> Reason | None:
    """Why nothing may come of a judgement; None if something may."""
    newer, older = judgement.newer, judgement.older
    orderly = newer.id != older.id and older.known_at <= newer.known_at
    standing = all(_stands(m) for m in (newer, older)) and newer.is_test == older.is_test
    if judgement.confidence < LEAST_CONFIDENCE or not (orderly and standing):
        return Reason.NOT_ELIGIBLE
    if not related_in_words(newer, older):
        return Reason.NOT_ELIGIBLE
    if judgement.relation is Relation.FULFILS:
        is_open = older.category is Category.COMMITMENT and older.resolution is None
        return None if is_open and older.kind is MemoryKind.NOTE else Reason.NOT_ELIGIBLE
    may = all(m.kind is MemoryKind.NOTE for m in (newer, older)) and not _has_its_order(
        newer, older
    )
    if judgement.relation is Relation.SAME:
        # What has a slot that the older one lacks would lose its place in its history.
        alike = newer.slot in {None, older.slot} or _same_but_for_form(newer.slot, older.slot)
        may = may and alike and not _is_protected(newer)
    elif judgement.relation is Relation.UPDATES or _is_plainly_later(judgement):
        may = may and not _is_protected(older)
    return None if may else Reason.NOT_ELIGIBLE


def _stands(memory: SemanticMemory) -> bool:
    return memory.status is MemoryStatus.ACTIVE and memory.form is MemoryForm.STATEMENT


def _is_protected(memory: SemanticMemory) -> bool:
    return memory.policy_class is PolicyClass.PROTECTED


def _has_its_order(newer: SemanticMemory, older: SemanticMemory) -> bool:
    """Whether what was told of their common slot says already which of them holds."""
    if newer.slot is None or older.slot is None:
        return False
    return timeline_key(newer.slot) == timeline_key(older.slot)


def _same_but_for_form(ours: Slot | None, theirs: Slot | None) -> bool:
    """Whether two slots name one thing in two forms of its words ("green tea", "green teas")."""
    if ours is None or theirs is None or is_functional(ours):
        return False
    if (ours.subject, ours.predicate) != (theirs.subject, theirs.predicate):
        return False
    return word_stems(ours.object) == word_stems(theirs.object)


def word_stems(text: str) -> tuple[str, ...]:
    """The words of a text in order, by their stems, without articles and the like."""
    words = (word.strip(".,;:!?") for word in normalise(text).split())
    return tuple(stem(word) for word in words if word and word not in _FORM_WORDS)


def _is_plainly_later(judgement: Judgement) -> bool:
    """Whether a contradiction is one of then and now, and surely so."""
    newer, older = judgement.newer, judgement.older
    later = newer.event_at > older.event_at and newer.known_at > older.known_at
    return later and judgement.confidence >= SURE


def _content_words(text: str) -> frozenset[str]:
    words = (word.strip(".,;:!?") for word in normalise(text).split())
    return frozenset(
        stem(word) for word in words if len(word) >= _SHORTEST_WORD and word not in _EMPTY_WORDS
    )
