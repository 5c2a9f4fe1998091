"""Storing imported turns batch by batch, and restoring memories of an export."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from engram.consolidation.findings import FindingsStore
from engram.consolidation.turns import let_lost_words_go, same_turn
from engram.contracts.importing import ExportedMemory, ImportedTurn, ImportTally, StoreBatchInput
from engram.domain.confidence import SEED_IMPORTED
from engram.domain.identity import derived_id, episode_id
from engram.domain.memories import (
    DEFAULT_IMPORTANCE,
    AnyMemory,
    Episode,
    MemoryType,
    Provenance,
    Unread,
    utc_offset,
)
from engram.domain.rules import DigestPolicy
from engram.domain.scope import Scope
from engram.domain.turns import is_just_before
from engram.errors import InvalidInput, StorageUnavailable
from engram.giving_way import yielding_to_event_loop
from engram.language.found import Extraction
from engram.language.guarding import UNGUARDED, PersonalDataGuard
from engram.lifecycle.decisions import disputes_of
from engram.ports import Embedder, HasId, MemoryRepository, NewMemory, SparseVector, TextVectors
from engram.storage.updates import episodes_by_id
from engram.transfer.batches import MEMORIES, TURNS, unpack
from engram.transfer.gate import (
    Refusals,
    check_memory,
    check_turns,
    place_of,
    readable_memory,
)
from engram.transfer.memories import life_before
from engram.transfer.placing import Restored, RestoredPlaces
from engram.transfer.preparing import PreparedTurns, Preparer, Work, with_vectors

# --- storing a batch of imported turns: one read, one write and one look back, not one a turn
#
# As in :mod:`engram.consolidation.turns`, everything here may run twice, in parts and
# beside itself: ids are derived, inserts leave alone what is there, sources are a set.

_TURNS_AT_ONCE: Final = 64
"""Turns that are prepared and stored together."""
_AHEAD: Final = 5


@dataclass(slots=True)
class _TurnEntry:
    """One turn on its way in."""

    sent: ImportedTurn
    episode: Episode
    before: str | None
    known: bool = False


class TurnImporter:
    """Stores batches of imported turns with what patterns find in them.

    Args:
        repository: Where memories are kept.
        embedder: Gives vectors to what the preparer gave none.
        preparer: Works turns out, perhaps in another process.
        new_write_id: Gives a fresh id for each write.
        max_turn_bytes: Longest content of a turn.
        guard: Marks personal data, and refuses what should be masked.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        embedder: Embedder,
        preparer: Preparer,
        new_write_id: Callable[[], str],
        max_turn_bytes: int,
        guard: PersonalDataGuard = UNGUARDED,
    ) -> None:
        self._repository = repository
        self._embedder = embedder
        self._preparer = preparer
        self._new_write_id = new_write_id
        self._max_turn_bytes = max_turn_bytes
        self._guard = guard
        # Batches of one import are stored in the order in which they came.
        self._writing = asyncio.Lock()

    async def store(self, request: StoreBatchInput) -> ImportTally:
        """Store what is not there; count it.

        Raises:
            InvalidInput: the batch cannot be read, or a turn of it cannot be kept.
            StorageUnavailable: the store cannot be reached, or does not show what it took.
        """
        # In a thread, so that it can be interrupted: others wait for the event loop.
        entries = await self._entries(request, await asyncio.to_thread(self._checked, request))
        entries, conflicts = await self._beside_stored(request, entries)
        parts = [entries[at : at + _TURNS_AT_ONCE] for at in range(0, len(entries), _TURNS_AT_ONCE)]
        prepared: list[PreparedTurns] = []
        forgotten: frozenset[str] = frozenset()
        # While one part is stored here, the next ones are prepared elsewhere.
        waiting = [asyncio.ensure_future(self._prepare(part)) for part in parts[:_AHEAD]]
        try:
            for number, part in enumerate(parts):
                prepared.append(await waiting.pop(0))
                if number + _AHEAD < len(parts):
                    coming = self._prepare(parts[number + _AHEAD])
                    waiting.append(asyncio.ensure_future(coming))
                async with self._writing:
                    forgotten |= await self._insert(request, part, prepared[-1])
        finally:
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        await self._let_lost_words_go(request, entries)
        facts, negations = await self._store_findings(request, entries, prepared, forgotten)
        known = sum(one.known for one in entries)
        left_out = sum(one.episode.id in forgotten for one in entries)
        return ImportTally(
            stored=len(entries) - known - left_out,
            forgotten=left_out,
            known=known,
            facts=facts,
            negations=negations,
            conflicts=len(conflicts),
            conflict_places=tuple(one.place for one in conflicts),
        )

    def _checked(self, request: StoreBatchInput) -> tuple[ImportedTurn, ...]:
        """The turns of the batch, each of which can be kept."""
        turns = unpack(request.batch, TURNS)
        check_turns(
            request.scope,
            request.batch,
            turns,
            now=request.now,
            max_bytes=self._max_turn_bytes,
            guard=self._guard,
        )
        return turns

    async def _store_findings(
        self,
        request: StoreBatchInput,
        entries: Sequence[_TurnEntry],
        prepared: Sequence[PreparedTurns],
        forgotten: frozenset[str],
    ) -> tuple[int, int]:
        """Store what the whole batch states, each thing once; how many facts and negations."""
        vectors = {text: one for part in prepared for text, one in part.found.items()}
        findings = FindingsStore(
            self._repository,
            _KnownVectors(self._embedder, vectors),
            self._new_write_id,
            seed=SEED_IMPORTED,
        )
        extractions = (one for part in prepared for one in part.extractions)
        found = zip((one.episode for one in entries), extractions, strict=True)
        async with self._writing:
            ids = await findings.store(
                request,
                [
                    (e, one)
                    for e, one in found
                    if (one.facts or one.negations) and e.id not in forgotten
                ],
            )
        return (
            len({key for facts, _ in ids for key in facts}),
            len({key for _, negations in ids for key in negations}),
        )

    async def _entries(
        self, request: StoreBatchInput, turns: Sequence[ImportedTurn]
    ) -> list[_TurnEntry]:
        entries: list[_TurnEntry] = []
        provenance = Provenance(workflow_id=request.workflow_id, run_id=request.run_id)
        last: ImportedTurn | None = None
        async for turn in yielding_to_event_loop(turns):
            follows = last is not None and last.session_id == turn.session_id
            before = turn.before
            if last is not None and follows:
                just = is_just_before(last.timestamp, turn.timestamp)
                before = last.content if just else None
            entries.append(_TurnEntry(turn, self._episode(request, turn, provenance), before))
            last = turn
        return entries

    def _episode(
        self, request: StoreBatchInput, turn: ImportedTurn, provenance: Provenance
    ) -> Episode:
        return Episode(
            id=episode_id(request.scope, turn.session_id, turn.message_id),
            namespace=request.scope.namespace,
            user_id=request.scope.user_id,
            content=turn.content,
            # As of its own time, so that questions about then are answered rightly.
            known_at=turn.timestamp,
            created_at=request.now,
            session_id=turn.session_id,
            importance=DEFAULT_IMPORTANCE if turn.importance is None else turn.importance,
            tags=turn.tags,
            metadata=turn.metadata,
            summary=turn.summary,
            expires_at=turn.expires_at,
            write_id=self._new_write_id(),
            provenance=provenance,
            role=turn.role,
            speaker=turn.speaker,
            timestamp=turn.timestamp,
            utc_offset=utc_offset(turn.timestamp),
            message_id=turn.message_id,
            sequence=turn.sequence,
            personal_data=self._guard.marks(request.scope.namespace, turn),
            # What comes with its past has lived: it does not begin among what is a second old.
            **life_before(turn.timestamp, request.now),
        )

    async def _beside_stored(
        self, request: StoreBatchInput, entries: Sequence[_TurnEntry]
    ) -> tuple[list[_TurnEntry], list[ImportedTurn]]:
        """The entries that can be kept, those that are there as stored; and the other ones."""
        ids = (one.episode.id for one in entries)
        firsts = await episodes_by_id(self._repository, request.scope, ids, fresh=True)
        kept: list[_TurnEntry] = []
        conflicts: list[ImportedTurn] = []
        for one in entries:
            first = firsts.setdefault(one.episode.id, one.episode)
            if not same_turn(first, one.episode):
                conflicts.append(one.sent)
                continue
            # Derived from what is stored, so that importing again derives the same.
            kept.append(_TurnEntry(one.sent, first, one.before, known=first is not one.episode))
        return kept, conflicts

    async def _prepare(self, entries: Sequence[_TurnEntry]) -> PreparedTurns:
        work = [
            Work(
                text=None if one.known else one.episode.indexed_text,
                before=one.before,
                content=one.episode.content,
                role=one.episode.role,
                speaker=one.episode.speaker,
                timestamp=one.episode.said_at,
            )
            for one in entries
        ]
        prepared = await self._preparer.prepare(work)
        if prepared.vectors:
            return prepared
        return await with_vectors(self._embedder, work, prepared.extractions)

    async def _insert(
        self, request: StoreBatchInput, entries: Sequence[_TurnEntry], prepared: PreparedTurns
    ) -> frozenset[str]:
        """Store those that are not there; the ids of those that were forgotten."""
        new = [
            NewMemory(_marked(one.episode, found), vectors)
            for one, vectors, found in zip(
                entries, prepared.vectors, prepared.extractions, strict=True
            )
            if vectors is not None and not one.known
        ]
        if not new:
            return frozenset()
        forgotten = await self._repository.insert(request.scope, new, epoch=request.epoch)
        ids = tuple(one.memory.id for one in new if one.memory.id not in forgotten)
        shown = await self._repository.count(request.scope, MemoryType.EPISODIC, (HasId(ids),))
        if shown != len(ids):
            raise StorageUnavailable(
                "The store took imported turns and does not show all of them yet.",
                hint="Nothing was acknowledged; it is tried again.",
            )
        return forgotten

    async def _let_lost_words_go(
        self, request: StoreBatchInput, entries: Sequence[_TurnEntry]
    ) -> None:
        # Those that were stored by an attempt before this one, too: it may have died before this.
        of_this_run = (
            (one.episode.provenance.run_id, one.episode.created_at) == (request.run_id, request.now)
            for one in entries
        )
        told = [
            (one.episode, one.before if ours else None)
            for one, ours in zip(entries, of_this_run, strict=True)
        ]
        await let_lost_words_go(self._repository, request.scope, told)


