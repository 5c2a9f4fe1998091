"""Test memories: making them, and playing a memory's life with them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from engram.contracts.messages import Population
from engram.domain.access import Access
from engram.domain.confidence import Confidence, ExtractionMethod
from engram.domain.identity import content_hash, derived_id, episode_id
from engram.domain.memories import (
    STORED_TYPES,
    AnyMemory,
    Episode,
    MemoryStatus,
    MemoryType,
    SemanticMemory,
)
from engram.domain.rules import LifecycleRules
from engram.domain.scope import Scope
from engram.domain.turns import Turn, check_turn
from engram.language.guarding import UNGUARDED, PersonalDataGuard
from engram.lifecycle.accesses import Recalls, accessed
from engram.lifecycle.decisions import rulebook, settle
from engram.lifecycle.due import of_population
from engram.lifecycle.promotion import promotable
from engram.lifecycle.repairs import pages
from engram.operations.memories import Acted, check_test
from engram.operations.registry import Answered, Operation, Question, handles
from engram.ports import Clock, Embedder, MemoryRepository, NewMemory
from engram.storage.updates import NewWriteId, one_memory, update_memories
from engram.transfer.memories import ImportedMemory, Importer, ImportReport

if TYPE_CHECKING:
    # Who only asks for an operation needs nothing of what carries it out.
    from engram.temporal.passes import PassRunner

# --- test memories, as they are made

TRIAL_SESSION: Final = "engram-test"


def trial_turn(scope: Scope, content: str, born: datetime) -> Episode:
    """A test turn, stored at ``born``; the same words of the same day are the same turn."""
    name = f"{content_hash(content)}@{born.date().isoformat()}"
    return Episode(
        id=episode_id(scope, TRIAL_SESSION, name),
        namespace=scope.namespace,
        user_id=scope.user_id,
        content=content,
        known_at=born,
        created_at=born,
        session_id=TRIAL_SESSION,
        role="user",
        timestamp=born,
        message_id=name,
        # Consolidation leaves it alone.
        consolidated_at=born,
        is_test=True,
    )


def trial_knowledge(scope: Scope, turn: Episode, **more: Any) -> SemanticMemory:
    """A test conclusion drawn from a test turn; of another day's turn it is another one."""
    identity = content_hash(f"{TRIAL_SESSION}: {turn.content} @ {turn.known_at.date()}")
    return SemanticMemory(
        id=derived_id(scope, MemoryType.SEMANTIC, identity, 0),
        namespace=scope.namespace,
        user_id=scope.user_id,
        content=turn.content,
        known_at=turn.known_at,
        created_at=turn.created_at,
        session_id=TRIAL_SESSION,
        is_test=True,
        source_episode_ids=(turn.id,),
        event_at=turn.known_at,
        derived_at=turn.created_at,
        confidence=Confidence(
            method=ExtractionMethod.EXTRACTED, extraction=0.9, last_confirmed=turn.known_at
        ),
        identity=identity,
        **more,
    )


# --- pieces of a memory's life, played with test memories under the present settings


class Scenario(StrEnum):
    """What can be played through with test memories."""

    FADE = "fade"
    """A memory that nobody uses leaves."""
    STAY = "stay"
    """A fresh memory stays."""
    USE = "use"
    """A memory that is recalled outlives one that is not."""
    HABIT = "habit"
    """Earned knowledge becomes a habit."""
    APART = "apart"
    """A pass over real memories does not see test memories."""


class ScenarioReport(Answered):
    """How a scenario went.

    Attributes:
        passed: Whether everything came as expected; so it did where the settings do not have
            what the scenario shows, which the steps say.
        steps: What was done and seen, in words; after a dry run, what would be.
        dry_run: Whether it was only told.
    """

    name: Scenario
    passed: bool
    steps: tuple[str, ...]
    dry_run: bool = False


_PLANS: Final[Mapping[Scenario, tuple[str, ...]]] = {
    Scenario.FADE: ("store a test turn that is past its time", "decay", "see that it has left"),
    Scenario.STAY: ("store a fresh test turn", "decay", "see that it stays"),
    Scenario.USE: (
        "store two test turns that are past their time",
        "recall one of them three times",
        "decay",
        "see that the recalled one stays and the other has left",
    ),
    Scenario.HABIT: (
        "store test knowledge that has earned it",
        "promote",
        "see that a habit was made, and that it is a test memory",
    ),
    Scenario.APART: (
        "store a test turn that is past its time",
        "try a decay pass over real memories",
        "see that the test turn is as it was",
    ),
}


