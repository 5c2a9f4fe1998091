"""The evaluation of recall: what it reads, what it computes, and that it runs."""

import math
from pathlib import Path

import pytest

from tests.benchmarks.locomo.conversations import evidence_ids, load
from tests.benchmarks.locomo.metrics import score
from tests.benchmarks.locomo.running import report, run
from tests.benchmarks.locomo.weights import leave_one_out

pytestmark = pytest.mark.benchmark

TALK = Path(__file__).parent.parent / "data" / "conversations.json"


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


def test_malformed_evidence_is_split_or_skipped() -> None:
    """Several ids in one text are several, leading zeros go, what names no turn is left out."""
    known: set[str | None] = {"D8:6", "D9:17", "D1:2"}
    assert evidence_ids(["D8:6; D9:17", "D", "D:11:26", "D01:02", "D7:7"], known) == (
        "D8:6",
        "D9:17",
        "D1:2",
    )


def test_a_file_becomes_turns_with_speaker_date_and_picture() -> None:
    """A date without its session is no session; a caption stands in the words."""
    (talk,) = load(TALK)
    assert [session.name for session in talk.sessions] == ["session_1", "session_2"]
    turn = talk.sessions[0].turns[2]
    assert (turn.speaker, turn.message_id) == ("Ilse", "D1:3")
    assert turn.content.endswith("Biscuit. [shares a photo: a grey dog on a blue sofa]")
    assert turn.timestamp is not None
    assert turn.timestamp.isoformat() == "2024-03-04T09:15:02+00:00"
    assert [one.evidence for one in talk.questions] == [
        ("D1:3",),
        ("D2:1",),
        ("D2:3", "D2:1"),
        ("D1:2",),
    ]


async def test_the_command_measures_what_recall_answers(tmp_path: Path) -> None:
    """Every turn kept, every question asked, the table with each category."""
    answers = await run(load(TALK), tmp_path)
    assert len(answers) == 4
    assert all(len(one.ranking) == 7 for one in answers)
    table = report(answers).splitlines()
    assert [line.split()[0] for line in table[1:6]] == ["1", "2", "4", "1-4", "5"]
    overall = table[4].split()
    assert overall[1] == "3"
    assert float(overall[3]) >= 0.8
    assert float(overall[4]) == 1.0


async def test_weights_are_fitted_without_the_conversation_they_are_measured_on(
    tmp_path: Path,
) -> None:
    """The table and a share for every part of the score."""
    table = await leave_one_out(load(TALK), tmp_path)
    assert "1-4" in table
    assert "sparse" in table.splitlines()[-1]
