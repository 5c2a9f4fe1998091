"""Figures as tables: Engram beside plain fusion, by kind of question, and without each part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engram.domain.rules import RankingWeights
from engram.evaluation.measuring import Comparison, RankedAnswer, compare, counted
from engram.evaluation.metrics import CUTS, Difference, score
from engram.evaluation.report import said
from engram.evaluation.sets import MISLEADING
from engram.settings import Settings
from engram.system import seeded_draw
from tests.benchmarks.recall_quality.candidates import Beside

_SEED = 20261122


def answers(asked: Iterable[Beside], settings: Settings) -> list[RankedAnswer]:
    """What Engram answers with these settings."""
    return [one.asked.answer(settings) for one in asked]


def plain_answers(asked: Iterable[Beside]) -> list[RankedAnswer]:
    """What plain fusion answers."""
    return [RankedAnswer(one.asked.question, one.plain) for one in asked]


def by_kind(given: Sequence[RankedAnswer]) -> str:
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


def _row(name: str, given: Sequence[RankedAnswer]) -> str:
    found = score(one.pair for one in given)
    figures = [*(found.recall[cut] for cut in CUTS), found.hit, found.mrr, found.ndcg]
    return f"{name:<28}{found.questions:>6}" + "".join(f"{figure:>9.3f}" for figure in figures)


def against(name: str, floor: Sequence[RankedAnswer], found: Sequence[RankedAnswer]) -> str:
    """One line: R@5, R@10 and MRR of both, and by how much R@10 and MRR differ."""
    low, high = score(one.pair for one in floor), score(one.pair for one in found)
    change = compare(floor, found, seeded_draw(_SEED))
    return (
        f"{name:<28}{high.questions:>6}"
        f"   {low.recall[5]:.3f} {low.recall[10]:.3f} {low.mrr:.3f}"
        f"   {high.recall[5]:.3f} {high.recall[10]:.3f} {high.mrr:.3f}"
        f"   R@10 {said(change.found)}   MRR {said(change.first)}"
    )


def without_each_part(asked: Sequence[Beside], settings: Settings) -> dict[str, Comparison]:
    """How the answers to the questions of a set change when a part of the score is left out.

    By part: what gets better by more than noise is harmed by it.
    """
    whole = counted(answers(asked, settings))
    changes: dict[str, Comparison] = {}
    for part in RankingWeights.model_fields:
        weights = settings.recall_weights.model_copy(update={part: 0.0})
        fewer = settings.model_copy(update={"recall_weights": weights})
        left = counted(answers(asked, fewer))
        changes[part] = compare(whole, left, seeded_draw(_SEED))
    return changes


def table_of_parts(sets: Mapping[str, Mapping[str, Comparison]]) -> str:
    """By how much R@10 and MRR of each set change when one part of the score is left out.

    A part that helps has figures below 0; "!" marks what changes for the better by more than
    noise: there the part does harm.
    """
    rows = ["left out    " + "".join(f"{name[:22]:>40}" for name in sets)]
    for part in RankingWeights.model_fields:
        cells = [(changes[part].found, changes[part].first) for changes in sets.values()]
        row = "".join(
            f"{'  '.join(f'{c.mean:+.3f}{_mark(c)}' for c in cell):>40}" for cell in cells
        )
        rows.append(f"{part:<12}{row}")
    return "\n".join(rows)


def _mark(change: Difference) -> str:
    return "!" if change.is_gain else "*" if change.is_loss else " "
