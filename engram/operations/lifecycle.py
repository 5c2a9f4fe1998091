"""Operations on the lives of memories, and who carries them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

import structlog
from pydantic import Field

from engram.consolidation.disputes import DisputeSettler
from engram.contracts.lifecycle import Change, DecayReport, PromotionReport
from engram.contracts.messages import Population
from engram.digests.stage import Digests
from engram.digests.versions import Composer
from engram.domain.access import Access
from engram.domain.memories import (
    AnyMemory,
    Episode,
    PolicyClass,
    ProceduralMemory,
    SemanticMemory,
    is_digest,
)
from engram.domain.rules import DigestPolicy, LifecycleRules
from engram.domain.scope import Scope
from engram.domain.turns import check_moment
from engram.errors import EngramError, InvalidInput, InvalidQuery
from engram.lifecycle import decisions
from engram.lifecycle.decisions import Changed, Transition, disputes_of
from engram.lifecycle.policies import is_refuted
from engram.lifecycle.promotion import following, habits_of, promoted
from engram.lifecycle.promotion_pass import HabitMaker, follow_sources
from engram.operations.memories import Acted, ActOn, resolve_target
from engram.operations.registry import Operation, Question, handles, handles_each
from engram.ports import Clock, Embedder, MemoryRepository
from engram.recall.context import Briefed, Briefing
from engram.storage.updates import NewWriteId, one_memory, update_memories

if TYPE_CHECKING:
    # Who only asks for an operation needs nothing of what carries it out.
    from engram.temporal.passes import PassRunner
    from engram.temporal.reviews import ReviewGateway

MOST_BRIEFED: Final = 200
_log = structlog.get_logger("engram.client")


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


@dataclass(frozen=True, slots=True)
class UserAction:
    """One thing that a user can say of a memory.

    Attributes:
        operation: Says it.
        decide: What becomes of the memory.
        makes_habits: Whether of knowledge it makes a habit instead.
        settles: Whether the memory holds, where that settles its disputes; None where it
            says nothing of that. Of a habit it is said of what the habit came from, which it
            follows.
        moves: Whether it can take the memory out of the answers, or bring it back: profiles
            and topics follow.
        puts_aside: Whether it takes a habit and what it came from, which say the same, together.
    """

    operation: Operation[ActOn, Acted]
    decide: Callable[[AnyMemory, datetime, LifecycleRules], Changed]
    makes_habits: bool = False
    settles: bool | None = None
    moves: bool = False
    puts_aside: bool = False


def _said(name: str, about: str, access: Access = Access.WRITE) -> Operation[ActOn, Acted]:
    return Operation(name, ActOn, Acted, about, access=access)


ACTIONS: Final = {
    action.operation.name: action
    for action in (
        UserAction(
            _said("confirm", "The user says that it is so; what contradicts it is refuted."),
            decisions.confirm,
            settles=True,
            moves=True,
        ),
        UserAction(
            _said("dispute", "The user says that it is not so: it leaves the answers."),
            decisions.dispute,
            settles=False,
            moves=True,
        ),
        UserAction(
            _said("protect", "No rule may take it away any more."), decisions.protect, moves=True
        ),
        UserAction(_said("unprotect", "Rules apply to it again."), decisions.unprotect),
        UserAction(
            _said("demote", "Put a memory aside: it leaves the answers, and stays readable."),
            decisions.demote,
            moves=True,
            puts_aside=True,
        ),
        UserAction(
            _said(
                "force-promote",
                "Make a habit of a piece of knowledge, or lift a memory one tier.",
                Access.ADMIN,
            ),
            decisions.force_promote,
            makes_habits=True,
        ),
    )
}
"""What users can say of a memory, by name."""

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
        reviews: Are told when a dispute ends or begins.
        digest_policy: By which profiles and topics follow what a user says of a memory.
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
        reviews: ReviewGateway,
        digest_policy: DigestPolicy,
    ) -> None:
        self._repository = repository
        self._digests = Digests(repository, embedder, new_write_id)
        self._digest_policy = digest_policy
        self._reviews = reviews
        self._settler = DisputeSettler(repository, rules, new_write_id, embedder)
        self._embedder = embedder
        self._passes = passes
        self._briefing = briefing
        self._rules = rules
        self._clock = clock
        self._new_write_id = new_write_id

    @handles_each({action.operation: action for action in ACTIONS.values()})
    async def act(self, scope: Scope, asked: ActOn, action: UserAction) -> Acted:
        """Do with a memory what the user says of it; again, nothing more happens.

        Raises:
            MemoryNotFound: no such memory of this user.
            InvalidInput: it is no test memory, and only those are meant; or nothing of
                the kind can be said of it: of a turn, or of a digest.
        """
        now = self._clock()
        before = await resolve_target(self._repository, scope, asked)
        _refuse_digest(before, action)
        if action.makes_habits and isinstance(before, SemanticMemory):
            return await self._make_habit(scope, before, now, dry_run=asked.dry_run)
        meant = before if action.settles is None else await self._came_from(scope, before)
        alike = await self._said_alike(scope, before) if action.puts_aside else (meant,)
        rivals = await self._gives_way(scope, meant) if action.settles else {}
        steps = {
            one.id: decisions.dispute(one, now, self._rules).transitions for one in rivals.values()
        }
        if asked.dry_run:
            tried = {one.id: action.decide(one, now, self._rules) for one in alike}
            steps |= {key: changed.transitions for key, changed in tried.items()}
            after = _beside(before, tried[meant.id].memory)
            changes = _changes((*alike, *rivals.values()), steps)
            return Acted(memory=after, changes=changes, dry_run=True)
        beaten = tuple(rivals)
        if action.settles is not None:
            await self._settle_others(scope, meant, action.settles, beaten, now)

        def change(memory: AnyMemory) -> AnyMemory | None:
            changed = action.decide(memory, now, self._rules)
            after = decisions.in_place_of(changed.memory, beaten)
            if not changed.transitions and after == memory:
                return None
            steps[memory.id] = changed.transitions
            return after

        ids = tuple(one.id for one in alike)
        await update_memories(self._repository, scope, ids, change, new_write_id=self._new_write_id)
        if action.settles is not None:
            if action.settles:
                await self._settler.place_again(scope, (meant.id,), now)
            await self._tell_reviews(scope, meant)
        if action.moves:
            await self._compose(scope, meant, (*beaten, *ids, before.id), now)
        memory = await one_memory(self._repository, scope, asked.memory_id)
        return Acted(memory=memory, changes=_changes((*alike, *rivals.values()), steps))

    async def _came_from(self, scope: Scope, memory: AnyMemory) -> AnyMemory:
        """The knowledge that a habit came from, if it is there; else the memory itself."""
        origin = memory.promoted_from
        if origin is None:
            return memory
        return (await self._repository.get(scope, (origin,), fresh=True)).get(origin, memory)

    async def _said_alike(self, scope: Scope, memory: AnyMemory) -> tuple[AnyMemory, ...]:
        """The memory, and the habit made of it or what it was made of; alone if protected."""
        if memory.policy_class is PolicyClass.PROTECTED:
            return (memory,)
        habits = habits_of(memory) if isinstance(memory, SemanticMemory) else ()
        found = await self._repository.get(scope, habits, fresh=True) if habits else {}
        alike = (memory, await self._came_from(scope, memory), *found.values())
        return tuple({one.id: one for one in alike}.values())

    async def _gives_way(self, scope: Scope, memory: AnyMemory) -> dict[str, AnyMemory]:
        """What is there of that which is refuted if the user says that ``memory`` holds."""
        rivals = await self._settler.rivals(scope, memory)
        return await self._repository.get(scope, rivals, fresh=True) if rivals else {}

    async def _settle_others(
        self,
        scope: Scope,
        before: AnyMemory,
        holds: bool,
        beaten: tuple[str, ...],
        now: datetime,
    ) -> None:
        """What the user's word means for what it was in dispute with; its own end comes last."""
        if holds:
            await self._settler.refute(scope, beaten, before.id, now)
        else:
            await self._settler.free_others(scope, (before.id,))
            await self._settler.bring_back(scope, (before,))

    async def _tell_reviews(self, scope: Scope, before: AnyMemory) -> None:
        await follow_sources(self._repository, scope, (before.id,), self._new_write_id)
        after = await one_memory(self._repository, scope, before.id)
        opened = [(after.id,)] if is_refuted(after) and not after.is_test else []
        await self._reviews.changed(scope, disputes_of(before), opened)

    async def _compose(
        self, scope: Scope, before: AnyMemory, beaten: tuple[str, ...], now: datetime
    ) -> None:
        """Let profiles and topics follow. They do so with the next touch, too: nothing is lost."""
        if not self._digest_policy.enabled or isinstance(before, Episode):
            return
        heir = () if before.superseded_by is None else (before.superseded_by,)
        touched = (before.id, *beaten, *before.supersedes, *heir)
        try:
            await self._digests.knowledge(Composer(scope, now), touched, (), self._digest_policy)
        except EngramError as error:
            _log.warning("profiles do not follow yet", code=error.code)

    @handles(DECAY)
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
            check_moment(asked.at)
        return await self._passes.decay(
            scope, population=asked.population, dry_run=asked.dry_run, at=asked.at
        )

    @handles(PROMOTE)
    async def promote(self, scope: Scope, asked: RunPass) -> PromotionReport:
        """Run a promotion pass."""
        return await self._passes.promote(scope, population=asked.population, dry_run=asked.dry_run)

    @handles(BRIEFING)
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

    async def _make_habit(
        self, scope: Scope, memory: SemanticMemory, now: datetime, *, dry_run: bool
    ) -> Acted:
        maker = HabitMaker(self._repository, self._embedder, self._new_write_id)
        ready, _ = await maker.ready(scope, [memory], self._rules, now, forced=True)
        if dry_run:
            made = {one.id: promoted(one, now, self._rules).habit.id for one in ready}
            habit_id = made.get(memory.id) or habit_of(memory)
            return Acted(memory=memory, habit_id=habit_id, dry_run=True)
        made = await maker.make(scope, ready, self._rules, now, forced=True)
        after = await one_memory(self._repository, scope, memory.id)
        return Acted(memory=after, habit_id=made.get(memory.id) or habit_of(after))


