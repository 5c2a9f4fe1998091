"""Which files can be measured, and what they become."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engram.errors import UnreadableSource
from engram.evaluation.sets import evidence_ids, load

TALK = Path(__file__).parents[2] / "data" / "conversations.json"


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
    assert [session.name for session in talk.sessions] == [
        "harbour-session-1",
        "harbour-session-2",
    ]
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


def test_a_question_of_longmemeval_is_a_memory_with_its_chats(tmp_path: Path) -> None:
    """The turns that are marked answer it; one that abstains is left out."""
    record = {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "Which bird?",
        "answer": "a heron",
        "question_date": "2023/05/01 (Mon) 09:00",
        "haystack_session_ids": ["a", "b"],
        "haystack_dates": ["2023/04/10 (Mon) 14:47", "2023/04/11 (Tue) 14:47"],
        "haystack_sessions": [
            [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}],
            [{"role": "user", "content": "I saw a heron.", "has_answer": True}],
        ],
    }
    file = tmp_path / "longmemeval_s.json"
    file.write_text(json.dumps([record, record | {"question_id": "q2_abs"}]), encoding="utf-8")
    (talk,) = load(file)
    assert [len(session.turns) for session in talk.sessions] == [2, 1]
    (question,) = talk.questions
    assert (question.evidence, question.answer) == (("1:0",), "a heron")
    assert talk.sessions[1].turns[0].timestamp == datetime(2023, 4, 11, 14, 47, tzinfo=UTC)


def test_lines_are_read_as_one_object_is(tmp_path: Path) -> None:
    """A line with a question asks, any other is a turn; blank lines are none."""
    file = tmp_path / "own.jsonl"
    turn = {"id": "1", "text": "I keep bees.", "at": "2024-05-01T09:00:00Z"}
    question = {"question": "Which animals?", "evidence": ["1"], "kind": "animals"}
    file.write_text(f"{json.dumps(turn)}\n\n{json.dumps(question)}\n", encoding="utf-8")
    (talk,) = load(file)
    assert [(one.text, one.kind) for one in talk.questions] == [("Which animals?", "animals")]


def test_a_question_goes_to_whom_it_names_or_to_who_said_its_evidence(tmp_path: Path) -> None:
    """Each line is looked at once: a file of many users takes no longer for that."""
    turns = [
        {"id": str(one), "at": "2026-03-01", "text": "I ski.", "user": f"user {one}"}
        for one in range(4)
    ]
    asked = [
        {"question": "Theirs?", "evidence": ["0", "1"]},
        {"question": "His?", "evidence": ["2"], "user": "user 2"},
        {"question": "Nobody's?", "evidence": ["2"], "user": "nobody"},
    ]
    file = tmp_path / "talks.json"
    file.write_text(json.dumps({"turns": turns, "questions": asked}), encoding="utf-8")
    assert [(talk.name, [one.text for one in talk.questions]) for talk in load(file)] == [
        ("user 0", ["Theirs?"]),
        ("user 1", ["Theirs?"]),
        ("user 2", ["His?"]),
        ("user 3", []),
        ("nobody", []),
    ]
    assert [talk.left_out for talk in load(file)] == [0, 0, 0, 0, 1]


TURN = '{"id": "1", "at": "2026-03-01", "text": "I keep bees."}'
ASKED = '{"question": "Which animals?", "evidence": ["1"]}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'{TURN}\n\n{{"id": "2", "text"\n{ASKED}', "Line 3 is no JSON"),
        (f'{TURN}\n{{"id": 2, "at": "2026-03-01"}}', r"Line 2 is no turn: id .*, text \(missing\)"),
        ('{"id": "1", "text": "I keep bees."}', r"Line 1 is no turn: at \(missing\)"),
        (f'{TURN}\n{{"question": "Which?", "evidence": "1"}}', "Line 2 is no question: evidence"),
        (f"{TURN}\n{ASKED}\n{TURN}", "Line 3 has the id of a turn before it"),
        (f'{{"turns": [{TURN}],\n"questions": [{{"question": "Who?"}}]}}', "Question 1 is no"),
        (f'{{"turns": [{TURN}],\n"questions": [}}', "broken at line 2"),
        (f"{TURN}\n".encode() + b'{"id": "\xe9"}', "not UTF-8 at line 2"),
        (b"[\n" + b'{"id": "\xe9"}]', "not UTF-8 at line 2"),
    ],
)
def test_a_broken_entry_is_named_by_its_place(tmp_path: Path, text: str | bytes, said: str) -> None:
    """The line, or the number in its list, with the fields that are wrong; nothing is quoted."""
    file = tmp_path / "secret.jsonl"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UnreadableSource, match=rf"(?s)secret\.jsonl.*{said}") as refused:
        load(file)
    assert "bees" not in str(refused.value)


def test_ids_are_of_one_user_each(tmp_path: Path) -> None:
    """What another user said answers nobody else's question, and such a question is counted."""
    turns = [json.loads(TURN) | {"user": user} for user in "ab"]
    other = json.loads(TURN) | {"user": "b", "id": "2"}
    asked = [json.loads(ASKED) | {"user": "a", "evidence": [one]} for one in "12"]
    file = tmp_path / "talks.json"
    file.write_text(json.dumps({"turns": [*turns, other], "questions": asked}), "utf-8")
    first, second = load(file)
    assert ([one.evidence for one in first.questions], first.left_out) == ([("1",)], 1)
    assert (second.questions, second.left_out) == ((), 0)


@pytest.mark.parametrize(
    "text",
    ["", "[1]", "{}", "no JSON", '{"turns": [{}], "questions": []}', "[" * 100_000],
    ids=["empty", "a number", "no lists", "no JSON", "no turn", "too deep"],
)
def test_what_cannot_be_measured_is_refused_by_name(tmp_path: Path, text: str) -> None:
    """The error names the file and what is allowed, and quotes nothing of it."""
    file = tmp_path / "secret.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UnreadableSource, match=r"secret\.json") as refused:
        load(file)
    assert "LongMemEval" in str(refused.value)
    assert not text or text not in str(refused.value)


def test_only_a_line_feed_ends_a_line_of_json(tmp_path: Path) -> None:
    """Unicode's other line ends may stand within a text as they are."""
    turn = {"id": "1", "at": "2026-03-01T09:00:00Z", "text": "I keep bees.\u2028Two hives."}
    question = {"question": "Which animals?", "evidence": ["1"]}
    file = tmp_path / "chats.jsonl"
    lines = [json.dumps(line, ensure_ascii=False) for line in (turn, question)]
    file.write_text("\n".join(lines), "utf-8")
    (talk,) = load(file)
    assert talk.sessions[0].turns[0].content == turn["text"]
