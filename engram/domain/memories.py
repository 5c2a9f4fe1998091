"""The stored memory types, their fields and states, and how they change safely."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias, TypeGuard, TypeVar, get_args

from pydantic import Field, PrivateAttr, TypeAdapter

from engram.domain.confidence import Confidence
from engram.domain.digests import Detail
from engram.domain.personal_data import PersonalKind
from engram.domain.scope import Scope
from engram.domain.values import Moment, StoredValue

# --- the states a memory can be in, and the vital facts that its fading is computed from


class LifecycleState(StrEnum):
    """How far a memory has come in its life."""

    CANDIDATE = "candidate"
    """Concluded once, and neither used nor confirmed since; or disputed."""
    VALIDATED = "validated"
    """It was told on a second occasion, or the user confirmed it."""
    ACTIVE = "active"
    """In use. A turn begins here: what was said needs no confirming."""
    STALE = "stale"
    """Unused for much of the time after which it leaves."""
    ARCHIVED = "archived"
    """Left the answers; kept for audit."""


class VerificationState(StrEnum):
    """Who vouches for a memory."""

    UNVERIFIED = "unverified"
    USER_CONFIRMED = "user_confirmed"
    SYSTEM_INFERRED = "system_inferred"
    """Engram found the words that say so in a source."""
    DISPUTED = "disputed"


class PolicyClass(StrEnum):
    """How freely time may take a memory away."""

    EPHEMERAL = "ephemeral"
    """Has an end set beforehand, and does not harden by use."""
    DURABLE = "durable"
    PROTECTED = "protected"
    """No rule takes it away; only the user does."""


class Placement(StrEnum):
    """Where a memory is kept ready."""

    HOT = "hot"
    COLD = "cold"


class Tier(StrEnum):
    """Under the energy policy: how slowly a memory's energy falls."""

    WORKING = "working"
    SHORT_TERM = "short_term"
    LONG_TERM = "long_term"


class Term(StrEnum):
    """The coarse horizon of a memory."""

    SHORT = "short"
    LONG = "long"


class Together(StoredValue):
    """Another memory that was recalled in the same answers, and how often."""

    memory_id: str
    count: int = Field(ge=1)


class Vitals(StoredValue):
    """What is written down about a memory's life once something has happened in it.

    A memory that nobody recalled, reviewed or promoted has none of it.

    Attributes:
        energy: At ``energy_at``; None while it was never recalled.
        energy_at: When ``energy`` was last written.
        peak_energy: The highest energy it ever had.
        tier: Under the energy policy; None for the one its type begins in.
        promotion_attempts: How often it was promoted, and whether it was refused: each rise
            counts, and so does the one refusal of what tells no habit, or was denied, which is for
            good.
        refused_at: When that was.
        told_at: When the last turn that tells it again was stored, where that was later than it
            was said, as in an import.
        last_decay: When a pass last reviewed it.
        last_promotion: When it was last promoted.
        promoted_from: The memory it was made from by promotion.
        instance_id: The program that it was brought in from; None for what was made here, whose
            provenance names the run.
        flushes: The last batch of recalls that each process has noted here.
        together: What else was recalled with it.
    """

    energy: float | None = Field(default=None, ge=0)
    energy_at: Moment | None = None
    peak_energy: float | None = Field(default=None, ge=0)
    tier: Tier | None = None
    promotion_attempts: int = Field(default=0, ge=0)
    refused_at: Moment | None = None
    told_at: Moment | None = None
    last_decay: Moment | None = None
    last_promotion: Moment | None = None
    promoted_from: str | None = None
    instance_id: str | None = None
    flushes: tuple[str, ...] = ()
    together: tuple[Together, ...] = ()


# --- what Engram remembers: the stored memory types and their fields


class MemoryType(StrEnum):
    """The stored types, one Qdrant collection each. Working memory is not stored."""

    EPISODIC = "episodic"
    FACTUAL = "factual"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"
    NEGATION = "negation"


STORED_TYPES: tuple[MemoryType, ...] = tuple(MemoryType)
DERIVED_TYPES: tuple[MemoryType, ...] = STORED_TYPES[1:]


