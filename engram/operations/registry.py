"""Operations: how one is described, who handles it, and which memory it acts on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter

from engram.contracts.lifecycle import Change
from engram.domain.access import Access
from engram.domain.memories import AnyMemory
from engram.domain.scope import Scope
from engram.errors import InvalidInput, UnknownFailure
from engram.ports import MemoryRepository
from engram.storage.updates import one_memory

# --- what describes an operation, wherever it is carried out


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


# --- who carries operations out in process

Handler: TypeAlias = Callable[[Scope, Asked], Awaitable[Answer]]


class Handlers:
    """Operations, and what carries each of them out."""

    def __init__(self) -> None:
        # The pairing of types is checked where a handler is added and where it is asked.
        self._handlers: dict[str, Callable[[Scope, Any], Awaitable[Any]]] = {}

    def add(
        self,
        operation: Operation[Asked, Answer],
        handler: Callable[[Scope, Asked], Awaitable[Answer]],
    ) -> None:
        """Let ``handler`` carry out ``operation``."""
        self._handlers[operation.name] = handler

    def __contains__(self, operation: Operation[Any, Any]) -> bool:
        return operation.name in self._handlers

    async def perform(
        self, scope: Scope, operation: Operation[Asked, Answer], asked: Asked
    ) -> Answer:
        """Carry ``operation`` out for one user.

        Raises:
            UnknownFailure: this process does not know the operation.
        """
        handler = self._handlers.get(operation.name)
        if handler is None:
            raise UnknownFailure(
                f"The operation {operation.name!r} is not offered here.",
                hint="Use the same version of Engram in all processes.",
            )
        answer: Answer = await handler(scope, asked)
        return answer


# --- acting on one memory: what is asked, what comes of it, and which memory is meant


class ActOn(AboutMemory):
    """An action on one memory.

    Attributes:
        dry_run: Write nothing; say what would change.
        test_only: Refuse it for a memory that is no test memory.
    """

    dry_run: bool = False
    test_only: bool = False


class Acted(BaseModel):
    """What an action on one memory did, or would do.

    Attributes:
        memory: As it is now; after a dry run, as it would be.
        changes: The steps of its life that this made; empty if it was so already.
        habit_id: The habit that it became, if it was promoted to one.
        dry_run: Whether nothing was written.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    memory: AnyMemory
    changes: tuple[Change, ...] = ()
    habit_id: str | None = None
    dry_run: bool = False


async def meant(repository: MemoryRepository, scope: Scope, asked: ActOn) -> AnyMemory:
    """The memory that is to be acted on.

    Raises:
        MemoryNotFound: no such memory of this user.
        InvalidInput: it is no test memory, and only those may be acted on.
    """
    memory = await one_memory(repository, scope, asked.memory_id)
    if asked.test_only:
        check_test(memory)
    return memory


def check_test(memory: AnyMemory) -> None:
    """Refuse what is no test memory.

    Raises:
        InvalidInput: it is none.
    """
    if not memory.is_test:
        raise InvalidInput(
            "This is no test memory.",
            allowed="memories that `engram test list` names",
            details={"id": memory.id},
        )
