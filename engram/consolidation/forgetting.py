"""Forgetting one memory: what is left of those derived from it, settled first, then done."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from engram.consolidation.amendments import retold, worded_by
from engram.consolidation.denials import deny_again
from engram.consolidation.places import places, placing, timeline_of
from engram.contracts.removal import ForgetPlan
from engram.domain.memories import (
    STORED_TYPES,
    AnyMemory,
    DerivedMemory,
    Episode,
    Fact,
    MemoryStatus,
    MemoryType,
    NegationFact,
    ProceduralMemory,
    SemanticMemory,
    is_summary,
    replaced,
    replacing,
)
from engram.domain.occasions import without_occasions
from engram.domain.scope import Scope
from engram.domain.turns import SaidAt, is_first_party
from engram.embedding.bm25 import encode_document
from engram.errors import MemoryNotFound
from engram.language.text import bare_stems
from engram.lifecycle.checks import linked_back
from engram.lifecycle.decisions import disputed, disputes_of, holding_again
from engram.lifecycle.links import heirs_of, parted, referred_to
from engram.lifecycle.recomposed import RECOMPOSED, Basis, is_recomposed
from engram.ports import AnyOf, Equals, HasId, MemoryRepository
from engram.storage.ledger import MADE_FROM, is_composed
from engram.storage.rewording import words_let_go
from engram.storage.updates import (
    NewWriteId,
    all_of,
    by_id,
    episodes_by_id,
    no_memory,
    one_memory,
    update_those,
)

# --- what is left of memories when others are forgotten: a pure function each way
#
# Forgetting takes a memory, and whatever was derived only from it. What rests on
# something else as well stays, without any trace of what is gone.

D = TypeVar("D", bound=DerivedMemory)
# Shorter ones are in everybody's mouth.
_LONG_WORD = re.compile(r"\w{4,}")
# Nor do they lose a letter: "go" is no stem of anything else.
_NO_STEM = 3


def names_any(memory: DerivedMemory, gone: Collection[str]) -> bool:
    """Whether anything in it refers to one of these ids."""
    text = memory.model_dump_json()
    return any(memory_id in text for memory_id in gone)


def is_made_from(memory: DerivedMemory, gone: Collection[str]) -> bool:
    """Whether its words come from one of these: a summary or a habit of it."""
    return is_composed(memory) and any(
        link.target_id in gone and link.kind in MADE_FROM for link in memory.links
    )


def is_worded_by(memory: DerivedMemory, gone: Iterable[Episode], left: Iterable[Episode]) -> bool:
    """Whether it has words that only forgotten turns say.

    Such wording goes; a later pass words anew what the other sources support.
    """
    gone = tuple(gone)
    there = " ".join(episode.content for episode in left)
    forgotten = " ".join(episode.content for episode in gone)
    said, named = f"{memory.content} {memory.summary or ''}", ""
    match memory:
        case ProceduralMemory():
            said = f"{said} {memory.trigger_context}"
        case SemanticMemory():
            told = memory.slot.object if memory.slot else ""
            named = " ".join((told, *memory.entities))
            if not {episode.id for episode in gone}.isdisjoint(worded_by(memory)):
                named = f"{named} {memory.content}"
    if not _words(forgotten).isdisjoint(_words(f"{said} {named}") - _words(there)):
        return True
    # What it is about counts however short it is: "Ann", "20 euros".
    return not bare_stems(forgotten).isdisjoint(bare_stems(named) - bare_stems(there))


def only_says_the_same(memory: DerivedMemory, gone: Mapping[str, DerivedMemory]) -> bool:
    """Whether it was merged into one of these, and rests on nothing that this one does not."""
    if not isinstance(memory, SemanticMemory):
        return False
    kept = gone.get(memory.duplicate_of or "")
    by = gone.get(memory.superseded_by or "")
    if by is not None and not is_summary(memory) and _is_same_value(memory, by):
        # Two parts of one value, once nothing lies between them any more.
        kept = kept or by
    return kept is not None and set(memory.source_episode_ids) <= set(kept.source_episode_ids)


def _words(text: str) -> set[str]:
    return set(_LONG_WORD.findall(text.casefold()))


def _is_same_value(one: SemanticMemory, other: DerivedMemory) -> bool:
    return isinstance(other, SemanticMemory) and one.slot is not None and one.slot == other.slot


def without_sources(
    memory: DerivedMemory, gone: Collection[str], left: Mapping[str, Episode]
) -> DerivedMemory | None:
    """``memory`` as drawn from its other sources; None if it has no other.

    Args:
        memory: Rests on some of the episodes that are forgotten.
        gone: Those episodes.
        left: The episodes among its sources that stay, by id.
    """
    sources = tuple(e for e in memory.source_episode_ids if e in left and e not in gone)
    others = worded_by(memory) if isinstance(memory, SemanticMemory) else ()
    if not _is_still_said(memory, [left[e] for e in sources if e not in others]):
        return None
    less = without_occasions(memory, gone)
    supporting = {"supporting_episodes": less["supporting_episodes"]}
    changes = {
        "source_episode_ids": sources,
        "occasions": less["occasions"],
        "confidence": memory.confidence.model_copy(update=supporting),
    }
    kept = memory.model_copy(update=changes)
    match kept:
        case SemanticMemory():
            evidence = tuple(quote for quote in kept.evidence if quote.episode_id not in gone)
            kept = kept.model_copy(update={"evidence": evidence})
            told = tuple(
                telling.model_copy(update={"episode_ids": ids})
                for telling in kept.tellings
                if (ids := tuple(e for e in telling.episode_ids if e not in gone))
            )
            return retold(kept, told, without=()) if told else kept
        case Fact() | NegationFact():
            words = kept.evidence
            labels = {tag for source in sources for tag in left[source].tags}
            if not any(words in left[source].content for source in sources):
                # Those words were the forgotten turn's; a source that stays speaks for itself.
                words = left[sources[0]].content
            tags = tuple(tag for tag in kept.tags if tag in labels)
            return kept.model_copy(update={"evidence": words, "tags": tags})
    return kept


def _is_still_said(memory: DerivedMemory, left: Sequence[Episode]) -> bool:
    """Whether any of what is left says so: of a denial, not the turn alone that was denied by it.

    Nor, without that turn, the one that only says "that's wrong".
    """
    if not isinstance(memory, NegationFact):
        return bool(left)
    if not any(map(is_first_party, left)):
        return False
    denied = memory.negates_pattern.split()[1:] or [memory.negates_pattern]
    # "smoke" is denied by "I quit smoking".
    stems = [word[:-1] if len(word) > _NO_STEM else word for word in denied]
    return any(stem in episode.content.casefold() for stem in stems for episode in left)


def without_references(
    memory: DerivedMemory, gone: Collection[str], heirs: Mapping[str, str | None]
) -> DerivedMemory | None:
    """``memory`` without links to, and disputes with, what is gone; None if nothing changes.

    What was replaced by something that is gone is replaced by what replaced that,
    or holds again, unless the user disputes it.

    Args:
        memory: Stays.
        gone: Ids that are forgotten.
        heirs: For each of them, the memory that stays and had replaced it, if any.
    """
    replaced, before = memory.superseded_by in gone, memory
    # What only said the same as a forgotten memory does not come back in its place; nor does
    # what was refuted.
    said_the_same = isinstance(memory, SemanticMemory) and memory.duplicate_of in gone
    if isinstance(memory, SemanticMemory):
        memory = disputed(memory, with_=(), settled=gone)
    memory = parted(memory, gone, heirs)
    holds = replaced and memory.superseded_by is None and memory.refuted_at is None
    if holds and not said_the_same:
        memory = holding_again(memory)
    return memory if memory != before else None


# --- forgetting one memory: what that takes is settled first, then done. Every step may run twice

_SEMANTIC = (MemoryType.SEMANTIC,)


@dataclass(frozen=True, slots=True)
class Forgetter:
    """Plans and carries out forgetting, and looks again until there is nothing left to do.

    Args:
        repository: Where memories are kept.
        new_write_id: Makes a fresh value for each write.
    """

    repository: MemoryRepository
    new_write_id: NewWriteId

    async def plan(self, scope: Scope, memory_id: str) -> ForgetPlan:
        """What forgetting this memory takes.

        Raises:
            MemoryNotFound: no such memory of this user.
        """
        try:
            target = await one_memory(self.repository, scope, memory_id)
        except MemoryNotFound:
            return await self._plan_unreadable(scope, memory_id)
        doomed = _Doomed()
        doomed.add(target)
        for origin in await self._came_from(scope, target):
            doomed.add(origin)
        amended: dict[str, DerivedMemory] = {}
        if isinstance(target, Episode):
            for drawn in await self._drawn_from(scope, target.id):
                if await self._goes_with(scope, drawn, target):
                    doomed.add(drawn)
                else:
                    amended[drawn.id] = drawn
        await self._merged_into(scope, doomed)
        await self._composed_of(scope, doomed, set(doomed.memories))
        await self._digests_of(scope, doomed, frozenset(doomed.memories))
        derived = [m for m in doomed.derived.values() if not is_recomposed(m)]
        of_a_turn = isinstance(target, Episode)
        return doomed.plan(memory_id).model_copy(
            update={
                "episodes": doomed.episodes,
                "amended": tuple(sorted(amended.keys() - doomed.memories.keys())),
                "session_id": target.session_id if of_a_turn else None,
                "said_at": SaidAt.of(target) if isinstance(target, Episode) else None,
                "buried": tuple(sorted({memory_id, *(m.id for m in derived)})),
                # What goes with a turn is not drawn from it again, because the turn is not.
                "drawn": {} if of_a_turn else {m.id: m.source_episode_ids for m in derived},
            }
        )

    async def _came_from(self, scope: Scope, memory: AnyMemory) -> list[AnyMemory]:
        """The knowledge that a habit was made of: it has the same words, and would answer next."""
        origin = memory.promoted_from
        if origin is None:
            return []
        return list((await self.repository.get(scope, (origin,), _SEMANTIC)).values())

    async def _plan_unreadable(self, scope: Scope, memory_id: str) -> ForgetPlan:
        """Forgetting what is there and cannot be read: it goes, and all that was drawn from it.

        Raises:
            MemoryNotFound: it is not there.
        """
        this = (HasId((memory_id,)),)
        for kind in STORED_TYPES:
            if await self.repository.count(scope, kind, this):
                break
        else:
            raise no_memory(memory_id)
        doomed = _Doomed()
        # Nobody can tell any more which of them quote it.
        for drawn in await self._drawn_from(scope, memory_id):
            doomed.add(drawn)
        gone = doomed.by_type()
        gone[kind] = (memory_id, *gone.get(kind, ()))
        buried = tuple(sorted({one for ids in gone.values() for one in ids}))
        return ForgetPlan(memory_id=memory_id, gone=gone, buried=buried)

    async def look_again(self, scope: Scope, plan: ForgetPlan) -> ForgetPlan:
        """What was written of the forgotten between looking and deleting; mostly nothing.

        Nobody can tell any more whose words it has, so all of it goes, also what rests on
        other turns as well: those are read again.

        Args:
            scope: Whose.
            plan: What was forgotten, all of it.
        """
        await self._let_words_go(scope, plan)
        there = await self.repository.get(scope, plan.ids, fresh=True)
        doomed = _Doomed()
        # One that could not be read is not among the episodes of its plan.
        for episode_id in {*plan.episodes, *plan.gone.get(MemoryType.EPISODIC, ())}:
            if episode_id in there:
                doomed.add(there[episode_id])
            for drawn in await self._drawn_from(scope, episode_id):
                doomed.add(drawn)
        gone = (plan.ids - there.keys()) | doomed.memories.keys()
        await self._composed_of(scope, doomed, set(gone))
        await self._digests_of(scope, doomed, frozenset(gone | doomed.memories.keys()))
        further = doomed.plan(plan.memory_id)
        return further.model_copy(update={"episodes": plan.episodes, "again": True})

    async def apply(self, scope: Scope, plan: ForgetPlan) -> None:
        """Mend what stays, then delete: what was asked for last, so that a repeat finds it.

        Before anything goes, it is noted that it may not come back.
        """
        episodes = frozenset(plan.episodes)
        # What gained another source since it was settled stays, without the forgotten one.
        spared, parted = await self._spared(scope, plan)
        await self.repository.bury(
            scope,
            {plan.memory_id, *plan.episodes, *plan.buried} - spared,
            drawn={key: sources for key, sources in plan.drawn.items() if key not in spared},
            key=f"{self.new_write_id()}{self.new_write_id()}",
        )
        await self._read_again(scope, parted)
        gone = plan.ids - spared
        left = await self._sources(scope, {*plan.amended, *spared})
        orphans = _Doomed()

        touched = (*plan.amended, *plan.referring, *spared)
        handed = await self._handed_over(scope, plan, gone, touched)

        def change(memory: DerivedMemory) -> DerivedMemory | None:
            after: DerivedMemory | None = memory
            if not episodes.isdisjoint(memory.source_episode_ids):
                after = without_sources(memory, episodes, left)
            if after is None:
                # Its other source was forgotten at the same time, by another run.
                orphans.add(memory)
                return None
            after = without_references(after, gone, plan.heirs) or after
            after = handed.of(after)
            return after if after != memory else None

        await update_those(
            self.repository, scope, DerivedMemory, touched, change, new_write_id=self.new_write_id
        )
        await self._place_again(scope, touched, gone)
        await self._lead_to_summaries(scope, touched)
        stay = await self.repository.get(scope, touched, _SEMANTIC, fresh=True)
        await deny_again(self.repository, scope, stay.values(), self.new_write_id)
        await self._let_words_go(scope, plan)
        for kind, orphaned in orphans.by_type().items():
            await self.repository.delete(scope, kind, orphaned)
        for kind, planned in plan.gone.items():
            others = [one for one in planned if one in gone and one != plan.memory_id]
            if others:
                await self.repository.delete(scope, kind, others)
        for kind, ids in plan.gone.items():
            if plan.memory_id in ids:
                await self.repository.delete(scope, kind, (plan.memory_id,))
        await self.repository.flush()

    async def _handed_over(
        self, scope: Scope, plan: ForgetPlan, gone: Collection[str], ids: Collection[str]
    ) -> _HandedOver:
        """What goes from one memory that replaced it to the one that replaced that."""
        there = await by_id(self.repository, scope, DerivedMemory, ids, fresh=True)
        handed = _HandedOver({}, {})
        for old in there.values():
            by = old.superseded_by
            heir = there.get(plan.heirs.get(by or "") or "") if by in gone else None
            if heir is not None:
                handed.heirs[old.id] = heir
                handed.inherited.setdefault(heir.id, []).append(old.id)
        return handed

    async def _place_again(self, scope: Scope, ids: Collection[str], gone: Collection[str]) -> None:
        """Let each value hold until the next one that stays began to."""
        placed: set[str] = set()
        there = await by_id(self.repository, scope, SemanticMemory, ids, fresh=True)
        for memory in there.values():
            if memory.id in placed:
                continue
            timeline = await timeline_of(self.repository, scope, memory)
            placed |= timeline.keys()
            left = [one for key, one in timeline.items() if key not in gone]
            plan = places(scope, left, memory.derived_at)
            taken_over = {e for update in plan.amendments() for e in update.add_sources}
            episodes = await episodes_by_id(self.repository, scope, taken_over)
            changed = {*(u.memory_id for u in (*plan.amendments(), *plan.retirements()))}
            await update_those(
                self.repository,
                scope,
                SemanticMemory,
                changed,
                placing(plan, episodes),
                new_write_id=self.new_write_id,
            )

    async def _let_words_go(self, scope: Scope, plan: ForgetPlan) -> None:
        """Have what was said next be found by its own words only."""
        if plan.said_at is not None:
            await words_let_go(self.repository, scope, (plan.said_at,), encode_document)

    async def _lead_to_summaries(self, scope: Scope, memory_ids: Iterable[str]) -> None:
        """Have what it sums up lead to a summary again that what replaced it goes from."""
        there = await by_id(self.repository, scope, SemanticMemory, memory_ids, fresh=True)
        for summary in filter(is_summary, there.values()):
            await update_those(
                self.repository,
                scope,
                DerivedMemory,
                summary.related_ids,
                partial(linked_back, memory=summary),
                new_write_id=self.new_write_id,
            )

    async def _read_again(self, scope: Scope, episode_ids: Collection[str]) -> None:
        """Have turns read again whose conclusions go because of another turn's words."""

        def change(turn: Episode) -> Episode | None:
            if turn.consolidated_at is None:
                return None
            return turn.model_copy(update={"consolidated_at": None})

        await update_those(
            self.repository, scope, Episode, episode_ids, change, new_write_id=self.new_write_id
        )

    async def _spared(
        self, scope: Scope, plan: ForgetPlan
    ) -> tuple[frozenset[str], frozenset[str]]:
        """Conclusions that were to go with a turn, and rest on another one by now.

        And the other turns of those conclusions of consolidation that go all the same.
        """
        if not plan.episodes:
            return frozenset(), frozenset()
        found = await by_id(self.repository, scope, DerivedMemory, plan.ids, fresh=True)
        drawn = [m for m in found.values() if not is_recomposed(m)]
        episodes = frozenset(plan.episodes)
        sources = {e for m in drawn for e in m.source_episode_ids} | episodes
        there = await episodes_by_id(self.repository, scope, sources, fresh=True)
        forgotten = [there.pop(key) for key in episodes if key in there]
        shared = [
            m
            for m in drawn
            if not episodes.isdisjoint(m.source_episode_ids)
            and not there.keys().isdisjoint(m.source_episode_ids)
        ]
        spared = {
            m.id
            for m in shared
            if not plan.again
            and not is_made_from(m, plan.ids)
            and without_sources(m, episodes, there) is not None
            and not is_worded_by(m, forgotten, _among(there, m))
        }
        parted = (m for m in shared if m.id not in spared and isinstance(m, SemanticMemory))
        others = {e for m in parted for e in m.source_episode_ids if e in there}
        return frozenset(spared), frozenset(others)

    async def _drawn_from(self, scope: Scope, episode_id: str) -> list[DerivedMemory]:
        where = (Equals("source_episode_ids", episode_id),)
        return await all_of(self.repository, scope, DerivedMemory, where=where)

    async def _composed_of(self, scope: Scope, doomed: _Doomed, fresh: set[str]) -> None:
        """Summaries and habits of what goes, and of those, until there are no more."""
        while fresh:
            where = (AnyOf("related_ids", tuple(sorted(fresh))),)
            linked = [
                *await all_of(self.repository, scope, SemanticMemory, where=where),
                *await all_of(self.repository, scope, ProceduralMemory, where=where),
            ]
            made = [m for m in linked if is_made_from(m, fresh)]
            fresh = {m.id for m in made} - doomed.memories.keys()
            for memory in made:
                doomed.add(memory)

    async def _digests_of(self, scope: Scope, doomed: _Doomed, basis: frozenset[str]) -> None:
        """Every version of every digest that names what goes; they are composed again."""
        for memory in await all_of(self.repository, scope, SemanticMemory, where=(RECOMPOSED,)):
            if memory.id not in basis and names_any(memory, basis):
                doomed.add(memory)

    async def _goes_with(self, scope: Scope, memory: DerivedMemory, turn: Episode) -> bool:
        """Whether a memory cannot stay without this turn among its sources."""
        if is_recomposed(memory):
            return True
        left = await episodes_by_id(self.repository, scope, memory.source_episode_ids)
        left.pop(turn.id, None)
        without = without_sources(memory, {turn.id}, left)
        return without is None or is_worded_by(memory, [turn], left.values())

    async def _merged_into(self, scope: Scope, doomed: _Doomed) -> None:
        """What only says the same as a conclusion that goes, and what says the same as that."""
        looked: set[str] = set()
        while fresh := doomed.derived.keys() - looked:
            # Whatever a conclusion was merged into has its sources; nothing else leads there.
            sources = {e for key in fresh for e in doomed.derived[key].source_episode_ids}
            where = (
                AnyOf("source_episode_ids", tuple(sorted(sources))),
                Equals("status", MemoryStatus.SUPERSEDED.value),
            )
            looked |= fresh
            for memory in await all_of(self.repository, scope, SemanticMemory, where=where):
                if only_says_the_same(memory, doomed.derived):
                    doomed.add(memory)
                elif memory.superseded_by in doomed.memories:
                    doomed.pointing.add(memory.id)

    async def _sources(self, scope: Scope, ids: Iterable[str]) -> dict[str, Episode]:
        found = await by_id(self.repository, scope, DerivedMemory, ids)
        wanted = {source for memory in found.values() for source in memory.source_episode_ids}
        return await episodes_by_id(self.repository, scope, wanted)


