"""What is known and could matter to some statements: by content, by slot, by similarity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from engram.consolidation.implied import ended_late, ended_unnamed
from engram.consolidation.keep import artifact_ids
from engram.consolidation.summaries import MOST_SUMMARISED, group_of
from engram.domain.identity import content_hash, derived_id, with_test_namespace
from engram.domain.memories import (
    DIGEST_FORMS,
    Episode,
    MemoryForm,
    MemoryStatus,
    MemoryType,
    SemanticMemory,
    Slot,
)
from engram.domain.plan import Statement
from engram.domain.scope import Scope
from engram.domain.slots import (
    PROMISED,
    is_functional,
    may_replace,
    related_predicates,
    slot_of,
    stored_as,
)
from engram.ports import (
    After,
    AnyOf,
    Condition,
    Either,
    Embedder,
    Equals,
    Filter,
    MemoryRepository,
    Not,
    SearchRequest,
)
from engram.storage.updates import all_of, by_id

_SEMANTIC = (MemoryType.SEMANTIC,)
_GENERATIONS_AT_ONCE = 4
_PAGE = 500
# More entries than this under one subject and predicate are not looked through.
_MOST_ENTRIES = 4 * _PAGE
# Somebody who keeps their word has few.
_MOST_PROMISES = 50
# Enough to know the latest generation, also where several became known at one moment.
_LATEST_SUMMARIES = 32


class Near(NamedTuple):
    """What resembles given memories.

    Attributes:
        memories: Of the others, the best first.
        alike: Cosine similarity by the ids of two that were compared, the given ones among them.
    """

    memories: list[SemanticMemory]
    alike: dict[tuple[str, str], float]


@dataclass(frozen=True, slots=True)
class KnownMemories:
    """Finds candidates for reconciliation and linking, always a bounded number.

    Args:
        repository: Where memories are kept.
        embedder: Turns a statement into something to search with.
    """

    repository: MemoryRepository
    embedder: Embedder

    async def about(
        self,
        scope: Scope,
        statements: Sequence[Statement],
        *,
        sides: Set[bool] = frozenset({False}),
        summed_up: bool = True,
    ) -> list[SemanticMemory]:
        """Every memory that could tell the same as a statement, or be replaced by it.

        Args:
            scope: Whose memory it is.
            statements: What turns state.
            sides: Whether test turns say it (True), real ones (False), or both.
            summed_up: Whether with the summaries that would change, and what they name.
        """
        found = await self._generations(scope, statements, sides)
        here = Either(tuple(_side(is_test=side) for side in sorted(sides)))
        for (subject, predicates), slots in _by_relation(statements).items():
            about: Filter = (
                Equals("slot.subject", subject),
                AnyOf("slot.predicate", predicates),
                here,
            )
            if is_functional(slots[0]):
                found |= await self._some(scope, about)
                continue
            # Of a thousand things that somebody likes, only those that are spoken of.
            objects = tuple(dict.fromkeys(slot.object for slot in slots))
            found |= await self._some(scope, (*about, AnyOf("slot.object", objects)))
            if summed_up:
                found |= await self._summed_up(scope, about, len(slots))
        for subject in _changing(statements):
            # What it changes is told by what is known, a bounded number.
            of_them = (Equals("slot.subject", subject), here)
            found |= await self._some(scope, of_them, most=_PAGE)
        unnamed = sorted(ended_unnamed(statements))
        if unnamed:
            # With what ended: an earlier run may have taken up the very same statements.
            named = stored_as(*unnamed, *(f"no longer {one}" for one in unnamed))
            found |= await self._some(scope, (AnyOf("slot.predicate", named), here), most=_PAGE)
        found |= await self._originals(scope, found)
        return sorted(found.values(), key=lambda memory: memory.id)

    async def told_later(
        self, scope: Scope, statements: Sequence[Statement], told: Sequence[Episode]
    ) -> list[SemanticMemory]:
        """What was told of a later time, and may end by another name what these state.

        Mostly nothing was: it is asked for by time. Otherwise with all that it may mean.

        Args:
            scope: Whose memory it is.
            statements: What turns state.
            told: These turns.
        """
        late = ended_late(statements)
        if not late.predicates or not told:
            return []
        sides = {episode.is_test for episode in told}
        here = Either(tuple(_side(is_test=side) for side in sorted(sides)))
        later: Filter = (
            AnyOf("slot.subject", tuple(sorted(late.subjects))),
            AnyOf("slot.predicate", stored_as(*sorted(late.predicates))),
            After("known_at", min(episode.timestamp for episode in told)),
            here,
        )
        found = await self._some(scope, later, most=_PAGE)
        if found:
            named = stored_as(*late.ends, *(f"no longer {one}" for one in late.ends))
            found |= await self._some(scope, (AnyOf("slot.predicate", named), here), most=_PAGE)
        return sorted(found.values(), key=lambda memory: memory.id)

    async def summed_up_with(self, scope: Scope, changed: Set[str]) -> dict[str, SemanticMemory]:
        """What was changed, and of each kind of note among it the latest notes and summaries."""
        found = await by_id(self.repository, scope, SemanticMemory, changed)
        groups = dict.fromkeys((group_of(memory), memory.is_test) for memory in found.values())
        for group, is_test in groups:
            if group is not None:
                subject, predicate = group
                about: Filter = (
                    Equals("slot.subject", subject),
                    Equals("slot.predicate", predicate),
                    _side(is_test=is_test),
                )
                found |= await self._summed_up(scope, about)
        return found

    async def open_promises(self, scope: Scope, *, is_test: bool) -> list[SemanticMemory]:
        """The latest promises that were neither kept nor called off, a bounded number."""
        where = (
            Equals("slot.predicate", PROMISED),
            Equals("status", MemoryStatus.ACTIVE.value),
            _side(is_test=is_test),
        )
        found = await self._some(scope, where, most=_MOST_PROMISES)
        ordered = sorted(found.values(), key=lambda one: (one.known_at, one.id))
        return ordered[-_MOST_PROMISES:]

    async def artifacts(self, scope: Scope, episodes: Sequence[Episode]) -> list[SemanticMemory]:
        """What exists already of the artifacts in these turns."""
        ids = artifact_ids(scope, episodes)
        if not ids:
            return []
        found = await by_id(self.repository, scope, SemanticMemory, ids)
        return list(found.values())

    async def near(self, scope: Scope, memories: Sequence[SemanticMemory], *, limit: int) -> Near:
        """Active memories that resemble the given ones, best first, without them."""
        vectors = await self.embedder.embed_documents([m.indexed_text for m in memories])
        active: Filter = (
            Equals("status", MemoryStatus.ACTIVE.value),
            Not(AnyOf("form", tuple(form.value for form in DIGEST_FORMS))),
        )
        given = {memory.id for memory in memories}
        found: dict[str, SemanticMemory] = {}
        alike: dict[tuple[str, str], float] = {}
        for memory, vector in zip(memories, vectors, strict=True):
            request = SearchRequest(
                vectors=vector,
                types=_SEMANTIC,
                limit=limit + 1,
                where={MemoryType.SEMANTIC: (*active, _side(is_test=memory.is_test))},
            )
            candidates = await self.repository.search(scope, request)
            best = sorted(candidates, key=lambda c: (-(c.dense or 0.0), -(c.sparse or 0.0)))
            for one in candidates:
                if one.dense is not None and one.memory.id != memory.id:
                    first, second = sorted((memory.id, one.memory.id))
                    alike[first, second] = one.dense
            others = (c.memory for c in best if c.memory.id not in given)
            known = [m for m in others if isinstance(m, SemanticMemory)]
            stated = [m for m in known if m.form is MemoryForm.STATEMENT]
            found |= {m.id: m for m in stated[:limit]}
        return Near(list(found.values()), alike)

    async def _originals(
        self, scope: Scope, found: Mapping[str, SemanticMemory]
    ) -> dict[str, SemanticMemory]:
        """What the duplicates among these are duplicates of."""
        more: dict[str, SemanticMemory] = {}
        looked_at: Mapping[str, SemanticMemory] = found
        while True:
            ids = {m.duplicate_of for m in looked_at.values() if m.duplicate_of}
            unread = ids - found.keys() - more.keys()
            if not unread:
                return more
            looked_at = await by_id(self.repository, scope, SemanticMemory, unread)
            if not looked_at:
                return more
            more |= looked_at

    async def _generations(
        self, scope: Scope, statements: Sequence[Statement], sides: Set[bool]
    ) -> dict[str, SemanticMemory]:
        found: dict[str, SemanticMemory] = {}
        open_identities = {
            with_test_namespace(content_hash(s.content), is_test=side)
            for s in statements
            for side in sides
        }
        first = 0
        while open_identities:
            ids = {
                derived_id(scope, MemoryType.SEMANTIC, identity, generation): identity
                for identity in open_identities
                for generation in range(first, first + _GENERATIONS_AT_ONCE)
            }
            here = await by_id(self.repository, scope, SemanticMemory, ids)
            found |= here
            # A forgotten generation leaves a hole; past a whole stretch of holes there is nothing.
            open_identities = {ids[memory_id] for memory_id in here}
            first += _GENERATIONS_AT_ONCE
        return found

    async def _summed_up(
        self, scope: Scope, about: Filter, changing: int = 0
    ) -> dict[str, SemanticMemory]:
        """The latest notes of a kind, as many as a summary can name, and its summaries."""
        active = Equals("status", MemoryStatus.ACTIVE.value)
        stated = Equals("form", MemoryForm.STATEMENT.value)
        members = await self._some(scope, (*about, active, stated), most=MOST_SUMMARISED + changing)
        summary = Equals("form", MemoryForm.SUMMARY.value)
        return members | await self._some(scope, (*about, summary), most=_LATEST_SUMMARIES)

    async def _some(
        self, scope: Scope, where: Filter, *, most: int = _MOST_ENTRIES
    ) -> dict[str, SemanticMemory]:
        """The latest, at most so many."""
        found = await all_of(self.repository, scope, SemanticMemory, where=where, most=most)
        return {memory.id: memory for memory in found}


def _by_relation(
    statements: Sequence[Statement],
) -> dict[tuple[str, tuple[str, ...]], list[Slot]]:
    """The slots that are spoken of, by subject and the predicates that can share a timeline."""
    found: dict[tuple[str, tuple[str, ...]], list[Slot]] = {}
    for stated in statements:
        slot = slot_of(stated.subject, stated.predicate, stated.object, holds=stated.holds)
        if slot is not None:
            found.setdefault((slot.subject, related_predicates(slot)), []).append(slot)
    return found


def _changing(statements: Sequence[Statement]) -> list[str]:
    """Of whom it is said that something changed, which need not be named."""
    said = (
        slot_of(one.subject, one.predicate, one.object)
        for one in statements
        if one.begins and one.holds
    )
    return sorted({slot.subject for slot in said if slot is not None and may_replace(slot)})


def _side(*, is_test: bool) -> Condition:
    test = Equals("is_test", value=True)
    return test if is_test else Not(test)
