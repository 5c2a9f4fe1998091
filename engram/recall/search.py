"""Bringing up candidates: which memories are near the question, and reading the best of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from engram.domain.memories import AnyMemory, MemoryType
from engram.domain.scope import Scope
from engram.domain.visibility import Visibility
from engram.ports import (
    Embedder,
    Match,
    MemoryRepository,
    SearchRequest,
    SparseVector,
    TextVectors,
)
from engram.recall.analysis import Analysis
from engram.recall.conditions import asked_for, where
from engram.recall.fusion import Sides, best_by_words, sides_of, was_cut
from engram.recall.request import RecallRequest


class RecallEmbedder(Embedder, Protocol):
    """An embedder that also tells the terms of a text, without asking a model."""

    def encode_terms(self, text: str) -> SparseVector:
        """The terms of ``text``, as a question."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """A request, its vectors, what it asks for, and from when it looks."""

    scope: Scope
    request: RecallRequest
    vectors: TextVectors
    visibility: Visibility
    analysis: Analysis


class Found(NamedTuple):
    """A memory that was brought up, with both sides of the search."""

    memory: AnyMemory
    sides: Sides


@dataclass(frozen=True, slots=True)
class Reach:
    """How far to look.

    Attributes:
        candidates: Matches per type and side.
        pool: How many of them are read.
        loosely: Leave to the reader which memories count; see :meth:`Search.bring_up`.
    """

    candidates: int
    pool: int
    loosely: bool = False


@dataclass(frozen=True, slots=True)
class Pool:
    """The candidates that were read, best first; ``cut``: there are more."""

    found: tuple[Found, ...] = ()
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Search:
    """Finds candidates in a store."""

    repository: MemoryRepository
    embedder: RecallEmbedder

    async def bring_up(self, question: Question, reach: Reach) -> Pool:
        """Up to ``reach.pool`` candidates of all types.

        Conditions that almost every memory fulfils (being active, no test) double
        the engine's work. Looking ``loosely`` leaves them out; who asks drops what
        does not count, and asks again in earnest if too little remains.
        """
        matches = await self._matches(question, reach)
        best = best_by_words(matches)
        read = await self._read(question.scope, best.values()) if len(best) > 1 else {}
        scale = self._coverage(question, read) if len(best) > 1 else {}
        chosen = sides_of(matches, limit=reach.candidates, scale=scale, most=reach.pool)
        missing = [one.match for one in chosen if one.match.memory_id not in read]
        read |= await self._read(question.scope, missing)
        return Pool(
            found=tuple(
                Found(read[one.match.memory_id], one)
                for one in chosen
                if one.match.memory_id in read
            ),
            cut=len(matches) > len(chosen) or was_cut(matches, reach.candidates),
        )

    async def _matches(self, question: Question, reach: Reach) -> Sequence[Match]:
        request = question.request
        conditions = {
            kind: asked_for(request, kind)
            if reach.loosely
            else where(request, question.visibility, kind)
            for kind in request.types
        }
        return await self.repository.rank(
            question.scope,
            SearchRequest(
                vectors=question.vectors,
                types=request.types,
                limit=reach.candidates,
                where=conditions,
            ),
        )

    async def _read(self, scope: Scope, matches: Iterable[Match]) -> dict[str, AnyMemory]:
        by_type: dict[MemoryType, list[str]] = {}
        for one in matches:
            by_type.setdefault(one.memory_type, []).append(one.memory_id)
        read: dict[str, AnyMemory] = {}
        for kind, ids in by_type.items():
            read |= await self.repository.get(scope, ids, (kind,))
        return read

    def _coverage(
        self, question: Question, best: Mapping[str, AnyMemory]
    ) -> dict[MemoryType, float]:
        """How many of the question's words each type's best holds, against the best of all."""
        words = set(question.vectors.sparse.indices)
        held = {
            one.type: len(words.intersection(self.embedder.encode_terms(one.indexed_text).indices))
            for one in best.values()
        }
        most = max(held.values(), default=0)
        return {kind: count / most if most else 1.0 for kind, count in held.items()}
