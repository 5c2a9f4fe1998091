"""Applying plans: first what is new, read back; then, and only then, what it replaces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field

import structlog

from engram.consolidation.amendments import amended, retired
from engram.consolidation.forgetting import let_go
from engram.contracts.consolidation import PlanOutput
from engram.domain.memories import (
    AnyMemory,
    DerivedMemory,
    Episode,
    LinkKind,
    MemoryStatus,
    MemoryType,
    SemanticMemory,
)
from engram.domain.plan import (
    Action,
    ConsolidationPlan,
    Discard,
    LinkGraph,
    Supersession,
    UpdateNote,
)
from engram.domain.rules import EdgeRules
from engram.domain.scope import Scope
from engram.errors import StorageUnavailable
from engram.lifecycle.links import MAX_LINKS, Observed, link_to, linked, without_links
from engram.lifecycle.promotion import habits_of
from engram.lifecycle.promotion_pass import follow_sources
from engram.ports import AnyOf, Embedder, MemoryRepository, NewMemory
from engram.storage.ledger import MADE_FROM, is_composed, rests_on
from engram.storage.updates import (
    MemoryChange,
    NewWriteId,
    all_of,
    episodes_by_id,
    existing,
    update_memories,
    update_those,
)

_EPISODIC = (MemoryType.EPISODIC,)
_SEMANTIC = (MemoryType.SEMANTIC,)
# A line of a log that grows without bound is cut by whoever collects it.
_LOGGED_AT_ONCE = 20
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PlanWriter:
    """Applies plans for the consolidation activities. Every method may run twice.

    Args:
        repository: Where memories are kept.
        embedder: Gives new memories their vectors.
        new_write_id: Makes a fresh value for each write.
        edges: How much surer a link grows that is found again.
    """

    repository: MemoryRepository
    embedder: Embedder
    new_write_id: NewWriteId
    edges: EdgeRules | None = None

    async def write(self, scope: Scope, plan: ConsolidationPlan) -> PlanOutput:
        """Store what is new and read it back; confirm, count and link what exists.

        A turn may be forgotten before, or while, what it states is written. What is new
        and rests on such a turn is not kept, for its words may be that turn's; what exists
        loses it as a source. Whatever else the new rested on is to be read again.

        Raises:
            StorageUnavailable: something written was not there when it was read back.
            UserErased: the user was erased meanwhile; nothing of the new stays written.
        """
        _log_actions(plan)
        # Before the sources are looked for: erased after that, nothing is left of what they said.
        epoch = await self.repository.epoch(scope)
        sources, of_summaries = _sources(plan)
        there = await existing(self.repository, scope, sources | of_summaries, _EPISODIC)
        stored = await self._store(scope, _resting_on(there, plan.new_memories()), epoch)
        amendments = {update.memory_id: update for update in plan.amendments()}
        episodes = await self._episodes(scope, amendments.values())
        promoted: set[str] = set()

        def amend(memory: AnyMemory) -> AnyMemory | None:
            update = amendments.get(memory.id)
            if update is None or not isinstance(memory, SemanticMemory):
                return None
            if habits_of(memory):
                promoted.add(memory.id)
            return amended(memory, update, episodes)

        changed = await self._change(scope, amendments, amend, plan.links())
        await follow_sources(self.repository, scope, promoted, self.new_write_id)
        left = await existing(self.repository, scope, sources | there, _EPISODIC)
        gone = (sources | there) - left
        await self._take_back(scope, plan, gone)
        kept = {m.id for m in plan.new_memories() if gone.isdisjoint(m.source_episode_ids)}
        return PlanOutput(
            stored=tuple(key for key in stored if key in kept),
            updated=tuple(sorted(changed.amended)),
            links=changed.links,
            refused_links=changed.refused_links,
            missing=tuple(sorted(changed.lost)),
            reread=_left_of(gone, plan.new_memories()),
        )

    async def apply(self, scope: Scope, plan: ConsolidationPlan) -> PlanOutput:
        """Write a plan, and only when it was read back, retire what it replaces."""
        written = PlanOutput()
        if plan.new_memories() or plan.links() or any(True for _ in plan.amendments()):
            written = await self.write(scope, plan)
        if not plan.retirements():
            return written
        ended = await self.retire(scope, plan)
        return written.model_copy(update={"retired": ended.updated})

    async def retire(self, scope: Scope, plan: ConsolidationPlan) -> PlanOutput:
        """Mark what the plan replaces, each memory naming its successor.

        Nothing leads to a summary any more that was replaced.
        """
        endings = {
            update.memory_id: update.supersession
            for update in plan.retirements()
            if update.supersession is not None
        }
        endings = await self._with_a_successor(scope, endings)
        updated = await update_those(
            self.repository,
            scope,
            SemanticMemory,
            endings,
            lambda memory: retired(memory, endings[memory.id]),
            new_write_id=self.new_write_id,
        )
        # Of all of them, not only of those that changed now: a crash may have come in between.
        await follow_sources(self.repository, scope, endings, self.new_write_id)
        of_summaries = {update.memory_id for update in plan.retirements() if update.outdates}
        ended = of_summaries & endings.keys()
        summaries = await self.repository.get(scope, ended, _SEMANTIC, fresh=True)
        outdated = {k for k, m in summaries.items() if m.status is MemoryStatus.SUPERSEDED}
        await end_links(self.repository, scope, outdated, self.new_write_id)
        return PlanOutput(
            updated=tuple(sorted(updated.changed)), missing=tuple(sorted(updated.missing))
        )

    async def _store(
        self, scope: Scope, memories: tuple[SemanticMemory, ...], epoch: int
    ) -> tuple[str, ...]:
        if not memories:
            return ()
        ids = [memory.id for memory in memories]
        there = await self.repository.get(scope, ids, _SEMANTIC, fresh=True)
        missing = [memory for memory in memories if memory.id not in there]
        if missing:
            vectors = await self.embedder.embed_documents([m.indexed_text for m in missing])
            written = [m.model_copy(update={"write_id": self.new_write_id()}) for m in missing]
            pairs = zip(written, vectors, strict=True)
            forgotten = await self.repository.insert(
                scope, [NewMemory(m, v) for m, v in pairs], epoch=epoch
            )
            if forgotten:
                _log.info("new memories rest on what was forgotten", memories=len(forgotten))
            ids = [memory_id for memory_id in ids if memory_id not in forgotten]
            missing = [memory for memory in missing if memory.id not in forgotten]
            there = await self.repository.get(scope, ids, _SEMANTIC, fresh=True)
        lost = [memory_id for memory_id in ids if memory_id not in there]
        if lost:
            raise StorageUnavailable(
                f"{len(lost)} of {len(ids)} new memories were not there when read back.",
                hint="Nothing was retired. Writing them again can succeed later.",
                details={"ids": lost[:10]},
            )
        return tuple(memory.id for memory in missing)

    async def _with_a_successor(
        self, scope: Scope, endings: dict[str, Supersession]
    ) -> dict[str, Supersession]:
        """Those whose successor exists: replaced by what was forgotten, nothing is replaced."""
        wanted = {ending.superseded_by for ending in endings.values()}
        if not wanted:
            return endings
        there = await self.repository.get(scope, wanted, _SEMANTIC, fresh=True)
        return {key: ending for key, ending in endings.items() if ending.superseded_by in there}

    async def _take_back(self, scope: Scope, plan: ConsolidationPlan, gone: Set[str]) -> None:
        """Undo what was written of turns that are gone: by this attempt, or one before it."""
        if not gone:
            return
        new = {m.id: set(m.source_episode_ids) for m in plan.new_memories()}
        new = {key: sources for key, sources in new.items() if not gone.isdisjoint(sources)}
        stored = await self.repository.get(scope, new, _SEMANTIC, fresh=True)
        own = {
            key
            for key, memory in stored.items()
            if isinstance(memory, SemanticMemory) and new[key] >= {*memory.source_episode_ids}
        }
        await self.repository.delete(scope, MemoryType.SEMANTIC, own)
        await end_links(self.repository, scope, own, self.new_write_id)
        # What another pass stored as well, or an update confirmed, has sources of its own.
        shared = {*new, *(update.memory_id for update in plan.amendments())} - own
        await let_go(self.repository, scope, shared, gone, self.new_write_id)
        _log.info("turns were forgotten while they were consolidated", turns=len(gone))

    async def _episodes(self, scope: Scope, updates: Iterable[UpdateNote]) -> dict[str, Episode]:
        wanted = {source for update in updates for source in update.add_sources}
        return await episodes_by_id(self.repository, scope, wanted)

    async def _change(
        self,
        scope: Scope,
        amendments: Collection[str],
        amend: MemoryChange,
        links: tuple[LinkGraph, ...],
    ) -> _Changed:
        """Amend memories, and make each link at both ends, or, without room at one, at neither.

        What is amended and linked is written once.
        """
        ends = {end for link in links for end in _ends(link)}
        there = await self.repository.get(scope, ends) if ends else {}
        derived = {
            key: one
            for key, memory in there.items()
            if isinstance(one := amend(memory) or memory, DerivedMemory)
        }
        room, refused = _with_room(links, derived)
        edges: dict[str, list[LinkGraph]] = {}
        for link in room:
            for end in _ends(link):
                edges.setdefault(end, []).append(link)
        change = _AmendAndLink(amend, edges, derived, self.edges)
        updated = await update_memories(
            self.repository,
            scope,
            (*amendments, *edges),
            change,
            new_write_id=self.new_write_id,
            types=None if edges else _SEMANTIC,
        )
        refused = (*refused, *change.filled.values())
        await self._take_apart(scope, refused)
        lost = frozenset(ends - there.keys()) | updated.missing
        made = change.made - {(frozenset(_ends(x)), x.kind) for x in change.filled.values()}
        return _Changed(updated.changed & change.amended, len(made), len(refused), lost)

    async def _take_apart(self, scope: Scope, refused: tuple[LinkGraph, ...]) -> None:
        """Leave no link at one end that the other has no room for, and say how many there are."""
        if not refused:
            return
        _log.warning("links were left out: a memory has no room for more", links=len(refused))
        halves = {
            end: {(_other_end(x, end), x.kind) for x in refused if end in _ends(x)}
            for link in refused
            for end in _ends(link)
        }

        def change(memory: DerivedMemory) -> DerivedMemory | None:
            half = halves[memory.id]
            return without_links(memory, lambda link: (link.target_id, link.kind) in half)

        await update_those(
            self.repository, scope, DerivedMemory, halves, change, new_write_id=self.new_write_id
        )


@dataclass(slots=True)
class _AmendAndLink:
    """Amends a memory and adds its ends of links; what came of it, after the last time of each.

    Args:
        amend: The first of both.
        edges: Links by the ids of their ends.
        derived: The ends, as they are to be linked.
        rules: How much surer a link grows that is found again.

    Attributes:
        amended: What is amended.
        made: Links that are new, by their ends.
        filled: Those whose place somebody else took since it was looked for, by one end.
    """

    amend: MemoryChange
    edges: Mapping[str, Sequence[LinkGraph]]
    derived: Mapping[str, DerivedMemory]
    rules: EdgeRules | None
    amended: set[str] = field(default_factory=set)
    made: set[tuple[frozenset[str], LinkKind]] = field(default_factory=set)
    filled: dict[tuple[str, str, LinkKind], LinkGraph] = field(default_factory=dict)

    def __call__(self, memory: AnyMemory) -> AnyMemory | None:
        """What becomes of it; None where nothing does."""
        if not isinstance(memory, DerivedMemory):
            return None
        self.amended.discard(memory.id)
        after: DerivedMemory = memory
        told = self.amend(memory)
        if isinstance(told, DerivedMemory):
            self.amended.add(memory.id)
            after = told
        for link in self.edges.get(memory.id, ()):
            after = self._linked(after, link)
        return after if after is not memory else None  # type: ignore[return-value]  # a copy of an AnyMemory is one

    def _linked(self, memory: DerivedMemory, link: LinkGraph) -> DerivedMemory:
        other = self.derived[_other_end(link, memory.id)]
        known = link_to(memory, other.id, link.kind) is not None
        further = linked(
            memory,
            other.id,
            link.kind,
            link.confidence,
            Observed.between(self.derived[memory.id], other),
            past_the_bound=_says_what_it_is_made_of(link, self.derived),
            rules=self.rules,
            instructions_version=link.instructions_version,
        )
        if further is None:
            if not known:
                self.filled[memory.id, other.id, link.kind] = link
            return memory
        if not known:
            self.made.add((frozenset(_ends(link)), link.kind))
        return further


@dataclass(frozen=True, slots=True)
class _Changed:
    """What came of amendments and links.

    Attributes:
        amended: What was amended.
        links: How many are new.
        refused_links: How many found no room.
        lost: What is gone.
    """

    amended: frozenset[str]
    links: int
    refused_links: int
    lost: frozenset[str]


async def end_links(
    repository: MemoryRepository, scope: Scope, ended: Set[str], new_write_id: NewWriteId
) -> None:
    """Let nothing lead to these any more: they were replaced, or are gone. May run twice.

    What they lead to themselves stays noted on them: by that, forgetting finds what has
    the words of a memory, and an answer as of an earlier date follows it.
    """
    if not ended:
        return
    where = (AnyOf("related_ids", tuple(sorted(ended))),)
    linked = await all_of(repository, scope, DerivedMemory, where=where)
    await update_those(
        repository,
        scope,
        DerivedMemory,
        [memory.id for memory in linked],
        lambda memory: without_links(memory, lambda link: link.target_id in ended),
        new_write_id=new_write_id,
    )


def _ends(link: LinkGraph) -> tuple[str, str]:
    return link.first_id, link.second_id


def _other_end(link: LinkGraph, memory_id: str) -> str:
    return link.second_id if link.first_id == memory_id else link.first_id


def _says_what_it_is_made_of(link: LinkGraph, ends: Mapping[str, DerivedMemory]) -> bool:
    """Whether a link is between a summary and what it sums up, which there is no room to miss."""
    return link.kind in MADE_FROM and any(is_composed(ends[end]) for end in _ends(link))


def _with_room(
    links: Iterable[LinkGraph], there: Mapping[str, DerivedMemory]
) -> tuple[tuple[LinkGraph, ...], tuple[LinkGraph, ...]]:
    """The links that find room at both ends, and those that do not.

    A link to what was forgotten meanwhile would lead nowhere, and tests stay apart: such
    are neither.
    """
    held = Counter({key: len(memory.links) for key, memory in there.items()})
    room, refused = list[LinkGraph](), list[LinkGraph]()
    # What is found twice takes one place.
    given = set[tuple[str, str, LinkKind]]()
    for link in links:
        first, second = there.get(link.first_id), there.get(link.second_id)
        if first is None or second is None or first.is_test != second.is_test:
            continue
        pairs = ((first, second), (second, first))
        lacking = [
            one.id
            for one, other in pairs
            if (one.id, other.id, link.kind) not in given
            and link_to(one, other.id, link.kind) is None
        ]
        bounded = not _says_what_it_is_made_of(link, there)
        if bounded and any(held[key] >= MAX_LINKS for key in lacking):
            refused.append(link)
        else:
            room.append(link)
            held.update(lacking)
            given |= {(one.id, other.id, link.kind) for one, other in pairs}
    return tuple(room), tuple(refused)


def _sources(plan: ConsolidationPlan) -> tuple[frozenset[str], frozenset[str]]:
    """The turns that a plan draws from or quotes; and those behind what its summaries sum up.

    Time may have taken some of the latter.
    """
    drawn, behind = set[str](), set[str]()
    for memory in plan.new_memories():
        (behind if is_composed(memory) else drawn).update(rests_on(memory))
    for update in plan.amendments():
        drawn.update(update.add_sources)
        drawn.update(quote.episode_id for quote in update.add_evidence)
    return frozenset(drawn), frozenset(behind)


def _resting_on(
    there: Set[str], memories: tuple[SemanticMemory, ...]
) -> tuple[SemanticMemory, ...]:
    """Those of which no turn is gone; summaries of which one is left."""

    def rests(memory: SemanticMemory) -> bool:
        sources = memory.source_episode_ids
        return not there.isdisjoint(sources) if is_composed(memory) else there >= {*sources}

    kept = tuple(memory for memory in memories if rests(memory))
    if len(kept) < len(memories):
        _log.info("new memories lost their sources", memories=len(memories) - len(kept))
    return kept


def _left_of(gone: Set[str], memories: tuple[SemanticMemory, ...]) -> tuple[str, ...]:
    """The other turns of what was not kept."""
    parted = (m for m in memories if not gone.isdisjoint(m.source_episode_ids))
    return tuple(sorted({e for m in parted for e in m.source_episode_ids} - gone))


def _log_actions(plan: ConsolidationPlan) -> None:
    """How many actions of each kind, reason and source; at debug, of which memories.

    Never what they say.
    """
    reasons = Counter(str(action.reason) for action in plan.actions)
    sources = Counter(str(action.eligibility.source) for action in plan.actions)
    _log.info(
        "plan applied",
        actions=plan.counts(),
        reasons=dict(sorted(reasons.items())),
        sources=dict(sorted(sources.items())),
    )
    for start in range(0, len(plan.actions), _LOGGED_AT_ONCE):
        part = plan.actions[start : start + _LOGGED_AT_ONCE]
        _log.debug("actions applied", actions=[_logged(action) for action in part])


def _logged(action: Action) -> str:
    match action:
        case UpdateNote():
            about = action.memory_id
        case LinkGraph():
            about = f"{action.first_id}~{action.second_id}"
        case Discard():
            about = "-"
        case _:
            about = action.memory.id
    return f"{action.action} {action.reason} {about}"
