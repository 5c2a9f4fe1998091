"""Ending denials that were taken back: "I don't use Mongo", and later "I use Mongo"."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from engram.domain.memories import (
    NOT_REPLACED,
    AnyMemory,
    Episode,
    MemoryForm,
    MemoryStatus,
    MemoryType,
    NegationFact,
    SemanticMemory,
    replaced,
)
from engram.domain.scope import Scope
from engram.embedding.bm25 import encode_query
from engram.language.negation import find_negations
from engram.language.negation_scope import brings_about, claim_terms, covers, pattern_terms
from engram.lifecycle.promotion_pass import follow_sources
from engram.ports import (
    AnyOf,
    Embedder,
    Equals,
    Filter,
    MemoryRepository,
    SearchRequest,
    TextVectors,
)
from engram.storage.updates import (
    MemoryChange,
    NewWriteId,
    episodes_by_id,
    every_page,
    existing,
    update_memories,
)

_SEMANTIC = (MemoryType.SEMANTIC,)
_DENYING = (MemoryType.NEGATION, MemoryType.SEMANTIC)
_ACTIVE: Filter = (Equals("status", MemoryStatus.ACTIVE.value),)
_STATED: Filter = (Equals("form", MemoryForm.STATEMENT.value),)
# So many are looked through as they are; of more, those that share words with each thing said.
_FEW = 128
_EACH = 32
# "I bought a car last month" can be said of the day after "I have no car".
_IMPRECISION = timedelta(days=31)
_USER = re.compile(r"\bthe user(?P<own>'s)?(?!\w)", re.IGNORECASE)


class _TakenBack(NamedTuple):
    """What denies, and the turn by which something affirms it."""

    denial: NegationFact | SemanticMemory
    by: SemanticMemory
    turn: Episode


@dataclass(frozen=True, slots=True)
class Denials:
    """Ends denials that were taken back. Every method may run twice.

    A denial ends when the same person says what it denies after the denial was told last. By
    the conversation's time: in which order the turns were read does not show.

    Args:
        repository: Where memories are kept; it stamps what it writes.
        embedder: Knows how long vectors are.
        new_write_id: Makes a fresh value for each write.
    """

    repository: MemoryRepository
    embedder: Embedder
    new_write_id: NewWriteId

    async def end(self, scope: Scope, episode_ids: Collection[str]) -> tuple[str, ...]:
        """End the denials that these turns take back, and those of theirs that others did.

        Args:
            scope: Whose they are.
            episode_ids: Turns; what they state is stored.

        Returns:
            The denials that are ended, and the statements that say the same.
        """
        known = await self.repository.count(scope, MemoryType.NEGATION) if episode_ids else 0
        if not known:
            return ()
        said = _stated(await self._drawn(scope, MemoryType.SEMANTIC, episode_ids))
        denied = _denials(await self._drawn(scope, MemoryType.NEGATION, episode_ids))
        pairs: list[tuple[NegationFact, SemanticMemory]] = []
        if said and known > _FEW:
            alike = await self._like(scope, MemoryType.NEGATION, said, _ACTIVE)
            pairs += _opposed(_denials(alike), said)
        elif said:
            pages = every_page(self.repository, scope, MemoryType.NEGATION, where=_ACTIVE)
            pairs += _opposed(_denials([one async for page in pages for one in page]), said)
        if denied:
            alike = await self._like(scope, MemoryType.SEMANTIC, denied, _STATED)
            pairs += _opposed(denied, _stated(alike))
        if not pairs:
            return ()
        return await self._end(scope, await self._taken_back(scope, pairs))

    async def _drawn(
        self, scope: Scope, kind: MemoryType, episode_ids: Collection[str]
    ) -> list[AnyMemory]:
        where = (AnyOf("source_episode_ids", tuple(sorted(episode_ids))),)
        pages = every_page(self.repository, scope, kind, where=where)
        return [one async for page in pages for one in page]

    async def _like(
        self, scope: Scope, kind: MemoryType, those: Iterable[AnyMemory], where: Filter
    ) -> list[AnyMemory]:
        """What shares words with any of these."""
        # By words only: a denial is of words, and the other side would bring up strangers.
        nothing = (0.0,) * await self.embedder.dimensions()
        found: set[str] = set()
        for one in those:
            request = SearchRequest(
                vectors=TextVectors(nothing, encode_query(one.content)),
                types=(kind,),
                limit=_EACH,
                where={kind: where},
            )
            found |= {m.memory_id for m in await self.repository.rank(scope, request)}
        read = await self.repository.get(scope, sorted(found), (kind,)) if found else {}
        return list(read.values())

    async def _taken_back(
        self, scope: Scope, pairs: Sequence[tuple[NegationFact, SemanticMemory]]
    ) -> list[_TakenBack]:
        """Of what was taken back, by which turn first; statements go before the denial itself."""
        turns = await _turns_of(self.repository, scope, (one for pair in pairs for one in pair))
        first: dict[str, tuple[NegationFact, _TakenBack]] = {}
        for denial, affirming in pairs:
            turn = _first_after(affirming, denial, turns)
            if turn is None or not _is_so(denial, affirming, turn):
                continue
            known = first.get(denial.id)
            if known is None or _position(turn) < _position(known[1].turn):
                first[denial.id] = denial, _TakenBack(denial, affirming, turn)
        found: list[_TakenBack] = []
        for denial, ended in first.values():
            found += [*await self._said_as_well(scope, denial, ended), ended]
        return found

    async def _said_as_well(
        self, scope: Scope, denial: NegationFact, ended: _TakenBack
    ) -> list[_TakenBack]:
        """The statements drawn from the same turns that deny the same: "doesn't eat meat"."""
        drawn = await self._drawn(scope, MemoryType.SEMANTIC, denial.source_episode_ids)
        denying = [
            one
            for one in _stated(drawn)
            if one.status is MemoryStatus.ACTIVE and _denies_the_same(denial, one.content)
        ]
        turns = await _turns_of(self.repository, scope, (*denying, ended.by)) if denying else {}
        return [
            ended._replace(denial=one)
            for one in denying
            if _first_after(ended.by, one, turns) is not None
        ]

    async def _end(self, scope: Scope, ended: Sequence[_TakenBack]) -> tuple[str, ...]:
        """Note each at both ends, first at those that stay."""
        took_over: dict[str, list[str]] = {}
        for one in ended:
            took_over.setdefault(one.by.id, []).append(one.denial.id)

        def staying(memory: AnyMemory) -> AnyMemory | None:
            if not isinstance(memory, SemanticMemory):
                return None
            both = tuple(dict.fromkeys((*memory.supersedes, *took_over[memory.id])))
            if both == memory.supersedes:
                return None
            return memory.model_copy(update={"supersedes": both})

        going = {one.denial.id: one for one in ended}
        missing = await self._change(scope, took_over, staying)
        going = {key: one for key, one in going.items() if one.by.id not in missing}
        await self._change(scope, going, lambda memory: _replaced(memory, going[memory.id]))
        await follow_sources(self.repository, scope, going, self.new_write_id)
        # Forgotten meanwhile, it leaves nothing in anybody's place.
        left = await existing(self.repository, scope, took_over, _SEMANTIC)
        gone = {key: one.by.id for key, one in going.items() if one.by.id not in left}
        await self._change(scope, gone, lambda memory: _standing(memory, gone[memory.id]))
        return tuple(key for key in going if key not in gone)

    async def _change(
        self, scope: Scope, ids: Iterable[str], change: MemoryChange
    ) -> frozenset[str]:
        """The ids of what is not there."""
        updated = await update_memories(
            self.repository, scope, ids, change, new_write_id=self.new_write_id, types=_DENYING
        )
        return updated.missing


async def deny_again(
    repository: MemoryRepository,
    scope: Scope,
    affirming: Iterable[AnyMemory],
    new_write_id: NewWriteId,
) -> None:
    """Let denials hold again where the turn that took them back is no source any more.

    Args:
        repository: Where memories are kept.
        scope: Whose.
        affirming: What lost a source, and stays.
        new_write_id: Makes a fresh value for each write.
    """
    by = {m.id: m for m in affirming if isinstance(m, SemanticMemory) and m.supersedes}
    ids = {old for heir in by.values() for old in heir.supersedes}
    found = await repository.get(scope, ids, _DENYING, fresh=True) if ids else {}
    over = [m for m in found.values() if m.superseded_known_at and _heir(m) in by]
    denials = _denials(over)
    if not denials:
        return
    again = {m.id: _heir(m) for m in denials}
    again |= {
        m.id: _heir(m)
        for m in over
        if any(_heir(m) == _heir(one) and _denies_the_same(one, m.content) for one in denials)
    }
    turns = await _turns_of(repository, scope, (*over, *by.values()))
    again = {
        key: heir
        for key, heir in again.items()
        if _first_after(by[heir], found[key], turns) is None
    }
    await update_memories(
        repository,
        scope,
        again,
        lambda memory: _standing(memory, again[memory.id]),
        new_write_id=new_write_id,
        types=_DENYING,
    )


async def _turns_of(
    repository: MemoryRepository, scope: Scope, memories: Iterable[AnyMemory]
) -> dict[str, Episode]:
    return await episodes_by_id(repository, scope, {e for m in memories for e in _sources(m)})


def _sources(memory: AnyMemory) -> tuple[str, ...]:
    return () if isinstance(memory, Episode) else memory.source_episode_ids


def _heir(memory: AnyMemory) -> str:
    return "" if isinstance(memory, Episode) else memory.superseded_by or ""


def _denials(memories: Iterable[AnyMemory]) -> list[NegationFact]:
    return [m for m in memories if isinstance(m, NegationFact) and m.refuted_at is None]


def _stated(memories: Iterable[AnyMemory]) -> list[SemanticMemory]:
    return [
        m
        for m in memories
        if isinstance(m, SemanticMemory) and m.form is MemoryForm.STATEMENT and m.refuted_at is None
    ]


def _opposed(
    denials: Iterable[NegationFact], said: Sequence[SemanticMemory]
) -> list[tuple[NegationFact, SemanticMemory]]:
    """Each denial with what says that it is so, whenever either was said."""
    claims = [(one, claim_terms(one)) for one in said]
    return [
        (denial, one)
        for denial in denials
        for terms in (frozenset(pattern_terms(denial.negates_pattern)[1:]),)
        for one, claimed in claims
        if denial.is_test == one.is_test
        and terms <= claimed
        and (covers(denial, one) or brings_about(denial, one))
    ]


def _is_so(denial: NegationFact, affirming: SemanticMemory, turn: Episode) -> bool:
    """Whether what was told in that turn was so from then on, as far as was known."""
    until = affirming.superseded_known_at
    if affirming.status is not MemoryStatus.ACTIVE and (until is None or until <= turn.timestamp):
        return False
    told = denial.confidence.last_confirmed
    # "I bought a car in 2015" does not say that there is one now.
    return covers(denial, affirming) or affirming.event_at >= told - _IMPRECISION


def _denies_the_same(denial: NegationFact, content: str) -> bool:
    """Whether a statement, as Engram words it, says what the denial says."""
    said = _USER.sub(lambda found: "my" if found["own"] else "I", content)
    terms = pattern_terms(denial.negates_pattern)
    return any(
        pattern_terms(one.negates_pattern) == terms and one.subject == denial.subject
        for one in find_negations(said)
    )


def _first_after(
    affirming: AnyMemory, denial: AnyMemory, turns: Mapping[str, Episode]
) -> Episode | None:
    """The first turn that affirms after the last one that denies; None where there is none."""
    denying = [turns[e] for e in _sources(denial) if e in turns]
    later = [
        turns[e]
        for e in _sources(affirming)
        if e in turns and denying and all(_comes_after(turns[e], one) for one in denying)
    ]
    return min(later, key=_position, default=None)


def _comes_after(one: Episode, other: Episode) -> bool:
    """Turns of one conversation follow each other, whatever their timestamps."""
    if one.timestamp == other.timestamp:
        return one.session_id == other.session_id and one.sequence > other.sequence
    return one.timestamp > other.timestamp


def _position(turn: Episode) -> tuple[datetime, str, int]:
    return turn.timestamp, turn.session_id or "", turn.sequence


def _replaced(memory: AnyMemory, ended: _TakenBack) -> AnyMemory | None:
    """The denial as history; None where it is that already, or was told again meanwhile."""
    if not isinstance(memory, NegationFact | SemanticMemory) or memory.refuted_at is not None:
        return None
    when, until = ended.turn.timestamp, memory.superseded_known_at
    if memory.source_episode_ids != ended.denial.source_episode_ids:
        return None
    if memory.status is not MemoryStatus.ACTIVE and (until is None or until <= when):
        return None
    return replaced(memory, ended.by.id, when)


def _standing(memory: AnyMemory, heir: str) -> AnyMemory | None:
    """The denial as it was before this took its place; None where something else did."""
    if not isinstance(memory, NegationFact | SemanticMemory) or memory.superseded_by != heir:
        return None
    return memory.model_copy(update=NOT_REPLACED)
