"""Small valid memories for tests of the domain."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from engram.domain.confidence import Confidence, ExtractionMethod
from engram.domain.memories import Episode, Fact, FactCategory
from tests.support.clock import NOW


def episode(name: str, *, at: timedelta = timedelta(0), content: str = "Hello.") -> Episode:
    """A turn said at NOW plus ``at``."""
    return Episode(
        id=name,
        namespace="default",
        user_id="ada",
        content=content,
        known_at=NOW + at,
        created_at=NOW,
        session_id="s1",
        role="user",
        timestamp=NOW + at,
        message_id=name,
    )


def fact(*, source: str = "e1", at: timedelta = timedelta(0), **fields: Any) -> Fact:
    """An e-mail address found in the episode ``source``."""
    return Fact(
        id="fact",
        namespace="default",
        user_id="ada",
        content="email address: ada@example.org",
        known_at=NOW + at,
        created_at=NOW,
        source_episode_ids=(source,),
        event_at=NOW + at,
        derived_at=NOW,
        confidence=Confidence(
            method=ExtractionMethod.EXTRACTED, extraction=0.9, last_confirmed=NOW + at
        ),
        identity="email:ada@example.org",
        category=FactCategory.EMAIL,
        value="ada@example.org",
        evidence="ada@example.org",
        **fields,
    )
