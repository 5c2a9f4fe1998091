"""What was denied does not come back as true: the stage of recall that asks for negations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache

from engram.domain.kept import kept, lets_go
from engram.domain.memories import AnyMemory, Fact, MemoryType, NegationFact
from engram.domain.scope import Scope
from engram.language.before import denies_the_past
from engram.language.negation_scope import (
    claim_terms,
    pattern_terms,
    speaks_as,
    subject_terms,
)
from engram.ports import (
    Embedder,
    Filter,
    MemoryRepository,
    SearchRequest,
    SparseVector,
    TextVectors,
)
from engram.recall.at_hand import AtHand
from engram.recall.request import Visibility, visible
from engram.recall.results import Ranked, by_score
from engram.recall.search import PreparedQuery
from engram.storage.updates import all_of, by_id

Covers = Callable[[NegationFact, AnyMemory], bool]
EncodeWords = Callable[[str], SparseVector]

# One look-up for all candidates brings up so many negations; where more match, there
# is one look-up per candidate.
TOGETHER = 512
EACH = 16
# Negations that are kept in memory. What one denies never changes, and whether it is
# in force, and since when, is asked of the store each time.
_NEGATIONS_KEPT = 4096
_SECONDS_KEPT = 300.0


def _last_told(negation: NegationFact, visibility: Visibility) -> datetime:
    """When it was said last; as of an earlier date only its first telling is sure to be known."""
    if visibility.as_of is not None:
        return negation.known_at
    return max(negation.known_at, negation.confidence.last_confirmed)


def _is_of_then(denial: NegationFact, memory: AnyMemory, visibility: Visibility) -> bool:
    """Whether a denial is of the time that is asked about: "I no longer do" is of none before."""
    when = visibility.valid_at
    if when is None or denies_the_past(denial.content):
        return True
    return when >= denial.known_at and not visibility.was_true(memory)


class Negations:
    """Finds the negations in force, and what they do to candidates.

    Args:
        repository: Where negations are.
        embedder: Tells the terms of a text.
        covers: Whether a negation denies what a memory claims.
        factor: What the score of a denied turn is multiplied with: it stays, verbatim,
            behind what is equally near and still holds.
    """

    def __init__(
        self, repository: MemoryRepository, embedder: Embedder, covers: Covers, factor: float
    ) -> None:
        self._repository = repository
        self._embedder = embedder
        self._encode = embedder.encode_terms
        self._covers = covers
        self._factor = factor
        self._known: dict[str, NegationFact] = {}
        self._of_user = AtHand(self._read_all, _NEGATIONS_KEPT, self._read_new)
        lets_go(self)

    def cache_clear(self) -> None:
        """Let go of all denials that were read: see :func:`engram.domain.kept.let_go`."""
        self._known.clear()

    async def apply(self, question: PreparedQuery, found: Sequence[Ranked]) -> list[Ranked]:
        """Candidates without the derived ones that are denied; denied episodes are marked.

        A negation speaks against what was known before it was last told. What was learnt after
        it is the newer word: it stays, and the negation comes behind it. What was true at the time
        that is asked about and has ended since stays, too.
        """
        if all(one.memory.type is MemoryType.NEGATION for one in found):
            return list(found)
        texts = [question.request.query, *(one.memory.content for one in found)]
        view = question.visibility
        possible, fresh = await self._speaking(
            question.scope, view, [one.memory for one in found], texts
        )
        if not fresh:
            return list(found)
        in_force = _in_force_at(view)
        kept: list[Ranked] = []
        # Of what was learnt after a negation, the best stands before it: "I use Mongo again".
        newer: dict[str, float] = {}
        for one in found:
            denying = [k for k in possible[one.memory.id] if k in fresh]
            said = {key: _last_told(fresh[key], view) for key in denying}
            for key in denying:
                if said[key] < one.memory.known_at:
                    newer[key] = max(newer.get(key, 0.0), one.score)
            against = tuple(
                key
                for key in denying
                if in_force.counts(fresh[key])
                and said[key] > one.memory.known_at
                and _is_of_then(fresh[key], one.memory, view)
            )
            if not against:
                kept.append(one)
            elif not one.is_derived:
                lowered = one.moved_to(one.score * self._factor, "negated", float(len(against)))
                kept.append(lowered._replace(negated_by=against))
        if not newer:
            return kept
        return by_score(
            one.behind(newer[one.memory.id], "outdated") if one.memory.id in newer else one
            for one in kept
        )

    async def denied(
        self, scope: Scope, memories: Sequence[AnyMemory], visibility: Visibility
    ) -> frozenset[str]:
        """The ids of those memories that a negation in force denies, told later than they were."""
        texts = [one.content for one in memories]
        possible, fresh = await self._speaking(scope, visibility, memories, texts)
        in_force = _in_force_at(visibility)
        speaking = {key: one for key, one in fresh.items() if in_force.counts(one)}
        return frozenset(
            one.id
            for one in memories
            for key in possible.get(one.id, ())
            if key in speaking
            and _last_told(speaking[key], visibility) > one.known_at
            and _is_of_then(speaking[key], one, visibility)
        )

    async def _speaking(
        self,
        scope: Scope,
        visibility: Visibility,
        memories: Sequence[AnyMemory],
        texts: Sequence[str],
    ) -> tuple[Mapping[str, tuple[str, ...]], Mapping[str, NegationFact]]:
        """By memory, which negations deny it; and these as they are now, in force or not.

        Args:
            scope: Whose they are.
            visibility: From when one looks.
            memories: What may be denied.
            texts: Their words, and those of the question.
        """
        arrived = self._repository.arrivals(scope, MemoryType.NEGATION)
        denials = await self._of_user.of(scope, arrived)
        if denials is None:
            denials = await self._sharing_words(scope, visibility, texts)
        if not denials.known:
            return {}, {}
        spoken = cache(lambda: frozenset(self._words_of(texts).indices))
        possible = denials.against(memories, spoken)
        speaking = {negation for against in possible.values() for negation in against}
        return possible, await self._read(scope, speaking)

    async def _read_all(self, scope: Scope) -> _Denials | None:
        """All negations of a user, where they are few."""
        if await self._repository.count(scope, MemoryType.NEGATION) > _NEGATIONS_KEPT:
            return None
        every = await all_of(self._repository, scope, NegationFact)
        return _Denials(every, self._covers, self._encode)

    async def _read_new(self, scope: Scope, known: _Denials, since: int) -> _Denials | None:
        """All negations of a user, of which these were known."""
        new = self._repository.arrived(scope, MemoryType.NEGATION, since)
        if new is None or len(known) + len(new) > _NEGATIONS_KEPT:
            return None
        read = await by_id(self._repository, scope, NegationFact, new)
        return known.with_more(read.values())

    async def _sharing_words(
        self, scope: Scope, visibility: Visibility, texts: Sequence[str]
    ) -> _Denials:
        """Negations that share a word with the question or a candidate; not all are in force.

        Which are is cheaper to tell of the few that speak than to ask of all. Only
        where there are very many, those that are not may not take up the room.
        """
        ids = await self._look_up(scope, texts, TOGETHER, ())
        if len(ids) >= TOGETHER:
            standing = visible(_in_force_at(visibility), MemoryType.NEGATION)
            ids = await self._look_up(scope, texts, TOGETHER, standing)
            if len(ids) >= TOGETHER:
                for text in texts:
                    ids |= await self._look_up(scope, [text], EACH, standing)
        known = {key: self._known[key] for key in ids if key in self._known}
        known |= await self._read(scope, ids - known.keys())
        return _Denials([known[key] for key in sorted(known)], self._covers, self._encode)

    async def _look_up(
        self, scope: Scope, texts: Sequence[str], limit: int, where: Filter
    ) -> set[str]:
        # By words only: a denial is of words, and the other side would bring up strangers.
        nothing = (0.0,) * await self._embedder.dimensions()
        found = await self._repository.rank(
            scope,
            SearchRequest(
                vectors=TextVectors(nothing, self._words_of(texts)),
                types=(MemoryType.NEGATION,),
                limit=limit,
                where={MemoryType.NEGATION: where},
            ),
        )
        return {one.memory_id for one in found}

    def _words_of(self, texts: Iterable[str]) -> SparseVector:
        """The terms of all texts, each once."""
        indices = sorted({index for text in texts for index in self._encode(text).indices})
        return SparseVector(tuple(indices), (1.0,) * len(indices))

    async def _read(self, scope: Scope, ids: Iterable[str]) -> dict[str, NegationFact]:
        found = await by_id(self._repository, scope, NegationFact, sorted(ids))
        if len(self._known) + len(found) > _NEGATIONS_KEPT:
            self._known.clear()
        if found and not self._known:
            # Whoever erases elsewhere does not reach this process.
            asyncio.get_running_loop().call_later(_SECONDS_KEPT, self._known.clear)
        self._known |= found
        return found


class _Denials:
    """Negations, by a word of what they deny.

    The rule itself reads sentences, which takes long for many negations; a memory
    that lacks a word of what is denied has nothing to find.
    """

    def __init__(self, known: Iterable[NegationFact], covers: Covers, encode: EncodeWords) -> None:
        self.known: list[NegationFact] = []
        self._covers = covers
        self._encode = encode
        self._by_term: dict[str, list[tuple[frozenset[str], frozenset[str], NegationFact]]] = {}
        self._of_verb_alone: dict[int, list[NegationFact]] = {}
        self._add(known)

    def with_more(self, new: Iterable[NegationFact]) -> _Denials:
        """These and the new ones; who holds these keeps what they are."""
        more = _Denials(self.known, self._covers, self._encode)
        more._add(new)
        return more

    def _add(self, negations: Iterable[NegationFact]) -> None:
        for negation in negations:
            self.known.append(negation)
            longest, terms = _object_terms(negation.negates_pattern)
            if longest is not None:
                subject = subject_terms(negation.subject)
                self._by_term.setdefault(longest, []).append((terms, subject, negation))
                continue
            for index in self._encode(negation.indexed_text).indices:
                self._of_verb_alone.setdefault(index, []).append(negation)

    def __len__(self) -> int:
        """How many negations."""
        return len(self.known)

    def against(
        self, memories: Iterable[AnyMemory], spoken: Callable[[], frozenset[int]]
    ) -> dict[str, tuple[str, ...]]:
        """The negations that deny what each memory claims, by id, whenever either was said.

        Args:
            memories: What may be denied.
            spoken: The terms of the question and all candidates; a negation that has none of
                them has nothing to do with what is asked. Mostly nobody needs to know.
        """
        alone: dict[str, NegationFact] = {}
        if self._of_verb_alone:
            for index in self._of_verb_alone.keys() & spoken():
                alone.update((one.id, one) for one in self._of_verb_alone[index])
        return {one.id: self._against(one, alone.values(), spoken) for one in memories}

    def _against(
        self,
        memory: AnyMemory,
        alone: Iterable[NegationFact],
        spoken: Callable[[], frozenset[int]],
    ) -> tuple[str, ...]:
        if isinstance(memory, NegationFact):
            return ()
        claimed, voice = claim_terms(memory), speaks_as(memory)
        # A name or a number may be anybody's.
        of_anybody = isinstance(memory, Fact)
        named = [
            (subject, negation)
            for term in self._by_term.keys() & claimed
            for needed, subject, negation in self._by_term[term]
            if needed <= claimed
        ]
        named += [(subject_terms(negation.subject), negation) for negation in alone]
        possible = [
            negation
            for subject, negation in named
            if subject <= claimed or negation.subject == voice or of_anybody
        ]
        if not possible:
            return ()
        return tuple(
            sorted(
                negation.id
                for negation in possible
                if self._covers(negation, memory) and self._is_spoken_of(negation, memory, spoken)
            )
        )

    def _is_spoken_of(
        self, negation: NegationFact, memory: AnyMemory, spoken: Callable[[], frozenset[int]]
    ) -> bool:
        terms = self._encode(negation.indexed_text).indices
        # What claims a thing mostly names it: then the terms of the others need not be known.
        own = frozenset(self._encode(memory.content).indices)
        return not own.isdisjoint(terms) or not spoken().isdisjoint(terms)


@kept(_NEGATIONS_KEPT)
def _object_terms(pattern: str) -> tuple[str | None, frozenset[str]]:
    """The words of what is denied, and the one to look it up by: long words are rare ones."""
    terms = frozenset(pattern_terms(pattern)[1:])
    return max(terms, key=lambda term: (len(term), term), default=None), terms


def _in_force_at(visibility: Visibility) -> Visibility:
    # A denial holds from when it was known, whatever time the question is about. One that faded,
    # or was put aside, is offered no more: nobody took it back.
    return replace(
        visibility, valid_at=None, include_stale=True, include_archived=True, include_expired=True
    )
