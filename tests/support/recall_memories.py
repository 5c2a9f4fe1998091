"""Short ways to make memories and to ask about them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from engram.domain.confidence import Confidence, ConfidenceWeights, ExtractionMethod
from engram.domain.identity import content_hash, derived_id, episode_id
from engram.domain.memories import (
    AnyMemory,
    Episode,
    MemoryType,
    NegationFact,
    ProceduralMemory,
    SemanticMemory,
)
from engram.domain.scope import Scope
from engram.ports import Embedder, MemoryRepository, NewMemory
from engram.recall.pipeline import Recaller
from engram.recall.request import RecallRequest
from engram.recall.results import RecallHit
from engram.settings import Settings

START = datetime(2024, 1, 1, 12, tzinfo=UTC)
ADA = Scope(namespace="default", user_id="ada")
BOB = Scope(namespace="default", user_id="bob")
EVERYBODY = (ADA, BOB, Scope(namespace="other", user_id="ada"))
SETTINGS = Settings.load()


def day(number: float) -> datetime:
    """So many days after the start of the conversation."""
    return START + timedelta(days=number)


NOW = day(400)


def episode(text: str, at: float = 0, *, scope: Scope = ADA, **more: Any) -> Episode:
    """A turn of the user, said on that day."""
    session = more.pop("session_id", "s1")
    message = more.pop("message_id", f"{text}@{at}")
    return Episode(
        id=episode_id(scope, session, message),
        namespace=scope.namespace,
        user_id=scope.user_id,
        content=text,
        known_at=day(at),
        created_at=day(at),
        session_id=session,
        role=more.pop("role", "user"),
        timestamp=day(at),
        message_id=message,
        **more,
    )


def _derived(kind: str, text: str, at: float, scope: Scope, more: dict[str, Any]) -> dict[str, Any]:
    identity = content_hash(text)
    generation = more.pop("generation", 0)
    method = more.pop("method", ExtractionMethod.EXTRACTED)
    confidence = Confidence(method=method, extraction=0.9, last_confirmed=day(at))
    return {
        "id": derived_id(scope, kind, identity, generation),
        "namespace": scope.namespace,
        "user_id": scope.user_id,
        "content": text,
        "known_at": day(at),
        "created_at": day(at),
        "source_episode_ids": (episode_id(scope, "s1", text),),
        "event_at": day(at),
        "derived_at": day(at),
        "confidence": confidence,
        "identity": identity,
        "generation": generation,
        **more,
    }


def semantic(text: str, at: float = 0, *, scope: Scope = ADA, **more: Any) -> SemanticMemory:
    """A piece of knowledge, known from that day."""
    return SemanticMemory(**_derived("semantic", text, at, scope, more))


def procedural(text: str, trigger: str, at: float = 0, **more: Any) -> ProceduralMemory:
    """A habit, known from that day."""
    fields = _derived("procedural", text, at, ADA, more)
    return ProceduralMemory(**fields, trigger_context=trigger)


def negation(
    text: str, pattern: str, at: float = 0, *, scope: Scope = ADA, **more: Any
) -> NegationFact:
    """Something explicitly not true, known from that day."""
    fields = _derived("negation", text, at, scope, more)
    return NegationFact(**fields, negates_pattern=pattern, evidence=text)


def covers_by_words(denial: NegationFact, memory: AnyMemory) -> bool:
    """Stands in for the domain's rule: every word of the pattern occurs."""
    words = memory.content.lower()
    return all(word in words for word in denial.negates_pattern.split())


class Memories:
    """A store with an embedder and a recaller on top."""

    def __init__(
        self,
        repository: MemoryRepository,
        embedder: Embedder,
        settings: Settings = SETTINGS,
    ) -> None:
        self.repository = repository
        self.embedder = embedder
        self.settings = settings
        self.recaller = Recaller(
            repository, embedder, ConfidenceWeights(), settings, covers_by_words
        )

    async def keep(self, *memories: AnyMemory) -> None:
        """Store each in its own scope."""
        vectors = await self.embedder.embed_documents([one.indexed_text for one in memories])
        for memory, vector in zip(memories, vectors, strict=True):
            await self.repository.insert(memory.scope, [NewMemory(memory, vector)])

    async def ask(self, query: str, *, scope: Scope = ADA, **more: Any) -> list[RecallHit]:
        """Recall as an application would ask."""
        request = RecallRequest.of(query, settings=self.settings, **more)
        return await self.recaller.recall(scope, request, NOW)


def contents(hits: Iterable[RecallHit]) -> list[str]:
    """What the answers say, best first."""
    return [hit.memory.content for hit in hits]


KNOWLEDGE = (MemoryType.SEMANTIC,)