class MemoryStatus(StrEnum):
    """Where a memory stands; only active ones answer by default."""

    ACTIVE = "active"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"
    EXPIRED = "expired"


class FactCategory(StrEnum):
    """What deterministic patterns find in a turn."""

    EMAIL = "email"
    PHONE = "phone"
    URL = "url"
    DATE = "date"
    NAME = "name"
    MONEY = "money"


class Category(StrEnum):
    """The ten categories of extracted knowledge."""

    FACT = "fact"
    PREFERENCE = "preference"
    CORRECTION = "correction"
    ENTITY = "entity"
    DECISION = "decision"
    RELATIONSHIP = "relationship"
    PRINCIPLE = "principle"
    COMMITMENT = "commitment"
    MOMENT = "moment"
    SKILL = "skill"


class MemoryKind(StrEnum):
    """What later knowledge may do to a derived memory."""

    EPISODE = "episode"
    """Something that happened: nothing ever replaces it."""
    NOTE = "note"
    """Something that holds: later knowledge may update or replace it."""


class MemoryForm(StrEnum):
    """What a semantic memory is made from, and for."""

    STATEMENT = "statement"
    """One thing that a conversation states."""
    ARTIFACT = "artifact"
    """Words that must survive as they were said."""
    SUMMARY = "summary"
    """Several small notes in one sentence."""
    PROFILE = "profile"
    """What is known about one person, place or project."""
    TOPIC = "topic"
    """What is known under one topic."""
    BOX = "box"
    """A run of turns on one topic."""
    GUIDELINE = "guideline"
    """What earlier consolidations taught later ones."""


ANSWERING_FORMS: tuple[MemoryForm, ...] = (
    MemoryForm.STATEMENT,
    MemoryForm.ARTIFACT,
    MemoryForm.SUMMARY,
)
"""The forms that recall answers with; the others are asked for by name."""
DIGEST_FORMS: tuple[MemoryForm, ...] = tuple(f for f in MemoryForm if f not in ANSWERING_FORMS)
"""The forms that are composed from memories; no answer, and no evidence for anything."""
FOLLOWING_FORMS: tuple[MemoryForm, ...] = (
    MemoryForm.PROFILE,
    MemoryForm.TOPIC,
    MemoryForm.GUIDELINE,
)
"""The digests that say what other memories say, for as long as these do; a box goes as turns do."""


class Resolution(StrEnum):
    """How a commitment ended."""

    FULFILLED = "fulfilled"
    EXPIRED = "expired"


class LinkKind(StrEnum):
    """Why two memories are linked."""

    RELATED = "related"
    ENTITY = "entity"
    TIME = "time"
    CAUSAL = "causal"
    REINFORCES = "reinforces"
    BELONGS_TO = "belongs_to"
    PROMOTED_TO = "promoted_to"
    CRYSTALLIZED_INTO = "crystallized_into"
    COACTIVATED = "coactivated"


class Provenance(StoredValue):
    """Which run wrote a memory, so that a reader can open it in the Temporal UI."""

    workflow_id: str | None = None
    run_id: str | None = None
    model: str | None = None
    instructions_version: str | None = None


class RunLink(StoredValue):
    """The run that wrote something, and where people see it.

    Attributes:
        workflow_id: As the Temporal UI names it.
        run_id: One of its runs; None where it is not known.
        url: Of the run in the Temporal UI; None where no UI is known.
    """

    workflow_id: str
    run_id: str | None = None
    url: str | None = None


class Link(StoredValue):
    """An edge to another memory of the same user. Kept on both ends.

    Attributes:
        instructions_version: Of the instructions by which a model found it; None where a rule did.
    """

    target_id: str
    kind: LinkKind = LinkKind.RELATED
    confidence: float = Field(default=1.0, ge=0, le=1)
    first_seen: Moment
    last_seen: Moment
    instructions_version: str | None = None


class Slot(StoredValue):
    """A (subject, predicate) pair, normalised, with the object it holds."""

    subject: str
    predicate: str
    object: str


