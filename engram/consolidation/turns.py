"""Storing turns: episodes first and verbatim, then what the language rules find in them."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TypeAlias

import structlog

from engram.aside import ProcessAside
from engram.consolidation.findings import FindingsStore
from engram.consolidation.reading import TurnReader
from engram.contracts.session import (
    CallOutcome,
    EncodeCall,
    StoredTurn,
    StoreTurnsInput,
)
from engram.domain.buffer import Signal
from engram.domain.identity import episode_id
from engram.domain.memories import (
    DEFAULT_IMPORTANCE,
    Episode,
    MemoryType,
    Provenance,
    Unread,
    utc_offset,
)
from engram.domain.scope import Scope, check_identifier
from engram.domain.turns import (
    CLOCK_SKEW_ALLOWED,
    SaidAt,
    Turn,
    check_sequence,
    check_turn,
    is_just_before,
)
from engram.embedding.bm25 import encode_document
from engram.errors import (
    ConflictingMessage,
    EngramError,
    InvalidTurn,
    ModelRejected,
    SchemaMismatch,
    StorageUnavailable,
)
from engram.language.extractor import may_take_back
from engram.language.found import Extraction
from engram.language.guarding import UNGUARDED, PersonalDataGuard
from engram.ports import Between, Embedder, Equals, MemoryRepository, NewMemory, TurnExtractor
from engram.storage.rewording import words_let_go
from engram.storage.updates import episodes_by_id, existing, update_those

_log = structlog.get_logger(__name__)

# --- what was said just before a turn: a turn is found by those words too, not only by its own

# Numbers are given before storing, and refused turns leave holes.
_FURTHEST_BACK = 4


async def turns_before(
    repository: MemoryRepository,
    scope: Scope,
    episodes: Sequence[Episode],
    together: Sequence[Episode],
    *,
    after: str | None = None,
) -> list[Episode | None]:
    """The turn before each of ``episodes``, None where nothing was said just before.

    That is where a session begins, and where more than an hour lies in between.

    Args:
        repository: Where earlier turns of the session are.
        scope: Whose.
        episodes: Turns of one session that are about to be stored, in order.
        together: All turns of the same request, also those stored already.
        after: The id of the turn before them, where it is known.
    """
    if not episodes:
        return []
    known = {one.sequence: one for one in together}
    first = min(known)
    # By its id it is found in a fraction of the time that looking for it takes.
    named = await episodes_by_id(repository, scope, [after]) if after else {}
    earlier = list(named.values()) or await last_before(
        repository, scope, episodes[0].session_id, first
    )
    before = (
        next(
            (known[n] for n in range(one.sequence - 1, first - 1, -1) if n in known),
            earlier[-1] if earlier else None,
        )
        for one in episodes
    )
    return [
        turn if turn is not None and is_just_before(turn.timestamp, one.timestamp) else None
        for one, turn in zip(episodes, before, strict=True)
    ]


async def last_before(
    repository: MemoryRepository, scope: Scope, session_id: str | None, sequence: int
) -> list[Episode]:
    """The last turns of a session before that number, in the order in which they were said."""
    if sequence == 0 or session_id is None:
        return []
    page = await repository.scroll(
        scope,
        MemoryType.EPISODIC,
        where=(
            Equals("session_id", session_id),
            Between("sequence", at_least=sequence - _FURTHEST_BACK, at_most=sequence - 1),
        ),
        descending=True,
        limit=_FURTHEST_BACK,
    )
    # A session that was ended and taken up again counts from 0 once more: the latest counts.
    found = [one for one in page.memories if isinstance(one, Episode)]
    return sorted(found, key=lambda one: (one.created_at, one.sequence))


async def let_lost_words_go(
    repository: MemoryRepository, scope: Scope, told: Sequence[tuple[Episode, str | None]]
) -> None:
    """Let no turn be found by the words of a turn before it that is not there.

    Called once they are stored: who hands turns over may know what was said before each of
    them, and not that it was forgotten.

    Args:
        repository: Where they are stored.
        scope: Whose.
        told: Turns that were handed over together, each with the words before it.
    """
    beside: dict[tuple[str | None, str], str] = {}
    asked: dict[str, list[Episode]] = {}
    lost: list[Episode] = []
    for turn, words in told:
        if words is not None and (near := beside.get((turn.session_id, words))):
            asked.setdefault(near, []).append(turn)
        elif words is not None:
            earlier = await last_before(repository, scope, turn.session_id, turn.sequence)
            lost += () if any(one.content == words for one in earlier) else (turn,)
        beside[turn.session_id, turn.content] = turn.id
    left = await existing(repository, scope, asked, (MemoryType.EPISODIC,))
    lost += (turn for near, turns in asked.items() if near not in left for turn in turns)
    places = [SaidAt.of(turn.model_copy(update={"sequence": turn.sequence - 1})) for turn in lost]
    await words_let_go(repository, scope, places, encode_document)


# --- storing turns: episodes first and verbatim, then what the patterns find in them
#
# Everything here may run twice, in parts, and beside itself: ids are derived,
# inserts leave alone what is there, sources are a set.

MOST_RECEIPT_IDS = 50
"""Ids of facts and negations that the receipt of a turn names: all receipts of the largest update
fit into what Temporal carries (2 MB), whatever the turns hold."""

_Proposed: TypeAlias = tuple[int, Episode]
"""Which call hands a turn over, and the episode that it would be."""


class TurnStore:
    """Keeps turns as episodes, with the facts and negations they state.

    Args:
        repository: Where memories are kept.
        embedder: Gives them their vectors.
        extractor: Finds pattern facts, negations and the signal of a turn.
        new_write_id: Gives a fresh id for each write.
        max_turn_bytes: Longest content of a turn.
        aside: Where long turns are read; None: here as well.
        guard: Marks personal data, and refuses what should be masked.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        embedder: Embedder,
        extractor: TurnExtractor,
        new_write_id: Callable[[], str],
        max_turn_bytes: int,
        aside: ProcessAside | None = None,
        guard: PersonalDataGuard = UNGUARDED,
    ) -> None:
        self._repository = repository
        self._embedder = embedder
        self._reader = TurnReader(extractor, aside)
        self._new_write_id = new_write_id
        self._max_turn_bytes = max_turn_bytes
        self._guard = guard
        self._findings = FindingsStore(repository, embedder, new_write_id)

    async def store(self, request: StoreTurnsInput) -> tuple[CallOutcome, ...]:
        """Store each call whole or, where it cannot be kept or conflicts, not at all.

        Raises:
            InvalidScope: there can be no such user or session.
        """
        refused: dict[int, EngramError] = {
            **self._of_another_store(request),
            **self._unkeepable(request),
        }
        proposed = self._propose(request, refused)
        stored, errors = await self._look_up(request, proposed)
        errors |= refused
        accepted = [(call, episode) for call, episode in proposed if call not in errors]
        said = await self._said_before(request, accepted, stored)
        forgotten, late = await self._insert_missing(request, accepted, stored, said)
        errors |= late
        accepted = [(call, episode) for call, episode in accepted if call not in errors]
        before = {one.id: one for one in said.values() if one is not None}
        stored, late = await self._look_up(request, accepted, before)
        # A turn may be forgotten while another is made to be found by its words.
        lost = [SaidAt.of(one) for key, one in before.items() if key not in stored]
        await words_let_go(self._repository, request.scope, lost, encode_document)
        errors |= late
        accepted = [(call, episode) for call, episode in accepted if call not in errors]
        said = {key: one if one and one.id in stored else None for key, one in said.items()}
        receipts = await self._derive(request, accepted, stored, forgotten, said)
        return tuple(
            CallOutcome(error=errors[index].as_dict())
            if index in errors
            else CallOutcome(turns=tuple(one for call, one in receipts if call == index))
            for index in range(len(request.calls))
        )

    def _of_another_store(self, request: StoreTurnsInput) -> dict[int, EngramError]:
        """The calls of clients that would look for their turns somewhere else."""
        here = self._embedder.identity
        return {
            index: SchemaMismatch(
                f"The workers' store has embedder {here!r}, the client's {call.embedder!r}.",
                hint="Both need the same ENGRAM_EMBEDDER, ENGRAM_QDRANT_URL and "
                "ENGRAM_COLLECTION_PREFIX.",
            )
            for index, call in enumerate(request.calls)
            if call.embedder not in (None, here)
        }

    def _unkeepable(self, request: StoreTurnsInput) -> dict[int, EngramError]:
        """The calls with a turn that cannot be kept: not each came through a client."""
        Scope.of(request.scope.namespace, request.scope.user_id)
        check_identifier(request.session_id, "session id")
        check_sequence(request.first_sequence)
        refused: dict[int, EngramError] = {}
        # What waited out an outage was handed over in time, and is not lost for it.
        late = request.now - CLOCK_SKEW_ALLOWED
        for index, call in enumerate(request.calls):
            try:
                for turn in call.turns:
                    check_turn(
                        turn, now=request.now, max_bytes=self._max_turn_bytes, ends_after=late
                    )
                    self._guard.check(request.scope.namespace, turn)
            except InvalidTurn as error:
                refused[index] = error
        return refused

    def _propose(self, request: StoreTurnsInput, refused: Container[int]) -> list[_Proposed]:
        numbered = [(i, call, turn) for i, call in enumerate(request.calls) for turn in call.turns]
        return [
            (index, self._episode(request, call, turn, request.first_sequence + n))
            for n, (index, call, turn) in enumerate(numbered)
            if index not in refused
        ]

    def _episode(
        self, request: StoreTurnsInput, call: EncodeCall, turn: Turn, sequence: int
    ) -> Episode:
        assert turn.message_id is not None  # noqa: S101 - for the type checker; a call has looked
        assert turn.timestamp is not None  # noqa: S101 - for the type checker; a call has looked
        return Episode(
            id=episode_id(request.scope, request.session_id, turn.message_id),
            namespace=request.scope.namespace,
            user_id=request.scope.user_id,
            content=turn.content,
            known_at=turn.timestamp,
            created_at=request.now,
            session_id=request.session_id,
            importance=DEFAULT_IMPORTANCE if turn.importance is None else turn.importance,
            tags=turn.tags,
            metadata=turn.metadata,
            summary=turn.summary,
            expires_at=turn.expires_at,
            is_test=call.is_test,
            write_id=self._new_write_id(),
            provenance=Provenance(workflow_id=request.workflow_id, run_id=request.run_id),
            role=turn.role,
            speaker=turn.speaker,
            timestamp=turn.timestamp,
            utc_offset=utc_offset(turn.timestamp),
            message_id=turn.message_id,
            sequence=sequence,
            personal_data=self._guard.marks(request.scope.namespace, turn),
        )

    async def _said_before(
        self,
        request: StoreTurnsInput,
        accepted: Sequence[_Proposed],
        stored: Mapping[str, Episode],
    ) -> dict[str, Episode | None]:
        """The turn before each that this request stores, by the words of which it is found too."""
        missing = {one.id: one for _, one in accepted if one.id not in stored}
        # An attempt before this one may have died before it looked whether they are still said.
        again = {
            one.id: stored[one.id]
            for _, one in accepted
            if one.id in stored and _is_of(stored[one.id], request)
        }
        episodes = sorted((missing | again).values(), key=lambda one: one.sequence)
        found = await turns_before(
            self._repository,
            request.scope,
            episodes,
            [episode for _, episode in accepted],
            after=request.after,
        )
        said = {one.id: before for one, before in zip(episodes, found, strict=True)}
        if again:
            words = {
                key: encode_document(one.indexed_text, _words(said[key]))
                for key, one in again.items()
            }
            await self._repository.reword(request.scope, MemoryType.EPISODIC, words)
        return said

    async def _look_up(
        self,
        request: StoreTurnsInput,
        proposed: Sequence[_Proposed],
        others: Iterable[str] = (),
    ) -> tuple[dict[str, Episode], dict[int, EngramError]]:
        """What is stored under the turns' ids and others, and the calls that want it otherwise."""
        ids = {*(episode.id for _, episode in proposed), *others}
        stored = await episodes_by_id(self._repository, request.scope, ids, fresh=True)
        firsts = stored
        errors: dict[int, EngramError] = {}
        for call in dict.fromkeys(call for call, _ in proposed):
            # Within one batch the first use of a message id counts as stored, unless
            # its own call is refused.
            claimed = dict(firsts)
            for episode in (episode for of, episode in proposed if of == call):
                first = claimed.setdefault(episode.id, episode)
                if differing := _unlike(first, episode):
                    errors[call] = _conflict(episode, differing)
            if call not in errors:
                firsts = claimed
        return stored, errors

    async def _insert_missing(
        self,
        request: StoreTurnsInput,
        accepted: Sequence[_Proposed],
        stored: Mapping[str, Episode],
        said: Mapping[str, Episode | None],
    ) -> tuple[frozenset[str], dict[int, EngramError]]:
        """Insert what is not stored, to be found by what was said before it as well.

        Returns:
            The ids of the turns that were forgotten, and the calls whose texts the
            embedder's provider refused.
        """
        missing = [(call, episode) for call, episode in accepted if episode.id not in stored]
        if not missing:
            return frozenset(), {}
        episodes = list({episode.id: episode for _, episode in missing}.values())
        refused: dict[int, EngramError] = {}
        try:
            new = await self._embedded(episodes, said)
        except ModelRejected:
            # One caller's text must not fail what others handed over: each by itself, then.
            found: dict[str, NewMemory] = {}
            for call in dict.fromkeys(call for call, _ in missing):
                own = [one for of, one in missing if of == call and one.id not in found]
                try:
                    found |= {new.memory.id: new for new in await self._embedded(own, said)}
                except ModelRejected as error:
                    refused[call] = error
            new = list(found.values())
        forgotten = await self._repository.insert(request.scope, new, epoch=request.epoch)
        if forgotten:
            _log.info("turns that were forgotten came again", turns=len(forgotten))
        return forgotten, refused

    async def _embedded(
        self, episodes: Sequence[Episode], said: Mapping[str, Episode | None]
    ) -> list[NewMemory]:
        texts = [one.indexed_text for one in episodes]
        before = [_words(said[one.id]) for one in episodes]
        vectors = await self._embedder.embed_documents(texts, before)
        return [NewMemory(one, vector) for one, vector in zip(episodes, vectors, strict=True)]

    async def _derive(
        self,
        request: StoreTurnsInput,
        accepted: Sequence[_Proposed],
        stored: Mapping[str, Episode],
        forgotten: frozenset[str],
        said: Mapping[str, Episode | None],
    ) -> list[tuple[int, StoredTurn]]:
        """Store what the turns state; the receipts, each with its call."""
        if any(p.id not in stored and p.id not in forgotten for _, p in accepted):
            raise StorageUnavailable(
                "The store took an episode and does not show it yet.",
                hint="Nothing was acknowledged to the caller; it is tried again.",
            )
        # Derived from what is stored, not from what was sent: a turn sent
        # again without a timestamp must give its first receipt.
        there = [(call, episode) for call, episode in accepted if episode.id in stored]
        kept = [stored[proposed.id] for _, proposed in there]
        answered = await self._answered(request, kept, said)
        extracted = [await self._read(one, _words(answered.get(one.id))) for one in kept]
        await self._mark_unread(request, kept, extracted)
        deriving = [n for n, (call, _) in enumerate(there) if request.calls[call].extract_facts]
        ids = await self._findings.store(
            request,
            [(kept[n], extracted[n]) for n in deriving],
            {key: one.id for key, one in answered.items()},
        )
        found = dict(zip(deriving, ids, strict=True))
        receipts: list[tuple[int, StoredTurn]] = []
        told_of: set[str] = set()
        number = iter(range(len(there)))
        for call, proposed in accepted:
            if proposed.id not in stored:
                receipts.append((call, _of_forgotten(proposed)))
                continue
            n = next(number)
            fact_ids, negation_ids = found.get(n, ((), ()))
            told = fact_ids[:MOST_RECEIPT_IDS]
            denied = negation_ids[: MOST_RECEIPT_IDS - len(told)]
            receipt = StoredTurn(
                episode_id=kept[n].id,
                message_id=kept[n].message_id,
                signal=extracted[n].signal,
                fact_ids=told,
                negation_ids=denied,
                ids_left_out=len(fact_ids) + len(negation_ids) - len(told) - len(denied),
                new=kept[n].id not in told_of and _is_of(kept[n], request),
                timestamp=kept[n].timestamp,
            )
            receipts.append((call, receipt))
            told_of.add(receipt.episode_id)
        return receipts

    async def _answered(
        self, request: StoreTurnsInput, kept: Sequence[Episode], said: Mapping[str, Episode | None]
    ) -> dict[str, Episode]:
        """Of turns that may take something back, the assistant's turn that they answer."""
        found: dict[str, Episode] = {}
        for one in kept:
            if one.role != "user" or not may_take_back(one.content):
                continue
            before = said.get(one.id)
            if one.id not in said:
                # It was stored before, and is to give its first receipt again.
                (before,) = await turns_before(self._repository, request.scope, [one], [one])
            if before is None or before.role != "assistant" or before.is_test != one.is_test:
                continue
            # With a hole in between, something else may have been said that is meant.
            if before.sequence == one.sequence - 1:
                found[one.id] = before
        return found

    async def _read(self, episode: Episode, before: str | None) -> Extraction:
        """What the rules find in a turn, or that they gave up on it: then they did for good."""
        if episode.unread is not None and episode.unread.rules is not None:
            return Extraction(signal=Signal.LOW, unread=episode.unread.rules)
        return await self._reader.read(
            episode.content, episode.role, episode.speaker, episode.said_at, before
        )

    async def _mark_unread(
        self, request: StoreTurnsInput, kept: Sequence[Episode], extracted: Sequence[Extraction]
    ) -> None:
        why = {
            one.id: found.unread
            for one, found in zip(kept, extracted, strict=True)
            if found.unread is not None and one.unread is None
        }

        def change(turn: Episode) -> Episode | None:
            if turn.unread is not None:
                return None
            return turn.model_copy(update={"unread": Unread(rules=why[turn.id])})

        if why:
            await update_those(
                self._repository,
                request.scope,
                Episode,
                why,
                change,
                new_write_id=self._new_write_id,
            )


