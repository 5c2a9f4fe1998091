"""How good a ranking is, given what it should hold, and whether a difference is more than noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

DEPTH: Final = 20
"""Answers that are looked at; what stands further down counts as not found."""
CUTS: Final = (1, 5, 10, 20)
"""Depths at which the share of the evidence is told."""
_GAIN_DEPTH = 10
ROUNDS: Final = 2_000
"""Resamples of a bootstrap: more move the bounds of a 90 % interval by little."""
CONFIDENCE: Final = 0.9

Ranking = tuple[Sequence[str], Sequence[str]]
"""Ids as they were ranked, best first, and the ids that are the evidence."""


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


def score(rankings: Iterable[Ranking]) -> Scores:
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


# --- whether a difference is more than noise


@dataclass(frozen=True, slots=True)
class Difference:
    """How much better one way is than another over the same questions.

    Attributes:
        mean: Of the differences, question by question.
        low: Lower bound of its confidence interval.
        high: Upper bound.
    """

    mean: float
    low: float
    high: float

    @property
    def is_gain(self) -> bool:
        """Whether it is better, by more than noise."""
        return self.low > 0.0

    @property
    def is_loss(self) -> bool:
        """Whether it is worse, by more than noise."""
        return self.high < 0.0


def paired_bootstrap(
    before: Sequence[float],
    after: Sequence[float],
    draw: Callable[[Sequence[float], int], Sequence[float]],
    *,
    rounds: int = ROUNDS,
) -> Difference:
    """How much better ``after`` is, with the percentile interval of the paired bootstrap.

    Args:
        before: A figure for each question.
        after: The same figure for the same questions, in the same order.
        draw: So many of the given numbers, with replacement: ``Random(seed).choices`` with ``k=``.
        rounds: How often the questions are drawn anew; at least 1.

    Raises:
        ValueError: the two are not of the same questions.
    """
    differences = [new - old for old, new in zip(before, after, strict=True)]
    if not any(differences):
        return Difference(0.0, 0.0, 0.0)
    count = len(differences)
    means = sorted(sum(draw(differences, count)) / count for _ in range(rounds))
    outside = (1.0 - CONFIDENCE) / 2
    low = means[math.floor(outside * (rounds - 1))]
    high = means[math.ceil((1.0 - outside) * (rounds - 1))]
    return Difference(fmean(differences), low, high)
