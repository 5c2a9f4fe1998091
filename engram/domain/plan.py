"""Statements, and the consolidation plan that is made of them: a value, applied unchanged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator

from engram.domain.memories import (
    Category,
    Evidence,
    LifecycleState,
    LinkKind,
    MemoryKind,
    Resolution,
    SemanticMemory,
    Telling,
)
from engram.domain.values import StoredValue, is_empty, is_none

# --- one thing that a conversation states, before it is compared with what is known

MAX_STATEMENT_CHARACTERS = 1000
MAX_ENTITIES = 20
MAX_STATEMENT_TAGS = 10
MAX_QUOTES = 5


class Statement(StoredValue):
    """What a model says that some episodes state.

    Attributes:
        content: A self-contained sentence in the third person.
        kind: Whether it happened (an episode) or holds until changed (a note).
        subject: Whom or what it is about; with ``predicate`` and ``object`` its slot.
        holds: False if the statement is that this is no longer (or not) so.
        begins: Whether it says that this began then (moved, switched, joined).
        alongside: Whether it says that this holds beside what held before: a second job.
        ended: How a promise ended, where it says that one no longer holds.
        tags: Topics.
        evidence: The words of its episodes that say so; none where it was inferred.
        event_at: When it happened or began to hold; None for when it was said.
        event_from: The first moment that its words leave open; None where they name no time.
        event_by: The first moment by which, in its words, it had happened; likewise.
        holds_until: From when on, in its words, it is over: "until May". None where they name no
            end. Such a value stands beside what held before, and takes nothing's place.
        confidence: What the extraction itself says, 0 to 1.
        episode_ids: The episodes that state it.
        worded_by: Others whose words its content has: those that told what it ends or changes
            without naming it. They state nothing of it; forgotten, they take the words along.
    """

    content: str = Field(min_length=1, max_length=MAX_STATEMENT_CHARACTERS)
    category: Category = Category.FACT
    kind: MemoryKind = MemoryKind.NOTE
    subject: str | None = None
    predicate: str | None = None
    object: str | None = None
    holds: bool = True
    begins: bool = False
    alongside: bool = False
    ended: Resolution | None = None
    entities: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    event_at: datetime | None = Field(default=None, exclude_if=is_none)
    event_from: datetime | None = Field(default=None, exclude_if=is_none)
    event_by: datetime | None = Field(default=None, exclude_if=is_none)
    holds_until: datetime | None = Field(default=None, exclude_if=is_none)
    confidence: float = Field(ge=0, le=1)
    importance: float = Field(default=0.5, ge=0, le=1)
    episode_ids: tuple[str, ...] = Field(min_length=1)
    worded_by: tuple[str, ...] = Field(default=(), exclude_if=is_empty)


# --- what consolidation is going to do, as a value
#
# A plan fixes everything: contents, ids, generations, and what replaces what.
# Applying it decides nothing, so that applying it twice does nothing twice.


class ActionSource(StrEnum):
    """Where a proposed change comes from."""

    EXTRACTION = "extraction"
    CONSOLIDATION = "consolidation"
    REPLAY = "replay"
    """Turns that were read before. Nothing proposes this by itself; it is read where it stands."""
    MANUAL = "manual"
    """Somebody brought the knowledge as such, as imports of memories do."""
    UNKNOWN = "unknown"


class Eligibility(StoredValue):
    """What an action rests on. The defaults are what an unreadable context becomes."""

    confidence: float = Field(default=0.0, ge=0, le=1)
    state: LifecycleState = LifecycleState.CANDIDATE
    importance: float = Field(default=0.0, ge=0, le=1)
    source: ActionSource = ActionSource.UNKNOWN


class Reason(StrEnum):
    """Why an action is taken, for logs and counts: never any content."""

    UNSPECIFIED = "unspecified"
    NEW = "new"
    HOLDS_AGAIN = "holds_again"
    SAID_AGAIN = "said_again"
    REPLACED = "replaced"
    REINSTATED = "reinstated"
    PLACED = "placed"
    DISPUTED = "disputed"
    SETTLED = "settled"
    DUPLICATE = "duplicate"
    RESOLVED = "resolved"
    SURVIVED = "survived"
    PRUNED = "pruned"
    VERBATIM = "verbatim"
    SUMMARISED = "summarised"
    SUMMARY_OUTDATED = "summary_outdated"
    LINKED = "linked"
    NO_SOURCE = "no_source"
    READ_BEFORE = "read_before"
    ECHO = "echo"
    REFUTED = "refuted"
    NOT_SHOWN = "not_shown"
    NOT_ELIGIBLE = "not_eligible"
    TOO_MANY = "too_many"
    INVALID = "invalid"


class _Action(StoredValue):
    why: str = Field(min_length=1, max_length=500)
    reason: Reason = Reason.UNSPECIFIED
    eligibility: Eligibility = Eligibility()


class StoreNote(_Action):
    """Store a new memory that later knowledge may replace."""

    action: Literal["store_note"] = "store_note"
    memory: SemanticMemory


class StoreEpisode(_Action):
    """Store a new memory of something that happened; nothing ever replaces it."""

    action: Literal["store_episode"] = "store_episode"
    memory: SemanticMemory


class CreateArtifact(_Action):
    """Store words that must survive as they were said."""

    action: Literal["create_artifact"] = "create_artifact"
    memory: SemanticMemory


class SummarizeNode(_Action):
    """Store one summary over several notes, which stay readable."""

    action: Literal["summarize_node"] = "summarize_node"
    memory: SemanticMemory
    summarised_ids: tuple[str, ...] = Field(min_length=1)


class Supersession(StoredValue):
    """A memory stops holding.

    Attributes:
        superseded_by: What replaced it; for a plain ending, the memory of the ending.
        valid_to: Until when it held.
        superseded_known_at: Timestamp of the turn that made this known.
        duplicate: Whether the other one merely says the same.
    """

    superseded_by: str
    valid_to: datetime
    superseded_known_at: datetime
    duplicate: bool = False


class Ending(StoredValue):
    """A commitment ended.

    Attributes:
        resolution: How.
        at: Timestamp of the turn that made this known.
    """

    resolution: Resolution
    at: datetime


class Place(StoredValue):
    """Where a memory belongs among those that share its slot. Replaces what was noted before.

    Attributes:
        event_at: When what it says happened or began to hold.
        known_at: When it was first known.
        valid_from: From when it is true; None for always.
        supersedes: The memories that it replaced.
    """

    event_at: datetime
    known_at: datetime
    valid_from: datetime | None = None
    supersedes: tuple[str, ...] = ()


class Survival(StoredValue):
    """A linking pass looked at a memory.

    Attributes:
        operation: Names the pass, so that a repeat of it counts once.
        pruned: Whether the pass found it not worth keeping.
        step: What that adds to its selectivity, or takes from it.
    """

    operation: str
    pruned: bool = False
    step: float = Field(default=0.1, ge=0, le=1)


class UpdateNote(_Action):
    """Change a memory that exists; only what is given changes.

    Attributes:
        memory_id: Which memory.
        add_sources: Episodes that say the same again.
        add_tellings: When, and of when, they say so.
        drop_tellings: Those that turned out to belong to another memory of the
            same value, because something else held in between.
        add_evidence: The words by which they say so.
        dispute_with: Memories that it contradicts, and nothing settles which holds.
        settle_with: Memories with which that is settled.
        ending: It is a commitment, and ended.
        place: Where it belongs now.
        reinstated_from: It was replaced by this memory, and is not any more.
            Does nothing if something else has replaced it since.
        supersedes: What it replaces besides what it is noted to.
        supersession: It stops holding. Applied only after everything new was read back.
        survival: What a linking pass made of it.
    """

    action: Literal["update_note"] = "update_note"
    memory_id: str
    add_sources: tuple[str, ...] = ()
    add_tellings: tuple[Telling, ...] = ()
    drop_tellings: tuple[Telling, ...] = ()
    add_evidence: tuple[Evidence, ...] = ()
    dispute_with: tuple[str, ...] = ()
    settle_with: tuple[str, ...] = ()
    ending: Ending | None = None
    place: Place | None = None
    reinstated_from: str | None = None
    supersedes: tuple[str, ...] = ()
    supersession: Supersession | None = None
    survival: Survival | None = None

    @property
    def outdates(self) -> bool:
        """Whether it retires a summary."""
        return self.supersession is not None and self.reason is Reason.SUMMARY_OUTDATED

    @property
    def amends(self) -> bool:
        """Whether it does anything besides retiring the memory."""
        told = self.add_sources or self.add_tellings or self.drop_tellings or self.add_evidence
        placed = self.place or self.reinstated_from or self.supersedes
        disputed = self.dispute_with or self.settle_with
        return bool(told or placed or disputed or self.ending or self.survival)


class LinkGraph(_Action):
    """Link two memories, both ways.

    Attributes:
        instructions_version: Of the instructions by which a model found it.
    """

    action: Literal["link_graph"] = "link_graph"
    first_id: str
    second_id: str
    kind: LinkKind = LinkKind.RELATED
    confidence: float = Field(default=1.0, ge=0, le=1)
    instructions_version: str | None = None


class Discard(_Action):
    """Do nothing, and say why."""

    action: Literal["discard"] = "discard"


Action: TypeAlias = Annotated[
    StoreNote | StoreEpisode | CreateArtifact | SummarizeNode | UpdateNote | LinkGraph | Discard,
    Field(discriminator="action"),
]
_STORING = StoreNote | StoreEpisode | CreateArtifact | SummarizeNode


def _or_discard(raw: object, read: ValidatorFunctionWrapHandler) -> Action:
    """An action as it is read at run time: what cannot be carried out is a discard.

    One that is sound but for its context rests on nothing. What was wrong is named by its
    fields, never by what they hold.
    """
    try:
        action: Action = read(raw)
    except ValidationError as error:
        # The kind of action is the first step to each; below a field's own fields stand keys.
        found = error.errors(include_input=False)
        faults = list(dict.fromkeys(".".join(map(str, one["loc"][1:3])) for one in found))
        if isinstance(raw, dict) and all(f.split(".")[0] == "eligibility" for f in faults):
            action = read({name: value for name, value in raw.items() if name != "eligibility"})
        else:
            where = ", ".join(faults).strip() or "of no known kind"
            action = Discard(why=f"cannot be read: {where}"[:500], reason=Reason.INVALID)
    return action


def eligibility_of(
    memory: SemanticMemory, source: ActionSource = ActionSource.EXTRACTION
) -> Eligibility:
    """What a change of this memory rests on."""
    return Eligibility(
        confidence=memory.confidence.extraction,
        state=memory.lifecycle or LifecycleState.CANDIDATE,
        importance=memory.importance,
        source=source,
    )


class ConsolidationPlan(StoredValue):
    """The actions of one batch, in the order in which they were decided.

    To read an :data:`Action` by itself is strict. In a plan, one that cannot be read must not
    keep the others from being carried out: it is there as a :class:`Discard`.
    """

    actions: tuple[Annotated[Action, WrapValidator(_or_discard)], ...] = ()

    def disputes(self) -> tuple[tuple[str, str], ...]:
        """The pairs that contradict each other since, with nothing to settle which holds."""
        told = [(u.memory_id, u.dispute_with) for u in self.amendments()]
        told += [(memory.id, memory.disputed_with) for memory in self.new_memories()]
        return tuple(sorted({(min(a, b), max(a, b)) for a, others in told for b in others}))

    def new_memories(self) -> tuple[SemanticMemory, ...]:
        """Every memory the plan stores."""
        return tuple(a.memory for a in self.actions if isinstance(a, _STORING))

    def amendments(self) -> Iterator[UpdateNote]:
        """Updates that retire nothing, to be applied with what is new."""
        for action in self._updates():
            if action.amends:
                retires = action.supersession is not None
                yield action.model_copy(update={"supersession": None}) if retires else action

    def retirements(self) -> tuple[UpdateNote, ...]:
        """What stops holding, to be applied last."""
        return tuple(a for a in self._updates() if a.supersession is not None)

    def counts(self) -> dict[str, int]:
        """How many actions of each kind it has."""
        return dict(Counter(action.action for action in self.actions))

    def links(self) -> tuple[LinkGraph, ...]:
        """The links it makes."""
        return tuple(a for a in self.actions if isinstance(a, LinkGraph))

    def discarded(self) -> tuple[Discard, ...]:
        """What was proposed and is not done."""
        return tuple(a for a in self.actions if isinstance(a, Discard))

    def invalid(self) -> int:
        """How many actions could not be read."""
        return sum(action.reason is Reason.INVALID for action in self.discarded())

    def _updates(self) -> Iterator[UpdateNote]:
        return (a for a in self.actions if isinstance(a, UpdateNote))
