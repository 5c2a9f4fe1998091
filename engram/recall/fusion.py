"""Two sides of a search on one scale: meaning (dense) and words (BM25).

The scores themselves are compared, not the ranks: reciprocal ranks with equal
weights let a weak dense side overrule a clear match of words. Each side is
brought to 0 to 1 first.

- Dense: min-max over the candidates, because cosines of one model crowd into a
  narrow band. What this side did not find gets its floor, 0.
- BM25: divided by the best score, because 0 has a meaning: no word in common.
  What this side did not find gets 0, or the lowest score where the list was cut.
  The document frequencies behind BM25 are those of one type, so scores of two
  types do not compare: each type is divided by its own best, and scaled by how
  many of the question's words that best one holds. Words that almost every
  memory of the type holds ("the user") are hardly a match, and scale it down.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from engram.domain.memories import MemoryType
from engram.ports import Match

# Which candidates are read at all is decided by these two sides alone.
_WORDS, _MEANING = 0.7, 0.3
# What a word that all memories of a type hold can count at most, as BM25 has it: that is
# its inverse document frequency, ln(1 + (N - n + 0.5) / (n + 0.5)), for N = n = 1.
_TELLS_NOTHING = math.log(4 / 3)


class Sides(NamedTuple):
    """A match with both sides brought to 0 to 1; ``both``: what the two say together."""

    match: Match
    near: float
    words: float
    both: float


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
    factors = _factors(matches, scale)
    floors = _floors(matches, limit)
    # Plain tuples: a recall compares hundreds, and few come through.
    rows: list[tuple[float, str, int, float, float]] = []
    for place, (kind, memory_id, dense, sparse) in enumerate(matches):
        near = 0.0 if dense is None else (dense - low) / width
        raw = floors.get(kind, 0.0) if sparse is None else sparse
        words = max(raw, 0.0) * factors.get(kind, 0.0)
        rows.append((-_WORDS * words - _MEANING * near, memory_id, place, near, words))
    rows.sort()
    return [
        Sides(matches[place], near, words, -both) for both, _, place, near, words in rows[:most]
    ]


def best_by_words(matches: Sequence[Match]) -> dict[MemoryType, Match]:
    """For each type, the match with the most words of the question, by BM25."""
    best: dict[MemoryType, Match] = {}
    tops: dict[MemoryType, float] = {}
    for one in matches:
        if one.sparse is not None and one.sparse > tops.get(one.memory_type, 0.0):
            tops[one.memory_type] = one.sparse
            best[one.memory_type] = one
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


def _factors(
    matches: Sequence[Match], scale: Mapping[MemoryType, float]
) -> dict[MemoryType, float]:
    """What brings the BM25 scores of each type to 0 to 1."""
    return {
        kind: scale.get(kind, 1.0) / max(top.sparse, _TELLS_NOTHING)
        for kind, top in best_by_words(matches).items()
        if top.sparse
    }


def _floors(matches: Sequence[Match], limit: int) -> dict[MemoryType, float]:
    """What a match counts that the words' side did not bring up: less than the last it did."""
    found: dict[MemoryType, list[float]] = {}
    for one in matches:
        if one.sparse is not None and one.sparse > 0:
            found.setdefault(one.memory_type, []).append(one.sparse)
    return {kind: min(side) for kind, side in found.items() if _is_cut(len(side), limit)}
