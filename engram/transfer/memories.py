"""Memories from elsewhere, stored as ones that had a life before."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from engram.consolidation.apply import PlanWriter
from engram.consolidation.keep import Circumstances
from engram.consolidation.known import KnownMemories
from engram.consolidation.reconcile import reconcile
from engram.domain.confidence import SEED_IMPORTED
from engram.domain.identity import content_hash, episode_id, with_test_namespace
from engram.domain.memories import (
    Category,
    DerivedMemory,
    Episode,
    Evidence,
    Memory,
    MemoryForm,
    MemoryType,
    Provenance,
    Tier,
    Vitals,
    utc_offset,
)
from engram.domain.personal_data import PersonalKind
from engram.domain.plan import (
    Action,
    ActionSource,
    ConsolidationPlan,
    Statement,
    StoreEpisode,
    StoreNote,
)
from engram.domain.scope import Scope, check_identifier
from engram.domain.turns import Turn, check_timestamp, check_turn
from engram.language.guarding import UNGUARDED, PersonalDataGuard
from engram.language.statements.third_person import as_statement
from engram.ports import Embedder, MemoryRepository, NewMemory
from engram.storage.updates import NewWriteId

# --- memories that come from elsewhere

MIGRATED_ENERGY: Final = 10.0
MIGRATED_ACCESSES: Final = 1

M = TypeVar("M", bound=Memory)


def life_before(
    known_at: datetime,
    now: datetime,
    *,
    last_accessed_at: datetime | None = None,
    instance_id: str | None = None,
) -> dict[str, Any]:
    """The fields of a memory that had a life before it came here.

    Args:
        known_at: When it became known.
        now: When it is imported; its energy counts from here.
        last_accessed_at: When it was last recalled; unknown: when it became known.
        instance_id: Where it comes from.
    """
    return {
        "vitals": _vitals(now, instance_id),
        "access_count": MIGRATED_ACCESSES,
        "last_accessed_at": last_accessed_at or known_at,
    }


# One for all that comes in a batch.
@lru_cache(maxsize=16)
def _vitals(now: datetime, instance_id: str | None) -> Vitals:
    return Vitals(
        energy=MIGRATED_ENERGY,
        energy_at=now,
        peak_energy=MIGRATED_ENERGY,
        tier=Tier.LONG_TERM,
        instance_id=instance_id,
    )


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
    changes = life_before(
        memory.known_at, now, last_accessed_at=last_accessed_at, instance_id=instance_id
    )
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
        instance_id: The program, or the part of it, that it was in.
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
    instance_id: str | None = Field(default=None, max_length=256)
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

        A conclusion is reconciled with what is known like one that was drawn here: it
        replaces what it is newer than, or comes as history of what is newer than it.

        Raises:
            InvalidTurn: one of them cannot be kept.
            InvalidScope: a session id has a form that is refused.
            StorageUnavailable: what was written was not there when it was read back.
        """
        for item in items:
            self._check(item, now)
        items = [item.model_copy(update=self.guard.masked(scope.namespace, item)) for item in items]
        turns: dict[str, tuple[Episode, ImportedMemory]] = {}
        epoch = await self.repository.epoch(scope)
        for item in items:
            episode = _episode(scope, item, now, self.guard.marks(scope.namespace, item))
            turns.setdefault(episode.id, (episode, item))
        there = await self.repository.get(scope, turns, [MemoryType.EPISODIC], fresh=True)
        new = [turn for key, turn in turns.items() if key not in there]
        forgotten = await self._insert(
            scope, [_with_past(episode, item, now) for episode, item in new], epoch
        )
        concluding = {key: turn for key, turn in turns.items() if turn[1].conclusion}
        stored = await self._conclude(scope, concluding, now)
        return ImportReport(
            episodes=len(new) - len(forgotten),
            conclusions=stored,
            known=len(there) + max(len(concluding) - stored - len(forgotten & {*concluding}), 0),
        )

    async def _insert(
        self, scope: Scope, episodes: Sequence[Episode], epoch: int
    ) -> frozenset[str]:
        """Store turns; those of them that were forgotten are not, and are returned."""
        if not episodes:
            return frozenset()
        vectors = await self.embedder.embed_documents([e.indexed_text for e in episodes])
        written = [e.model_copy(update={"write_id": self.new_write_id()}) for e in episodes]
        pairs = zip(written, vectors, strict=True)
        new = [NewMemory(e, vector) for e, vector in pairs]
        return await self.repository.insert(scope, new, epoch=epoch)

    async def _conclude(
        self, scope: Scope, turns: Mapping[str, tuple[Episode, ImportedMemory]], now: datetime
    ) -> int:
        """Store what these turns conclude, then retire what that replaces; how many are new."""
        if not turns:
            return 0
        statements = [_statement(key, item) for key, (_, item) in turns.items()]
        episodes = {key: episode for key, (episode, _) in turns.items()}
        known = await KnownMemories(self.repository, self.embedder).about(
            scope, statements, sides=frozenset(item.is_test for _, item in turns.values())
        )
        at = Circumstances(
            scope=scope, now=now, episodes=episodes, provenance=Provenance(), brought_in=True
        )
        # Compares each with each: not while others wait.
        plan = await asyncio.to_thread(reconcile, statements, known, at)
        plan = ConsolidationPlan(actions=tuple(_with_its_past(a, turns, now) for a in plan.actions))
        writer = PlanWriter(self.repository, self.embedder, self.new_write_id)
        written = await writer.write(scope, plan)
        if plan.retirements():
            await writer.retire(scope, plan)
        told = {m.id for m in plan.new_memories() if m.form is MemoryForm.STATEMENT}
        return len(told.intersection(written.stored))

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


