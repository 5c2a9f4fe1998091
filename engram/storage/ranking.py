"""From two rankings of ids to candidates, the same way on every engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from engram.ports import SearchRequest, SparseVector

MAX_LIMIT: Final = 10_000
_MARGIN: Final = 16
_MOST_TIES: Final = 4096
_GROWTH: Final = 4

Side = Literal["dense", "sparse"]


@dataclass(frozen=True, slots=True)
class RankQuery:
    """One side of a search: the nearest ``limit`` ids to one vector."""

    side: Side
    vector: tuple[float, ...] | SparseVector
    limit: int


@dataclass(frozen=True, slots=True)
class Ranked:
    """An id and its score on one side."""

    memory_id: str
    score: float


def sides(request: SearchRequest) -> list[RankQuery]:
    """What to ask an engine. A side that says nothing (all zeros, no terms) is left out."""
    limit = request.limit + _MARGIN
    found: list[RankQuery] = []
    if any(request.vectors.dense):
        found.append(RankQuery("dense", request.vectors.dense, limit))
    if any(request.vectors.sparse.values):
        found.append(RankQuery("sparse", request.vectors.sparse, limit))
    return found


def wider(query: RankQuery, answer: Sequence[Ranked], limit: int) -> RankQuery | None:
    """The query to ask instead, if equal scores reach past what the engine answered.

    Which of several equals an engine returns is up to its segments. Cutting by
    id needs all of them, so more are asked for, up to a bound.
    """
    if len(answer) < query.limit or query.limit >= max(_MOST_TIES, limit + _MARGIN):
        return None
    if answer[-1].score < answer[limit - 1].score:
        return None
    return RankQuery(query.side, query.vector, min(query.limit * _GROWTH, _MOST_TIES))


def cut(answer: Sequence[Ranked], limit: int) -> dict[str, float]:
    """The best ``limit`` ids with their scores, ties by id."""
    best = sorted(answer, key=lambda ranked: (-ranked.score, ranked.memory_id))[:limit]
    return {ranked.memory_id: ranked.score for ranked in best}
