"""What readers find in a source: turns, and what they leave out and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class FoundTurn:
    """A turn as its source has it.

    Attributes:
        session: The source's own name of the conversation.
        place: Where it stands, in words that hold nothing of it: "conversation 3, message 12".
        message_id: The source's own id; None where it has none.
        timestamp: As the source has it, perhaps without zone; None where it has none.
    """

    session: str
    place: str
    content: str
    role: str = "user"
    speaker: str | None = None
    timestamp: datetime | None = None
    message_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    importance: float | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that is no turn to remember.

    Attributes:
        reason: Why, in a few words that hold nothing of it.
        place: Where it stands.
    """

    reason: str
    place: str


Found: TypeAlias = FoundTurn | LeftOut