class Evidence(StoredValue):
    """The words of an episode that say so, exactly as they stand there."""

    episode_id: str
    words: str = Field(min_length=1)


class Telling(StoredValue):
    """One time that something was said: of when, and when.

    Attributes:
        event_at: When, by its own words, it happened or began to hold.
        event_from: The first moment that its words leave open: of "two weeks ago" some days
            before. None where they name no time.
        event_by: The first moment by which, by its words, it had: of "in March" the first of
            April. None likewise.
        known_at: Timestamp of the latest turn that says so.
        begins: Whether it says that it began then, not just that it held.
        alongside: Whether it says that it holds beside what held before: "I also work at ...".
        holds_until: From when on, by its own words, it is over: of "until May" the first of June.
            None where they name no end.
        episode_ids: The turns that say so.
        session_id: The conversation; within one, ``sequence`` orders what has one timestamp.
        sequence: Of the latest turn, within its session.
    """

    event_at: Moment
    event_from: Moment | None = None
    event_by: Moment | None = None
    known_at: Moment
    begins: bool = False
    alongside: bool = False
    holds_until: Moment | None = None
    episode_ids: tuple[str, ...] = Field(min_length=1)
    session_id: str | None = None
    sequence: int = 0


DEFAULT_IMPORTANCE = 0.5
"""What a memory weighs when nobody says otherwise."""


