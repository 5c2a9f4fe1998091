"""What was denied does not come back as true (row R1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from engram.domain.memories import AnyMemory, MemoryType, NegationFact
from engram.domain.negation_cover import claim_terms, pattern_terms
from engram.domain.visibility import Visibility
from engram.ports import MemoryRepository, SearchRequest, SparseVector, TextVectors
from engram.recall.conditions import visible
from engram.recall.ranked import Ranked
from engram.recall.search import Question

Covers = Callable[[NegationFact, AnyMemory], bool]
Encode = Callable[[str], SparseVector]

# One look-up for all candidates brings up so many negations; where more match, a
# second brings up so many more, and past that there is one look-up per candidate.
TOGETHER = 64
MANY = 512
EACH = 16


@dataclass(frozen=True, slots=True)
class Negations:
    """Finds the negations in force, and what they do to candidates.

    Args:
        repository: Where negations are.
        encode: The terms of a text.
        covers: Whether a negation denies what a memory claims.
        factor: What the score of a denied turn is multiplied with: it stays, verbatim,
            behind what is equally near and still holds.
    """

    repository: MemoryRepository
    encode: Encode
    covers: Covers
    factor: float

    async def apply(self, question: Question, found: Sequence[Ranked]) -> list[Ranked]:
        """Candidates without the derived ones that are denied; denied episodes are marked.

        A negation speaks against what was known before it. What was learnt after
        it is the newer word, and stays.
        """
        open_to_doubt = [one for one in found if one.memory.type is not MemoryType.NEGATION]
        if not open_to_doubt:
            return list(found)
        known = await self._in_force(question, open_to_doubt)
        if not known:
            return list(found)
        denials = _Denials(known, self.covers)
        kept: list[Ranked] = []
        for one in found:
            against = denials.against(one.memory)
            if not against:
                kept.append(one)
            elif not one.is_derived:
                lowered = one.moved_to(one.score * self.factor, "negated", float(len(against)))
                kept.append(replace(lowered, negated_by=against))
        return kept

    async def _in_force(self, question: Question, found: Sequence[Ranked]) -> list[NegationFact]:
        """Negations that share a word with the question or a candidate, by id."""
        texts = [question.request.query, *(one.memory.content for one in found)]
        everything = "\n".join(texts)
        together = await self._look_up(question, everything, TOGETHER)
        if len(together) >= TOGETHER:
            together = await self._look_up(question, everything, MANY)
        if len(together) >= MANY:
            for text in texts:
                together.update(await self._look_up(question, text, EACH))
        return [together[memory_id] for memory_id in sorted(together)]

    async def _look_up(self, question: Question, text: str, limit: int) -> dict[str, NegationFact]:
        in_force = _in_force_at(question.visibility)
        # By words only: a denial is of words, and the other side would bring up strangers.
        nothing = (0.0,) * len(question.vectors.dense)
        found = await self.repository.search(
            question.scope,
            SearchRequest(
                vectors=TextVectors(nothing, self.encode(text)),
                types=(MemoryType.NEGATION,),
                limit=limit,
                where={MemoryType.NEGATION: visible(in_force, MemoryType.NEGATION)},
            ),
        )
        return {one.memory.id: one.memory for one in found if isinstance(one.memory, NegationFact)}


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
            _, *terms = pattern_terms(negation.negates_pattern) or ("",)
            if terms:
                entry = (frozenset(terms), negation)
                self._by_term.setdefault(min(terms), []).append(entry)
            else:
                self._of_verb_alone.append(negation)

    def against(self, memory: AnyMemory) -> tuple[str, ...]:
        """The negations that speak against the memory, by id."""
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
                if negation.known_at > memory.known_at and self._covers(negation, memory)
            )
        )


def _in_force_at(visibility: Visibility) -> Visibility:
    # A denial holds from when it was known, whatever time the question is about;
    # and being archived does not bring it back.
    return replace(visibility, valid_at=None, include_archived=False)