def _marked(episode: Episode, found: Extraction) -> Episode:
    if found.unread is None:
        return episode
    return episode.model_copy(update={"unread": Unread(rules=found.unread)})


class _KnownVectors:
    """An embedder that was asked already.

    Args:
        embedder: Asked for what is missing.
        vectors: By text.
    """

    def __init__(self, embedder: Embedder, vectors: Mapping[str, TextVectors]) -> None:
        self._embedder = embedder
        self._vectors = vectors

    @property
    def identity(self) -> str:
        return self._embedder.identity

    async def dimensions(self) -> int:
        return await self._embedder.dimensions()

    async def embed_documents(
        self, texts: Sequence[str], before: Sequence[str | None] | None = None
    ) -> list[TextVectors]:
        if before is None and all(text in self._vectors for text in texts):
            return [self._vectors[text] for text in texts]
        return await self._embedder.embed_documents(texts, before)

    async def embed_query(self, text: str) -> TextVectors:
        return await self._embedder.embed_query(text)

    def encode_terms(self, text: str) -> SparseVector:
        return self._embedder.encode_terms(text)


# --- putting memories of an export back as they were, each in its place beside what is there

_EMBEDDED_AT_ONCE: Final = 64


@dataclass(frozen=True, slots=True)
class _MemoryEntry:
    memory: AnyMemory
    before: str | None
    place: str


