"""What was denied does not come back as true (row R1)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from engram.domain.memories import AnyMemory, MemoryType, NegationFact
from engram.domain.visibility import Visibility
from engram.ports import MemoryRepository, SearchRequest, SparseVector, TextVectors
from engram.recall.conditions import visible
from engram.recall.ranked import Ranked
from engram.recall.search import Question

Covers = Callable[[NegationFact, AnyMemory], bool]
Encode = Callable[[str], SparseVector]

# A turn that was denied later stays, verbatim, behind what is equally near and still holds.
NEGATED_FACTOR = 0.7
# One look-up for all candidates brings up to so many negations; a user with more
# that match gets one look-up per candidate.
TOGETHER = 64
EACH = 16


@dataclass(frozen=True, slots=True)
class Negations:
    """Finds the negations in force, and what they do to candidates."""

    repository: MemoryRepository
    encode: Encode
    covers: Covers

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
        said = {one.id: self._words(f"{one.evidence} {one.negates_pattern}") for one in known}
        kept: list[Ranked] = []
        for one in found:
            against = self._against(one, known, said)
            if not against:
                kept.append(one)
            elif not one.is_derived:
                lowered = one.score * NEGATED_FACTOR
                change = one.adjustment + lowered - one.score
                kept.append(replace(one, score=lowered, negated_by=against, adjustment=change))
        return kept

    def _against(
        self, one: Ranked, known: Sequence[NegationFact], said: Mapping[str, frozenset[int]]
    ) -> tuple[str, ...]:
        memory = one.memory
        if memory.type is MemoryType.NEGATION:
            return ()
        # The rule itself reads sentences, which takes long for many negations; without
        # a word in common it has nothing to find.
        words = self._words(memory.content)
        return tuple(
            negation.id
            for negation in known
            if negation.known_at > memory.known_at
            and not words.isdisjoint(said[negation.id])
            and self.covers(negation, memory)
        )

    def _words(self, text: str) -> frozenset[int]:
        return frozenset(self.encode(text).indices)

    async def _in_force(self, question: Question, found: Sequence[Ranked]) -> list[NegationFact]:
        """Negations that share a word with the question or a candidate, by id."""
        texts = [question.request.query, *(one.memory.content for one in found)]
        together = await self._look_up(question, "\n".join(texts), TOGETHER)
        if len(together) >= TOGETHER:
            for text in texts:
                together.update(await self._look_up(question, text, EACH))
        return [together[memory_id] for memory_id in sorted(together)]

    async def _look_up(self, question: Question, text: str, limit: int) -> dict[str, NegationFact]:
        in_force = _in_force_at(question.visibility)
        found = await self.repository.search(
            question.scope,
            SearchRequest(
                vectors=TextVectors(question.vectors.dense, self.encode(text)),
                types=(MemoryType.NEGATION,),
                limit=limit,
                where={MemoryType.NEGATION: visible(in_force, MemoryType.NEGATION)},
            ),
        )
        return {one.memory.id: one.memory for one in found if isinstance(one.memory, NegationFact)}


def _in_force_at(visibility: Visibility) -> Visibility:
    # A denial holds from when it was known, whatever time the question is about;
    # and being archived does not bring it back.
    return replace(visibility, valid_at=None, include_archived=False)
