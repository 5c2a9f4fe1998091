"""Test memories, as they are made."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from engram.domain.confidence import Confidence, ExtractionMethod
from engram.domain.identity import derived_id, episode_id
from engram.domain.memories import Episode, MemoryType, SemanticMemory
from engram.domain.normalisation import content_hash
from engram.domain.scope import Scope

SESSION: Final = "engram-test"


def trial_turn(scope: Scope, content: str, born: datetime) -> Episode:
    """A test turn, stored at ``born``; the same words of the same day are the same turn."""
    name = f"{content_hash(content)}@{born.date().isoformat()}"
    return Episode(
        id=episode_id(scope, SESSION, name),
        namespace=scope.namespace,
        user_id=scope.user_id,
        content=content,
        known_at=born,
        created_at=born,
        session_id=SESSION,
        role="user",
        timestamp=born,
        message_id=name,
        # Consolidation leaves it alone.
        consolidated_at=born,
        is_test=True,
    )


def trial_knowledge(scope: Scope, turn: Episode, **more: Any) -> SemanticMemory:
    """A test conclusion drawn from a test turn."""
    identity = content_hash(f"{SESSION}: {turn.content}")
    return SemanticMemory(
        id=derived_id(scope, MemoryType.SEMANTIC, identity, 0),
        namespace=scope.namespace,
        user_id=scope.user_id,
        content=turn.content,
        known_at=turn.known_at,
        created_at=turn.created_at,
        session_id=SESSION,
        is_test=True,
        source_episode_ids=(turn.id,),
        event_at=turn.known_at,
        derived_at=turn.created_at,
        confidence=Confidence(
            method=ExtractionMethod.EXTRACTED, extraction=0.9, last_confirmed=turn.known_at
        ),
        identity=identity,
        **more,
    )
