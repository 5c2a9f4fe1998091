"""What was denied does not come back as true."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache

from engram.domain.memories import AnyMemory, MemoryType, NegationFact
from engram.domain.negation_cover import claim_terms, pattern_terms, subject_terms
from engram.domain.visibility import Visibility
from engram.ports import Filter, MemoryRepository, SearchRequest, SparseVector, TextVectors
from engram.recall.conditions import visible
from engram.recall.ranked import Ranked
from engram.recall.search import Question

Covers = Callable[[NegationFact, AnyMemory], bool]
Encode = Callable[[str], SparseVector]

# One look-up for all candidates brings up so many negations; where more match, there
# is one look-up per candidate.
TOGETHER = 512
EACH = 16
# Negations that are kept in memory. What one denies never changes, and whether it is
# in force, and since when, is asked of the store each time.
_KEPT = 4096
_TEXTS_KEPT = 2048


class Negations:
    """Finds the negations in force, and what they do to candidates.

    Args:
        repository: Where negations are.
        encode: The terms of a text.
        covers: Whether a negation denies what a memory claims.
        factor: What the score of a denied turn is multiplied with: it stays, verbatim,
            behind what is equally near and still holds.
    """

    def __init__(
        self, repository: MemoryRepository, encode: Encode, covers: Covers, factor: float
    ) -> None:
        self._repository = repository
        self._encode = lru_cache(maxsize=_TEXTS_KEPT)(encode)
        self._covers = covers
        self._factor = factor
        self._known: dict[str, NegationFact] = {}

    async def apply(self, question: Question, found: Sequence[Ranked]) -> list[Ranked]:
        """Candidates without the derived ones that are denied; denied episodes are marked.

        A negation speaks against what was known before it. What was learnt after
        it is the newer word, and stays.
        """
        open_to_doubt = [one for one in found if one.memory.type is not MemoryType.NEGATION]
        if not open_to_doubt:
            return list(found)
        known = await self._sharing_words(question, open_to_doubt)
        if not known:
            return list(found)
        in_force = _in_force_at(question.visibility)
        denials = _Denials(known, self._covers)
        possible = {one.memory.id: denials.against(one.memory) for one in found}
        speaking = {negation for against in possible.values() for negation in against}
        fresh = await self._read(question, speaking) if speaking else {}
        kept: list[Ranked] = []
        for one in found:
            against = tuple(
                key
                for key in possible[one.memory.id]
                if key in fresh
                and in_force.counts(fresh[key])
                and fresh[key].known_at > one.memory.known_at
            )
            if not against:
                kept.append(one)
            elif not one.is_derived:
                lowered = one.moved_to(one.score * self._factor, "negated", float(len(against)))
                kept.append(replace(lowered, negated_by=against))
        return kept

    async def _sharing_words(
        self, question: Question, found: Sequence[Ranked]
    ) -> list[NegationFact]:
        """Negations that share a word with the question or a candidate; not all are in force.

        Which are is cheaper to tell of the few that speak than to ask of all. Only
        where there are very many, those that are not may not take up the room.
        """
        texts = [question.request.query, *(one.memory.content for one in found)]
        ids = await self._look_up(question, texts, TOGETHER, ())
        if len(ids) >= TOGETHER:
            standing = visible(_in_force_at(question.visibility), MemoryType.NEGATION)
            ids = await self._look_up(question, texts, TOGETHER, standing)
            if len(ids) >= TOGETHER:
                for text in texts:
                    ids |= await self._look_up(question, [text], EACH, standing)
        await self._read(question, {key for key in ids if key not in self._known})
        return [self._known[key] for key in sorted(ids) if key in self._known]

    async def _look_up(
        self, question: Question, texts: Sequence[str], limit: int, where: Filter
    ) -> set[str]:
        # By words only: a denial is of words, and the other side would bring up strangers.
        nothing = (0.0,) * len(question.vectors.dense)
        found = await self._repository.rank(
            question.scope,
            SearchRequest(
                vectors=TextVectors(nothing, self._words_of(texts)),
                types=(MemoryType.NEGATION,),
                limit=limit,
                where={MemoryType.NEGATION: where},
            ),
        )
        return {one.memory_id for one in found}

    def _words_of(self, texts: Iterable[str]) -> SparseVector:
        """The terms of all texts, each once. The same memories answer again and again."""
        indices = sorted({index for text in texts for index in self._encode(text).indices})
        return SparseVector(tuple(indices), (1.0,) * len(indices))

    async def _read(self, question: Question, ids: Iterable[str]) -> dict[str, NegationFact]:
        wanted = sorted(ids)
        if not wanted:
            return {}
        read = await self._repository.get(question.scope, wanted, (MemoryType.NEGATION,))
        found = {key: one for key, one in read.items() if isinstance(one, NegationFact)}
        if len(self._known) + len(found) > _KEPT:
            self._known.clear()
        self._known |= found
        return found


class _Denials:
    """Negations, by a word of what they deny.

    The rule itself reads sentences, which takes long for many negations; a memory
    that lacks a word of what is denied has nothing to find.
    """

    def __init__(self, known: Iterable[NegationFact], covers: Covers) -> None:
        self._covers = covers
        self._by_term: dict[str, list[tuple[frozenset[str], NegationFact]]] = {}
        self._of_verb_alone: list[NegationFact] = []
        for negation in known:
            longest, terms = _object_terms(negation.negates_pattern)
            if longest is not None:
                self._by_term.setdefault(longest, []).append((terms, negation))
            else:
                self._of_verb_alone.append(negation)

    def against(self, memory: AnyMemory) -> tuple[str, ...]:
        """The negations that deny what the memory claims, by id, whenever either was said."""
        if isinstance(memory, NegationFact):
            return ()
        claimed = claim_terms(memory)
        possible = [
            negation
            for term in claimed
            for needed, negation in self._by_term.get(term, ())
            if needed <= claimed
        ]
        return tuple(
            sorted(
                negation.id
                for negation in (*self._of_verb_alone, *possible)
                if subject_terms(negation, memory) <= claimed and self._covers(negation, memory)
            )
        )


@lru_cache(maxsize=_KEPT)
def _object_terms(pattern: str) -> tuple[str | None, frozenset[str]]:
    """The words of what is denied, and the one to look it up by: long words are rare ones."""
    terms = frozenset(pattern_terms(pattern)[1:])
    return max(terms, key=lambda term: (len(term), term), default=None), terms


def _in_force_at(visibility: Visibility) -> Visibility:
    # A denial holds from when it was known, whatever time the question is about;
    # and being archived does not bring it back.
    return replace(visibility, valid_at=None, include_archived=False)