async def let_go(
    repository: MemoryRepository,
    scope: Scope,
    memory_ids: Collection[str],
    gone: Set[str],
    new_write_id: NewWriteId,
) -> None:
    """Take turns that are gone from among the sources of conclusions that were just written.

    A conclusion without any other source goes.

    Args:
        repository: Where they are kept.
        scope: Whose.
        memory_ids: The conclusions.
        gone: The turns.
        new_write_id: Makes a fresh value for each write.
    """
    stored = await by_id(repository, scope, DerivedMemory, memory_ids, fresh=True)
    wanted = {e for memory in stored.values() for e in memory.source_episode_ids} - gone
    left = await episodes_by_id(repository, scope, wanted, fresh=True)
    orphans = _Doomed()

    def change(memory: DerivedMemory) -> DerivedMemory | None:
        if gone.isdisjoint(memory.source_episode_ids):
            return None
        after = without_sources(memory, gone, left)
        if after is None:
            orphans.add(memory)
        return after

    await update_those(repository, scope, DerivedMemory, stored, change, new_write_id=new_write_id)
    for kind, orphaned in orphans.by_type().items():
        await repository.delete(scope, kind, orphaned)


def _among(episodes: Mapping[str, Episode], memory: DerivedMemory) -> list[Episode]:
    return [episodes[key] for key in memory.source_episode_ids if key in episodes]


