"""Test memories, to try out what would happen to real ones."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from pydantic import Field

from engram.client.operations.acting import Acted, check_test
from engram.client.operations.handlers import Handlers
from engram.client.operations.operation import Operation, Question
from engram.client.operations.scenarios import Scenario, ScenarioPlayer, ScenarioReport, told
from engram.client.operations.trial_memories import trial_knowledge, trial_turn
from engram.client.passes import PassRunner
from engram.contracts.lifecycle import Population
from engram.domain.access import Access
from engram.domain.lifecycle.accesses import Recalls, accessed
from engram.domain.lifecycle.rules import LifecycleRules
from engram.domain.memories import (
    STORED_TYPES,
    AnyMemory,
    MemoryType,
)
from engram.domain.scope import Scope
from engram.domain.turns import Turn, check_turn
from engram.ports import Clock, Embedder, MemoryRepository, NewMemory
from engram.writing.imports import ImportedMemory, Importer, ImportReport
from engram.writing.lookup import one_memory
from engram.writing.surveys import pages
from engram.writing.updates import NewWriteId, update_memories

_MOST: Final = 200


class CreateTest(Question):
    """A test memory.

    Attributes:
        content: Its words.
        conclusion: Whether it is knowledge; otherwise it is a turn.
        age_days: How long ago it was stored.
        dry_run: Store nothing; say what would be stored.
    """

    content: str = Field(min_length=1, max_length=4000)
    conclusion: bool = False
    age_days: float = Field(default=0.0, ge=0, le=36_500)
    dry_run: bool = False


class BoostTest(Question):
    """Recalls for a test memory; ``dry_run``: none, but as it would be after them."""

    memory_id: str
    recalls: int = Field(default=1, ge=1, le=1000)
    dry_run: bool = False


class DeleteTests(Question):
    """Which test memories are removed: these, or all of them; ``dry_run``: only counted."""

    memory_ids: tuple[str, ...] | None = None
    dry_run: bool = False


class PlayScenario(Question):
    """Which scenario is played; ``dry_run``: only told."""

    name: Scenario
    dry_run: bool = False


class Import(Question):
    """Memories from elsewhere."""

    memories: tuple[ImportedMemory, ...] = Field(max_length=1000)


TEST_CREATE: Final = Operation(
    "test-create", CreateTest, Acted, "Store a test memory.", access=Access.ADMIN
)
TEST_BOOST: Final = Operation(
    "test-boost", BoostTest, Acted, "Recall a test memory.", access=Access.ADMIN
)
TEST_LIST: Final = Operation(
    "test-list", Question, list[AnyMemory], "List test memories.", access=Access.ADMIN
)
TEST_DELETE: Final = Operation(
    "test-delete", DeleteTests, int, "Remove test memories.", access=Access.ADMIN
)
TEST_SCENARIO: Final = Operation(
    "test-scenario",
    PlayScenario,
    ScenarioReport,
    "Play a scenario with test memories.",
    access=Access.ADMIN,
)
IMPORT: Final = Operation(
    "import", Import, ImportReport, "Store memories from elsewhere.", access=Access.ADMIN
)

TRIAL_OPERATIONS: Final[tuple[Operation[Any, Any], ...]] = (
    TEST_CREATE,
    TEST_BOOST,
    TEST_LIST,
    TEST_DELETE,
    TEST_SCENARIO,
    IMPORT,
)


class TrialHandlers:
    """Carries out the operations of this module.

    Args:
        repository: Where memories are kept; it stamps what it writes.
        embedder: Gives test memories their vectors.
        passes: Runs passes.
        rules: By which memories live.
        clock: The present.
        new_write_id: Makes a fresh value for each write.
        max_turn_bytes: Longest content of a memory.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        embedder: Embedder,
        passes: PassRunner,
        rules: LifecycleRules,
        clock: Clock,
        new_write_id: NewWriteId,
        max_turn_bytes: int,
    ) -> None:
        self._repository = repository
        self._embedder = embedder
        self._rules = rules
        self._clock = clock
        self._new_write_id = new_write_id
        self._max_turn_bytes = max_turn_bytes
        self._player = ScenarioPlayer(
            repository, passes, rules, clock, new_write_id, self._store, self._recall
        )
        self._importer = Importer(repository, embedder, new_write_id, max_turn_bytes)

    def register(self, handlers: Handlers) -> None:
        """Add every operation of this module."""
        handlers.add(TEST_CREATE, self.create)
        handlers.add(TEST_BOOST, self.boost)
        handlers.add(TEST_LIST, self.list)
        handlers.add(TEST_DELETE, self.delete)
        handlers.add(TEST_SCENARIO, self.play)
        handlers.add(IMPORT, self.bring_in)

    async def bring_in(self, scope: Scope, asked: Import) -> ImportReport:
        """Store memories from elsewhere."""
        return await self._importer.store(scope, asked.memories, self._clock())

    async def create(self, scope: Scope, asked: CreateTest) -> Acted:
        """Store a test memory; the same words of the same age are the same memory.

        Raises:
            InvalidTurn: its content cannot be kept as that of a turn.
        """
        now = self._clock()
        check_turn(Turn(content=asked.content), now=now, max_bytes=self._max_turn_bytes)
        born = now - timedelta(days=asked.age_days)
        turn = trial_turn(scope, asked.content, born)
        made: AnyMemory = turn
        if asked.conclusion:
            made = trial_knowledge(scope, turn)
        if asked.dry_run:
            return Acted(memory=made, dry_run=True)
        if asked.conclusion:
            await self._store(scope, turn)
        await self._store(scope, made)
        return Acted(memory=await one_memory(self._repository, scope, made.id))

    async def boost(self, scope: Scope, asked: BoostTest) -> Acted:
        """Recall a test memory so many times, now.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: it is no test memory.
        """
        if asked.dry_run:
            memory = await self._test_memory(scope, asked.memory_id)
            after = accessed(memory, self._noted(asked.recalls), self._rules)
            return Acted(memory=after or memory, dry_run=True)
        await self._recall(scope, asked.memory_id, asked.recalls)
        return Acted(memory=await one_memory(self._repository, scope, asked.memory_id))

    async def list(self, scope: Scope, asked: Question) -> list[AnyMemory]:
        """The first test memories of each type."""
        del asked
        found: list[AnyMemory] = []
        async for page in pages(self._repository, scope, Population.TEST):
            found += page
            if len(found) >= _MOST:
                break
        return found[:_MOST]

    async def delete(self, scope: Scope, asked: DeleteTests) -> int:
        """Remove test memories, and nothing else; how many.

        Raises:
            InvalidInput: one of them is no test memory; none is removed.
        """
        wanted: dict[MemoryType, list[str]] = {kind: [] for kind in STORED_TYPES}
        if asked.memory_ids is None:
            async for page in pages(self._repository, scope, Population.TEST):
                wanted[page[0].type] += [memory.id for memory in page]
        else:
            for memory_id in asked.memory_ids:
                memory = await self._test_memory(scope, memory_id)
                wanted[memory.type].append(memory.id)
        for kind, ids in wanted.items():
            if ids and not asked.dry_run:
                await self._repository.delete(scope, kind, ids)
        return sum(map(len, wanted.values()))

    async def play(self, scope: Scope, asked: PlayScenario) -> ScenarioReport:
        """Play a scenario, and remove what it made."""
        if asked.dry_run:
            return told(asked.name)
        return await self._player.play(scope, asked.name)

    async def _recall(self, scope: Scope, memory_id: str, recalls: int) -> None:
        noted = self._noted(recalls)

        def change(memory: AnyMemory) -> AnyMemory | None:
            return accessed(memory, noted, self._rules)

        memory = await self._test_memory(scope, memory_id)
        await update_memories(
            self._repository,
            scope,
            [memory.id],
            change,
            new_write_id=self._new_write_id,
            types=(memory.type,),
        )

    def _noted(self, recalls: int) -> Recalls:
        once = f"test-{self._new_write_id()}"
        return Recalls(count=recalls, at=self._clock(), instance_id=once, batch=1)

    async def _store(self, scope: Scope, memory: AnyMemory) -> None:
        (vector,) = await self._embedder.embed_documents([memory.indexed_text])
        written = memory.model_copy(update={"write_id": self._new_write_id()})
        await self._repository.insert(scope, [NewMemory(written, vector)])

    async def _test_memory(self, scope: Scope, memory_id: str) -> AnyMemory:
        memory = await one_memory(self._repository, scope, memory_id)
        check_test(memory)
        return memory
