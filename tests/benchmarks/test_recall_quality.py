"""The evaluation of recall: what it reads, what it computes, and that it runs."""

from pathlib import Path

import pytest

from engram.settings import Settings
from tests.benchmarks.recall_quality.candidates import candidates
from tests.benchmarks.recall_quality.table import (
    against,
    answers,
    by_kind,
    plain_answers,
    table_of_parts,
    without_each_part,
)

pytestmark = pytest.mark.benchmark

TALK = Path(__file__).parent.parent / "data" / "conversations.json"


def test_the_command_measures_what_recall_answers_and_keeps_the_candidates(tmp_path: Path) -> None:
    """Every turn kept, every question asked, beside plain fusion; the second time from the file."""
    settings = Settings.load()
    asked = candidates(TALK, tmp_path)
    assert candidates(TALK, tmp_path) == asked
    found = answers(asked, settings)
    assert [len(one.ranking) for one in found] == [7, 7, 7, 7]
    overall = by_kind(found).splitlines()[-2].split()
    assert overall[:2] == ["all", "3"]
    assert float(overall[3]) >= 0.8
    assert "R@10" in against("talk", plain_answers(asked), found)
    parts = table_of_parts({"talk": without_each_part(asked, settings)}).splitlines()
    assert parts[1].startswith("sparse")
