"""Memories from elsewhere, stored as ones that had a life before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from engram.domain.confidence import SEED_IMPORTED, Confidence, ExtractionMethod
from engram.domain.identity import content_hash, derived_id, episode_id, with_test_namespace
from engram.domain.memories import (
    AnyMemory,
    Category,
    DerivedMemory,
    Episode,
    Memory,
    MemoryType,
    SemanticMemory,
    Tier,
    Vitals,
)
from engram.domain.personal_data import PersonalKind
from engram.domain.scope import Scope, check_identifier
from engram.domain.turns import Turn, check_timestamp, check_turn
from engram.language.guarding import UNGUARDED, PersonalDataGuard
from engram.ports import Embedder, MemoryRepository, NewMemory
from engram.storage.updates import NewWriteId

# --- memories that come from elsewhere

MIGRATED_ENERGY: Final = 10.0
MIGRATED_ACCESSES: Final = 1

M = TypeVar("M", bound=Memory)


def migrated(
    memory: M,
    now: datetime,
    *,
    last_accessed_at: datetime | None = None,
    instance_id: str | None = None,
) -> M:
    """``memory`` as one that had a life before: long-term, energy 10, recalled once.

    Args:
        memory: Not stored yet. A conclusion loses the head start in corroboration
            that fresh ones have.
        now: When it is imported; its energy counts from here (imported
            memories count as last accessed when imported).
        last_accessed_at: When it was last recalled; unknown: when it became known.
        instance_id: Where it comes from.
    """
    vitals = Vitals(
        energy=MIGRATED_ENERGY,
        energy_at=now,
        peak_energy=MIGRATED_ENERGY,
        tier=Tier.LONG_TERM,
        instance_id=instance_id,
    )
    changes: dict[str, object] = {
        "vitals": vitals,
        "access_count": MIGRATED_ACCESSES,
        "last_accessed_at": last_accessed_at or memory.known_at,
    }
    if isinstance(memory, DerivedMemory):
        seeded = memory.confidence.model_copy(update={"seed": SEED_IMPORTED})
        changes["confidence"] = seeded
    return memory.model_copy(update=changes)


# --- memories from elsewhere: stored as ones that had a life before


class ImportedMemory(BaseModel):
    """One memory of another program.

    Attributes:
        content: Its words.
        timestamp: When it was said or became known.
        message_id: The other program's id; without one, words and time name it.
        conclusion: Whether it is knowledge, not only something that was said.
        confidence: How sure the other program was, 0 to 1; of conclusions.
        last_accessed_at: When it was last used; when unknown, ``timestamp``.
        expires_at: From when on it no longer answers; it has to lie ahead.
        summary: It in a sentence.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    content: str
    timestamp: AwareDatetime
    role: str = "user"
    speaker: str | None = None
    session_id: str = "imported"
    message_id: str | None = None
    importance: float | None = Field(default=None, ge=0, le=1)
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = Field(default_factory=dict)
    conclusion: bool = False
    category: Category = Category.FACT
    confidence: float = Field(default=0.9, ge=0, le=1)
    last_accessed_at: AwareDatetime | None = None
    expires_at: AwareDatetime | None = None
    summary: str | None = None
    is_test: bool = False


