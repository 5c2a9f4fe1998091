"""Under which circumstances statements are reconciled, and what a new memory takes from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from engram.domain.confidence import Confidence, ExtractionMethod, Verification
from engram.domain.identity import apart, derived_id
from engram.domain.memories import Episode, MemoryType, Provenance, SemanticMemory, Slot, Telling
from engram.domain.normalisation import content_hash
from engram.domain.scope import Scope
from engram.domain.statements import MAX_ENTITIES, MAX_NAME_CHARACTERS, Statement


@dataclass(frozen=True, slots=True)
class Circumstances:
    """Under which the statements were made and are reconciled.

    Attributes:
        scope: Whose memory.
        now: The present.
        episodes: Every episode that the statements name, by id.
        provenance: Which run and model.
    """

    scope: Scope
    now: datetime
    episodes: Mapping[str, Episode]
    provenance: Provenance

    def side(self, *, is_test: bool) -> Circumstances:
        """The same with only the test turns, or only the real ones."""
        kept = {key: e for key, e in self.episodes.items() if e.is_test == is_test}
        return replace(self, episodes=kept)

    def identity(self, statement: Statement) -> str:
        """What makes two conclusions the same one, on this side."""
        is_test = any(episode.is_test for episode in self.sources(statement))
        return apart(content_hash(statement.content), is_test=is_test)

    def sources(self, statement: Statement) -> list[Episode]:
        """The episodes of a statement that exist."""
        wanted = dict.fromkeys(statement.episode_ids)
        return [self.episodes[e] for e in wanted if e in self.episodes]

    def telling(self, statement: Statement) -> Telling | None:
        """When it was said, and of when; None without a real source."""
        sources = self.sources(statement)
        if not sources:
            return None
        times = [episode.timestamp for episode in sources]
        latest = max(sources, key=lambda episode: (episode.timestamp, episode.sequence))
        return Telling(
            event_at=statement.event_at or min(times),
            known_at=max(times),
            begins=statement.begins,
            episode_ids=tuple(episode.id for episode in sources),
            session_id=latest.session_id,
            sequence=latest.sequence,
        )

    def memory(self, statement: Statement, telling: Telling, slot: Slot | None) -> SemanticMemory:
        """What a statement becomes if nothing like it is known: generation 0."""
        episodes = self.sources(statement)
        identity = self.identity(statement)
        sessions = {episode.session_id for episode in episodes}
        return SemanticMemory(
            id=derived_id(self.scope, MemoryType.SEMANTIC, identity, 0),
            namespace=self.scope.namespace,
            user_id=self.scope.user_id,
            content=statement.content,
            known_at=telling.known_at,
            created_at=self.now,
            session_id=sessions.pop() if len(sessions) == 1 else None,
            importance=statement.importance,
            tags=tuple(dict.fromkeys((*(t for e in episodes for t in e.tags), *statement.tags))),
            is_test=any(e.is_test for e in episodes),
            provenance=self.provenance,
            source_episode_ids=telling.episode_ids,
            event_at=telling.event_at,
            derived_at=self.now,
            confidence=_confidence(statement, telling),
            identity=identity,
            valid_from=telling.event_at if telling.begins else None,
            category=statement.category,
            kind=statement.kind,
            evidence=statement.evidence,
            slot=slot,
            tellings=() if slot is None else (telling,),
            entities=_entities(statement),
        )

    def part(self, memory: SemanticMemory) -> SemanticMemory:
        """A memory of the same words, for a time that another memory came to lie between."""
        said = {"content", "tags", "importance", "is_test", "identity", "category", "slot"}
        said |= {"kind", "evidence"}
        where = {"id", "namespace", "user_id", "known_at", "event_at", "entities", "confidence"}
        kept = {name: getattr(memory, name) for name in said | where}
        return SemanticMemory(
            **kept,
            created_at=self.now,
            derived_at=self.now,
            provenance=self.provenance,
            source_episode_ids=memory.source_episode_ids,
        )

    def generation(self, memory: SemanticMemory, number: int) -> SemanticMemory:
        """``memory`` under the id of that generation."""
        memory_id = derived_id(self.scope, MemoryType.SEMANTIC, memory.identity, number)
        return memory.model_copy(update={"id": memory_id, "generation": number})


def _confidence(statement: Statement, telling: Telling) -> Confidence:
    found = bool(statement.evidence)
    return Confidence(
        # Extracted is what a quotation of the source says; the rest is inferred.
        method=ExtractionMethod.EXTRACTED if found else ExtractionMethod.INFERRED,
        extraction=statement.confidence,
        supporting_episodes=len(telling.episode_ids),
        last_confirmed=telling.known_at,
        verification=Verification.EVIDENCE_FOUND if found else Verification.UNCHECKED,
    )


def _entities(statement: Statement) -> tuple[str, ...]:
    named = (e.strip()[:MAX_NAME_CHARACTERS] for e in statement.entities)
    return tuple(dict.fromkeys(e for e in named if e))[:MAX_ENTITIES]
