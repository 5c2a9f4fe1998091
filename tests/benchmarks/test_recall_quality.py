"""The evaluation of recall: what it reads, what it computes, and that it runs."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engram.settings import Settings
from tests.benchmarks.recall_quality.candidates import candidates
from tests.benchmarks.recall_quality.sets import evidence_ids, load
from tests.benchmarks.recall_quality.table import (
    against,
    answers,
    by_kind,
    plain_answers,
    without_each_part,
)

pytestmark = pytest.mark.benchmark

TALK = Path(__file__).parent.parent / "data" / "conversations.json"


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


def test_turns_of_many_chats_are_pooled_each_in_a_session_of_its_own(tmp_path: Path) -> None:
    """The same words are one turn, and an abstention asks for nothing that is there."""
    turn = {"session_date": "2023/04/10 (Mon) 14:47", "role": "user", "content": "We moved."}
    asked = {
        "question": "Where?",
        "question_type": "move",
        "question_date": "2023/05/01 (Mon) 09:00",
        "abstention": False,
        "evidence_turns": [turn],
    }
    data = {
        "questions": [asked, asked | {"abstention": True}],
        "other_turns": [turn, turn | {"content": "Oslo, then."}],
    }
    file = tmp_path / "pooled.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    (pooled,) = load(file)
    assert [session.name for session in pooled.sessions] == ["turn_0", "turn_1"]
    (question,) = pooled.questions
    assert (question.evidence, question.kind) == (("turn_0",), "move")
    assert question.at == datetime(2023, 5, 1, 9, tzinfo=UTC)


def test_each_user_of_our_own_format_is_a_memory(tmp_path: Path) -> None:
    """A question goes to the user it names, or to whoever said its evidence."""
    told = {"session": "s", "at": "2024-05-01T09:00:00+02:00", "role": "user"}
    data = {
        "turns": [
            told | {"id": "a1", "user": "a", "text": "I keep bees."},
            told | {"id": "b1", "user": "b", "text": "I keep hens.", "speaker": "Bo"},
        ],
        "questions": [
            {"question": "Which animals?", "evidence": ["b1"], "user": "b", "at": "2024-06-01"},
            {"question": "And mine?", "evidence": ["a1", "gone"]},
        ],
    }
    file = tmp_path / "ours.json"
    file.write_text(json.dumps(data), encoding="utf-8")
    first, second = load(file)
    assert [one.text for one in first.questions] == ["And mine?"]
    assert [one.evidence for one in second.questions] == [("b1",)]
    assert second.questions[0].at == datetime(2024, 6, 1, tzinfo=UTC)
    assert second.sessions[0].turns[0].speaker == "Bo"


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
    parts = without_each_part({"talk": asked}, settings).splitlines()
    assert parts[1].startswith("sparse")
