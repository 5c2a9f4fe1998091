"""Turns of a user and conclusions that rest on them, to be stored and forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from engram.domain.confidence import Confidence, ExtractionMethod
from engram.domain.identity import derived_id, episode_id
from engram.domain.memories import (
    AnyMemory,
    Episode,
    MemoryType,
    SemanticMemory,
)
from engram.domain.scope import Scope
from engram.embedding.choice import make_embedder
from engram.ports import MemoryRepository, NewMemory

SCOPE = Scope.of("default", "ada")
SAID = datetime(2026, 3, 1, 9, tzinfo=UTC)
EMBEDDER = make_embedder("wordllama")


def turn(name: str) -> Episode:
    """A turn of the user."""
    return Episode(
        id=episode_id(SCOPE, "s1", name),
        namespace=SCOPE.namespace,
        user_id=SCOPE.user_id,
        content=f"I said {name}.",
        known_at=SAID,
        created_at=SAID,
        role="user",
        timestamp=SAID,
        message_id=name,
    )


def statement(content: str, *sources: Episode) -> SemanticMemory:
    """A conclusion from turns."""
    return SemanticMemory(
        id=derived_id(SCOPE, MemoryType.SEMANTIC, content, 0),
        namespace=SCOPE.namespace,
        user_id=SCOPE.user_id,
        content=content,
        known_at=SAID,
        created_at=SAID,
        event_at=SAID,
        derived_at=SAID,
        source_episode_ids=tuple(source.id for source in sources),
        identity=content,
        confidence=Confidence(
            method=ExtractionMethod.EXTRACTED, extraction=0.9, last_confirmed=SAID
        ),
    )


async def keep(repository: MemoryRepository, memories: Sequence[AnyMemory]) -> None:
    """Store them."""
    vectors = await EMBEDDER.embed_documents([memory.content for memory in memories])
    pairs = zip(memories, vectors, strict=True)
    await repository.insert(SCOPE, [NewMemory(memory, vector) for memory, vector in pairs])