class Memory(StoredValue):
    """What every stored memory carries.

    Attributes:
        known_at: When the conversation made this known: the turn's timestamp,
            for a conclusion that of the latest turn it was drawn from. ``as_of``
            asks about this, not about when the machine wrote it.
        superseded_known_at: Timestamp of the turn that replaced it.
        created_at: When the machine wrote it.
        metadata: Plain data of the application. A conclusion has what all turns agree on that it
            rests on.
        summary: A turn in a sentence, as the application gave it.
        expires_at: From when on it no longer answers; None for never. A conclusion has the
            latest of its turns, and none as soon as one of them has none; or that which its
            latest telling names, where that is sooner.
        revision: Counts the writes; every update is conditional on it.
        write_id: Fresh with every write: whose it shows won the race.
        operation_ids: Operations that had their effect already.
        lifecycle: How far it has come in its life; None for where its type begins.
        policy_class: How freely time may take it; None for what its expiry implies.
        placement: Where it is kept ready; None for hot.
        vitals: Energy and what else happened to it; None while nothing has.
        archived_at: When it was archived.
        expired_at: When it expired.
        left_by: By which lifecycle rule it left the answers; None while it answers, where it was
            replaced, and where it left before that was noted.
        review_at: The earliest moment at which a rule could change it; None for never.
        policy_fingerprint: The rules that ``review_at`` was computed by.
    """

    id: str
    namespace: str
    user_id: str
    content: str
    status: MemoryStatus = MemoryStatus.ACTIVE
    known_at: Moment
    created_at: Moment
    superseded_known_at: Moment | None = None
    session_id: str | None = None
    importance: float = Field(default=DEFAULT_IMPORTANCE, ge=0, le=1)
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = Field(default_factory=dict)
    summary: str | None = None
    expires_at: Moment | None = None
    is_test: bool = False
    access_count: int = Field(default=0, ge=0)
    last_accessed_at: Moment | None = None
    revision: int = Field(default=0, ge=0)
    write_id: str = ""
    operation_ids: tuple[str, ...] = ()
    provenance: Provenance = Provenance()
    lifecycle: LifecycleState | None = None
    policy_class: PolicyClass | None = None
    placement: Placement | None = None
    vitals: Vitals | None = None
    archived_at: Moment | None = None
    expired_at: Moment | None = None
    left_by: str | None = None
    review_at: Moment | None = None
    policy_fingerprint: str | None = None

    _unknown: Mapping[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def unknown_fields(self) -> Mapping[str, Any]:
        """What a newer version stored with it, as it stands in the store; kept when it changes."""
        # Asked of everything that is written: as an attribute, Pydantic takes ten times as long.
        private = self.__pydantic_private__
        unknown: Mapping[str, Any] = {} if private is None else private["_unknown"]
        return unknown

    def keep_unknown(self, fields: Mapping[str, Any]) -> None:
        """Note what the store has of it beside its fields; only while it is being read."""
        self._unknown = fields

    @property
    def scope(self) -> Scope:
        """Whose memory this is."""
        return Scope(namespace=self.namespace, user_id=self.user_id)

    @property
    def promoted_from(self) -> str | None:
        """Of a habit, the id of the knowledge that it was made of."""
        return self.vitals.promoted_from if self.vitals is not None else None

    @property
    def indexed_text(self) -> str:
        """The text that is embedded and searched."""
        return self.content


class Unread(StoredValue):
    """What could not be read of a turn. The turn itself is kept, and found, like any other.

    Attributes:
        rules: Why no facts and negations were looked for: ``too_costly`` where the rules took
            longer than they may, ``failed`` where they raised. Not tried again.
        refusals: How often a consolidation left the turn out, because reading it failed for
            its own sake.
        because: The error code of the last of those.
        at: When it happened.
        until: A consolidation that nobody asked for leaves it out until then; None with
            refusals: for good.
    """

    rules: str | None = None
    refusals: int = Field(default=0, ge=0)
    because: str | None = None
    at: Moment | None = None
    until: Moment | None = None

    def left_out(self, now: datetime) -> bool:
        """Whether consolidations that nobody asked for leave the turn out for now."""
        return self.refusals > 0 and (self.until is None or now < self.until)


def utc_offset(moment: datetime) -> int | None:
    """Seconds that the zone of an aware moment is east of UTC; None for UTC itself."""
    offset = moment.utcoffset()
    return int(offset.total_seconds()) or None if offset is not None else None


class Episode(Memory):
    """A turn, verbatim. Its content is never written again.

    Attributes:
        utc_offset: Seconds that the zone of its timestamp was east of UTC, in which the store
            keeps all times; None for UTC itself.
        unread: What could not be read of it; None where everything was.
        personal_data: Kinds of personal data that its words hold, where the namespace marks them.
    """

    type: Literal[MemoryType.EPISODIC] = MemoryType.EPISODIC
    role: str
    speaker: str | None = None
    timestamp: Moment
    utc_offset: int | None = Field(default=None, gt=-86_400, lt=86_400)
    message_id: str
    sequence: int = Field(default=0, ge=0)
    consolidated_at: Moment | None = None
    unread: Unread | None = None
    personal_data: tuple[PersonalKind, ...] = ()

    @property
    def indexed_text(self) -> str:
        """Speaker and date belong to what is searched: questions name both."""
        who = self.speaker or self.role
        return f"{who} ({self.said_at:%d %B %Y}): {self.content}"

    @property
    def said_at(self) -> datetime:
        """The timestamp as it was where the turn was said: whose "tomorrow" is read by it."""
        if self.utc_offset is None:
            return self.timestamp
        return self.timestamp.astimezone(timezone(timedelta(seconds=self.utc_offset)))


class DerivedMemory(Memory):
    """Anything Engram concluded. Names the episodes it was concluded from.

    Attributes:
        event_at: When what it says happened or began to hold.
        derived_at: When Engram concluded it.
        valid_from: From when it is true; None for always.
        valid_to: Until when it was true; None while it holds.
        identity: What makes two conclusions the same one.
        generation: Counts how often the same conclusion began to hold anew.
        superseded_by: The memory that replaced this one.
        supersedes: The memories that this one replaced.
        source_episode_ids: The first and the latest episodes that say so.
        folded_sources: Fingerprints of the sources between those, see
            :mod:`engram.consolidation.amendments`.
        occasions: Its sources by the conversation and day that they belong to. The confidence
            counts an occasion once, however often it says so.
        refuted_at: When it was settled that it is not so: by the user, or by a review.
    """

    source_episode_ids: tuple[str, ...] = Field(min_length=1)
    folded_sources: str = ""
    occasions: Mapping[str, tuple[str, ...]] = Field(default_factory=dict)
    event_at: Moment
    derived_at: Moment
    confidence: Confidence
    identity: str
    generation: int = Field(default=0, ge=0)
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    superseded_by: str | None = None
    supersedes: tuple[str, ...] = ()
    refuted_at: Moment | None = None
    links: tuple[Link, ...] = ()

    @property
    def related_ids(self) -> tuple[str, ...]:
        """The memories this one is linked to."""
        return tuple(link.target_id for link in self.links)


class Fact(DerivedMemory):
    """Found by a deterministic pattern. Content never changes.

    Attributes:
        value: The canonical form: E.164, ISO 8601, lower-cased address.
        evidence: The words of the turn that say so.
        slot: Whose it was said to be, and which of theirs; None where nobody said. Of
            those with one subject and predicate, the latest told holds.
        told_at: When that was said last.
    """

    type: Literal[MemoryType.FACTUAL] = MemoryType.FACTUAL
    category: FactCategory
    value: str
    evidence: str
    slot: Slot | None = None
    told_at: Moment | None = None


class SemanticMemory(DerivedMemory):
    """Knowledge that consolidation drew from episodes.

    Attributes:
        tellings: Each time it was said, where it has a slot. Its place among what
            it replaced and what replaced it follows from these, not from the
            order in which they became known.
        evidence: Quotations from the sources; none where it was inferred.
        disputed_with: The memories it contradicts, where nothing settles which holds.
        settled_with: Memories it contradicts in words, of which a person said that both hold.
        detail: What a profile, topic, box or guideline carries beside its words.
        duplicate_of: The memory that says the same, and now has the sources of this one.
        resolution: How a commitment ended, also on what tells that it did; None while it is open.
        resolved_at: When it ended.
    """

    type: Literal[MemoryType.SEMANTIC] = MemoryType.SEMANTIC
    form: MemoryForm = MemoryForm.STATEMENT
    detail: Detail | None = None
    kind: MemoryKind = MemoryKind.NOTE
    category: Category = Category.FACT
    evidence: tuple[Evidence, ...] = ()
    disputed_with: tuple[str, ...] = ()
    settled_with: tuple[str, ...] = ()
    duplicate_of: str | None = None
    resolution: Resolution | None = None
    resolved_at: Moment | None = None
    slot: Slot | None = None
    tellings: tuple[Telling, ...] = ()
    entities: tuple[str, ...] = ()
    selectivity: float = Field(default=0.0, ge=0, le=1)
    consolidation_passes: int = Field(default=1, ge=0)


def is_digest(memory: Memory) -> TypeGuard[SemanticMemory]:
    """Whether it is composed from other memories, and anew when they change."""
    return isinstance(memory, SemanticMemory) and memory.form in DIGEST_FORMS


def is_excerpt(memory: Memory) -> bool:
    """Whether only the turn that it is from tells what it is about.

    Words that are kept as they were quoted or pasted, and bare dates, sums and links.
    """
    if isinstance(memory, Fact):
        return memory.category in _BARE and memory.slot is None
    return isinstance(memory, SemanticMemory) and memory.form is MemoryForm.ARTIFACT


_BARE = (FactCategory.DATE, FactCategory.MONEY, FactCategory.URL)


def is_summary(memory: Memory) -> bool:
    """Whether it is several notes in one sentence."""
    return isinstance(memory, SemanticMemory) and memory.form is MemoryForm.SUMMARY


def notes_of(memory: Memory) -> frozenset[str]:
    """Ids of the notes that a summary says in one sentence; none of any other memory."""
    if not isinstance(memory, SemanticMemory) or memory.form is not MemoryForm.SUMMARY:
        return frozenset()
    return frozenset(link.target_id for link in memory.links if link.kind is LinkKind.BELONGS_TO)


class ProceduralMemory(DerivedMemory):
    """A behavioural pattern, and when it applies."""

    type: Literal[MemoryType.PROCEDURAL] = MemoryType.PROCEDURAL
    trigger_context: str


class NegationFact(DerivedMemory):
    """What is explicitly not true.

    Attributes:
        negates_pattern: The words, normalised, that a memory must hold to be
            covered by this negation: lemma of the verb and the object.
        subject: Whom it is about: "user", or the name or noun phrase given.
        evidence: The words of the turn that say so.
    """

    type: Literal[MemoryType.NEGATION] = MemoryType.NEGATION
    negates_pattern: str
    subject: str = "user"
    evidence: str


AnyMemory: TypeAlias = Annotated[
    Episode | Fact | SemanticMemory | ProceduralMemory | NegationFact,
    Field(discriminator="type"),
]
MEMORY_ADAPTER: TypeAdapter[Episode | Fact | SemanticMemory | ProceduralMemory | NegationFact] = (
    TypeAdapter(AnyMemory)
)


@cache
def types_of(kind: type[Memory]) -> tuple[MemoryType, ...]:
    """The types whose memories are of a class: one, or those of all that share a base."""
    stored: tuple[type[Memory], ...] = get_args(get_args(AnyMemory)[0])
    return tuple(one.model_fields["type"].default for one in stored if issubclass(one, kind))


# --- metadata by which memories are found, and which conclusions can agree on: its plain part

LONGEST_PLAIN = 128
"""Characters of a text, or of a key, that metadata is compared by."""

MOST_DIGITS = 4_300
"""Of a whole number: Python writes and reads no longer one."""
_TOO_LARGE = 10**MOST_DIGITS

Plain: TypeAlias = str | int | float | bool | None


def has_too_many_digits(number: float) -> bool:
    """Whether it is a whole number that cannot be written down."""
    return isinstance(number, int) and abs(number) >= _TOO_LARGE


def plain_part(metadata: Mapping[str, Any]) -> dict[str, Plain]:
    """The keys at the top with a value that is no list, no object, and not too long."""
    return {key: value for key, value in metadata.items() if _is_plain(key) and _is_plain(value)}


def plain_pairs(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Each of these keys with its value as one text; 1, 1.0, true and "1" are different values."""
    return tuple(json.dumps(pair) for pair in plain_part(metadata).items())


def _is_plain(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_PLAIN
    if isinstance(value, int | float):
        return not has_too_many_digits(value)
    return value is None


# --- how a memory changes safely: revisions, write ids and remembered operations

# Old operation ids are dropped past this many. An operation is only ever retried
# within its activity's retry window, which is hours, never hundreds of changes.
REMEMBERED_OPERATIONS = 64

M = TypeVar("M", bound=Memory)
D = TypeVar("D", bound=DerivedMemory)


def next_revision(before: M, after: M, *, write_id: str) -> M:
    """``after`` as the successor of ``before``: one revision up, under a fresh ``write_id``."""
    return after.model_copy(update={"revision": before.revision + 1, "write_id": write_id})


def not_replaced(memory: D) -> D:
    """``memory`` as it was before something took its place, put aside or expired included."""
    before = MemoryStatus.ACTIVE
    if memory.archived_at is not None:
        before = MemoryStatus.ARCHIVED
    elif memory.expired_at is not None:
        before = MemoryStatus.EXPIRED
    return memory.model_copy(
        update={
            "status": before,
            "superseded_by": None,
            "superseded_known_at": None,
            "valid_to": None,
        }
    )


def replaced(memory: D, by: str, when: datetime) -> D:
    """``memory`` as history: ``by`` took its place when that was told."""
    return memory.model_copy(
        update={
            "status": MemoryStatus.SUPERSEDED,
            "superseded_by": by,
            "superseded_known_at": when,
            "valid_to": max(memory.event_at, when),
        }
    )


def replacing(memory: D, old: Iterable[str]) -> D:
    """``memory`` as what took the place of these too; itself where it did before."""
    both = tuple(dict.fromkeys((*memory.supersedes, *old)))
    return memory if both == memory.supersedes else memory.model_copy(update={"supersedes": both})


def has_seen(memory: Memory, operation: str) -> bool:
    """Whether this operation has already had its effect on ``memory``."""
    return operation in memory.operation_ids


def remember(memory: M, operation: str) -> M:
    """``memory`` with ``operation`` noted, oldest forgotten first."""
    kept = (*memory.operation_ids, operation)[-REMEMBERED_OPERATIONS:]
    return memory.model_copy(update={"operation_ids": kept})
