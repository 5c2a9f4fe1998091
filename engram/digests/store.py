"""Storing digests: write the new version, read it back, then retire the old."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

from engram.contracts.messages import Population
from engram.digests.versions import Composer, Draft, amended, newest, retired
from engram.domain.memories import (
    Fact,
    MemoryForm,
    MemoryStatus,
    MemoryType,
    ProceduralMemory,
    SemanticMemory,
)
from engram.domain.scope import Scope
from engram.domain.slots import IS_CALLED, USER, stored_as
from engram.errors import BasisForgotten, StorageUnavailable
from engram.lifecycle.due import of_population
from engram.ports import AnyOf, Embedder, Equals, Filter, MemoryRepository, NewMemory
from engram.storage.ledger import rests_on
from engram.storage.updates import NewWriteId, all_of, by_id, existing, update_those

_SEMANTIC = (MemoryType.SEMANTIC,)
_PROCEDURAL = (MemoryType.PROCEDURAL,)
_MOST_FOUND = 400
_KEYS_AT_ONCE = 200
# A version that was written once, replaced, and came back takes the next free generation.
_GENERATIONS_TRIED = 64


@dataclass(frozen=True, slots=True)
class Put:
    """What came of drafts.

    Attributes:
        written: New versions.
        retired: Versions that count no more.
        amended: Versions whose words stayed, and whose detail changed.
    """

    written: tuple[SemanticMemory, ...] = ()
    retired: tuple[str, ...] = ()
    amended: tuple[str, ...] = ()

    def plus(self, other: Put) -> Put:
        """Both together."""
        return Put(
            self.written + other.written,
            self.retired + other.retired,
            self.amended + other.amended,
        )


@dataclass(frozen=True, slots=True)
class DigestStore:
    """Reads and writes digests. Every method may run twice.

    Args:
        repository: Where memories are kept.
        embedder: Gives new versions their vectors.
        new_write_id: Makes a fresh value for each write.
    """

    repository: MemoryRepository
    embedder: Embedder
    new_write_id: NewWriteId

    async def current(
        self, scope: Scope, form: MemoryForm, keys: Iterable[str] | None = None
    ) -> list[SemanticMemory]:
        """The active versions that have one of these keys (or all of that form), bounded."""
        if keys is None:
            return await self.semantic(scope, _active(form), limit=_MOST_FOUND)
        wanted = list(dict.fromkeys(keys))
        found: dict[str, SemanticMemory] = {}
        for start in range(0, len(wanted), _KEYS_AT_ONCE):
            part = tuple(wanted[start : start + _KEYS_AT_ONCE])
            where = (*_active(form), AnyOf("detail.keys", part))
            found |= {m.id: m for m in await self.semantic(scope, where, limit=_MOST_FOUND)}
        return list(found.values())

    async def semantic(self, scope: Scope, where: Filter, *, limit: int) -> list[SemanticMemory]:
        """The latest known memories that match, at most ``limit``."""
        return await all_of(self.repository, scope, SemanticMemory, where=where, most=limit)

    async def by_id(self, scope: Scope, ids: Iterable[str]) -> dict[str, SemanticMemory]:
        """Those of the ids that exist."""
        return await by_id(self.repository, scope, SemanticMemory, ids)

    async def called(self, scope: Scope, *, limit: int) -> list[SemanticMemory | Fact]:
        """The latest known that say what the user is called, at most ``limit`` of each type."""
        where: Filter = (
            Equals("status", MemoryStatus.ACTIVE.value),
            Equals("slot.subject", USER),
            AnyOf("slot.predicate", stored_as(IS_CALLED)),
            of_population(Population.REAL),
        )
        facts = await all_of(self.repository, scope, Fact, where=where, most=limit)
        return [*await self.semantic(scope, where, limit=limit), *facts]

    async def habits(self, scope: Scope, *, limit: int) -> dict[str, ProceduralMemory]:
        """The latest known habits that hold, at most ``limit``; no test ones."""
        where = (Equals("status", MemoryStatus.ACTIVE.value), of_population(Population.REAL))
        found = await all_of(self.repository, scope, ProceduralMemory, where=where, most=limit)
        return {m.id: m for m in found}

    async def habits_by_id(self, scope: Scope, ids: Iterable[str]) -> dict[str, ProceduralMemory]:
        """Those of the ids that are habits, whether or not they hold."""
        return await by_id(self.repository, scope, ProceduralMemory, ids)

    async def put(
        self,
        composer: Composer,
        drafts: Sequence[Draft],
        current: Iterable[SemanticMemory],
        successors: Mapping[str, str] | None = None,
    ) -> Put:
        """Make the drafts count, and nothing else of what counted before.

        Nothing stays written that names what was forgotten meanwhile.

        Args:
            composer: Whose, when, and by which run.
            drafts: How the digests should be.
            current: The active versions that the drafts replace, all of them.
            successors: By the key of a digest that no draft has any more: the key of
                the draft that takes its place, if one does.

        Raises:
            BasisForgotten: something the drafts name was forgotten since they were composed.
        """
        scope = composer.scope
        made = {draft.key: composer.memory(draft, 0, ()) for draft in drafts}
        basis = {key: rests_on(memory) for key, memory in made.items()}
        there = await existing(self.repository, scope, frozenset().union(*basis.values()))
        # What all of it rests on went meanwhile. Guidance counts, and need not rest on anything.
        drafts = [
            draft
            for draft in drafts
            if draft.form is MemoryForm.GUIDELINE or not there.isdisjoint(basis[draft.key])
        ]
        replaced = _by_successor(drafts, current, successors or {})
        chosen, written = await self._write(composer, drafts, replaced, made)
        changed = await self._amend(scope, chosen, drafts)
        await self._check_basis(scope, there, [*(m.id for m in written), *changed])
        endings: dict[str, tuple[SemanticMemory | None, datetime]] = {}
        for key, versions in replaced.items():
            successor = chosen.get(key)
            for old in versions:
                if successor is None or old.id != successor.id:
                    endings[old.id] = (successor, _known(drafts, old))
        ended = await self._retire(scope, endings)
        return Put(tuple(written), ended, changed)

    async def retire(self, scope: Scope, memories: Iterable[SemanticMemory]) -> tuple[str, ...]:
        """Let versions count no more, with nothing in their place."""
        return await self._retire(scope, {m.id: (None, m.known_at) for m in memories})

    async def _write(
        self,
        composer: Composer,
        drafts: Sequence[Draft],
        replaced: Mapping[str, Sequence[SemanticMemory]],
        first: Mapping[str, SemanticMemory],
    ) -> tuple[dict[str, SemanticMemory], list[SemanticMemory]]:
        """Those that count, and those that are new; ``first``: as where nothing was before."""
        chosen: dict[str, SemanticMemory] = {}
        fresh: list[tuple[Draft, SemanticMemory]] = []
        for draft in drafts:
            before = replaced.get(draft.key, ())
            same = newest([m for m in before if m.detail and m.detail.keys[0] == draft.key])
            if same is not None and same.content == draft.content:
                chosen[draft.key] = same
                continue
            last = newest(before)
            memory = first[draft.key]
            if last is not None:
                memory = composer.memory(draft, last.generation + 1, before)
            fresh.append((draft, memory))
        written = await self._insert(composer, fresh, replaced)
        return chosen | {m.detail.keys[0]: m for m in written if m.detail}, written

    async def _insert(
        self,
        composer: Composer,
        fresh: Sequence[tuple[Draft, SemanticMemory]],
        replaced: Mapping[str, Sequence[SemanticMemory]],
    ) -> list[SemanticMemory]:
        waiting, done = list(fresh), list[SemanticMemory]()
        for _ in range(_GENERATIONS_TRIED):
            if not waiting:
                return done
            there = await self._inserted(composer, [memory for _, memory in waiting])
            again: list[tuple[Draft, SemanticMemory]] = []
            for draft, memory in waiting:
                stored = there[memory.id]
                if stored.status is MemoryStatus.ACTIVE:
                    done.append(stored)
                else:
                    # These words counted before, and were replaced.
                    before = replaced.get(draft.key, ())
                    again.append((draft, composer.memory(draft, memory.generation + 1, before)))
            waiting = again
        raise StorageUnavailable(
            "A digest found no free generation.", hint="The same call can succeed later."
        )

    async def _inserted(
        self, composer: Composer, memories: Sequence[SemanticMemory]
    ) -> dict[str, SemanticMemory]:
        scope = composer.scope
        ids = [memory.id for memory in memories]
        there = await self._fresh(scope, ids)
        missing = [memory for memory in memories if memory.id not in there]
        if missing:
            vectors = await self.embedder.embed_documents([m.indexed_text for m in missing])
            named = [m.model_copy(update={"write_id": self.new_write_id()}) for m in missing]
            pairs = zip(named, vectors, strict=True)
            forgotten = await self.repository.insert(
                scope, [NewMemory(m, v) for m, v in pairs], epoch=composer.epoch
            )
            if forgotten:
                raise _basis_forgotten(len(forgotten))
            there = await self._fresh(scope, ids)
        if len(there) < len(ids):
            raise StorageUnavailable(
                f"{len(ids) - len(there)} digests were not there when read back.",
                hint="Nothing was retired. Writing them again can succeed later.",
            )
        return there

    async def _check_basis(self, scope: Scope, before: Set[str], digests: Collection[str]) -> None:
        """Delete what was just written and names what has gone since."""
        if not digests:
            return
        gone = before - await existing(self.repository, scope, before)
        stored = await self._fresh(scope, digests) if gone else {}
        left = [key for key, memory in stored.items() if not gone.isdisjoint(rests_on(memory))]
        if left:
            await self.repository.delete(scope, MemoryType.SEMANTIC, left)
            raise _basis_forgotten(len(left))

    async def _fresh(self, scope: Scope, ids: Iterable[str]) -> dict[str, SemanticMemory]:
        return await by_id(self.repository, scope, SemanticMemory, ids, fresh=True)

    async def _amend(
        self, scope: Scope, chosen: Mapping[str, SemanticMemory], drafts: Sequence[Draft]
    ) -> tuple[str, ...]:
        wanted = {chosen[draft.key].id: draft for draft in drafts}
        differing = [m.id for m in chosen.values() if amended(m, wanted[m.id])]
        updated = await update_those(
            self.repository,
            scope,
            SemanticMemory,
            differing,
            lambda memory: amended(memory, wanted[memory.id]),
            new_write_id=self.new_write_id,
        )
        return tuple(sorted(updated.changed))

    async def _retire(
        self, scope: Scope, endings: Mapping[str, tuple[SemanticMemory | None, datetime]]
    ) -> tuple[str, ...]:
        updated = await update_those(
            self.repository,
            scope,
            SemanticMemory,
            endings,
            lambda memory: retired(memory, *endings[memory.id]),
            new_write_id=self.new_write_id,
        )
        return tuple(sorted(updated.changed))


def _basis_forgotten(digests: int) -> BasisForgotten:
    return BasisForgotten(
        f"{digests} digests rest on memories that were forgotten while they were composed.",
        hint="Composing again rests on what is left.",
    )


def _known(drafts: Sequence[Draft], old: SemanticMemory) -> datetime:
    """When it became known that an old version counts no more."""
    return max([old.known_at, *(draft.known_at for draft in drafts)])


def _active(form: MemoryForm) -> Filter:
    return (Equals("form", form.value), Equals("status", MemoryStatus.ACTIVE.value))


def _by_successor(
    drafts: Sequence[Draft], current: Iterable[SemanticMemory], successors: Mapping[str, str]
) -> dict[str, list[SemanticMemory]]:
    """The active versions by the key of the draft that replaces them, or by their own."""
    keys = {draft.key for draft in drafts}
    found: dict[str, list[SemanticMemory]] = {}
    for memory in sorted(current, key=lambda m: m.id):
        own = memory.detail.keys[0] if memory.detail else memory.id
        key = own if own in keys else successors.get(own, own)
        found.setdefault(key, []).append(memory)
    return found
