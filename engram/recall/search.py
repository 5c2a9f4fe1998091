"""Retrieval of candidates, and the fusion of dense and BM25 scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engram.domain.memories import AnyMemory, MemoryType
from engram.domain.scope import Scope
from engram.language.query import Analysis
from engram.ports import Embedder, Match, MemoryRepository, SearchRequest, TextVectors
from engram.recall.request import RecallRequest, Visibility, asked_for, where

# --- two sides of a search on one scale: meaning (dense) and words (BM25)
#
# The scores themselves are compared, not the ranks: reciprocal ranks with equal
# weights let a weak dense side overrule a clear match of words. Each side is
# brought to 0 to 1 first.
#
# - Dense: min-max over the candidates, because cosines of one model crowd into a
#   narrow band. What this side did not find gets its floor, 0.
# - BM25: divided by the best score, because 0 has a meaning: no word in common.
#   What this side did not find gets 0, or the lowest score where the list was cut.
#   The document frequencies behind BM25 are those of one type, so scores of two
#   types do not compare: each type is divided by its own best, and scaled by how
#   many of the question's words that best one holds. Words that almost every
#   memory of the type holds ("the user") are hardly a match, and scale it down.

# Which candidates are read at all is decided by these two sides alone.
_WORDS, _MEANING = 0.7, 0.3
# What a word that all memories of a type hold can count at most, as BM25 has it: that is
# its inverse document frequency, ln(1 + (N - n + 0.5) / (n + 0.5)), for N = n = 1.
_TELLS_NOTHING = math.log(4 / 3)
# Factor and floor of a type of which nothing has a word of the question.
_NO_WORDS = (0.0, 0.0)


class Sides(NamedTuple):
    """A match with both sides brought to 0 to 1."""

    match: Match
    near: float
    words: float


def sides_of(
    matches: Sequence[Match], *, limit: int, scale: Mapping[MemoryType, float], most: int
) -> list[Sides]:
    """The best ``most`` matches with both sides, best first, ties by id.

    Args:
        matches: Of all types.
        limit: How many per type and side were asked for.
        scale: How much the words of each type count, see :func:`best_by_words`.
        most: How many are wanted.
    """
    low, width = _band([one.dense for one in matches if one.dense is not None])
    counted = _counted(matches, limit, scale)
    # Plain numbers: a recall compares hundreds, and few come through.
    both: list[tuple[float, float]] = []
    add = both.append
    for kind, _, dense, sparse in matches:
        near = 0.0 if dense is None else (dense - low) / width
        factor, floor = counted.get(kind, _NO_WORDS)
        raw = floor if sparse is None else sparse
        add((near, raw * factor if raw > 0.0 else 0.0))
    behind = [-_WORDS * words - _MEANING * near for near, words in both]
    kept = sorted(behind)[:most]
    if not kept:
        return []
    # Only what may be among them is put in order of ids.
    first = [(one, matches[at].memory_id, at) for at, one in enumerate(behind) if one <= kept[-1]]
    first.sort()
    return [Sides(matches[at], *both[at]) for _, _, at in first[:most]]


def best_by_words(matches: Sequence[Match]) -> dict[MemoryType, Match]:
    """For each type, the match with the most words of the question, by BM25; ties by id."""
    best: dict[MemoryType, Match] = {}
    tops: dict[MemoryType, float] = {}
    for one in matches:
        kind, memory_id, _, sparse = one
        top = tops.get(kind, 0.0)
        if sparse is None or sparse < top:
            continue
        if sparse > top or (kind in best and memory_id < best[kind].memory_id):
            tops[kind] = sparse
            best[kind] = one
    return best


def was_cut(matches: Sequence[Match], limit: int) -> bool:
    """Whether some type has more matches than were brought up."""
    dense = Counter([one.memory_type for one in matches if one.dense is not None])
    sparse = Counter([one.memory_type for one in matches if one.sparse is not None])
    return any(_is_cut(count, limit) for side in (dense, sparse) for count in side.values())


def _is_cut(count: int, limit: int) -> bool:
    # A store may leave out equal scores at the end rather than cut through them.
    return 2 * count >= limit


def _band(found: Sequence[float]) -> tuple[float, float]:
    """Lowest cosine and the width of the band; a single one counts as the best there is."""
    if not found:
        return 0.0, 1.0
    low, high = min(found), max(found)
    return (low, high - low) if high > low else (low - 1.0, 1.0)


def _counted(
    matches: Sequence[Match], limit: int, scale: Mapping[MemoryType, float]
) -> dict[MemoryType, tuple[float, float]]:
    """What brings the BM25 scores of each type to 0 to 1, and the score of what has none.

    What the words' side did not bring up has less than the last it did, where the list was cut.
    """
    found: dict[MemoryType, list[float]] = {}
    for kind, _, _, sparse in matches:
        if sparse is not None and sparse > 0.0:
            found.setdefault(kind, []).append(sparse)
    return {
        kind: (
            scale.get(kind, 1.0) / max(*side, _TELLS_NOTHING),
            min(side) if _is_cut(len(side), limit) else 0.0,
        )
        for kind, side in found.items()
    }


# --- bringing up candidates: which memories are near the question, and reading the best of them


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A request, its vectors, what it asks for, and from when it looks."""

    scope: Scope
    request: RecallRequest
    vectors: TextVectors
    visibility: Visibility
    analysis: Analysis


class FoundMemory(NamedTuple):
    """A memory that was brought up, with both sides of the search."""

    memory: AnyMemory
    sides: Sides


@dataclass(frozen=True, slots=True)
class SearchBudget:
    """How far to look.

    Attributes:
        candidates: Matches per type and side.
        pool: How many of them are read.
        loosely: Leave to the reader which memories count; see :meth:`Search.retrieve_candidates`.
    """

    candidates: int
    pool: int
    loosely: bool = False


@dataclass(frozen=True, slots=True)
class Pool:
    """The candidates that were read, best first; ``cut``: there are more."""

    found: tuple[FoundMemory, ...] = ()
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Search:
    """Finds candidates in a store."""

    repository: MemoryRepository
    embedder: Embedder

    async def retrieve_candidates(self, question: PreparedQuery, reach: SearchBudget) -> Pool:
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
                FoundMemory(read[one.match.memory_id], one)
                for one in chosen
                if one.match.memory_id in read
            ),
            cut=len(matches) > len(chosen) or was_cut(matches, reach.candidates),
        )

    async def _matches(self, question: PreparedQuery, reach: SearchBudget) -> Sequence[Match]:
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
        self, question: PreparedQuery, best: Mapping[str, AnyMemory]
    ) -> dict[MemoryType, float]:
        """How many of the question's words each type's best holds, against the best of all."""
        words = set(question.vectors.sparse.indices)
        held = {
            one.type: len(words.intersection(self.embedder.encode_terms(one.indexed_text).indices))
            for one in best.values()
        }
        most = max(held.values(), default=0)
        return {kind: count / most if most else 1.0 for kind, count in held.items()}