def told(name: Scenario) -> ScenarioReport:
    """What playing a scenario would do; nothing is done."""
    steps = (*_PLANS[name], "remove what was stored")
    return ScenarioReport(name=name, passed=True, steps=steps, dry_run=True)


class _Play:
    """A scenario on its way."""

    def __init__(self, scope: Scope, mark: str) -> None:
        self.scope = scope
        self.mark = mark
        self.made: dict[MemoryType, list[str]] = {}
        self.steps: list[str] = []
        self.passed = True

    def expect(self, what: str, holds: bool) -> None:
        """Note whether something came as expected."""
        self.steps.append(f"{'yes' if holds else 'NO'}: {what}")
        self.passed = self.passed and holds

    def leave_out(self, why: str) -> None:
        """Note that the settings do not have what the scenario shows: that is no fault."""
        self.steps.append(f"not applicable under these settings: {why}")


class ScenarioPlayer:
    """Plays scenarios.

    Args:
        repository: Where memories are kept.
        passes: Runs passes.
        rules: By which memories live.
        clock: The present.
        new_write_id: Makes a fresh value, to tell scenarios apart.
        keep: Stores a test memory.
        boost: Recalls a test memory so many times.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        passes: PassRunner,
        rules: LifecycleRules,
        clock: Clock,
        new_write_id: NewWriteId,
        keep: Callable[[Scope, AnyMemory], Awaitable[None]],
        boost: Callable[[Scope, str, int], Awaitable[None]],
    ) -> None:
        self._repository = repository
        self._passes = passes
        self._rules = rules
        self._clock = clock
        self._new_write_id = new_write_id
        self._keep = keep
        self._boost = boost

    async def play(self, scope: Scope, name: Scenario) -> ScenarioReport:
        """Play a scenario, and remove what it made."""
        plays: Mapping[Scenario, Callable[[_Play], Awaitable[None]]] = {
            Scenario.FADE: self._fade,
            Scenario.STAY: self._stay,
            Scenario.USE: self._use,
            Scenario.HABIT: self._habit,
            Scenario.APART: self._apart,
        }
        play = _Play(scope, f"{name} {self._new_write_id()}")
        try:
            await plays[name](play)
        finally:
            for kind, ids in play.made.items():
                await self._repository.delete(scope, kind, ids)
        return ScenarioReport(name=name, passed=play.passed, steps=tuple(play.steps))

    async def _fade(self, play: _Play) -> None:
        turn = await self._old(play, "unused")
        ends_as = self._becomes(turn)
        if ends_as is MemoryStatus.ACTIVE:
            return play.leave_out("what nobody uses stays")
        await self._passes.decay(play.scope, population=Population.TEST)
        after = await one_memory(self._repository, play.scope, turn.id)
        return play.expect("the unused test memory has left", after.status is ends_as)

    async def _stay(self, play: _Play) -> None:
        turn = await self._made(play, trial_turn(play.scope, f"fresh: {play.mark}", self._clock()))
        if self._becomes(turn) is not MemoryStatus.ACTIVE:
            return play.leave_out("a fresh memory leaves at once")
        await self._passes.decay(play.scope, population=Population.TEST)
        after = await one_memory(self._repository, play.scope, turn.id)
        return play.expect("the fresh test memory stays", after.status is MemoryStatus.ACTIVE)

    async def _use(self, play: _Play) -> None:
        used, unused = await self._old(play, "used"), await self._old(play, "unused")
        await self._boost(play.scope, used.id, 3)
        used = await one_memory(self._repository, play.scope, used.id)
        ends = [self._becomes(one) is not MemoryStatus.ACTIVE for one in (used, unused)]
        if ends != [False, True]:
            return play.leave_out("whether a memory is used does not decide whether it stays")
        await self._passes.decay(play.scope, population=Population.TEST)
        after = await self._repository.get(play.scope, [used.id, unused.id])
        play.expect("the recalled one stays", after[used.id].status is MemoryStatus.ACTIVE)
        gone = after[unused.id].status is not MemoryStatus.ACTIVE
        return play.expect("the other has left", gone)

    async def _habit(self, play: _Play) -> None:
        wanted = self._rules.promotion
        turn = trial_turn(play.scope, f"The user always tests at night: {play.mark}", self._clock())
        await self._made(play, turn)
        earned = {"selectivity": wanted.selectivity, "consolidation_passes": wanted.passes}
        source = trial_knowledge(play.scope, turn, **earned)
        missing = promotable(source, self._clock(), self._rules).missing
        if missing:
            return play.leave_out(f"knowledge that is told once lacks {', '.join(missing)}")
        await self._made(play, source)
        report = await self._passes.promote(play.scope, population=Population.TEST)
        habit_id = derived_id(play.scope, MemoryType.PROCEDURAL, source.identity, 0)
        play.made.setdefault(MemoryType.PROCEDURAL, []).append(habit_id)
        play.expect("the knowledge became a habit", habit_id in report.promoted)
        found = await self._repository.get(play.scope, [habit_id])
        is_test = habit_id in found and found[habit_id].is_test
        return play.expect("the habit is a test memory", is_test)

    def _becomes(self, memory: AnyMemory) -> MemoryStatus | None:
        """What the rules say a pass makes of it now; None if it is erased."""
        after = settle(memory, self._clock(), self._rules).memory
        return None if after is None else after.status

    async def _apart(self, play: _Play) -> None:
        turn = await self._old(play, "unseen")
        report = await self._passes.decay(play.scope, dry_run=True)
        seen = {change.memory_id for change in report.changes}
        play.expect("a pass over real memories leaves it alone", turn.id not in seen)
        after = await one_memory(self._repository, play.scope, turn.id)
        play.expect("it is as it was", after.revision == turn.revision)

    async def _old(self, play: _Play, name: str) -> AnyMemory:
        """A turn that was stored so long ago that it leaves at the next pass."""
        now = self._clock()
        turn = trial_turn(play.scope, f"{name}: {play.mark}", now)
        leaves = rulebook(self._rules, play.scope.namespace).policy.leaves_at(turn)
        lasts = (leaves - now) if leaves is not None else timedelta(days=1)
        return await self._made(play, trial_turn(play.scope, turn.content, now - lasts * 1.1))

    async def _made(self, play: _Play, memory: AnyMemory) -> AnyMemory:
        await self._keep(play.scope, memory)
        play.made.setdefault(memory.type, []).append(memory.id)
        play.steps.append(f"stored a test memory of type {memory.type.value}")
        return memory


# --- test memories, to try out what would happen to real ones

_MOST_TRIALS: Final = 200


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

    memory_ids: tuple[str, ...] | None = Field(default=None, max_length=1000)
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
        guard: Masks or marks personal data.
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
        guard: PersonalDataGuard = UNGUARDED,
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
        self._guard = guard
        self._importer = Importer(repository, embedder, new_write_id, max_turn_bytes, guard)

    @handles(TEST_CREATE)
    async def create(self, scope: Scope, asked: CreateTest) -> Acted:
        """Store a test memory; the same words of the same age are the same memory.

        Raises:
            InvalidTurn: its content cannot be kept as that of a turn.
        """
        now = self._clock()
        said = Turn(content=asked.content)
        check_turn(said, now=now, max_bytes=self._max_turn_bytes)
        said = said.model_copy(update=self._guard.masked(scope.namespace, said))
        born = now - timedelta(days=asked.age_days)
        turn = trial_turn(scope, said.content, born)
        made: AnyMemory = turn
        if asked.conclusion:
            made = trial_knowledge(scope, turn)
        if asked.dry_run:
            return Acted(memory=made, dry_run=True)
        if asked.conclusion:
            await self._store(scope, turn)
        await self._store(scope, made)
        return Acted(memory=await one_memory(self._repository, scope, made.id))

    @handles(TEST_BOOST)
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

    @handles(TEST_LIST)
    async def list(self, scope: Scope, asked: Question) -> list[AnyMemory]:
        """The first test memories of each type."""
        del asked
        where = (of_population(Population.TEST),)
        found: list[AnyMemory] = []
        for kind in STORED_TYPES:
            page = await self._repository.scroll(scope, kind, where=where, limit=_MOST_TRIALS)
            found += page.memories
        return found

    @handles(TEST_DELETE)
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
            for memory_id in dict.fromkeys(asked.memory_ids):
                memory = await self._test_memory(scope, memory_id)
                wanted[memory.type].append(memory.id)
        for kind, ids in wanted.items():
            if ids and not asked.dry_run:
                await self._repository.delete(scope, kind, ids)
        return sum(map(len, wanted.values()))

    @handles(TEST_SCENARIO)
    async def play(self, scope: Scope, asked: PlayScenario) -> ScenarioReport:
        """Play a scenario, and remove what it made."""
        if asked.dry_run:
            return told(asked.name)
        return await self._player.play(scope, asked.name)

    @handles(IMPORT)
    async def bring_in(self, scope: Scope, asked: Import) -> ImportReport:
        """Store memories from elsewhere."""
        return await self._importer.store(scope, asked.memories, self._clock())

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
