"""Acting on one memory: what is asked, what comes of it, and which memory is meant."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from engram.client.operations.operation import AboutMemory
from engram.contracts.lifecycle import Change
from engram.domain.memories import AnyMemory
from engram.domain.scope import Scope
from engram.errors import InvalidInput
from engram.ports import MemoryRepository
from engram.writing.lookup import one_memory


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
