"""What digests carry beside their words. A digest is a semantic memory of its own form.

Imported by ``engram.domain.memories``; imports nothing of it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from engram.domain.values import Moment, StoredValue

# --- guidance from what became of earlier memories. Conservative: it only ever warns


class ConsolidationEffect(StrEnum):
    """What consolidation did with a memory."""

    STORED = "stored"
    CONFIRMED = "confirmed"
    SUPERSEDED = "superseded"
    PRUNED = "pruned"


class EntityKind(StrEnum):
    """What a name stands for. Two kinds are never one entity."""

    USER = "user"
    PERSON = "person"
    PLACE = "place"
    PROJECT = "project"
    ORGANISATION = "organisation"
    PRODUCT = "product"
    UNKNOWN = "unknown"
    """Nothing tells; fits any one of the others."""


class SealReason(StrEnum):
    """Why a box takes no further turn."""

    TOPIC = "topic"
    """What came next is about something else."""
    IDLE = "idle"
    """Nothing came for long."""
    FULL = "full"
    """It holds as much as one may."""
    ENDED = "ended"
    """The session ended."""
    LATE = "late"
    """Turns of a time before the last sealed box, which arrived after it was sealed."""


class _Detail(StoredValue):
    """Base of all details.

    Attributes:
        keys: What the digest is looked up by.
    """

    keys: tuple[str, ...]


class Line(StoredValue):
    """One line of a profile, and the memories it rests on."""

    text: str
    memory_ids: tuple[str, ...] = Field(min_length=1)


class Mention(StoredValue):
    """A name as it occurs, and what its surroundings tell of its bearer.

    Attributes:
        name: As it is written.
        kind: What it stands for, where the surroundings tell.
        qualifier: What sets this bearer apart: "brother", "from flat 3".
        identifiers: Addresses and numbers of the bearer: "mail:...", "phone:...".
        another: Whether it is said to be another bearer of a name that came before.
        source_id: The memory or episode in which it occurs.
    """

    name: str
    kind: EntityKind = EntityKind.UNKNOWN
    qualifier: str = ""
    identifiers: tuple[str, ...] = ()
    another: bool = False
    source_id: str


class Equation(StoredValue):
    """Somebody says that two names have one bearer, or that they have not.

    Attributes:
        first: One name.
        second: The other.
        same: Whether they are said to have one bearer.
        why: In a few words.
        source_id: The memory or episode that says so.
    """

    first: str
    second: str
    same: bool = True
    why: str
    source_id: str


class Merge(StoredValue):
    """Two names were taken for one bearer.

    Attributes:
        first: One name.
        second: The other.
        reason: What decided it.
        source_ids: The memories and episodes it rests on.
    """

    first: str
    second: str
    reason: str
    source_ids: tuple[str, ...] = ()


class ProfileDetail(_Detail):
    """What is known about one person, place or project.

    Attributes:
        entity: Names the entity among those of its user.
        name: The fullest name.
        aliases: Its other names.
        kind: What it is.
        lines: What is known, most important first.
        merges: Which names were taken for one bearer, and why.
        mentions: Where its names occur; what resolution starts from again.
        equations: What is said about its names.
        omitted: Memories that found no room.
    """

    about: Literal["profile"] = "profile"
    entity: str
    name: str
    aliases: tuple[str, ...] = ()
    kind: EntityKind
    lines: tuple[Line, ...] = ()
    merges: tuple[Merge, ...] = ()
    mentions: tuple[Mention, ...] = ()
    equations: tuple[Equation, ...] = ()
    omitted: tuple[str, ...] = ()


class TopicDetail(_Detail):
    """What is known under one topic.

    Attributes:
        topic: The term, stemmed.
        name: The term as it is written most often.
        member_ids: The memories under it, newest first.
    """

    about: Literal["topic"] = "topic"
    topic: str
    name: str
    member_ids: tuple[str, ...]


class BoxDetail(_Detail):
    """A run of turns on one topic.

    Attributes:
        session_id: The conversation.
        opened: Timestamp of its first turn.
        last: Timestamp of its last turn.
        sealed: Why it takes no further turn.
        topic: The words that tell what it is about, most frequent first.
        terms: All its content words, stemmed.
        episode_ids: Its turns, in order.
        trace_id: Shared by the boxes in which its topic comes back.
    """

    about: Literal["box"] = "box"
    session_id: str | None
    opened: Moment
    last: Moment
    sealed: SealReason
    topic: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    episode_ids: tuple[str, ...] = Field(min_length=1)
    trace_id: str


class Tally(StoredValue):
    """What became of memories of one kind.

    Attributes:
        category: Category of the memories.
        predicate: Predicate of their slots; empty for those without one.
        stored: How many were stored.
        confirmed: How often one was said again.
        superseded_soon: How many were replaced soon after they were stored.
        disputed: How many were contradicted with nothing to settle it.
        pruned: How many times a linking pass found one not worth keeping.
        dropped_quotes: How many were stored without any quotation of a source.
    """

    category: str
    predicate: str = ""
    stored: int = 0
    confirmed: int = 0
    superseded_soon: int = 0
    disputed: int = 0
    pruned: int = 0
    dropped_quotes: int = 0


class GuidelineDetail(_Detail):
    """What became of earlier memories, and the guidance drawn from it."""

    about: Literal["guideline"] = "guideline"
    tallies: tuple[Tally, ...] = ()
    guidance: tuple[str, ...] = ()


Detail: TypeAlias = Annotated[
    ProfileDetail | TopicDetail | BoxDetail | GuidelineDetail, Field(discriminator="about")
]