def _words(turn: Episode | None) -> str | None:
    return None if turn is None else turn.content


def _of_forgotten(episode: Episode) -> StoredTurn:
    return StoredTurn(
        episode_id=episode.id,
        message_id=episode.message_id,
        signal=Signal.NONE,
        new=False,
        timestamp=episode.timestamp,
        forgotten=True,
    )


def _is_of(episode: Episode, request: StoreTurnsInput) -> bool:
    """Whether this request stored it: also by an attempt whose answer nobody got."""
    origin = episode.provenance
    here = (request.workflow_id, request.run_id, request.now)
    return (origin.workflow_id, origin.run_id, episode.created_at) == here


def _conflict(episode: Episode, differing: str) -> ConflictingMessage:
    return ConflictingMessage(
        f"This message id was used before in this session, with other {differing}.",
        allowed=f"the same {differing} again, or a new message id",
        details={"message_id": episode.message_id},
    )


def _unlike(first: Episode, other: Episode) -> str | None:
    """What a turn brings that the one under its id has otherwise; None: it is the same turn.

    What is left out asks for nothing. Times are worked out anew whenever a turn is sent, and
    importance changes in a memory's life: neither tells two turns apart.
    """
    # No answer has what a test said: acknowledged as a real turn, it would be lost.
    if first.is_test is not other.is_test:
        return "is_test"
    if not same_turn(first, other):
        return "content"
    if not set(other.tags) <= set(first.tags):
        return "tags"
    absent = object()
    if any(first.metadata.get(key, absent) != value for key, value in other.metadata.items()):
        return "metadata"
    return "summary" if other.summary not in (None, first.summary) else None


def same_turn(first: Episode, other: Episode) -> bool:
    """Whether two turns under one id are the same turn: its words, also said as a test or not."""
    return (first.content, first.role, first.speaker, first.is_test) == (
        *(other.content, other.role, other.speaker, other.is_test),
    )
