"""How good a ranking is, given the turns that it should hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

DEPTH = 20
CUTS = (1, 5, 10, 20)
_GAIN_DEPTH = 10


@dataclass(frozen=True, slots=True)
class Scores:
    """Means over questions, 0 to 1.

    Attributes:
        questions: How many.
        recall: Share of the evidence among the first k, by k.
        hit: Share of questions with any evidence among the first 10.
        mrr: 1 / rank of the first evidence, 0 if it is not among the first 20.
        ndcg: Discounted gain of the first 10 against the best order there could be.
    """

    questions: int
    recall: dict[int, float]
    hit: float
    mrr: float
    ndcg: float


def score(rankings: Iterable[tuple[Sequence[str], Sequence[str]]]) -> Scores:
    """Means over (ranking, evidence) pairs."""
    pairs = list(rankings)
    if not pairs:
        return Scores(0, dict.fromkeys(CUTS, 0.0), 0.0, 0.0, 0.0)
    return Scores(
        questions=len(pairs),
        recall={cut: fmean(recall_at(cut, *pair) for pair in pairs) for cut in CUTS},
        hit=fmean(float(recall_at(_GAIN_DEPTH, *pair) > 0) for pair in pairs),
        mrr=fmean(reciprocal_rank(*pair) for pair in pairs),
        ndcg=fmean(discounted_gain(_GAIN_DEPTH, *pair) for pair in pairs),
    )


def recall_at(cut: int, ranking: Sequence[str], evidence: Sequence[str]) -> float:
    """The share of the evidence that stands among the first ``cut``."""
    return len(set(ranking[:cut]) & set(evidence)) / len(set(evidence))


def reciprocal_rank(ranking: Sequence[str], evidence: Sequence[str]) -> float:
    """1 / rank of the first evidence."""
    wanted = set(evidence)
    places = (place for place, one in enumerate(ranking[:DEPTH], 1) if one in wanted)
    return 1.0 / first if (first := next(places, 0)) else 0.0


def discounted_gain(cut: int, ranking: Sequence[str], evidence: Sequence[str]) -> float:
    """Normalised discounted cumulative gain, every evidence worth the same."""
    wanted = set(evidence)
    gained = sum(
        1.0 / math.log2(place + 1) for place, one in enumerate(ranking[:cut], 1) if one in wanted
    )
    best = sum(1.0 / math.log2(place + 1) for place in range(1, min(cut, len(wanted)) + 1))
    return gained / best