def _episode(
    scope: Scope, item: ImportedMemory, now: datetime, kinds: tuple[PersonalKind, ...]
) -> Episode:
    said = f"{content_hash(item.content)}@{item.timestamp.isoformat()}"
    name = item.message_id or with_test_namespace(said, is_test=item.is_test)
    own: dict[str, Any] = {} if item.importance is None else {"importance": item.importance}
    return Episode(
        namespace=scope.namespace,
        user_id=scope.user_id,
        content=item.content,
        known_at=item.timestamp,
        created_at=now,
        session_id=item.session_id,
        tags=item.tags,
        metadata=item.metadata,
        summary=item.summary,
        expires_at=item.expires_at,
        is_test=item.is_test,
        **own,
        id=episode_id(scope, item.session_id, name),
        role=item.role,
        speaker=item.speaker,
        timestamp=item.timestamp,
        utc_offset=utc_offset(item.timestamp),
        message_id=name,
        # What comes with its conclusion is not read for another one.
        consolidated_at=now if item.conclusion else None,
        personal_data=kinds,
    )


def _statement(source: str, item: ImportedMemory) -> Statement:
    """What an imported conclusion states: its own words are the evidence."""
    read = as_statement(item.content)
    own: dict[str, Any] = {} if item.importance is None else {"importance": item.importance}
    # Not validated: what comes from elsewhere may be longer than what is concluded here.
    return Statement.model_construct(
        content=item.content,
        category=item.category,
        **({} if read is None else read._asdict()),
        evidence=(Evidence(episode_id=source, words=item.content),),
        confidence=item.confidence,
        episode_ids=(source,),
        **own,
    )


def _with_past(memory: M, item: ImportedMemory, now: datetime) -> M:
    used, origin = item.last_accessed_at, item.instance_id
    return migrated(memory, now, last_accessed_at=used, instance_id=origin)


def _with_its_past(
    action: Action, turns: Mapping[str, tuple[Episode, ImportedMemory]], now: datetime
) -> Action:
    """An action as one that somebody asks for; a new conclusion had a life before."""
    by_hand = action.eligibility.model_copy(update={"source": ActionSource.MANUAL})
    action = action.model_copy(update={"eligibility": by_hand})
    if not isinstance(action, StoreNote | StoreEpisode):
        return action
    found = (turns[key] for key in action.memory.source_episode_ids if key in turns)
    _, item = next(found, (None, None))
    if item is None:
        return action
    memory = _with_past(action.memory, item, now)
    memory = memory.model_copy(update={"metadata": item.metadata, "summary": item.summary})
    return action.model_copy(update={"memory": memory})
