"""Pieces of a memory's life, played with test memories under the present settings."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Final

from pydantic import BaseModel, ConfigDict

from engram.client.operations.trial_memories import trial_knowledge, trial_turn
from engram.client.passes import PassRunner
from engram.contracts.lifecycle import Population
from engram.domain.identity import derived_id
from engram.domain.lifecycle.decisions import rulebook
from engram.domain.lifecycle.rules import LifecycleRules
from engram.domain.memories import AnyMemory, MemoryStatus, MemoryType
from engram.domain.scope import Scope
from engram.ports import Clock, MemoryRepository
from engram.writing.lookup import one_memory
from engram.writing.updates import NewWriteId


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


class ScenarioReport(BaseModel):
    """How a scenario went.

    Attributes:
        passed: Whether everything came as expected.
        steps: What was done and seen, in words; after a dry run, what would be.
        dry_run: Whether it was only told.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

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
        await self._passes.decay(play.scope, population=Population.TEST)
        after = await one_memory(self._repository, play.scope, turn.id)
        ends_as = rulebook(self._rules, play.scope.namespace).policy.ends_as
        play.expect("the unused test memory has left", after.status is ends_as)

    async def _stay(self, play: _Play) -> None:
        turn = await self._made(play, trial_turn(play.scope, f"fresh: {play.mark}", self._clock()))
        await self._passes.decay(play.scope, population=Population.TEST)
        after = await one_memory(self._repository, play.scope, turn.id)
        play.expect("the fresh test memory stays", after.status is MemoryStatus.ACTIVE)

    async def _use(self, play: _Play) -> None:
        used, unused = await self._old(play, "used"), await self._old(play, "unused")
        await self._boost(play.scope, used.id, 3)
        await self._passes.decay(play.scope, population=Population.TEST)
        after = await self._repository.get(play.scope, [used.id, unused.id])
        play.expect("the recalled one stays", after[used.id].status is MemoryStatus.ACTIVE)
        play.expect("the other has left", after[unused.id].status is not MemoryStatus.ACTIVE)

    async def _habit(self, play: _Play) -> None:
        wanted = self._rules.promotion
        turn = trial_turn(play.scope, f"The user always tests at night: {play.mark}", self._clock())
        await self._made(play, turn)
        earned = {"selectivity": wanted.selectivity, "consolidation_passes": wanted.passes}
        source = trial_knowledge(play.scope, turn, **earned)
        await self._made(play, source)
        report = await self._passes.promote(play.scope, population=Population.TEST)
        habit_id = derived_id(play.scope, MemoryType.PROCEDURAL, source.identity, 0)
        play.made.setdefault(MemoryType.PROCEDURAL, []).append(habit_id)
        play.expect("the knowledge became a habit", habit_id in report.promoted)
        found = await self._repository.get(play.scope, [habit_id])
        play.expect("the habit is a test memory", habit_id in found and found[habit_id].is_test)

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
