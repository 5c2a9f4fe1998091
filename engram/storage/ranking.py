"""From two rankings of ids to candidates, the same way on every engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from engram.ports import SearchRequest, SparseVector

MAX_LIMIT: Final = 10_000
_MARGIN: Final = 8
_MOST_TIES: Final = 4096
_GROWTH: Final = 4
# Shorter lists are always filled: who asks for so few looks at every one.
_FEW: Final = 32

Side = Literal["dense", "sparse"]


@dataclass(frozen=True, slots=True)
class RankQuery:
    """One side of a search: the nearest ``limit`` ids to one vector."""

    side: Side
    vector: tuple[float, ...] | SparseVector
    limit: int


class Ranked(NamedTuple):
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
    id needs all of them, so more are asked for, up to a bound; unless enough
    stand before them (see :func:`cut`).
    """
    if len(answer) < query.limit or query.limit >= max(_MOST_TIES, limit + _MARGIN):
        return None
    if answer[-1].score < answer[limit - 1].score or _before_last(answer) >= _enough(limit):
        return None
    return RankQuery(query.side, query.vector, min(query.limit * _GROWTH, _MOST_TIES))


def cut(answer: Sequence[Ranked], query: RankQuery, limit: int) -> dict[str, float]:
    """The best ``limit`` ids with their scores, ties by id.

    Where equal scores reach past the answer, and at least half of ``limit`` stand
    before them, none of these equals is taken: any choice would be the engine's.
    """
    if len(answer) >= query.limit and answer[-1].score >= answer[limit - 1].score:
        before = _before_last(answer)
        if before >= _enough(limit):
            answer = answer[:before]
    best = sorted([(-ranked.score, ranked.memory_id) for ranked in answer])[:limit]
    return {memory_id: -below for below, memory_id in best}


def _before_last(answer: Sequence[Ranked]) -> int:
    """How many stand before the equals at the end."""
    last = answer[-1].score
    return next((at for at, ranked in enumerate(answer) if ranked.score <= last), len(answer))


def _enough(limit: int) -> int:
    return max(_FEW, limit // 2)
