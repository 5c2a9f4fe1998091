"""Figures as tables: Engram beside plain fusion, by kind of question, and without each part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from engram.domain.rules import RankingWeights
from engram.evaluation.metrics import (
    CUTS,
    Difference,
    Ranking,
    paired_bootstrap,
    recall_at,
    reciprocal_rank,
    score,
)
from engram.settings import Settings
from tests.benchmarks.recall_quality.candidates import Asked, ranking
from tests.benchmarks.recall_quality.sets import MISLEADING, Question

_SEED = 20261122
_TOP = 10


@dataclass(frozen=True, slots=True)
class Answer:
    """A question, and the ids of the turns that came back, best first."""

    question: Question
    ranking: tuple[str, ...]

    @property
    def pair(self) -> Ranking:
        """What figures are computed from."""
        return self.ranking, self.question.evidence


def answers(asked: Iterable[Asked], settings: Settings) -> list[Answer]:
    """What Engram answers with these settings."""
    return [Answer(one.question, ranking(one, settings)) for one in asked]


def plain_answers(asked: Iterable[Asked]) -> list[Answer]:
    """What plain fusion answers."""
    return [Answer(one.question, one.plain) for one in asked]


def counted(given: Iterable[Answer]) -> list[Answer]:
    """Without the questions that mislead."""
    return [one for one in given if one.question.kind != MISLEADING]


def by_kind(given: Sequence[Answer]) -> str:
    """A table: by kind of question, all of them, and the misleading ones apart."""
    names = [*(f"R@{cut}" for cut in CUTS), "hit@10", "MRR", "nDCG@10"]
    rows = [f"{'kind':<28}{'n':>6}" + "".join(f"{name:>9}" for name in names)]
    chosen = counted(given)
    kinds = sorted({one.question.kind for one in chosen})
    if len(kinds) > 1:
        rows += [_row(kind, [one for one in chosen if one.question.kind == kind]) for kind in kinds]
    rows.append(_row("all", chosen))
    if len(chosen) < len(given):
        rows.append(_row(MISLEADING, [one for one in given if one.question.kind == MISLEADING]))
    return "\n".join(rows)


def _row(name: str, given: Sequence[Answer]) -> str:
    found = score(one.pair for one in given)
    figures = [*(found.recall[cut] for cut in CUTS), found.hit, found.mrr, found.ndcg]
    return f"{name:<28}{found.questions:>6}" + "".join(f"{figure:>9.3f}" for figure in figures)


def against(name: str, floor: Sequence[Answer], found: Sequence[Answer]) -> str:
    """One line: R@5, R@10 and MRR of both, and by how much R@10 and MRR differ."""
    low, high = score(one.pair for one in floor), score(one.pair for one in found)
    gain, first = difference(floor, found, _top), difference(floor, found, _first)
    return (
        f"{name:<28}{high.questions:>6}"
        f"   {low.recall[5]:.3f} {low.recall[10]:.3f} {low.mrr:.3f}"
        f"   {high.recall[5]:.3f} {high.recall[10]:.3f} {high.mrr:.3f}"
        f"   R@10 {said(gain)}   MRR {said(first)}"
    )


def without_each_part(sets: Mapping[str, Sequence[Asked]], settings: Settings) -> str:
    """By how much R@10 and MRR of each set change when one part of the score is left out.

    A part that helps has figures below 0; "!" marks what changes for the better by more than
    noise: there the part does harm.
    """
    rows = ["left out    " + "".join(f"{name[:22]:>40}" for name in sets)]
    whole = {name: counted(answers(asked, settings)) for name, asked in sets.items()}
    for part in RankingWeights.model_fields:
        weights = settings.recall_weights.model_copy(update={part: 0.0})
        fewer = settings.model_copy(update={"recall_weights": weights})
        row = f"{part:<12}"
        for name, asked in sets.items():
            left = counted(answers(asked, fewer))
            changes = [difference(whole[name], left, figure) for figure in (_top, _first)]
            row += f"{'  '.join(f'{one.mean:+.3f}{_mark(one)}' for one in changes):>40}"
        rows.append(row)
    return "\n".join(rows)


def difference(
    before: Sequence[Answer], after: Sequence[Answer], figure: Callable[[Answer], float]
) -> Difference:
    """How much better one figure is over the same questions."""
    random = Random(_SEED)  # noqa: S311 - nothing is kept secret with it
    return paired_bootstrap(
        [figure(one) for one in before],
        [figure(one) for one in after],
        lambda values, count: random.choices(values, k=count),
    )


def said(change: Difference) -> str:
    """A difference with its bounds."""
    return f"{change.mean:+.3f} [{change.low:+.3f}, {change.high:+.3f}]"


def _mark(change: Difference) -> str:
    return "!" if change.is_gain else "*" if change.is_loss else " "


def _top(one: Answer) -> float:
    return recall_at(_TOP, *one.pair)


def _first(one: Answer) -> float:
    return reciprocal_rank(*one.pair)
