"""Giving what an export brought its place among what is known here.

Within an export everything has its place already. What is looked for is what stands here beside
it: mostly nothing, and then that is all there is to do. Nothing is noted of what was done; what is
left to do shows in the store, so whoever restores the same again goes on with it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from engram.consolidation.apply import PlanWriter
from engram.consolidation.denials import affirmed_before
from engram.consolidation.findings import FindingsStore, succession
from engram.consolidation.known import KnownMemories
from engram.consolidation.places import places, timeline_of
from engram.consolidation.taking_up import TurnConsolidator
from engram.contracts.importing import StoreBatchInput
from engram.digests.profiles import carried
from engram.digests.stage import Digests
from engram.digests.versions import Composer
from engram.domain.buffer import portions
from engram.domain.digests import ProfileDetail, TopicDetail
from engram.domain.memories import (
    AnyMemory,
    Episode,
    Fact,
    MemoryForm,
    MemoryStatus,
    MemoryType,
    NegationFact,
    ProceduralMemory,
    Provenance,
    SemanticMemory,
    Slot,
    notes_of,
)
from engram.domain.plan import ConsolidationPlan
from engram.domain.rules import DigestPolicy
from engram.domain.scope import Scope
from engram.domain.slots import (
    is_functional,
    named_now,
    related_predicates,
    stored_as,
    timeline_key,
)
from engram.giving_way import computed
from engram.lifecycle.decisions import disputes_of
from engram.lifecycle.promotion_pass import follow_sources
from engram.ports import (
    AnyOf,
    Condition,
    Embedder,
    Equals,
    Filter,
    HasId,
    MemoryRepository,
    Not,
)
from engram.storage.updates import NewWriteId, all_of, every_page

_COMPOSED: Final = (MemoryForm.PROFILE, MemoryForm.TOPIC)
# What is composed anew at once, as in a pass.
_DIGESTED_AT_ONCE: Final = 200
_NOT_REPLACED: Final = Not(Equals("status", MemoryStatus.SUPERSEDED.value))
M = TypeVar("M", bound=AnyMemory)


@dataclass(frozen=True, slots=True)
class Restored:
    """A batch of memories whose place is looked for.

    Attributes:
        sent: As the export has them.
        there: Those that were here before, as they are here.
    """

    sent: Sequence[AnyMemory]
    there: Mapping[str, AnyMemory]

    @property
    def standing(self) -> list[AnyMemory]:
        """Those that hold: what gave way, or was refuted, is history here, too."""
        return [one for one in (self.there.get(m.id, m) for m in self.sent) if _stands(one)]

    @property
    def moved(self) -> set[str]:
        """What has another place here than in the export: an attempt before may have moved it."""
        found: set[str] = set()
        for one in self.sent:
            here = self.there.get(one.id)
            if isinstance(one, SemanticMemory) and isinstance(here, SemanticMemory):
                found |= {*here.supersedes} - {*one.supersedes}
                found |= {one.id} if _stands(one) and not _stands(here) else set()
        return found


class RestoredPlaces:
    """Lets restored memories give way to what is newer here, and take the place of what is older.

    Every method may run twice, in parts and beside itself.

    Args:
        repository: Where memories are kept.
        embedder: Gives vectors to what comes into being: a part of a memory whose value came
            back, a digest that is composed anew.
        new_write_id: Makes a fresh value for each write.
        digests: The bounds of what is composed anew; None: nothing is.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        embedder: Embedder,
        new_write_id: NewWriteId,
        digests: DigestPolicy | None,
    ) -> None:
        self._repository = repository
        self._embedder = embedder
        self._new_write_id = new_write_id
        self._writer = PlanWriter(repository, embedder, new_write_id)
        self._findings = FindingsStore(repository, embedder, new_write_id)
        self._digests = Digests(repository, embedder, new_write_id)
        self._policy = digests
        known = KnownMemories(repository, embedder)
        self._turns = TurnConsolidator(repository, known, self._writer, new_write_id)

    async def give(self, request: StoreBatchInput, restored: Restored) -> set[tuple[str, ...]]:
        """Give each its place.

        Args:
            request: Whose, and when.
            restored: What was restored; it is stored.

        Returns:
            The pairs that may be in dispute since.
        """
        standing = restored.standing
        if not standing:
            return set()
        own = HasId(tuple(one.id for one in restored.sent))
        touched, pairs = await self._place_statements(request, standing, own)
        touched |= await self._place_facts(request.scope, standing, own)
        touched |= await self._end_denials(request, standing, own)
        history = await self._told_of_history(request.scope, standing)
        await follow_sources(self._repository, request.scope, history, self._new_write_id)
        touched |= restored.moved | history
        if touched:
            maker = Provenance(workflow_id=request.workflow_id, run_id=request.run_id)
            await self._turns.sum_up(request.scope, request.now, touched, maker)
        await self._compose(request, standing, own, touched)
        return pairs

    async def _place_statements(
        self, request: StoreBatchInput, standing: Iterable[AnyMemory], own: HasId
    ) -> tuple[set[str], set[tuple[str, ...]]]:
        """Place each timeline in which several hold; what was changed, and who argues."""
        stated = [one for one in _statements(standing) if one.slot is not None]
        beside = await self._beside(request.scope, MemoryType.SEMANTIC, stated, own)
        touched, pairs = set[str](), set[tuple[str, ...]]()
        for told in _several(stated, _statements(beside), _timeline):
            pairs |= {pair for one in told for pair in disputes_of(one)}
            timeline = await timeline_of(self._repository, request.scope, told[0])
            plan = await computed(places, request.scope, timeline.values(), request.now)
            given_way = {update.memory_id for update in plan.retirements()}
            if given_way.isdisjoint(one.id for one in told) and not plan.disputes():
                # They stand side by side, as a second job does, or what is over beside the next.
                continue
            touched |= {one.id for one in told} | await self._apply(request.scope, plan)
            pairs |= {*plan.disputes()}
        return touched, pairs

    async def _place_facts(
        self, scope: Scope, standing: Iterable[AnyMemory], own: HasId
    ) -> set[str]:
        facts = [m for m in standing if isinstance(m, Fact) and m.slot is not None]
        beside = await self._beside(scope, MemoryType.FACTUAL, facts, own)
        touched: set[str] = set()
        for told in _several(facts, (m for m in beside if isinstance(m, Fact)), _fact_slot):
            if succession(told):
                await self._findings.place_again(scope, told[0])
                touched |= {one.id for one in told}
        return touched

    async def _end_denials(
        self, request: StoreBatchInput, standing: Iterable[AnyMemory], own: HasId
    ) -> set[str]:
        """End the denials that something takes back, whichever of both was restored."""
        scope = request.scope
        denials = [one for one in standing if isinstance(one, NegationFact)]
        saying: list[NegationFact | SemanticMemory] = [*denials]
        if await self._repository.count(scope, MemoryType.NEGATION, (_NOT_REPLACED, Not(own))):
            saying += _statements(standing)
        sources = tuple(sorted({e for one in saying for e in one.source_episode_ids}))
        ended = {*await self._turns.end_denials(scope, sources)}
        denials = [one for one in denials if one.id not in ended]
        said = await affirmed_before(self._repository, self._embedder, scope, denials)
        if said:
            maker = Provenance(workflow_id=request.workflow_id, run_id=request.run_id)
            plan = await self._turns.plan(scope, request.now, said, (), maker)
            ended |= await self._apply(scope, plan)
            by = tuple(sorted({e for one in said for e in one.episode_ids}))
            ended |= {*await self._turns.end_denials(scope, by)}
        return ended

    async def _told_of_history(self, scope: Scope, standing: Iterable[AnyMemory]) -> set[str]:
        """What restored habits, profiles, topics and summaries tell, and is history here."""
        told = tuple(sorted({key for m in standing for key in _told(m)}))
        if not told:
            return set()
        where = (HasId(told), Equals("status", MemoryStatus.SUPERSEDED.value))
        return {
            one.id for one in await all_of(self._repository, scope, SemanticMemory, where=where)
        }

    async def _compose(
        self,
        request: StoreBatchInput,
        standing: Iterable[AnyMemory],
        own: HasId,
        touched: set[str],
    ) -> None:
        """Compose profiles and topics anew: of what was changed, and where there are two of one."""
        if self._policy is None or not self._policy.enabled:
            return
        composed = [m for m in standing if isinstance(m, SemanticMemory) and m.form in _COMPOSED]
        keys = tuple(sorted({m.detail.keys[0] for m in composed if m.detail}))
        if keys:
            where = (
                Equals("status", MemoryStatus.ACTIVE.value),
                AnyOf("form", tuple(form.value for form in _COMPOSED)),
                AnyOf("detail.keys", keys),
                Not(own),
            )
            beside = await all_of(self._repository, request.scope, SemanticMemory, where=where)
            doubles = _several(composed, beside, _digest)
            touched = touched | {key for both in doubles for one in both for key in _told(one)}
        composer = Composer(
            request.scope, request.now, workflow_id=request.workflow_id, run_id=request.run_id
        )
        for ids in portions(tuple(sorted(touched)), _DIGESTED_AT_ONCE):
            await self._digests.knowledge(composer, ids, (), self._policy)

    async def _beside(
        self,
        scope: Scope,
        kind: MemoryType,
        those: Sequence[SemanticMemory] | Sequence[Fact],
        own: HasId,
    ) -> list[AnyMemory]:
        """What holds here in the slots of these, and perhaps some others; in one look or two."""
        slots = dict.fromkeys(one.slot for one in those if one.slot is not None)
        predicates = _as_stored if kind is MemoryType.FACTUAL else related_predicates
        found: list[AnyMemory] = []
        for single in (True, False):
            # A fact gives way to any other of its slot, as does what has one value at a time.
            asked = [s for s in slots if (kind is MemoryType.FACTUAL or is_functional(s)) is single]
            if not asked:
                continue
            where: Filter = (
                _one_of("slot.subject", (slot.subject for slot in asked)),
                _one_of("slot.predicate", (name for slot in asked for name in predicates(slot))),
                _NOT_REPLACED,
                Not(own),
            )
            if not single:
                where = (*where, _one_of("slot.object", (slot.object for slot in asked)))
            pages = every_page(self._repository, scope, kind, where=where)
            found += [one async for page in pages for one in page if _stands(one)]
        return found

    async def _apply(self, scope: Scope, plan: ConsolidationPlan) -> set[str]:
        """Write a plan; the ids of what it changed."""
        if not plan.actions:
            return set()
        written = await self._writer.apply(scope, plan)
        return {*written.stored, *written.updated, *written.retired}