InDispute: TypeAlias = Callable[[Scope, Sequence[tuple[str, ...]]], Awaitable[None]]
"""Is told whose memories contradict each other, and which."""


class MemoryRestorer:
    """Stores exported memories that are not there.

    Args:
        repository: Where memories are kept.
        embedder: Gives them their vectors anew.
        new_write_id: Gives a fresh id for each write.
        max_turn_bytes: Longest content of a turn.
        guard: Marks personal data, and refuses what should be masked.
        in_dispute: Is told which of them contradict each other; None: nobody is.
        digests: The bounds of what is composed anew where what is there tells of the same;
            None: nothing is.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        embedder: Embedder,
        new_write_id: Callable[[], str],
        max_turn_bytes: int,
        guard: PersonalDataGuard = UNGUARDED,
        in_dispute: InDispute | None = None,
        digests: DigestPolicy | None = None,
    ) -> None:
        self._repository = repository
        self._embedder = embedder
        self._new_write_id = new_write_id
        self._max_turn_bytes = max_turn_bytes
        self._guard = guard
        self._in_dispute = in_dispute
        self._places = RestoredPlaces(repository, embedder, new_write_id, digests)

    async def store(self, request: StoreBatchInput) -> ImportTally:
        """Store what is not there, and give it its place beside what is; count it.

        Raises:
            InvalidInput: the batch cannot be read, or a memory of it is not this user's
                or cannot be kept.
        """
        entries = self._entries(request)
        there = await self._repository.get(
            request.scope, [one.memory.id for one in entries], fresh=True
        )
        new, other = _beside_stored(entries, there)
        left_out = 0
        for start in range(0, len(new), _EMBEDDED_AT_ONCE):
            left_out += await self._insert(request, new[start : start + _EMBEDDED_AT_ONCE])
        # Those that were there as well: whoever stored them may have been stopped after that.
        turns = [(one.memory, one.before) for one in entries if isinstance(one.memory, Episode)]
        await let_lost_words_go(self._repository, request.scope, turns)
        restored = Restored([one.memory for one in entries], there)
        pairs = await self._places.give(request, restored)
        pairs |= {pair for one in entries for pair in disputes_of(one.memory) if len(pair) > 1}
        if pairs and self._in_dispute is not None:
            await self._in_dispute(request.scope, sorted(pairs))
        return ImportTally(
            stored=len(new) - left_out,
            forgotten=left_out,
            known=len(entries) - len(new) - len(other),
            conflicts=len(other),
            conflict_places=tuple(other),
        )

    def _entries(self, request: StoreBatchInput) -> list[_MemoryEntry]:
        scope, batch = Scope.of(request.scope.namespace, request.scope.user_id), request.batch
        sent = unpack(batch, MEMORIES)
        refused, read = Refusals(), []
        for index, entry in enumerate(sent):
            place = place_of(batch, index, entry.place)
            try:
                one = _read(scope, entry, place)
                check_memory(entry, one.memory, now=request.now, max_bytes=self._max_turn_bytes)
                self._guard.check_fields(scope.namespace, entry.memory, one.before)
            except InvalidInput as error:
                refused.add(place, error)
            else:
                read.append(self._marked(one))
        refused.check(len(sent), "memories")
        return read

    def _marked(self, entry: _MemoryEntry) -> _MemoryEntry:
        """The entry with what this namespace marks, whatever the one it comes from did."""
        if not isinstance(entry.memory, Episode):
            return entry
        kinds = self._guard.marks(entry.memory.namespace, entry.memory)
        return replace(entry, memory=entry.memory.model_copy(update={"personal_data": kinds}))

    async def _insert(self, request: StoreBatchInput, entries: Sequence[_MemoryEntry]) -> int:
        """Store them; how many were forgotten, or rest on what is."""
        vectors = await self._embedder.embed_documents(
            [one.memory.indexed_text for one in entries], [one.before for one in entries]
        )
        forgotten = await self._repository.insert(
            request.scope,
            [
                NewMemory(one.memory.model_copy(update={"write_id": self._new_write_id()}), vector)
                for one, vector in zip(entries, vectors, strict=True)
            ],
            epoch=request.epoch,
        )
        return len(forgotten)


def _beside_stored(
    entries: Sequence[_MemoryEntry], there: Mapping[str, AnyMemory]
) -> tuple[list[_MemoryEntry], list[str]]:
    """What is not there, each id once; and the places of what has the id of something else.

    The first to come with an id has it, be it stored or in the same batch.
    """
    firsts = dict(there)
    new: list[_MemoryEntry] = []
    other: list[str] = []
    for one in entries:
        first = firsts.setdefault(one.memory.id, one.memory)
        if first is one.memory:
            new.append(one)
        elif _differs(first, one.memory):
            other.append(one.place)
    return new, other


def _differs(there: AnyMemory, memory: AnyMemory) -> bool:
    """Whether the id is taken by something else: a turn of other words, a test or none."""
    return (
        isinstance(there, Episode) and isinstance(memory, Episode) and not same_turn(there, memory)
    )


def _read(scope: Scope, entry: ExportedMemory, place: str) -> _MemoryEntry:
    memory = readable_memory(entry.memory)
    if memory.scope != scope or memory.id != id_of(scope, memory):
        raise InvalidInput(
            "It belongs to another user, or its id is not derived from what it is.",
        )
    return _MemoryEntry(memory, entry.before, place)


def id_of(scope: Scope, memory: AnyMemory) -> str:
    """The id that a memory has by what it is."""
    if isinstance(memory, Episode):
        return episode_id(scope, memory.session_id or "", memory.message_id)
    return derived_id(scope, memory.type, memory.identity, memory.generation)
