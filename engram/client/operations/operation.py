"""What describes an operation, wherever it is carried out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter

from engram.domain.access import Access


class Question(BaseModel):
    """The fields that an operation is asked with; whose memory is meant is no field of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class AboutMemory(Question):
    """A question about one memory."""

    memory_id: str


Asked = TypeVar("Asked", bound=Question)
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Operation(Generic[Asked, Answer]):
    """One thing that can be asked of a user's memory.

    Attributes:
        name: Its name in addresses: lower case, words joined by hyphens.
        asked: The type of the question.
        answer: The type of the answer; what it cannot be is None.
        about: One sentence for people who read the API.
        access: What an API key must allow.
    """

    name: str
    asked: type[Asked]
    answer: type[Answer]
    about: str
    access: Access

    @property
    def reader(self) -> TypeAdapter[Answer]:
        """Reads the answer from JSON."""
        return TypeAdapter(self.answer)
