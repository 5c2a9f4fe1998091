"""Fitting the weights of the score, and what they are worth on conversations not fitted to.

Each candidate's explanation says the parts of its score, 0 to 1. The weights are
those under which the evidence is most probable, where the probability of a
candidate is the softmax of its score (a listwise logistic model, Luce 1959).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engram.recall.results import RecallHit, ScorePart
from tests.benchmarks.locomo.conversations import Conversation
from tests.benchmarks.locomo.metrics import DEPTH
from tests.benchmarks.locomo.running import MISLEADING, Answer, ranking, report, run

_CANDIDATES = 64
_ROUNDS = 200
_RATE = 0.2
_HOLD = 1e-3

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question with the parts of its candidates' scores."""

    answer: Answer
    parts: Numbers
    right: NDArray[np.bool_]


async def leave_one_out(conversations: Sequence[Conversation], folder: Path) -> str:
    """The table over answers whose weights never saw their conversation, and the weights."""
    answers = await run(conversations, folder, depth=_CANDIDATES, explain=True)
    names = sorted({part.name for one in answers for hit in one.hits for part in _parts(hit)})
    asked = [_taken_apart(one, names) for one in answers if one.hits]
    reranked: list[Answer] = []
    for conversation in conversations:
        others = [one for one in asked if one.answer.conversation != conversation.name]
        weights = fit(others or asked)
        own = (one for one in asked if one.answer.conversation == conversation.name)
        reranked.extend(_reranked(one, weights) for one in own)
    fitted = fit(asked)
    unit = np.abs(fitted).sum() or 1.0
    shares = "  ".join(
        f"{name} {weight / unit:.3f}" for name, weight in zip(names, fitted, strict=True)
    )
    return f"{report(reranked)}\nweights fitted to all, as shares: {shares}"


def fit(asked: Sequence[_Asked]) -> Numbers:
    """Weights that make the evidence of the questions most probable (Adam, fixed rounds)."""
    useful = [
        one for one in asked if one.right.any() and one.answer.question.category != MISLEADING
    ]
    width = asked[0].parts.shape[1]
    weights, mean, square = np.ones(width), np.zeros(width), np.zeros(width)
    for step in range(1, _ROUNDS + 1):
        slope = sum((_slope(one, weights) for one in useful), np.zeros(width))
        slope = slope / max(len(useful), 1) + _HOLD * weights
        mean = 0.9 * mean + 0.1 * slope
        square = 0.999 * square + 0.001 * slope**2
        corrected = np.sqrt(square / (1 - 0.999**step)) + 1e-9
        weights = weights - _RATE * mean / (1 - 0.9**step) / corrected
    return weights


def _slope(one: _Asked, weights: Numbers) -> Numbers:
    scores = one.parts @ weights
    chances = np.exp(scores - scores.max())
    chances /= chances.sum()
    slope: Numbers = one.parts.T @ (chances - one.right / one.right.sum())
    return slope


def _taken_apart(answer: Answer, names: Sequence[str]) -> _Asked:
    place = {name: at for at, name in enumerate(names)}
    parts = np.zeros((len(answer.hits), len(names)))
    for row, hit in enumerate(answer.hits):
        for part in _parts(hit):
            parts[row, place[part.name]] = part.value
    evidence = set(answer.question.evidence)
    right = np.array([bool(evidence & set(ranking((hit,)))) for hit in answer.hits])
    return _Asked(answer, parts, right)


def _parts(hit: RecallHit) -> tuple[ScorePart, ...]:
    return hit.explanation.parts if hit.explanation else ()


def _reranked(one: _Asked, weights: Numbers) -> Answer:
    order = np.argsort(-(one.parts @ weights), kind="stable")[:DEPTH]
    return replace(one.answer, hits=tuple(one.answer.hits[place] for place in order))
