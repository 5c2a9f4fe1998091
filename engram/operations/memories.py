"""Operations on conclusions: verifying them, resolving commitments, what they cost."""

from __future__ import annotations

from typing import Any, Final

from engram.consolidation.verify import Verification, verify
from engram.contracts.messages import UserUsage
from engram.domain.access import Access
from engram.domain.memories import AnyMemory, DerivedMemory, MemoryType, Resolution, SemanticMemory
from engram.domain.scope import Scope
from engram.errors import InvalidInput, MemoryNotFound
from engram.lifecycle.decisions import resolve
from engram.operations.registry import AboutMemory, Handlers, Operation, Question
from engram.ports import Clock, MemoryRepository
from engram.storage.updates import NewWriteId, episodes_by_id, one_memory, update_memories
from engram.temporal.gateway import SpendingReader

# --- operations on what was concluded, and who carries them out

VERIFY: Final = Operation(
    "verify",
    AboutMemory,
    Verification,
    "Check a memory against the turns it was drawn from.",
    access=Access.READ,
)

KNOWLEDGE_OPERATIONS: Final[tuple[Operation[Any, Any], ...]] = (VERIFY,)


class KnowledgeHandlers:
    """Carries out the operations of this module.

    Args:
        repository: Where memories are kept.
    """

    def __init__(self, repository: MemoryRepository) -> None:
        self._repository = repository

    def register(self, handlers: Handlers) -> None:
        """Add every operation of this module."""
        handlers.add(VERIFY, self.verify)

    async def verify(self, scope: Scope, asked: AboutMemory) -> Verification:
        """Check a memory against its sources.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        memory = await one_memory(self._repository, scope, asked.memory_id)
        sources = memory.source_episode_ids if isinstance(memory, DerivedMemory) else ()
        return verify(memory, await episodes_by_id(self._repository, scope, sources))


# --- resolving commitments, and who carries it out


class Resolve(Question):
    """How a commitment ended."""

    memory_id: str
    resolution: Resolution


RESOLVE: Final = Operation(
    "resolve",
    Resolve,
    SemanticMemory,
    "Say that a commitment was kept, or came to nothing.",
    access=Access.WRITE,
)

COMMITMENT_OPERATIONS: Final[tuple[Operation[Any, Any], ...]] = (RESOLVE,)


class CommitmentHandlers:
    """Carries out the operations of this module.

    Args:
        repository: Where memories are kept.
        clock: The present.
        new_write_id: Makes a fresh value for each write.
    """

    def __init__(
        self, repository: MemoryRepository, clock: Clock, new_write_id: NewWriteId
    ) -> None:
        self._repository = repository
        self._clock = clock
        self._new_write_id = new_write_id

    def register(self, handlers: Handlers) -> None:
        """Add every operation of this module."""
        handlers.add(RESOLVE, self.resolve)

    async def resolve(self, scope: Scope, asked: Resolve) -> SemanticMemory:
        """Note how a commitment ended; noting it again changes nothing.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: it is no commitment.
        """
        now = self._clock()

        def change(memory: AnyMemory) -> AnyMemory | None:
            after = resolve(memory, asked.resolution, now).memory
            return None if after == memory else after

        # Refused before anything is written, where it cannot be resolved.
        change(await one_memory(self._repository, scope, asked.memory_id))
        done = await update_memories(
            self._repository,
            scope,
            [asked.memory_id],
            change,
            new_write_id=self._new_write_id,
            types=(MemoryType.SEMANTIC,),
        )
        if done.missing:
            raise MemoryNotFound(
                "The memory was forgotten while it was being resolved.",
                details={"memory_id": asked.memory_id},
            )
        memory = await one_memory(self._repository, scope, asked.memory_id)
        if not isinstance(memory, SemanticMemory):
            raise InvalidInput("Only commitments can be resolved.")
        return memory


# --- the operation that says what a user's memory took of language models

USAGE: Final = Operation(
    "usage",
    Question,
    UserUsage,
    "What this user's memory took of language models, and its cost.",
    access=Access.READ,
)

USAGE_OPERATIONS: Final[tuple[Operation[Any, Any], ...]] = (USAGE,)


class UsageHandlers:
    """Carries out the operations of this module.

    Args:
        spending: Reads what consolidations noted.
    """

    def __init__(self, spending: SpendingReader) -> None:
        self._spending = spending

    def register(self, handlers: Handlers) -> None:
        """Add every operation of this module."""
        handlers.add(USAGE, self.usage)

    async def usage(self, scope: Scope, _: Question) -> UserUsage:
        """What models were asked for this user.

        Raises:
            TemporalUnavailable: Temporal cannot be reached.
        """
        return await self._spending.of(scope)