def _refuse_digest(memory: AnyMemory, action: UserAction) -> None:
    """Refuse to judge a digest, or put it aside: the next one would be composed beside it.

    Raises:
        InvalidInput: it is one.
    """
    judged = action.settles is not None or action.puts_aside
    if judged and is_digest(memory):
        raise InvalidInput(
            f"A {memory.form} says only what other memories say: it follows them.",
            allowed="a memory that it is composed from",
            hint="Name the memory that is meant; what is composed from it follows.",
            details={"id": memory.id},
        )


def _beside(asked: AnyMemory, meant: AnyMemory) -> AnyMemory:
    """What is asked about, as it is beside what is meant by it: itself, or its source."""
    if isinstance(asked, ProceduralMemory) and isinstance(meant, SemanticMemory):
        return following(asked, meant) or asked
    return meant


def habit_of(memory: AnyMemory) -> str | None:
    """The habit that a piece of knowledge became, if it did."""
    return next(iter(habits_of(memory)), None) if isinstance(memory, SemanticMemory) else None


def _changes(
    memories: Iterable[AnyMemory], steps: Mapping[str, tuple[Transition, ...]]
) -> tuple[Change, ...]:
    return tuple(
        Change(
            memory_id=memory.id,
            memory_type=memory.type,
            rule=step.rule,
            source=step.source,
            target=step.target,
            why=step.why,
        )
        for memory in memories
        for step in steps.get(memory.id, ())
    )
