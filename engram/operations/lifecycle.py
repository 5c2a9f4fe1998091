"""Operations on the lives of memories, and who carries them out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import Field

from engram.contracts.lifecycle import Change, DecayReport, PromotionReport
from engram.contracts.messages import Population
from engram.domain.access import Access
from engram.domain.memories import AnyMemory, SemanticMemory
from engram.domain.rules import LifecycleRules
from engram.domain.scope import Scope
from engram.domain.turns import EARLIEST_TIMESTAMP
from engram.errors import InvalidQuery
from engram.lifecycle import decisions
from engram.lifecycle.decisions import Changed, Transition
from engram.lifecycle.promotion import promotable, promoted
from engram.lifecycle.promotion_pass import HabitMaker
from engram.operations.registry import Acted, ActOn, Handlers, Operation, Question, meant
from engram.ports import Clock, Embedder, MemoryRepository
from engram.recall.context import Briefed, Briefing
from engram.storage.updates import NewWriteId, one_memory, update_memories
from engram.temporal.passes import PassRunner

MOST_BRIEFED: Final = 200
_LATEST: Final = datetime(3000, 1, 1, tzinfo=UTC)
_Action = Callable[[AnyMemory, datetime, LifecycleRules], Changed]


class RunPass(Question):
    """How a pass is run.

    Attributes:
        dry_run: Write nothing; say what would happen.
        test_only: Look at test memories only; without it, at all others.
    """

    dry_run: bool = False
    test_only: bool = False

    @property
    def population(self) -> Population:
        """Which memories are looked at."""
        return Population.TEST if self.test_only else Population.REAL


class RunDecay(RunPass):
    """How a decay pass is run.

    Attributes:
        at: Judge as of then, with ``dry_run`` only: what will have happened by then.
    """

    at: datetime | None = None


class Brief(Question):
    """What a briefing should hold."""

    limit: int = Field(default=10)
    include_test: bool = False


CONFIRM: Final = Operation(
    "confirm", ActOn, Acted, "The user says that it is so.", access=Access.WRITE
)
DISPUTE: Final = Operation(
    "dispute", ActOn, Acted, "The user says that it is not so.", access=Access.WRITE
)
PROTECT: Final = Operation(
    "protect", ActOn, Acted, "No rule may take it away any more.", access=Access.WRITE
)
UNPROTECT: Final = Operation(
    "unprotect", ActOn, Acted, "Rules apply to it again.", access=Access.WRITE
)
DEMOTE: Final = Operation(
    "demote",
    ActOn,
    Acted,
    "Put a memory aside: it leaves the answers, and stays readable.",
    access=Access.WRITE,
)
FORCE_PROMOTE: Final = Operation(
    "force-promote",
    ActOn,
    Acted,
    "Make a habit of a piece of knowledge, or lift a memory one tier.",
    access=Access.ADMIN,
)
DECAY: Final = Operation(
    "decay", RunDecay, DecayReport, "Run a decay pass now.", access=Access.ADMIN
)
PROMOTE: Final = Operation(
    "promote", RunPass, PromotionReport, "Run a promotion pass now.", access=Access.ADMIN
)
BRIEFING: Final = Operation(
    "briefing",
    Brief,
    list[Briefed],
    "What matters most, for the start of a conversation.",
    access=Access.READ,
)

LIFECYCLE_OPERATIONS: Final[tuple[Operation[Any, Any], ...]] = (
    CONFIRM,
    DISPUTE,
    PROTECT,
    UNPROTECT,
    DEMOTE,
    FORCE_PROMOTE,
    DECAY,
    PROMOTE,
    BRIEFING,
)
_ACTIONS: Final[dict[str, _Action]] = {
    CONFIRM.name: decisions.confirm,
    DISPUTE.name: decisions.dispute,
    PROTECT.name: decisions.protect,
    UNPROTECT.name: decisions.unprotect,
    DEMOTE.name: decisions.demote,
}


class LifecycleHandlers:
    """Carries out the operations of this module.

    Args:
        repository: Where memories are kept; it stamps what it writes.
        embedder: Gives habits their vectors.
        passes: Runs passes.
        briefing: Chooses what a conversation begins with.
        rules: By which memories live.
        clock: The present.
        new_write_id: Makes a fresh value for each write.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        embedder: Embedder,
        passes: PassRunner,
        briefing: Briefing,
        rules: LifecycleRules,
        clock: Clock,
        new_write_id: NewWriteId,
    ) -> None:
        self._repository = repository
        self._embedder = embedder
        self._passes = passes
        self._briefing = briefing
        self._rules = rules
        self._clock = clock
        self._new_write_id = new_write_id

    def register(self, handlers: Handlers) -> None:
        """Add every operation of this module."""
        for operation in (CONFIRM, DISPUTE, PROTECT, UNPROTECT, DEMOTE):
            handlers.add(operation, self._acting(_ACTIONS[operation.name]))
        handlers.add(FORCE_PROMOTE, self.force_promote)
        handlers.add(DECAY, self.decay)
        handlers.add(PROMOTE, self.promote)
        handlers.add(BRIEFING, self.brief)

    async def decay(self, scope: Scope, asked: RunDecay) -> DecayReport:
        """Run a decay pass.

        Raises:
            InvalidQuery: a moment is given without a dry run, without timezone, or out
                of range.
        """
        if asked.at is not None and not asked.dry_run:
            raise InvalidQuery(
                "A pass that writes is judged by the present.",
                allowed="a moment together with dry_run",
            )
        if asked.at is not None:
            _check_moment(asked.at)
        return await self._passes.decay(
            scope, population=asked.population, dry_run=asked.dry_run, at=asked.at
        )

    async def promote(self, scope: Scope, asked: RunPass) -> PromotionReport:
        """Run a promotion pass."""
        return await self._passes.promote(scope, population=asked.population, dry_run=asked.dry_run)

    async def brief(self, scope: Scope, asked: Brief) -> list[Briefed]:
        """What matters most.

        Raises:
            InvalidQuery: the limit is out of range.
        """
        if not 1 <= asked.limit <= MOST_BRIEFED:
            raise InvalidQuery("The limit is out of range.", allowed=f"1 to {MOST_BRIEFED}")
        return await self._briefing.of(
            scope, self._clock(), asked.limit, include_test=asked.include_test
        )

    async def force_promote(self, scope: Scope, asked: ActOn) -> Acted:
        """Promote by hand: knowledge to a habit, anything else one tier up.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: it is no test memory, and only those may be promoted.
        """
        memory = await meant(self._repository, scope, asked)
        if not isinstance(memory, SemanticMemory):
            return await self._acting(decisions.force_promote)(scope, asked)
        now = self._clock()
        if asked.dry_run:
            habit_id = habit_of(memory)
            if promotable(memory, now, self._rules, forced=True):
                habit_id = promoted(memory, now, self._rules).habit.id
            return Acted(memory=memory, habit_id=habit_id, dry_run=True)
        maker = HabitMaker(self._repository, self._embedder, self._new_write_id)
        made = await maker.make(scope, [memory], self._rules, now, forced=True)
        after = await one_memory(self._repository, scope, asked.memory_id)
        return Acted(memory=after, habit_id=made.get(memory.id) or habit_of(after))

    def _acting(self, action: _Action) -> Callable[[Scope, ActOn], Awaitable[Acted]]:
        async def act(scope: Scope, asked: ActOn) -> Acted:
            now = self._clock()
            before = await meant(self._repository, scope, asked)
            if asked.dry_run:
                tried = action(before, now, self._rules)
                changes = _changes(before, tried.transitions)
                return Acted(memory=tried.memory, changes=changes, dry_run=True)
            steps: dict[str, tuple[Transition, ...]] = {}

            def change(memory: AnyMemory) -> AnyMemory | None:
                changed = action(memory, now, self._rules)
                if not changed.transitions and _same(memory, changed.memory):
                    return None
                steps[memory.id] = changed.transitions
                return changed.memory

            await update_memories(
                self._repository,
                scope,
                [before.id],
                change,
                new_write_id=self._new_write_id,
                types=(before.type,),
            )
            memory = await one_memory(self._repository, scope, asked.memory_id)
            return Acted(memory=memory, changes=_changes(memory, steps.get(memory.id, ())))

        return act


def habit_of(memory: AnyMemory) -> str | None:
    """The habit that a piece of knowledge became, if it did."""
    if not isinstance(memory, SemanticMemory):
        return None
    kinds = {"promoted_to", "crystallized_into"}
    return next((link.target_id for link in memory.links if link.kind.value in kinds), None)


def _check_moment(at: datetime) -> None:
    """Refuse moments that lives cannot be followed to."""
    if at.utcoffset() is None:
        raise InvalidQuery("The moment has no timezone.", allowed="aware datetimes")
    if not EARLIEST_TIMESTAMP <= at <= _LATEST:
        raise InvalidQuery("The moment is out of range.", allowed="the years 1900 to 2999")


def _same(before: AnyMemory, after: AnyMemory) -> bool:
    return before == after


def _changes(memory: AnyMemory, transitions: tuple[Transition, ...]) -> tuple[Change, ...]:
    return tuple(
        Change(
            memory_id=memory.id,
            memory_type=memory.type,
            rule=step.rule,
            source=step.source,
            target=step.target,
            why=step.why,
        )
        for step in transitions
    )