def _several(
    restored: Iterable[M], beside: Iterable[M], key_of: Callable[[M], Hashable]
) -> list[list[M]]:
    """Those that share a key, two or more, where one of them was restored."""
    found: dict[Hashable, list[M]] = {}
    for one in restored:
        found.setdefault(key_of(one), []).append(one)
    for one in beside:
        if (same := found.get(key_of(one))) is not None:
            same.append(one)
    return [same for same in found.values() if len(same) > 1]


def _stands(memory: AnyMemory) -> bool:
    """Whether nothing took its place; what faded, or was put aside, did not give way by that."""
    if isinstance(memory, Episode) or memory.refuted_at is not None:
        return False
    return memory.status is not MemoryStatus.SUPERSEDED


def _statements(memories: Iterable[AnyMemory]) -> list[SemanticMemory]:
    return [
        one
        for one in memories
        if isinstance(one, SemanticMemory) and one.form is MemoryForm.STATEMENT
    ]


def _timeline(memory: SemanticMemory) -> Hashable:
    return memory.slot and timeline_key(memory.slot), memory.is_test


def _fact_slot(fact: Fact) -> Hashable:
    return fact.slot and (fact.slot.subject, named_now(fact.slot.predicate)), fact.is_test


def _digest(memory: SemanticMemory) -> Hashable:
    return memory.form, memory.detail and memory.detail.keys[0]


def _told(memory: AnyMemory) -> tuple[str, ...]:
    """What a habit, a digest or a summary is made from."""
    if isinstance(memory, ProceduralMemory):
        source = memory.promoted_from
        return () if source is None else (source,)
    if not isinstance(memory, SemanticMemory):
        return ()
    if isinstance(memory.detail, ProfileDetail):
        return tuple(carried([memory.detail]))
    if isinstance(memory.detail, TopicDetail):
        return memory.detail.member_ids
    return tuple(notes_of(memory))


def _as_stored(slot: Slot) -> tuple[str, ...]:
    return stored_as(named_now(slot.predicate))


def _one_of(field: str, values: Iterable[str]) -> Condition:
    return AnyOf(field, tuple(sorted({*values})))
