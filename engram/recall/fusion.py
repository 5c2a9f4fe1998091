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
  many of the question's words that best one holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engram.domain.memories import MemoryType
from engram.ports import Match

# Which candidates are read at all is decided by these two sides alone.
_WORDS, _MEANING = 0.7, 0.3


@dataclass(frozen=True, slots=True)
class Sides:
    """A match with both sides brought to 0 to 1."""

    match: Match
    near: float
    words: float

    @property
    def both(self) -> float:
        """What the two sides say together."""
        return _WORDS * self.words + _MEANING * self.near


def sides_of(
    matches: Sequence[Match], *, limit: int, scale: Mapping[MemoryType, float]
) -> list[Sides]:
    """Every match with both sides, best first, ties by id.

    Args:
        matches: Of all types.
        limit: How many per type and side were asked for.
        scale: How much the words of each type count, see :func:`best_by_words`.
    """
    near, words = _near(matches), _words(matches, limit, scale)
    found = [Sides(*one) for one in zip(matches, near, words, strict=True)]
    return sorted(found, key=lambda one: (-one.both, one.match.memory_id))


def best_by_words(matches: Sequence[Match]) -> dict[MemoryType, Match]:
    """For each type, the match with the most words of the question, by BM25."""
    best: dict[MemoryType, Match] = {}
    for one in matches:
        known = best.get(one.memory_type)
        if _sparse(one) > 0 and (known is None or _sparse(one) > _sparse(known)):
            best[one.memory_type] = one
    return best


def was_cut(matches: Sequence[Match], limit: int) -> bool:
    """Whether some type has more matches than were brought up."""
    counts: dict[tuple[MemoryType, str], int] = {}
    for one in matches:
        for side, score in (("dense", one.dense), ("sparse", one.sparse)):
            key = (one.memory_type, side)
            counts[key] = counts.get(key, 0) + (score is not None)
    return any(count >= limit for count in counts.values())


def _near(matches: Sequence[Match]) -> list[float]:
    found = [one.dense for one in matches if one.dense is not None]
    if not found:
        return [0.0] * len(matches)
    low, high = min(found), max(found)
    if high <= low:
        return [0.0 if one.dense is None else 1.0 for one in matches]
    return [0.0 if one.dense is None else (one.dense - low) / (high - low) for one in matches]


def _words(matches: Sequence[Match], limit: int, scale: Mapping[MemoryType, float]) -> list[float]:
    best = best_by_words(matches)
    found: dict[MemoryType, list[float]] = {}
    for one in matches:
        if _sparse(one) > 0:
            found.setdefault(one.memory_type, []).append(_sparse(one))
    floor = {kind: min(side) if len(side) >= limit else 0.0 for kind, side in found.items()}
    values: list[float] = []
    for one in matches:
        top = best.get(one.memory_type)
        if top is None:
            values.append(0.0)
            continue
        raw = floor[one.memory_type] if one.sparse is None else max(one.sparse, 0.0)
        values.append(scale.get(one.memory_type, 1.0) * raw / _sparse(top))
    return values


def _sparse(match: Match) -> float:
    return match.sparse or 0.0
