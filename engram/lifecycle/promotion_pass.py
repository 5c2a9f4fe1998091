"""The promotion pass: knowledge to habits, tier to tier, and habits that lose their ground."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple

from engram.contracts.lifecycle import (
    Change,
    PassReport,
    PromoteOutput,
    PromotionReport,
    RuleCount,
    WalkInput,
    WalkPosition,
)
from engram.domain.memories import (
    AnyMemory,
    MemoryStatus,
    MemoryType,
    ProceduralMemory,
    Provenance,
    SemanticMemory,
    Vitals,
)
from engram.domain.rules import LifecycleRules
from engram.domain.scope import Scope
from engram.errors import StorageUnavailable
from engram.lifecycle.decisions import end_session
from engram.lifecycle.denials import denied_since
from engram.lifecycle.due import STAGES, DueScan, of_population, review_stamp, to_consider
from engram.lifecycle.promotion import (
    Promotion,
    following,
    habits_of,
    is_habit,
    promotable,
    promoted,
)
from engram.lifecycle.review import MOST_AT_ONCE, Reviewer, Steps
from engram.lifecycle.table import Aspect
from engram.ports import (
    Embedder,
    Equals,
    Filter,
    MaintenanceRepository,
    MemoryRepository,
    NewMemory,
    Stamp,
)
from engram.storage.updates import (
    NewWriteId,
    by_id,
    every_page,
    existing,
    update_memories,
    update_those,
)

# --- habits hold as long as the knowledge they came from does


async def follow_sources(
    repository: MemoryRepository,
    scope: Scope,
    source_ids: Iterable[str],
    new_write_id: NewWriteId,
) -> frozenset[str]:
    """Let the habits made of this knowledge be as it is; the ids of those that were otherwise.

    Args:
        repository: Where memories are kept; it stamps what it writes.
        scope: Whose they are.
        source_ids: Knowledge that changed.
        new_write_id: Makes a fresh value for each write.
    """
    found = await by_id(repository, scope, SemanticMemory, source_ids, fresh=True)
    origins = {habit_id: source for source in found.values() for habit_id in habits_of(source)}
    if not origins:
        return frozenset()

    updated = await update_those(
        repository,
        scope,
        ProceduralMemory,
        origins,
        lambda habit: following(habit, origins[habit.id]),
        new_write_id=new_write_id,
    )
    return updated.changed


# --- promoting memories: knowledge to habits, and from tier to tier

# After what is due in any tier come knowledge and, last, the habits made of it.
_KNOWLEDGE: Final = STAGES
_HABITS: Final = STAGES + 1
TO_HABIT: Final = "to_habit"
FOLLOWS: Final = "follows_its_source"
_SEMANTIC = (MemoryType.SEMANTIC,)
_PROCEDURAL = (MemoryType.PROCEDURAL,)
_EPISODIC = (MemoryType.EPISODIC,)


class Promotable(NamedTuple):
    """Of some knowledge, what can become habits.

    Attributes:
        ready: What can.
        denied: The ids of what could, but that it was denied since.
    """

    ready: tuple[SemanticMemory, ...]
    denied: frozenset[str]


@dataclass(frozen=True, slots=True)
class HabitMaker:
    """Makes habits of knowledge. May run twice, and beside others.

    Args:
        repository: Where memories are kept; what is written is stamped by the rules given.
        embedder: Gives habits their vectors.
        new_write_id: Makes a fresh value for each write.
    """

    repository: MemoryRepository
    embedder: Embedder
    new_write_id: NewWriteId

    async def ready(
        self,
        scope: Scope,
        memories: Sequence[SemanticMemory],
        rules: LifecycleRules,
        now: datetime,
        *,
        forced: bool = False,
    ) -> Promotable:
        """Which of these can become habits now; arguments as in :meth:`make`."""
        able = [one for one in memories if promotable(one, now, rules, forced=forced)]
        denied = await denied_since(self.repository, self.embedder, scope, able)
        return Promotable(tuple(one for one in able if one.id not in denied), denied)

    async def make(
        self,
        scope: Scope,
        memories: Sequence[SemanticMemory],
        rules: LifecycleRules,
        now: datetime,
        *,
        forced: bool = False,
        provenance: Provenance | None = None,
    ) -> dict[str, str]:
        """Store the habits that these become, read them back, then link their sources to them.

        Args:
            scope: Whose they are.
            memories: Those that can become a habit now: see :meth:`ready`.
            rules: The thresholds.
            now: For the composite confidence, and as the moment of promotion.
            forced: Whether only what would make no sense stands in the way.
            provenance: Which run does this.

        Returns:
            The habit's id by the source's, for those that were linked now.

        Raises:
            StorageUnavailable: a habit was not there when it was read back.
            UserErased: the user was erased meanwhile; no habit stays written.
        """

        def promotion(memory: AnyMemory) -> Promotion | None:
            if not isinstance(memory, SemanticMemory):
                return None
            if not promotable(memory, now, rules, forced=forced):
                return None
            return promoted(memory, now, rules, provenance)

        made = {m.id: p for m in memories if (p := promotion(m)) is not None}
        if not made:
            return {}
        stamp = review_stamp(rules)
        stored = await self._store(scope, {key: p.habit for key, p in made.items()}, stamp)
        made = {key: one for key, one in made.items() if key in stored}

        def change(memory: AnyMemory) -> AnyMemory | None:
            one = promotion(memory)
            return None if one is None else one.source

        written = await update_memories(
            self.repository,
            scope,
            made,
            change,
            new_write_id=self.new_write_id,
            types=_SEMANTIC,
            stamp=stamp,
        )
        # Knowledge that was forgotten meanwhile leaves no habit behind.
        orphans = [made[key].habit.id for key in made if key in written.missing]
        if orphans:
            await self.repository.delete(scope, MemoryType.PROCEDURAL, orphans)
        return {key: made[key].habit.id for key in made if key in written.changed}

    async def _store(
        self, scope: Scope, made: Mapping[str, ProceduralMemory], stamp: Stamp
    ) -> frozenset[str]:
        """Store the habits that are not there; the sources of those that rest on nothing gone."""
        # Before looking for the sources: erased after that, no habit of them is stored.
        epoch = await self.repository.epoch(scope)
        sources = await existing(self.repository, scope, made, _SEMANTIC)
        habits = [habit for key, habit in made.items() if key in sources]
        ids = [habit.id for habit in habits]
        there = await self.repository.get(scope, ids, _PROCEDURAL, fresh=True)
        missing = [habit for habit in habits if habit.id not in there]
        if not missing:
            return sources
        vectors = await self.embedder.embed_documents([h.indexed_text for h in missing])
        written = [h.model_copy(update={"write_id": self.new_write_id()}) for h in missing]
        pairs = zip(written, vectors, strict=True)
        forgotten = await self.repository.insert(
            scope,
            [NewMemory(habit, vector) for habit, vector in pairs],
            stamp=stamp,
            epoch=epoch,
        )
        there = await self.repository.get(scope, ids, _PROCEDURAL, fresh=True)
        lost = [key for key in ids if key not in there and key not in forgotten]
        if lost:
            raise StorageUnavailable(
                f"{len(lost)} of {len(ids)} habits were not there when read back.",
                hint="Their sources are as before. Promoting again can succeed later.",
                details={"ids": lost[:10]},
            )
        return frozenset(key for key in sources if made[key].id not in forgotten)


@dataclass(frozen=True, slots=True)
class Promoter:
    """Promotes memories. Every method may run twice, and beside others.

    Args:
        repository: Where memories are kept; what is written is stamped by the rules given.
        embedder: Gives habits their vectors.
        new_write_id: Makes a fresh value for each write.
    """

    repository: MaintenanceRepository
    embedder: Embedder
    new_write_id: NewWriteId

    async def promote(
        self,
        request: WalkInput,
        begun: PromoteOutput | None = None,
        progress: Callable[[PromoteOutput], None] = lambda _: None,
    ) -> PromoteOutput:
        """Walk over what may be promoted, for some time.

        Args:
            request: Whose, by which rules, from where.
            begun: How far an earlier attempt came.
            progress: Told after each batch how far this one is.
        """
        nothing = PromotionReport(dry_run=request.dry_run, population=request.population)
        done = begun or PromoteOutput(report=nothing, position=request.position)
        looked_at = 0
        while done.position is not None and looked_at < MOST_AT_ONCE:
            part, position = await self._batch(request, done.position)
            looked_at += max(part.reviewed, 1)
            done = PromoteOutput(report=done.report.plus(part), position=position)
            progress(done)
        return done

    async def promote_session(self, request: WalkInput) -> PromotionReport:
        """Lift what is lively in a session that ended out of the working tier."""
        rules, steps = request.rules, Steps()
        report = _report(request)
        if rules.policy_name(request.scope.namespace) != "energy" or not request.session_id:
            return report

        def change(memory: AnyMemory) -> AnyMemory | None:
            ended = end_session(memory, request.now, rules)
            if not ended.transitions:
                return None
            steps.note(memory, ended.transitions)
            return ended.memory

        where: Filter = (
            Equals("session_id", request.session_id),
            Equals("status", MemoryStatus.ACTIVE.value),
            of_population(request.population),
        )
        async for page in every_page(
            self.repository, request.scope, MemoryType.EPISODIC, where=where, at_once=request.batch
        ):
            changed = await self._update(request, page, change, _EPISODIC)
            counts, changes = steps.of(m.id for m in page if m.id in changed)
            part = _report(request, reviewed=len(page), transitions=counts, changes=changes)
            report = report.plus(part)
        return report

    async def _batch(
        self, request: WalkInput, position: WalkPosition
    ) -> tuple[PromotionReport, WalkPosition | None]:
        if position.stage == _HABITS:
            return await self._follow(request, position)
        if position.stage == _KNOWLEDGE:
            return await self._knowledge(request, position)
        if request.rules.policy_name(request.scope.namespace) != "energy":
            return _report(request), WalkPosition(stage=_KNOWLEDGE)
        walk = DueScan(
            self.repository, request.scope, request.rules, request.now, request.population
        )
        memories, after = await walk.page(position, request.batch)
        reviewer = Reviewer(self.repository, self.embedder, self.new_write_id)
        part = await reviewer.settle(memories, request, only=Aspect.TIER)
        report = PromotionReport.model_validate(dict(part))
        return report, after or WalkPosition(stage=_KNOWLEDGE)

    async def _knowledge(
        self, request: WalkInput, position: WalkPosition
    ) -> tuple[PromotionReport, WalkPosition | None]:
        rules = request.rules
        page = await self.repository.scroll(
            request.scope,
            MemoryType.SEMANTIC,
            where=(*to_consider(rules), of_population(request.population)),
            limit=request.batch,
            cursor=position.cursor,
        )
        maker = HabitMaker(self.repository, self.embedder, self.new_write_id)
        known = [memory for memory in page.memories if isinstance(memory, SemanticMemory)]
        ready, denied = await maker.ready(request.scope, known, rules, request.now)
        if request.dry_run:
            made = {m.id: promoted(m, request.now, rules).habit.id for m in ready}
        else:
            provenance = Provenance(workflow_id=request.workflow_id, run_id=request.run_id)
            made = await maker.make(request.scope, ready, rules, request.now, provenance=provenance)
            # Words do not change: what tells no habit, or was denied, is refused once.
            others = [m for m in known if m.id in denied or not is_habit(m.content)]
            await self._update(request, others, partial(_refused, now=request.now), _SEMANTIC)
        after = WalkPosition(stage=_KNOWLEDGE, cursor=page.cursor) if page.cursor else None
        report = _report(
            request,
            reviewed=len(page.memories),
            considered=len(page.memories),
            promoted=tuple(made.values()),
            linked=len(made),
            transitions=_counts(TO_HABIT, "type", "semantic", "procedural", len(made)),
            changes=tuple(
                Change(
                    memory_id=source,
                    memory_type=MemoryType.SEMANTIC,
                    rule=TO_HABIT,
                    source="semantic",
                    target="procedural",
                    why="a behavioural pattern that passes and confidence speak for",
                )
                for source in made
            ),
        )
        return report, after or WalkPosition(stage=_HABITS)

    async def _follow(
        self, request: WalkInput, position: WalkPosition
    ) -> tuple[PromotionReport, WalkPosition | None]:
        """Habits hold as long as the knowledge they came from does."""
        page = await self.repository.scroll(
            request.scope,
            MemoryType.PROCEDURAL,
            where=(of_population(request.population),),
            limit=MOST_AT_ONCE // 10,
            cursor=position.cursor,
        )
        origins = {memory.promoted_from for memory in page.memories}
        sources = await self.repository.get(
            request.scope, [one for one in origins if one is not None], _SEMANTIC
        )
        before: dict[str, tuple[str, str]] = {}

        def change(memory: AnyMemory) -> AnyMemory | None:
            origin = memory.promoted_from
            source = sources.get(origin) if origin is not None else None
            if not isinstance(memory, ProceduralMemory) or not isinstance(source, SemanticMemory):
                return None
            after = following(memory, source)
            if after is not None and after.status is not memory.status:
                before[memory.id] = (memory.status.value, after.status.value)
            return after

        concerned = [memory for memory in page.memories if change(memory) is not None]
        changed = await self._update(request, concerned, change, _PROCEDURAL)
        steps = [before[memory_id] for memory_id in changed if memory_id in before]
        counts = tuple(
            count
            for step in set(steps)
            for count in _counts(FOLLOWS, "status", *step, steps.count(step))
        )
        report = _report(request, reviewed=len(page.memories), transitions=counts)
        return report, (WalkPosition(stage=_HABITS, cursor=page.cursor) if page.cursor else None)

    async def _update(
        self,
        request: WalkInput,
        memories: Sequence[AnyMemory],
        change: Callable[[AnyMemory], AnyMemory | None],
        types: tuple[MemoryType, ...],
    ) -> frozenset[str]:
        if request.dry_run:
            return frozenset(memory.id for memory in memories if change(memory) is not None)
        written = await update_memories(
            self.repository,
            request.scope,
            [memory.id for memory in memories],
            change,
            new_write_id=self.new_write_id,
            types=types,
            stamp=review_stamp(request.rules),
        )
        return written.changed


def _refused(memory: AnyMemory, now: datetime) -> AnyMemory | None:
    vitals = memory.vitals or Vitals()
    if vitals.refused_at is not None:
        return None
    noted = {"promotion_attempts": vitals.promotion_attempts + 1, "refused_at": now}
    return memory.model_copy(update={"vitals": vitals.model_copy(update=noted)})


def _report(request: WalkInput, **fields: object) -> PromotionReport:
    found: PassReport = PromotionReport(dry_run=request.dry_run, population=request.population)
    return PromotionReport.model_validate({**dict(found), **fields})


def _counts(
    rule: str, aspect: str, source: str, target: str, memories: int
) -> tuple[RuleCount, ...]:
    if not memories:
        return ()
    return (RuleCount(rule=rule, aspect=aspect, source=source, target=target, memories=memories),)
