"""Storing turns: episodes first and verbatim, then what the language rules find in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from engram.consolidation.findings import FindingsStore
from engram.contracts.session import (
    AcceptedTurn,
    CallOutcome,
    EncodeCall,
    StoredTurn,
    StoreTurnsInput,
)
from engram.domain.identity import episode_id
from engram.domain.memories import Episode, MemoryType, Provenance
from engram.domain.scope import Scope
from engram.errors import ConflictingMessage, StorageUnavailable
from engram.language.found import Extraction
from engram.ports import Between, Embedder, Equals, MemoryRepository, NewMemory, TurnExtractor

# --- what was said just before a turn: a turn is found by those words too, not only by its own

# Numbers are given before storing, and refused turns leave holes.
_FURTHEST_BACK = 4


async def turns_before(
    repository: MemoryRepository,
    scope: Scope,
    episodes: Sequence[Episode],
    together: Sequence[Episode],
) -> list[str | None]:
    """The words of the turn before each of ``episodes``, None where a session begins.

    Args:
        repository: Where earlier turns of the session are.
        scope: Whose.
        episodes: Turns of one session that are about to be stored, in order.
        together: All turns of the same request, also those stored already.
    """
    if not episodes:
        return []
    known = {one.sequence: one.content for one in together}
    first = min(known)
    earlier = await _last_before(repository, scope, episodes[0].session_id, first)
    return [
        next(
            (known[n] for n in range(one.sequence - 1, first - 1, -1) if n in known),
            earlier,
        )
        for one in episodes
    ]


async def _last_before(
    repository: MemoryRepository, scope: Scope, session_id: str | None, sequence: int
) -> str | None:
    if sequence == 0 or session_id is None:
        return None
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
    last = max(found, key=lambda one: (one.created_at, one.sequence), default=None)
    return None if last is None else last.content


# --- storing turns: episodes first and verbatim, then what the patterns find in them
#
# Everything here may run twice, in parts, and beside itself: ids are derived,
# inserts leave alone what is there, sources are a set.

DEFAULT_IMPORTANCE = 0.5
"""What a turn weighs when nobody says otherwise."""


@dataclass
class _Turn:
    """One turn on its way through storing."""

    accepted: AcceptedTurn
    proposed: Episode
    call: int
    stored: Episode | None = None
    extraction: Extraction = field(default_factory=Extraction)
    fact_ids: tuple[str, ...] = ()
    negation_ids: tuple[str, ...] = ()


class TurnStore:
    """Keeps turns as episodes, with the facts and negations they state.

    Args:
        repository: Where memories are kept.
        embedder: Gives them their vectors.
        extractor: Finds pattern facts, negations and the signal of a turn.
        new_write_id: Gives a fresh id for each write.
    """

    def __init__(
        self,
        repository: MemoryRepository,
        embedder: Embedder,
        extractor: TurnExtractor,
        new_write_id: Callable[[], str],
    ) -> None:
        self._repository = repository
        self._embedder = embedder
        self._extractor = extractor
        self._new_write_id = new_write_id
        self._findings = FindingsStore(repository, embedder, new_write_id)

    async def store(self, request: StoreTurnsInput) -> tuple[CallOutcome, ...]:
        """Store each call whole or, where it conflicts with what is stored, not at all."""
        turns = self._propose(request)
        errors = await self._refuse_conflicting(request, turns)
        accepted = [turn for turn in turns if turn.call not in errors]
        await self._insert_missing(request, accepted)
        errors |= await self._refuse_conflicting(request, accepted)
        accepted = [turn for turn in accepted if turn.call not in errors]
        await self._derive(request, accepted)
        return tuple(
            CallOutcome(error=errors[index].as_dict())
            if index in errors
            else CallOutcome(turns=tuple(_receipt(t) for t in accepted if t.call == index))
            for index in range(len(request.calls))
        )

    def _propose(self, request: StoreTurnsInput) -> list[_Turn]:
        numbered = [(i, call, turn) for i, call in enumerate(request.calls) for turn in call.turns]
        return [
            _Turn(turn, self._episode(request, call, turn, request.first_sequence + n), index)
            for n, (index, call, turn) in enumerate(numbered)
        ]

    def _episode(
        self, request: StoreTurnsInput, call: EncodeCall, turn: AcceptedTurn, sequence: int
    ) -> Episode:
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
            is_test=call.is_test,
            write_id=self._new_write_id(),
            provenance=Provenance(workflow_id=request.workflow_id, run_id=request.run_id),
            role=turn.role,
            speaker=turn.speaker,
            timestamp=turn.timestamp,
            message_id=turn.message_id,
            sequence=sequence,
        )

    async def _refuse_conflicting(
        self, request: StoreTurnsInput, turns: Sequence[_Turn]
    ) -> dict[int, ConflictingMessage]:
        """Note what is stored under the turns' ids; the calls that want it otherwise."""
        found = await self._repository.get(
            request.scope,
            {turn.proposed.id for turn in turns},
            [MemoryType.EPISODIC],
            fresh=True,
        )
        stored = {key: memory for key, memory in found.items() if isinstance(memory, Episode)}
        firsts = stored
        errors: dict[int, ConflictingMessage] = {}
        for call in dict.fromkeys(turn.call for turn in turns):
            of_call = [turn for turn in turns if turn.call == call]
            # Within one batch the first use of a message id counts as stored, unless
            # its own call is refused.
            claimed = dict(firsts)
            for turn in of_call:
                turn.stored = stored.get(turn.proposed.id)
                first = claimed.setdefault(turn.proposed.id, turn.proposed)
                if not _same_message(first, turn.proposed):
                    errors[call] = _conflict(turn)
            if call not in errors:
                firsts = claimed
        return errors

    async def _insert_missing(self, request: StoreTurnsInput, turns: Sequence[_Turn]) -> None:
        missing = {turn.proposed.id: turn.proposed for turn in turns if turn.stored is None}
        if not missing:
            return
        episodes = list(missing.values())
        before = await turns_before(
            self._repository, request.scope, episodes, [turn.proposed for turn in turns]
        )
        vectors = await self._embedder.embed_documents([e.indexed_text for e in episodes], before)
        await self._repository.insert(
            request.scope,
            [NewMemory(episode, vector) for episode, vector in zip(episodes, vectors, strict=True)],
        )

    async def _derive(self, request: StoreTurnsInput, turns: Sequence[_Turn]) -> None:
        for turn in turns:
            if turn.stored is None:
                raise StorageUnavailable(
                    "The store took an episode and does not show it yet.",
                    hint="Nothing was acknowledged to the caller; it is tried again.",
                )
            # Derived from what is stored, not from what was sent: a turn sent
            # again without a timestamp must give its first receipt.
            turn.extraction = self._extractor.extract(
                turn.stored.content, turn.stored.role, turn.stored.speaker, turn.stored.timestamp
            )
        deriving = [turn for turn in turns if request.calls[turn.call].extract_facts]
        ids = await self._findings.store(
            request, [(turn.stored, turn.extraction) for turn in deriving if turn.stored]
        )
        for turn, (fact_ids, negation_ids) in zip(deriving, ids, strict=True):
            turn.fact_ids, turn.negation_ids = fact_ids, negation_ids


def _conflict(turn: _Turn) -> ConflictingMessage:
    return ConflictingMessage(
        "This message id was used before in this session, with other content.",
        allowed="the same content again, or a new message id",
        details={"message_id": turn.accepted.message_id},
    )


def _same_message(first: Episode, other: Episode) -> bool:
    return (first.content, first.role, first.speaker) == (
        other.content,
        other.role,
        other.speaker,
    )


def _receipt(turn: _Turn) -> StoredTurn:
    stored = turn.stored or turn.proposed
    return StoredTurn(
        episode_id=stored.id,
        message_id=stored.message_id,
        signal=turn.extraction.signal,
        fact_ids=turn.fact_ids,
        negation_ids=turn.negation_ids,
        new=stored.write_id == turn.proposed.write_id,
        timestamp=stored.timestamp,
    )
