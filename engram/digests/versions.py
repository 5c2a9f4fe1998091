"""Versions of digests: text never changes in place, a new generation replaces the old."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from engram.domain.confidence import Confidence, ExtractionMethod
from engram.domain.digests import Detail
from engram.domain.identity import derived_id
from engram.domain.memories import (
    Category,
    Link,
    MemoryForm,
    MemoryStatus,
    MemoryType,
    Provenance,
    SemanticMemory,
)
from engram.domain.scope import Scope

COMPOSER: Final = "engram:digests"
COMPOSER_VERSION: Final = "digests-1"
# Sources that a digest names at most; a box names all of its turns.
MAX_SOURCES = 500


@dataclass(frozen=True, slots=True)
class Draft:
    """A digest as it should be.

    Attributes:
        form: What it is.
        content: Its words.
        detail: What it carries beside them; the first of its keys names it.
        sources: Episodes that it rests on.
        known_at: Timestamp of the latest of what it rests on.
        event_at: When what it tells began.
        session_id: The conversation, for what belongs to one.
        operation_ids: Operations that had their effect on it already.
        links: What it leads to from its first write on. The other ends are written after it.
    """

    form: MemoryForm
    content: str
    detail: Detail
    sources: tuple[str, ...]
    known_at: datetime
    event_at: datetime
    session_id: str | None = None
    operation_ids: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()

    @property
    def key(self) -> str:
        """Names the digest among those of its user."""
        return self.detail.keys[0]


@dataclass(frozen=True, slots=True)
class Composer:
    """Whose digests are composed, when, and by which run.

    Attributes:
        epoch: The user's before anything was read to compose from; see
            :meth:`engram.ports.MemoryRepository.epoch`.
    """

    scope: Scope
    now: datetime
    workflow_id: str | None = None
    run_id: str | None = None
    epoch: int | None = None

    def memory(
        self, draft: Draft, generation: int, replaced: Iterable[SemanticMemory]
    ) -> SemanticMemory:
        """The draft as a memory of that generation."""
        before = tuple(replaced)
        identity = _identity(draft)
        known_at = max([draft.known_at, *(memory.known_at for memory in before)])
        return SemanticMemory(
            id=derived_id(self.scope, MemoryType.SEMANTIC, identity, generation),
            namespace=self.scope.namespace,
            user_id=self.scope.user_id,
            content=draft.content,
            known_at=known_at,
            created_at=self.now,
            session_id=draft.session_id,
            operation_ids=draft.operation_ids,
            provenance=Provenance(
                workflow_id=self.workflow_id,
                run_id=self.run_id,
                model=COMPOSER,
                instructions_version=COMPOSER_VERSION,
            ),
            source_episode_ids=draft.sources[:MAX_SOURCES],
            event_at=draft.event_at,
            derived_at=self.now,
            confidence=Confidence(
                method=ExtractionMethod.INFERRED,
                extraction=1.0,
                supporting_episodes=min(len(draft.sources), MAX_SOURCES),
                last_confirmed=known_at,
            ),
            identity=identity,
            generation=generation,
            supersedes=tuple(sorted(memory.id for memory in before)),
            form=draft.form,
            category=Category.FACT,
            links=draft.links,
            detail=draft.detail,
        )


def newest(versions: Sequence[SemanticMemory]) -> SemanticMemory | None:
    """The version that counts: crashes can leave an older one active beside it."""
    return max(versions, key=lambda memory: (memory.generation, memory.id), default=None)


def retired(
    memory: SemanticMemory, successor: SemanticMemory | None, known_at: datetime
) -> SemanticMemory | None:
    """``memory`` as a version that counted until then; None if it is one already."""
    if memory.status is not MemoryStatus.ACTIVE:
        return None
    known = max(memory.known_at, known_at if successor is None else successor.known_at)
    return memory.model_copy(
        update={
            "status": MemoryStatus.SUPERSEDED,
            "superseded_by": None if successor is None else successor.id,
            "superseded_known_at": known,
            "valid_to": known,
        }
    )


def amended(memory: SemanticMemory, draft: Draft) -> SemanticMemory | None:
    """``memory`` with the draft's detail, which says the same in the same words; None if equal."""
    if memory.detail == draft.detail or memory.content != draft.content:
        return None
    return memory.model_copy(update={"detail": draft.detail})


def _identity(draft: Draft) -> str:
    parts = json.dumps([draft.form.value, draft.key, draft.content], ensure_ascii=True)
    return hashlib.sha256(parts.encode()).hexdigest()
