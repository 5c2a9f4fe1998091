"""One sentence over several small notes of one kind, like all that somebody likes.

The notes stay as they are. When one of them stops holding or one is added, the
summary gives way to a new generation: in the plan that makes the change, or, where many
turns are taken up at once, once when all of them are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from engram.consolidation.amendments import amended, retired
from engram.consolidation.keep import Circumstances
from engram.domain.confidence import Confidence, ExtractionMethod
from engram.domain.identity import content_hash, derived_id, with_test_namespace
from engram.domain.memories import (
    Category,
    LinkKind,
    MemoryForm,
    MemoryKind,
    MemoryStatus,
    MemoryType,
    SemanticMemory,
    Slot,
)
from engram.domain.occasions import occasions_among
from engram.domain.plan import (
    MAX_ENTITIES,
    MAX_STATEMENT_CHARACTERS,
    Action,
    ActionSource,
    LinkGraph,
    Reason,
    SummarizeNode,
    Supersession,
    UpdateNote,
    eligibility_of,
)
from engram.domain.slots import ends_something, is_functional
from engram.lifecycle.links import link_to

FEWEST_TO_BEGIN: Final = 4
FEWEST_TO_STAY: Final = 2
MOST_SUMMARISED: Final = 12
"""The latest notes of a kind; a sentence of more is no summary."""

SlotGroup: TypeAlias = tuple[str, str]
"""Subject and predicate."""


def group_of(memory: SemanticMemory) -> SlotGroup | None:
    """What a memory is summarised under; None if it is not."""
    if memory.expires_at is not None:
        # The sentence would go on saying what has ended.
        return None
    slot = memory.slot
    if slot is None or memory.kind is not MemoryKind.NOTE or not slot.object:
        return None
    if ends_something(slot) or is_functional(slot) or memory.category is Category.COMMITMENT:
        return None
    return slot.subject, slot.predicate


def summaries(
    known: Mapping[str, SemanticMemory],
    actions: Sequence[Action],
    circumstances: Circumstances,
    changed: Iterable[str] = (),
) -> list[Action]:
    """What becomes of the summaries of everything that these actions change, or that changed.

    Args:
        known: Statements and summaries of the subjects and predicates concerned.
        actions: What is planned already, for statements.
        circumstances: Under which it is planned.
        changed: Ids of what is known and was changed since it was summed up.
    """
    after = _after(known, actions)
    touched = {
        group: None
        for memory_id in (*_changed(actions), *changed)
        if memory_id in after and (group := group_of(after[memory_id])) is not None
    }
    found: list[Action] = []
    for group in touched:
        found += _Group(group, known, after, circumstances).actions()
    return found


@dataclass(frozen=True, slots=True)
class _Group:
    group: SlotGroup
    known: Mapping[str, SemanticMemory]
    after: Mapping[str, SemanticMemory]
    circumstances: Circumstances

    def actions(self) -> Iterator[Action]:
        told = [m for m in self.after.values() if group_of(m) == self.group]
        members = [m for m in told if m.status is MemoryStatus.ACTIVE]
        standing = [s for s in self._made() if s.status is MemoryStatus.ACTIVE]
        fewest = FEWEST_TO_STAY if standing else FEWEST_TO_BEGIN
        said = _sentence(members, self.group[1]) if len(members) >= fewest else None
        current = max(standing, key=lambda s: s.generation, default=None)
        if said is None:
            yield from (self._outdated(s, _what_came_of(told, s)) for s in standing)
            return
        content, named = said
        if current is not None and current.content == content:
            # Whoever stored it may have ended before it was linked.
            yield from _linking(current, [m for m in named if not _are_linked(m, current)])
            yield from (self._outdated(s, current) for s in standing if s is not current)
            return
        summary = self._summary(content, named, told)
        yield SummarizeNode(
            why=f"{len(named)} notes say what {self.group[0]} {self.group[1]}"[:500],
            reason=Reason.SUMMARISED,
            eligibility=eligibility_of(summary, ActionSource.CONSOLIDATION),
            memory=summary,
            summarised_ids=tuple(m.id for m in named),
        )
        yield from _linking(summary, named)
        yield from (self._outdated(s, summary) for s in standing)

    def _made(self) -> list[SemanticMemory]:
        slot = Slot(subject=self.group[0], predicate=self.group[1], object="")
        return [
            memory
            for memory in self.known.values()
            if memory.form is MemoryForm.SUMMARY and memory.slot == slot
        ]

    def _outdated(self, summary: SemanticMemory, by: SemanticMemory) -> UpdateNote:
        known_at = max(by.known_at, by.superseded_known_at or by.known_at, summary.known_at)
        return UpdateNote(
            memory_id=summary.id,
            why="what it sums up has changed",
            reason=Reason.SUMMARY_OUTDATED,
            eligibility=eligibility_of(summary, ActionSource.CONSOLIDATION),
            supersession=Supersession(
                superseded_by=by.id,
                valid_to=max(summary.event_at, by.event_at),
                superseded_known_at=known_at,
            ),
        )

    def _summary(
        self, content: str, named: Sequence[SemanticMemory], told: Iterable[SemanticMemory]
    ) -> SemanticMemory:
        is_test = any(m.is_test for m in named)
        identity = with_test_namespace(
            content_hash("summary of " + " ".join(self.group)), is_test=is_test
        )
        generation = 1 + max((s.generation for s in self._made()), default=-1)
        scope, now = self.circumstances.scope, self.circumstances.now
        sources = tuple(dict.fromkeys(m.source_episode_ids[0] for m in named))
        noted = {key: group for m in named for key, group in m.occasions.items()}
        occasions = occasions_among(noted, sources)
        changed = [m.superseded_known_at for m in told if m.superseded_known_at is not None]
        return SemanticMemory(
            id=derived_id(scope, MemoryType.SEMANTIC, identity, generation),
            namespace=scope.namespace,
            user_id=scope.user_id,
            content=content,
            form=MemoryForm.SUMMARY,
            kind=MemoryKind.NOTE,
            category=Counter(m.category for m in named).most_common(1)[0][0],
            # It says this since the last of its notes began, or stopped, to hold.
            known_at=max([*(m.known_at for m in named), *changed]),
            event_at=max(m.event_at for m in named),
            created_at=now,
            derived_at=now,
            importance=max(m.importance for m in named),
            is_test=is_test,
            provenance=self.circumstances.provenance,
            source_episode_ids=sources,
            occasions=occasions,
            confidence=Confidence(
                method=ExtractionMethod.INFERRED,
                extraction=min(m.confidence.extraction for m in named),
                supporting_episodes=len(occasions),
                last_confirmed=max(m.confidence.last_confirmed for m in named),
            ),
            identity=identity,
            generation=generation,
            slot=Slot(subject=self.group[0], predicate=self.group[1], object=""),
            entities=tuple(dict.fromkeys(e for m in named for e in m.entities))[:MAX_ENTITIES],
        )


def _linking(summary: SemanticMemory, named: Iterable[SemanticMemory]) -> Iterator[LinkGraph]:
    for member in named:
        yield LinkGraph(
            why="one of the notes that it sums up",
            reason=Reason.SUMMARISED,
            eligibility=eligibility_of(member, ActionSource.CONSOLIDATION),
            first_id=member.id,
            second_id=summary.id,
            kind=LinkKind.BELONGS_TO,
        )


def _are_linked(member: SemanticMemory, summary: SemanticMemory) -> bool:
    ends = ((member, summary), (summary, member))
    return all(link_to(one, other.id, LinkKind.BELONGS_TO) for one, other in ends)


def _sentence(
    members: Iterable[SemanticMemory], predicate: str
) -> tuple[str, list[SemanticMemory]] | None:
    """The sentence, and the notes that are in it; None if their words do not go together."""
    shape = re.compile(rf"(?P<who>.*?\b{re.escape(predicate)})\s+(?P<what>.+?)\.?\s*\Z", re.I)
    # Of those known at one moment the first by id, as the store lists them: which are named
    # must not hang on which of them happen to have been read.
    by_id = sorted(members, key=lambda m: m.id)
    latest = sorted(by_id, key=lambda m: m.known_at, reverse=True)[:MOST_SUMMARISED]
    read = [(m, found) for m in latest[::-1] if (found := shape.match(m.content)) is not None]
    openings = Counter(found["who"] for _, found in read)
    if not openings:
        return None
    opening = openings.most_common(1)[0][0]
    fitting = [(m, found["what"]) for m, found in read if found["who"] == opening]
    while len(fitting) >= FEWEST_TO_STAY:
        *most, last = (what for _, what in fitting)
        content = f"{opening} {', '.join(most)} and {last}."
        if len(content) <= MAX_STATEMENT_CHARACTERS:
            return content, [m for m, _ in fitting]
        fitting = fitting[1:]
    return None


def _what_came_of(told: Sequence[SemanticMemory], summary: SemanticMemory) -> SemanticMemory:
    """The latest change among what was summed up."""
    return max(
        told or [summary], key=lambda m: (m.superseded_known_at or m.known_at, m.known_at, m.id)
    )


def _changed(actions: Iterable[Action]) -> Iterator[str]:
    for action in actions:
        match action:
            case UpdateNote():
                yield action.memory_id
            case LinkGraph():
                pass
            case _:
                memory = getattr(action, "memory", None)
                if isinstance(memory, SemanticMemory):
                    yield memory.id


def _after(
    known: Mapping[str, SemanticMemory], actions: Iterable[Action]
) -> dict[str, SemanticMemory]:
    """Every statement as it is going to be; what sources say more does not matter here."""
    after = {key: m for key, m in known.items() if m.form is MemoryForm.STATEMENT}
    for action in actions:
        if isinstance(action, UpdateNote) and action.memory_id in after:
            before = after[action.memory_id]
            changed = amended(before, action, {}) or before
            end = action.supersession
            after[before.id] = changed if end is None else retired(changed, end) or changed
        elif isinstance(memory := getattr(action, "memory", None), SemanticMemory):
            after.setdefault(memory.id, memory)
    return after
