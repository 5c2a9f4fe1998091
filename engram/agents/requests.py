"""What an agent is asked: typed, and handed over as one JSON document.

A turn is a value inside that document, so that no turn can pose as another
turn, as an instruction, or as the end of the conversation.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from engram.domain.memories import Category, MemoryKind, Slot


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TurnView(_Value):
    """An episode as a model sees it: ``alias`` (e1, e2, ...) stands for its id."""

    alias: str
    role: str
    speaker: str | None
    said_at: datetime
    content: str


class MemoryView(_Value):
    """A memory as a model sees it: ``alias`` (m1, m2, ...) stands for its id.

    Attributes:
        kind: Whether later knowledge may replace it (a note) or it happened (an episode).
        event_at: When it happened or began to hold.
        known_at: When it was first said.
        fresh: Whether it was stored since the last linking pass.
    """

    alias: str
    content: str
    category: Category
    kind: MemoryKind = MemoryKind.NOTE
    slot: Slot | None
    entities: tuple[str, ...]
    event_at: datetime
    known_at: datetime
    fresh: bool


class ExtractionRequest(_Value):
    """Find what these turns state.

    Attributes:
        guidance: What became of earlier statements, and what to be careful with.
    """

    task: Literal["extract"] = "extract"
    turns: tuple[TurnView, ...]
    guidance: tuple[str, ...] = ()


class LinkingRequest(_Value):
    """Find what links these memories, and which are not worth keeping."""

    task: Literal["link"] = "link"
    memories: tuple[MemoryView, ...]


AgentRequest: TypeAlias = Annotated[ExtractionRequest | LinkingRequest, Field(discriminator="task")]
REQUESTS: TypeAdapter[ExtractionRequest | LinkingRequest] = TypeAdapter(AgentRequest)


def as_prompt(request: ExtractionRequest | LinkingRequest) -> str:
    """The user prompt: the request as one JSON document."""
    return request.model_dump_json()


def read_prompt(prompt: str) -> ExtractionRequest | LinkingRequest:
    """The request in a user prompt.

    Raises:
        pydantic.ValidationError: it is not one document of a request type.
    """
    return REQUESTS.validate_json(prompt)
