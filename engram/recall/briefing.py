"""What matters most about a user, for the start of a conversation."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from engram.domain.lifecycle.rules import LifecycleRules
from engram.domain.lifecycle.values import is_cold, is_disputed, quality
from engram.domain.memories import (
    ANSWERING_FORMS,
    DERIVED_TYPES,
    AnyMemory,
    MemoryType,
    NegationFact,
    SemanticMemory,
)
from engram.domain.normalisation import normalise
from engram.domain.scope import Scope
from engram.domain.visibility import Visibility
from engram.ports import MemoryRepository
from engram.recall.conditions import visible

_PAGE = 500


class Briefed(BaseModel):
    """A memory of a briefing.

    Attributes:
        memory: What is known.
        score: Its durable score, 0 to 1: quality without recency.
        explanation: The score with its parts.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    memory: AnyMemory
    score: float = Field(ge=0, le=1)
    explanation: str


@dataclass(frozen=True, slots=True)
class Briefing:
    """Chooses what a conversation should begin with.

    Args:
        repository: Where memories are kept.
        rules: What a memory is worth.
        covers: Whether a negation speaks against a memory.
        candidates: Memories of each type that are compared, the latest known first.
    """

    repository: MemoryRepository
    rules: LifecycleRules
    covers: Callable[[NegationFact, AnyMemory], bool]
    candidates: int

    async def of(
        self, scope: Scope, now: datetime, limit: int, *, include_test: bool = False
    ) -> list[Briefed]:
        """Conclusions that hold, by durable score; what says the same comes once.

        What is kept cold comes only where hot memories do not fill the limit.
        """
        found: list[AnyMemory] = []
        visibility = Visibility(now=now, include_test=include_test)
        for memory_type in DERIVED_TYPES:
            found += await self._latest(scope, memory_type, visibility)
        ranked = [
            (quality(memory, now, self.rules).durable, memory) for memory in found if _tells(memory)
        ]
        negations = [one for one in found if isinstance(one, NegationFact)]
        # A heap: only what is asked for is compared with negations.
        heap = [(is_cold(m, self.rules), -score, m.id, m) for score, m in ranked]
        heapq.heapify(heap)
        chosen: dict[str, Briefed] = {}
        while heap and len(chosen) < limit:
            _, score, _, memory = heapq.heappop(heap)
            words = normalise(memory.content)
            if words in chosen or self._denied(memory, negations):
                continue
            told = quality(memory, now, self.rules).explain()
            chosen[words] = Briefed(memory=memory, score=-score, explanation=told)
        return list(chosen.values())

    async def _latest(
        self, scope: Scope, memory_type: MemoryType, visibility: Visibility
    ) -> list[AnyMemory]:
        found: list[AnyMemory] = []
        cursor: str | None = None
        while len(found) < self.candidates:
            page = await self.repository.scroll(
                scope,
                memory_type,
                where=visible(visibility, memory_type),
                descending=True,
                limit=min(_PAGE, self.candidates - len(found)),
                cursor=cursor,
            )
            found += page.memories
            cursor = page.cursor
            if cursor is None:
                break
        return found

    def _denied(self, memory: AnyMemory, negations: Sequence[NegationFact]) -> bool:
        if isinstance(memory, NegationFact):
            return False
        return any(
            negation.known_at > memory.known_at and self.covers(negation, memory)
            for negation in negations
        )


def _tells(memory: AnyMemory) -> bool:
    """Whether it is a statement that nobody disputes."""
    if isinstance(memory, SemanticMemory) and memory.form not in ANSWERING_FORMS:
        return False
    return not is_disputed(memory)