@dataclass(frozen=True, slots=True)
class _HandedOver:
    """What was replaced by something that goes, with what had replaced that.

    Attributes:
        heirs: By what was replaced.
        inherited: What an heir replaces now, by its id.
    """

    heirs: dict[str, DerivedMemory]
    inherited: dict[str, list[str]]

    def of(self, memory: D) -> D:
        """The memory at either end."""
        heir = self.heirs.get(memory.id)
        if heir is not None and memory.superseded_by == heir.id and memory.refuted_at is None:
            memory = replaced(memory, heir.id, max(memory.known_at, heir.known_at))
        return replacing(memory, self.inherited.get(memory.id, ()))


@dataclass(slots=True)
class _Doomed:
    """What goes, and what is to be composed again without it."""

    memories: dict[str, AnyMemory] = field(default_factory=dict)
    basis: Basis = field(default_factory=Basis)
    pointing: set[str] = field(default_factory=set)

    def add(self, memory: AnyMemory | DerivedMemory) -> None:
        """One more that goes."""
        self.memories[memory.id] = memory  # type: ignore[assignment]  # a DerivedMemory is one of its types
        if isinstance(memory, SemanticMemory):
            self.basis.add(memory)

    def plan(self, memory_id: str) -> ForgetPlan:
        """What it takes that these go."""
        derived = self.derived.values()
        return ForgetPlan(
            memory_id=memory_id,
            gone=self.by_type(),
            heirs=heirs_of(derived),
            referring=tuple(sorted((referred_to(derived) | self.pointing) - self.memories.keys())),
            composed=tuple(sorted(self.basis.composed - self.memories.keys())),
            boxed=tuple(sorted(self.basis.boxed - self.memories.keys())),
            ended=tuple(sorted(self.basis.ended)),
            disputes=tuple(sorted({one for m in derived for one in disputes_of(m)})),
        )

    @property
    def derived(self) -> dict[str, DerivedMemory]:
        """The conclusions among what goes."""
        return {key: m for key, m in self.memories.items() if isinstance(m, DerivedMemory)}

    @property
    def episodes(self) -> tuple[str, ...]:
        """The turns among what goes."""
        return tuple(key for key, m in self.memories.items() if isinstance(m, Episode))

    def by_type(self) -> dict[MemoryType, tuple[str, ...]]:
        """What goes, sorted by where it is kept."""
        found: dict[MemoryType, list[str]] = {}
        for key, memory in self.memories.items():
            found.setdefault(memory.type, []).append(key)
        return {kind: tuple(sorted(ids)) for kind, ids in sorted(found.items())}
