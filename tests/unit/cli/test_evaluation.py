"""`engram eval`: figures, a comparison, a report, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import Said, engram

TALK = Path(__file__).parents[2] / "data" / "conversations.json"


def evaluate(*words: str | Path) -> Said:
    """What the command answers."""
    return engram("eval", *map(str, words))


def test_two_settings_are_compared_and_reported(tmp_path: Path) -> None:
    """Figures of both as one JSON document, the page and the picture beside it."""
    done = evaluate(
        "recall", TALK, "--with", "ENGRAM_RECALL_WEIGHTS__SPARSE=0", "--report", tmp_path, "--json"
    )
    assert done.code == 0, done.stderr
    (told,) = json.loads(done.stdout)
    assert told["file"] == "conversations"
    assert told["figures"]["all"]["questions"] == told["compared"]["all"]["questions"] == 3
    assert told["recall_at_10"]["low"] <= told["recall_at_10"]["difference"]
    assert "ENGRAM_RECALL_WEIGHTS__SPARSE=0" in (tmp_path / "report.md").read_text("utf-8")
    assert (tmp_path / "report.svg").read_text("utf-8").startswith("<svg")


def test_questions_that_cannot_be_asked_are_counted(tmp_path: Path) -> None:
    """Those whose evidence is no turn are told; a file with no others is refused."""
    turn = {"id": "1", "at": "2026-03-01", "text": "I keep bees."}
    asked = [{"question": "Which animals do I keep?", "evidence": [one]} for one in ("1", "no")]
    file = tmp_path / "talks.jsonl"
    file.write_text("\n".join(map(json.dumps, [turn, *asked])), "utf-8")
    assert "no turn of the file is their evidence: 1." in evaluate("recall", file).stdout
    assert json.loads(evaluate("recall", file, "--json").stdout)[0]["left_out"] == 1
    file.write_text("\n".join(map(json.dumps, [turn, asked[1]])), "utf-8")
    refused = evaluate("recall", file)
    assert (refused.code, refused.stdout) == (1, "")
    assert "has no question with evidence; 1 were left out" in " ".join(refused.stderr.split())


@pytest.mark.parametrize(
    ("folder", "why"),
    [(Path("/proc/x"), "No such file"), (Path("file", "report"), "Not a directory")],
    ids=["cannot be made", "below a file"],
)
def test_a_report_that_cannot_be_written_is_told_before_anything_is_measured(
    folder: Path, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A typed error at once, also as JSON; nobody waits for figures that would be lost."""
    monkeypatch.setattr("engram.cli.evaluation._measured", None)
    (tmp_path / "file").write_text("")
    done = evaluate("recall", TALK, "--report", tmp_path / folder, "--json")
    assert done.code == 1
    told = json.loads(done.stdout)["error"]
    assert told["code"] == "invalid_input"
    assert f"{folder} cannot be written to: {why}" in told["message"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fit", TALK), "There are 3 questions with evidence."),
        (("recall", TALK, "--with", "POOL=3"), "A setting to compare with cannot be read."),
        (("recall", TALK, "--with", "ENGRAM_RECALL_POOL=0"), "ENGRAM_RECALL_POOL"),
        (("recall", Path(__file__)), "is in no format that can be measured"),
    ],
    ids=["too few to fit", "no setting", "out of range", "no conversations"],
)
def test_what_cannot_be_done_is_refused(words: tuple[str | Path, ...], said: str) -> None:
    """A typed error in one sentence, and an exit code that is not 0."""
    done = evaluate(*words)
    assert done.code != 0
    assert said in " ".join(done.stderr.split())
