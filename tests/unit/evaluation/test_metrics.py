"""The figures of an evaluation, computed by hand."""

import math
from collections.abc import Sequence
from random import Random

import pytest

from engram.evaluation.metrics import paired_bootstrap, score


def test_the_figures_are_those_computed_by_hand() -> None:
    """Two rankings, one with evidence at 1 and 6 of three, one with its only evidence at 4."""
    found = score(
        [
            (["a", "x", "x1", "x2", "x3", "b"], ["a", "b", "c"]),
            (["y", "y1", "y2", "d"], ["d"]),
        ]
    )
    assert found.questions == 2
    assert found.recall == pytest.approx(
        {1: (1 / 3 + 0) / 2, 5: (1 / 3 + 1) / 2, 10: (2 / 3 + 1) / 2, 20: (2 / 3 + 1) / 2}
    )
    assert found.hit == 1.0
    assert found.mrr == pytest.approx((1 + 1 / 4) / 2)
    best = 1 + 1 / math.log2(3) + 1 / 2
    first = (1 + 1 / math.log2(7)) / best
    second = 1 / math.log2(5)
    assert found.ndcg == pytest.approx((first + second) / 2)


def test_nothing_found_is_zero_and_nothing_asked_is_no_error() -> None:
    """Empty answers and empty files."""
    assert score([([], ["a"])]).mrr == 0.0
    assert score([([], ["a"])]).ndcg == 0.0
    assert score([]).questions == 0


def test_the_same_figures_differ_by_nothing() -> None:
    """No draw is needed to see it."""
    same = paired_bootstrap([0.5, 1.0], [0.5, 1.0], lambda values, count: values)
    assert (same.mean, same.low, same.high) == (0.0, 0.0, 0.0)
    assert not same.is_gain
    assert not same.is_loss


def test_a_difference_is_told_from_noise() -> None:
    """A gain on most of 200 questions is one; a gain on one and a loss on one is noise."""
    random = Random(7)  # noqa: S311 - draws of a test
    before = [0.0] * 200

    def draw(values: Sequence[float], count: int) -> list[float]:
        return random.choices(values, k=count)

    better = paired_bootstrap(before, [1.0] * 150 + [0.0] * 50, draw, rounds=200)
    assert better.mean == 0.75
    assert 0.68 < better.low < 0.75 < better.high < 0.82
    assert better.is_gain
    worse = paired_bootstrap([1.0] * 200, before, draw, rounds=50)
    assert worse.is_loss
    noise = paired_bootstrap(before, [1.0, -1.0] + [0.0] * 198, draw, rounds=200)
    assert not noise.is_gain
    assert not noise.is_loss


def test_figures_of_other_questions_cannot_be_compared() -> None:
    """Pairs are of the same questions."""
    with pytest.raises(ValueError, match="longer"):
        paired_bootstrap([0.0], [0.0, 1.0], lambda values, count: values)
