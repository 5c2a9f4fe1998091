"""Recall on conversations of several kinds, beside plain fusion of BM25 and the same embedder.

The sets lie in ``tests/data/recall``. Those that end with ``held`` are kept from whoever changes
the score. ``ENGRAM_TEST_RECALL`` names more files, separated as in ``PATH``, such as LoCoMo's that
are no part of the project: there, too, no part of the score may do harm. Alone:
``uv run pytest -n 0 -m benchmark tests/benchmarks/test_recall_everywhere.py -s``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from engram.evaluation.measuring import compare, counted
from engram.evaluation.metrics import score
from engram.settings import Settings
from engram.system import seeded_draw
from tests.benchmarks.recall_quality.candidates import candidates
from tests.benchmarks.recall_quality.table import (
    against,
    answers,
    plain_answers,
    table_of_parts,
    without_each_part,
)

pytestmark = pytest.mark.benchmark

SETS: Final = Path(__file__).parents[1] / "data" / "recall"
# By how much R@10 has to be above that of plain fusion; where both find nearly all, not below it.
GAINS: Final = {
    "implied.seen": 0.10,
    "implied.held": 0.10,
    "team.seen": 0.03,
    "team.held": 0.03,
    "notes.seen": 0.03,
    "notes.held": 0.03,
    "languages.seen": 0.03,
    "languages.held": 0.03,
    "updates.seen": 0.0,
    "updates.held": 0.0,
}
MORE: Final = [
    Path(file) for file in os.environ.get("ENGRAM_TEST_RECALL", "").split(os.pathsep) if file
]
SEEN: Final = [*(SETS / f"{name}.jsonl" for name in GAINS if name.endswith("seen")), *MORE]


@pytest.mark.parametrize("name", GAINS)
def test_recall_is_above_plain_fusion(name: str, tmp_path: Path) -> None:
    """More evidence among the first ten, by the bar of its kind, and the first further up."""
    asked = candidates(SETS / f"{name}.jsonl", tmp_path)
    plain, found = counted(plain_answers(asked)), counted(answers(asked, Settings.load()))
    told = against(name, plain, found)
    print(told)  # noqa: T201 - figures
    low, high = (score(one.pair for one in given) for given in (plain, found))
    assert high.recall[10] >= low.recall[10] + GAINS[name], told
    assert compare(plain, found, seeded_draw(1)).first.is_gain, told


@pytest.mark.parametrize("file", SEEN, ids=lambda file: file.stem)
def test_no_part_of_the_score_does_harm(file: Path, tmp_path: Path) -> None:
    """Left out, none makes the answers better by more than noise: R@10 and MRR of each set."""
    changes = without_each_part(candidates(file, tmp_path), Settings.load())
    told = table_of_parts({file.stem: changes})
    print(told)  # noqa: T201 - figures
    harmful = {part for part, one in changes.items() if one.found.is_gain or one.first.is_gain}
    assert not harmful, told
