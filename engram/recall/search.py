"""Bringing up candidates: one question, one round trip for all types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from engram.domain.memories import MemoryType
from engram.domain.scope import Scope
from engram.domain.visibility import Visibility
from engram.ports import (
    Candidate,
    Embedder,
    MemoryRepository,
    SearchRequest,
    SparseVector,
    TextVectors,
)
from engram.recall.conditions import where
from engram.recall.request import RecallRequest


class RecallEmbedder(Embedder, Protocol):
    """An embedder that also tells the terms of a text, without asking a model."""

    def encode_terms(self, text: str) -> SparseVector:
        """The terms of ``text``, as a question."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """A request, its vectors, and from when it looks."""

    scope: Scope
    request: RecallRequest
    vectors: TextVectors
    visibility: Visibility


async def search(
    repository: MemoryRepository, question: Question, limit: int
) -> Sequence[Candidate]:
    """Up to ``limit`` candidates per type and side that pass the store's filters."""
    types = question.request.types
    return await repository.search(
        question.scope,
        SearchRequest(
            vectors=question.vectors,
            types=types,
            limit=limit,
            where={kind: where(question.request, question.visibility, kind) for kind in types},
        ),
    )


def was_cut(candidates: Sequence[Candidate], limit: int) -> bool:
    """Whether some type has more candidates than were brought up."""
    dense: Counter[MemoryType] = Counter()
    sparse: Counter[MemoryType] = Counter()
    for one in candidates:
        dense[one.memory.type] += one.dense is not None
        sparse[one.memory.type] += one.sparse is not None
    return any(count >= limit for side in (dense, sparse) for count in side.values())
