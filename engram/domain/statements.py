"""One thing that a conversation states, before it is compared with what is known."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from engram.domain.memories import Category, Evidence, MemoryKind, Resolution

MAX_STATEMENT_CHARACTERS = 1000
MAX_NAME_CHARACTERS = 200
MAX_ENTITIES = 20
MAX_TAGS = 10
MAX_QUOTES = 5


class Statement(BaseModel):
    """What a model says that some episodes state.

    Attributes:
        content: A self-contained sentence in the third person.
        kind: Whether it happened (an episode) or holds until changed (a note).
        subject: Whom or what it is about; with ``predicate`` and ``object`` its slot.
        holds: False if the statement is that this is no longer (or not) so.
        begins: Whether it says that this began then (moved, switched, joined).
        ended: How a promise ended, where it says that one no longer holds.
        tags: Topics.
        evidence: The words of its episodes that say so; none where it was inferred.
        event_at: When it happened or began to hold; None for when it was said.
        confidence: What the extraction itself says, 0 to 1.
        episode_ids: The episodes that state it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    content: str = Field(min_length=1, max_length=MAX_STATEMENT_CHARACTERS)
    category: Category = Category.FACT
    kind: MemoryKind = MemoryKind.NOTE
    subject: str | None = None
    predicate: str | None = None
    object: str | None = None
    holds: bool = True
    begins: bool = False
    ended: Resolution | None = None
    entities: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    event_at: datetime | None = None
    confidence: float = Field(ge=0, le=1)
    importance: float = Field(default=0.5, ge=0, le=1)
    episode_ids: tuple[str, ...] = Field(min_length=1)
