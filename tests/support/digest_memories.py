"""Memories and turns for the tests of digests."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from engram.digests.boxes import Said
from engram.domain.confidence import Confidence, ExtractionMethod
from engram.domain.identity import content_hash, derived_id, episode_id
from engram.domain.memories import (
    Category,
    Episode,
    MemoryType,
    SemanticMemory,
)
from engram.domain.scope import Scope
from engram.domain.slots import slot_of

ADA = Scope.of("default", "ada")
START = datetime(2026, 1, 5, 9, tzinfo=UTC)


def minute(number: float) -> datetime:
    """So many minutes after the start."""
    return START + timedelta(minutes=number)


def said(*texts: str, gap: float = 1.0) -> list[Said]:
    """Turns of one session, a gap of minutes apart."""
    return [Said(id=f"e{n:03}", at=minute(n * gap), text=text) for n, text in enumerate(texts)]


def episode(text: str, at: float = 0, session: str = "s1", **more: Any) -> Episode:
    """A turn of the user."""
    given = {
        "id": episode_id(ADA, session, f"{at}-{text}"),
        "role": "user",
        "message_id": f"{at}-{text}",
        **more,
    }
    return Episode(
        namespace=ADA.namespace,
        user_id=ADA.user_id,
        content=text,
        known_at=minute(at),
        created_at=minute(at),
        session_id=session,
        timestamp=minute(at),
        **given,
    )


def known(
    content: str,
    at: float = 0,
    *,
    slot: tuple[str, str, str] | None = None,
    sources: Iterable[str] = (),
    **more: Any,
) -> SemanticMemory:
    """A piece of knowledge."""
    identity = content_hash(content)
    return SemanticMemory(
        id=derived_id(ADA, MemoryType.SEMANTIC, identity, 0),
        namespace=ADA.namespace,
        user_id=ADA.user_id,
        content=content,
        known_at=minute(at),
        created_at=minute(at),
        source_episode_ids=tuple(sources) or (episode_id(ADA, "s1", content),),
        event_at=minute(at),
        derived_at=minute(at),
        confidence=Confidence(
            method=ExtractionMethod.EXTRACTED, extraction=0.9, last_confirmed=minute(at)
        ),
        identity=identity,
        slot=slot_of(*slot) if slot else None,
        **more,
    )


CHESS = [
    known(f"The user likes {what} chess.", 4 + n, slot=("user", "likes", f"{what} chess"),
          category=Category.PREFERENCE)
    for n, what in enumerate(("blitz", "rapid", "blindfold"))
]  # fmt: skip
