"""A measurement as a page of Markdown and as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from engram.contracts.messages import ModelSpent
from engram.evaluation.measuring import Comparison, RankedAnswer, by_kind, counted
from engram.evaluation.metrics import CUTS, Difference, Scores, score
from engram.evaluation.sets import MISLEADING

COLUMNS: Final = ("questions", "n", *(f"R@{cut}" for cut in CUTS), "MRR")
"""Of a table of figures."""
_WIDTH: Final = 640
_LABELS: Final = 200
_BAR: Final = 18
_ROW: Final = 52
_COLOURS: Final = ("#94a3b8", "#0f766e")


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of one file.

    Attributes:
        name: Of the file.
        answers: With the settings as they are.
        changed: With the settings that are compared, question by question.
        comparison: Of the two.
        shared_words: The share of questions' words that stand in their evidence, where they
            were made from an export.
        spent: What embedders and rerankers of providers were asked and cost, by model, with all
            settings together.
        left_out: Questions that were not asked: no turn of the file is their evidence.
    """

    name: str
    answers: Sequence[RankedAnswer]
    changed: Sequence[RankedAnswer] | None = None
    comparison: Comparison | None = None
    shared_words: float | None = None
    spent: tuple[ModelSpent, ...] = ()
    left_out: int = 0


def figures(answers: Sequence[RankedAnswer]) -> Mapping[str, Scores]:
    """Scores by kind of question where there are several, and of all; what misleads apart."""
    kinds = by_kind(answers)
    misleading = kinds.pop(MISLEADING, None)
    found = {kind: _scores(of_kind) for kind, of_kind in kinds.items()} if len(kinds) > 1 else {}
    found["all"] = _scores(counted(answers))
    if misleading:
        found[MISLEADING] = _scores(misleading)
    return found


def _scores(answers: Sequence[RankedAnswer]) -> Scores:
    return score(one.pair for one in answers)


def markdown(measured: Sequence[Measured], changes: Mapping[str, str]) -> str:
    """The page: a table for each file, and what the comparison says.

    Args:
        measured: The files.
        changes: The settings that were compared, by name.
    """
    lines = ["# Recall, measured", ""]
    if changes:
        told = ", ".join(f"`{name}={value}`" for name, value in changes.items())
        lines += [f"Compared with {told}.", ""]
    for one in measured:
        lines += [f"## {one.name}", "", *_table(one.answers), ""]
        if one.changed is not None:
            lines += ["With the other settings:", "", *_table(one.changed), ""]
        if one.comparison is not None:
            lines += [f"- R@10: {said(one.comparison.found)}"]
            lines += [f"- MRR: {said(one.comparison.first)}", ""]
        if one.shared_words is not None:
            lines += [
                f"The questions were made from what was concluded; {one.shared_words:.0%} of "
                "their words stand in the turns that answer them.",
                "",
            ]
        if one.left_out:
            lines += [unasked(one.left_out), ""]
        if one.spent:
            lines += [*(f"- {cost_of(each)}" for each in one.spent), ""]
    lines += [
        "R@k: share of the evidence among the first k answers. MRR: mean of 1 / rank of the first "
        "evidence. In brackets: 90 % interval of the paired bootstrap over questions.",
    ]
    return "\n".join(lines) + "\n"


def unasked(count: int) -> str:
    """How many questions were left out, and why."""
    return f"Questions left out, as no turn of the file is their evidence: {count}."


def cost_of(one: ModelSpent) -> str:
    """What one model was asked and cost, as a line."""
    priced = f"${one.cost_usd:.4f}" if not one.unpriced_requests else "price unknown"
    return (
        f"{one.model}: {one.requests} requests, {one.input_tokens} + {one.output_tokens} tokens, "
        f"{priced}"
    )


def rows(answers: Sequence[RankedAnswer]) -> list[tuple[str, ...]]:
    """The figures as text, under :data:`COLUMNS`."""
    return [
        (
            kind,
            str(found.questions),
            *(f"{share:.3f}" for share in found.recall.values()),
            f"{found.mrr:.3f}",
        )
        for kind, found in figures(answers).items()
    ]


def _table(answers: Sequence[RankedAnswer]) -> list[str]:
    lines = [COLUMNS, ("---",) * len(COLUMNS), *rows(answers)]
    return [f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines]


def said(change: Difference) -> str:
    """A difference with its bounds, and whether it is more than noise."""
    verdict = "better" if change.is_gain else "worse" if change.is_loss else "no more than noise"
    return f"{change.mean:+.3f} [{change.low:+.3f}, {change.high:+.3f}]: {verdict}"


def picture(measured: Sequence[Measured]) -> str:
    """R@10 of each file as bars, in SVG; beside it that with the other settings."""
    height = _ROW * len(measured) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" font-size="13" role="img" aria-label="R@10 by file">',
        f'<text x="{_LABELS}" y="20">R@10</text>',
    ]
    for place, one in enumerate(measured):
        top = 30 + place * _ROW
        parts.append(f'<text x="8" y="{top + 16}">{escape(one.name[:28])}</text>')
        bars = [one.answers] if one.changed is None else [one.answers, one.changed]
        for number, (answers, colour) in enumerate(zip(bars, _COLOURS, strict=False)):
            share = _scores(counted(answers)).recall[10]
            wide = round(share * (_WIDTH - _LABELS - 60))
            y = top + number * (_BAR + 3)
            parts.append(
                f'<rect x="{_LABELS}" y="{y}" width="{wide}" height="{_BAR}" fill="{colour}"/>'
                f'<text x="{_LABELS + wide + 6}" y="{y + 14}">{share:.3f}</text>'
            )
    return "\n".join([*parts, "</svg>"]) + "\n"
