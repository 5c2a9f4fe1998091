"""One score out of two sides: meaning (dense) and words (BM25).

The scores themselves are added, not the ranks: reciprocal ranks with equal
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

from collections.abc import Callable, Sequence

from engram.domain.memories import MemoryType
from engram.ports import Candidate, SparseVector
from engram.recall.ranked import Ranked, SideScore, by_score

DENSE_WEIGHT = 0.4
SPARSE_WEIGHT = 0.6

Encode = Callable[[str], SparseVector]


def fuse(
    candidates: Sequence[Candidate], *, asked: SparseVector, encode: Encode, limit: int
) -> list[Ranked]:
    """Candidates with one score each, best first, ties by id.

    Args:
        candidates: Of all types.
        asked: The terms of the question.
        encode: Terms of a text, to see how much of the question it holds.
        limit: How many candidates per type and side were asked for.
    """
    dense = _dense_values(candidates)
    sparse = _sparse_values(candidates, asked, encode, limit)
    weights = _weights(candidates)
    return by_score(
        [
            Ranked(
                memory=one.memory,
                score=min(1.0, weights[0] * near + weights[1] * words),
                dense=SideScore(one.dense, near, weights[0]),
                sparse=SideScore(one.sparse, words, weights[1]),
            )
            for one, near, words in zip(candidates, dense, sparse, strict=True)
        ]
    )


def _weights(candidates: Sequence[Candidate]) -> tuple[float, float]:
    """A side that found nothing at all has no say."""
    if all(one.sparse is None for one in candidates):
        return 1.0, 0.0
    if all(one.dense is None for one in candidates):
        return 0.0, 1.0
    return DENSE_WEIGHT, SPARSE_WEIGHT


def _dense_values(candidates: Sequence[Candidate]) -> list[float]:
    found = [one.dense for one in candidates if one.dense is not None]
    if not found:
        return [0.0] * len(candidates)
    low, high = min(found), max(found)
    if high <= low:
        return [0.0 if one.dense is None else 1.0 for one in candidates]
    return [0.0 if one.dense is None else (one.dense - low) / (high - low) for one in candidates]


def _sparse_values(
    candidates: Sequence[Candidate], asked: SparseVector, encode: Encode, limit: int
) -> list[float]:
    found: dict[MemoryType, list[Candidate]] = {}
    for one in candidates:
        if one.sparse is not None and one.sparse > 0:
            found.setdefault(one.memory.type, []).append(one)
    best = {kind: max(side, key=_sparse) for kind, side in found.items()}
    scale = _coverage(best, asked, encode)
    floor = {
        kind: min(map(_sparse, side)) if len(side) >= limit else 0.0 for kind, side in found.items()
    }
    values = []
    for one in candidates:
        kind = one.memory.type
        top = best.get(kind)
        if top is None:
            values.append(0.0)
        else:
            raw = floor[kind] if one.sparse is None else max(one.sparse, 0.0)
            values.append(scale[kind] * raw / _sparse(top))
    return values


def _sparse(candidate: Candidate) -> float:
    return candidate.sparse or 0.0


def _coverage(
    best: dict[MemoryType, Candidate], asked: SparseVector, encode: Encode
) -> dict[MemoryType, float]:
    """How many of the question's words each type's best holds, against the best of all."""
    if len(best) < 2:  # noqa: PLR2004 - with one type there is nothing to compare
        return dict.fromkeys(best, 1.0)
    words = set(asked.indices)
    held = {
        kind: len(words.intersection(encode(one.memory.indexed_text).indices))
        for kind, one in best.items()
    }
    most = max(held.values())
    return {kind: count / most if most else 1.0 for kind, count in held.items()}