class ImportReport(BaseModel):
    """What an import stored.

    Attributes:
        episodes: Turns that are stored now and were not before.
        conclusions: The same of conclusions.
        known: Memories that were there already.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    episodes: int = 0
    conclusions: int = 0
    known: int = 0

    def plus(self, other: ImportReport) -> ImportReport:
        """Both together."""
        return ImportReport(
            episodes=self.episodes + other.episodes,
            conclusions=self.conclusions + other.conclusions,
            known=self.known + other.known,
        )


@dataclass(frozen=True, slots=True)
class Importer:
    """Stores memories from elsewhere; storing them again changes nothing.

    Args:
        repository: Where memories are kept; it stamps what it writes.
        embedder: Gives them their vectors.
        new_write_id: Makes a fresh value for each write.
        max_turn_bytes: Longest content.
        guard: Masks or marks personal data.
    """

    repository: MemoryRepository
    embedder: Embedder
    new_write_id: NewWriteId
    max_turn_bytes: int
    guard: PersonalDataGuard = UNGUARDED

    async def store(
        self, scope: Scope, items: Sequence[ImportedMemory], now: datetime
    ) -> ImportReport:
        """Store those that are not there; all are checked before the first is written.

        Raises:
            InvalidTurn: one of them cannot be kept.
            InvalidScope: a session id has a form that is refused.
        """
        for item in items:
            self._check(item, now)
        items = [item.model_copy(update=self.guard.masked(scope.namespace, item)) for item in items]
        made: dict[str, AnyMemory] = {}
        for item in items:
            for memory in _memories(scope, item, now, self.guard.marks(scope.namespace, item)):
                made.setdefault(memory.id, memory)
        there = await self.repository.get(scope, made, fresh=True)
        new = [memory for memory in made.values() if memory.id not in there]
        forgotten: frozenset[str] = frozenset()
        if new:
            vectors = await self.embedder.embed_documents([m.indexed_text for m in new])
            written = [m.model_copy(update={"write_id": self.new_write_id()}) for m in new]
            pairs = zip(written, vectors, strict=True)
            batch = [NewMemory(m, vector) for m, vector in pairs]
            forgotten = await self.repository.insert(scope, batch)
        stored = [memory for memory in new if memory.id not in forgotten]
        turns = sum(memory.type is MemoryType.EPISODIC for memory in stored)
        return ImportReport(episodes=turns, conclusions=len(stored) - turns, known=len(there))

    def _check(self, item: ImportedMemory, now: datetime) -> None:
        check_identifier(item.session_id, "session id")
        turn = Turn(
            content=item.content,
            role=item.role,
            speaker=item.speaker,
            timestamp=item.timestamp,
            message_id=item.message_id,
            metadata=item.metadata,
            tags=item.tags,
            importance=item.importance,
            expires_at=item.expires_at,
            summary=item.summary,
        )
        check_turn(turn, now=now, max_bytes=self.max_turn_bytes)
        if item.last_accessed_at is not None:
            check_timestamp(item.last_accessed_at, now=now, what="time of the last access")


def _memories(
    scope: Scope, item: ImportedMemory, now: datetime, kinds: tuple[PersonalKind, ...]
) -> list[AnyMemory]:
    said = f"{content_hash(item.content)}@{item.timestamp.isoformat()}"
    name = item.message_id or with_test_namespace(said, is_test=item.is_test)
    own: dict[str, Any] = {} if item.importance is None else {"importance": item.importance}
    common: dict[str, Any] = {
        "namespace": scope.namespace,
        "user_id": scope.user_id,
        "content": item.content,
        "known_at": item.timestamp,
        "created_at": now,
        "session_id": item.session_id,
        "tags": item.tags,
        "metadata": item.metadata,
        "summary": item.summary,
        "expires_at": item.expires_at,
        "is_test": item.is_test,
        **own,
    }
    episode = Episode(
        **common,
        id=episode_id(scope, item.session_id, name),
        role=item.role,
        speaker=item.speaker,
        timestamp=item.timestamp,
        message_id=name,
        # What comes with its conclusion is not read for another one.
        consolidated_at=now if item.conclusion else None,
        personal_data=kinds,
    )
    used = item.last_accessed_at
    if not item.conclusion:
        return [migrated(episode, now, last_accessed_at=used)]
    identity = with_test_namespace(content_hash(item.content), is_test=item.is_test)
    knowledge = SemanticMemory(
        **common,
        id=derived_id(scope, MemoryType.SEMANTIC, identity, 0),
        source_episode_ids=(episode.id,),
        event_at=item.timestamp,
        derived_at=now,
        confidence=Confidence(
            method=ExtractionMethod.EXTRACTED,
            extraction=item.confidence,
            last_confirmed=item.timestamp,
        ),
        identity=identity,
        category=item.category,
    )
    return [migrated(one, now, last_accessed_at=used) for one in (episode, knowledge)]
