"""Readers of other programs' files: what is a turn, what is left out, what is refused where."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO

import pytest

from engram.errors import UnreadableSource
from engram.transfer.readers import chatgpt, claude, lines, locomo, transcript
from engram.transfer.readers.reading import FoundTurn, LeftOut, ReadEntry, elements

Reader = Callable[[BinaryIO], Iterator[ReadEntry]]


def read(reader: Reader, text: str | bytes) -> tuple[list[FoundTurn], Counter[str]]:
    """The turns, and what is left out by reason."""
    data = text if isinstance(text, bytes) else text.encode()
    found = list(reader(io.BytesIO(data)))
    turns = [one for one in found if isinstance(one, FoundTurn)]
    return turns, Counter(one.reason for one in found if isinstance(one, LeftOut))


def node(
    number: int,
    parent: int | None,
    role: str,
    *parts: Any,
    created: float | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A node of a ChatGPT conversation."""
    return {
        "id": f"n{number}",
        "parent": None if parent is None else f"n{parent}",
        "children": more.pop("children", []),
        "message": {
            "id": f"m{number}",
            "author": {"role": role},
            "create_time": created,
            "content": {"content_type": more.pop("kind", "text"), "parts": list(parts)},
            **more,
        },
    }


def tree(*nodes: dict[str, Any], current: str | None = None, **more: Any) -> dict[str, Any]:
    """A ChatGPT conversation."""
    return {
        "id": "c1",
        "conversation_id": "c1",
        "create_time": 1_700_000_000.5,
        "mapping": {one["id"]: one for one in nodes},
        "current_node": current,
        **more,
    }


BRANCHED = tree(
    {"id": "n0", "message": None, "parent": None, "children": ["n1"]},
    node(
        1, 0, "system", "You are helpful.", metadata={"is_visually_hidden_from_conversation": True}
    ),
    node(2, 1, "user", "I live in Porto.", created=1_700_000_001.25),
    node(3, 2, "assistant", "An answer that was made again.", created=1_700_000_002),
    node(4, 2, "assistant", "Nice city!", created=1_700_000_003),
    node(5, 4, "user", {"asset_pointer": "file://x"}, "Look at this.", kind="multimodal_text"),
    node(6, 5, "assistant", "print(1)", kind="code", recipient="python"),
    node(7, 6, "tool", "1"),
    node(8, 7, "assistant", " \u200b"),
    node(9, 8, "user", "hidden words", metadata={"is_visually_hidden_from_conversation": True}),
    node(10, 9, "assistant", "It is one."),
    current="n10",
)


def test_chatgpt_shows_one_branch() -> None:
    """The visible branch in order; everything else is counted with its reason."""
    turns, left_out = read(chatgpt.read, json.dumps([BRANCHED]))
    assert [(one.role, one.content) for one in turns] == [
        ("user", "I live in Porto."),
        ("assistant", "Nice city!"),
        ("user", "Look at this."),
        ("assistant", "It is one."),
    ]
    assert left_out == {
        "role system": 1,
        "a picture or file": 1,
        "said to a tool": 1,
        "role tool": 1,
        "empty": 1,
        "hidden": 1,
        "a branch that is not shown": 1,
    }
    assert turns[0].timestamp == datetime.fromtimestamp(1_700_000_001.25, UTC)
    assert turns[0].message_id == "m2"
    assert turns[0].session == "c1"
    # Without a time of its own it follows the turn before: the conversation began earlier.
    assert turns[2].timestamp is None
    assert turns[2].place == "conversation 1, message 5"


def test_chatgpt_begins_when_the_conversation_did() -> None:
    """A first message without a time of its own has that of its conversation, and no other has."""
    said = [node(n, n - 1 or None, "user", f"Word {n}.") for n in (1, 2)]
    dated = node(3, 2, "assistant", "Yes.", created=1_700_000_009)
    turns, _ = read(chatgpt.read, json.dumps([tree(*said, dated, current="n3")]))
    began, answered = (datetime.fromtimestamp(s, UTC) for s in (1_700_000_000.5, 1_700_000_009))
    assert [turn.timestamp for turn in turns] == [began, None, answered]


def test_chatgpt_without_current_node() -> None:
    """The newest leaf is what was shown last."""
    turns, _ = read(chatgpt.read, json.dumps([{**BRANCHED, "current_node": None}]))
    assert [one.content for one in turns][-1] != ""
    assert "An answer that was made again." not in {one.content for one in turns[:1]}


def test_chatgpt_that_leads_in_a_circle() -> None:
    """A broken tree ends; a conversation that is none is counted."""
    first, second = node(1, 2, "user", "One."), node(2, 1, "assistant", "Two.")
    turns, left_out = read(
        chatgpt.read, json.dumps([tree(first, second, current="n2"), {"x": 1}, 7])
    )
    assert {one.content for one in turns} == {"One.", "Two."}
    assert left_out == {"a conversation without messages": 2}


def test_chatgpt_names_nothing_that_it_does_not_know() -> None:
    """Reasons hold words of the format only, whatever stands in its place."""
    strange = node(1, None, "My secret role!", "Words.")
    kind = node(2, None, "user", "Words.", kind="My secret kind!")
    for one in (strange, kind):
        turns, left_out = read(chatgpt.read, json.dumps([tree(one, current=one["id"])]))
        assert turns == []
        assert "secret" not in str(left_out)
        assert sum(left_out.values()) == 1


CLAUDE = {
    "uuid": "c2",
    "name": "A talk",
    "created_at": "2024-05-01T10:00:00.123456Z",
    "chat_messages": [
        {
            "uuid": "a",
            "sender": "human",
            "text": "I like tea.",
            "content": [],
            "created_at": "2024-05-01T10:00:01Z",
            "attachments": [{"file_name": "x.txt", "extracted_content": "not said"}],
        },
        {
            "uuid": "b",
            "sender": "assistant",
            "text": "ignored beside blocks",
            "content": [
                {"type": "thinking", "thinking": "hm"},
                {"type": "text", "text": "Green or black?"},
                {"type": "tool_use", "name": "search", "input": {}},
                {"type": "text", "text": "I can look."},
            ],
            "created_at": "2024-05-01T10:00:02Z",
        },
        {"uuid": "c", "sender": "human", "text": "\u200b", "created_at": "soon"},
        {"uuid": "d", "sender": "someone", "text": "Words."},
        "not a message",
    ],
}


def test_claude() -> None:
    """Text or blocks, senders as roles; the rest is counted."""
    turns, left_out = read(claude.read, json.dumps([CLAUDE]))
    assert [(one.role, one.content) for one in turns] == [
        ("user", "I like tea."),
        ("assistant", "Green or black?\n\nI can look."),
    ]
    assert turns[0].timestamp == datetime(2024, 5, 1, 10, 0, 1, tzinfo=UTC)
    assert (turns[0].message_id, turns[0].session) == ("a", "c2")
    assert left_out == {
        "a picture or file": 1,
        "content thinking": 1,
        "content tool_use": 1,
        "empty": 1,
        "role unknown": 1,
        "not a message": 1,
    }


def test_claude_with_branches() -> None:
    """Where the shown leaf is named, only its branch is brought in."""
    messages = [
        {"uuid": "a", "sender": "human", "text": "One.", "parent_message_uuid": "root"},
        {"uuid": "b", "sender": "assistant", "text": "Old.", "parent_message_uuid": "a"},
        {"uuid": "c", "sender": "assistant", "text": "New.", "parent_message_uuid": "a"},
    ]
    talk = {"uuid": "t", "chat_messages": messages, "current_leaf_message_uuid": "c"}
    turns, left_out = read(claude.read, json.dumps([talk]))
    assert [one.content for one in turns] == ["One.", "New."]
    assert left_out == {"a branch that is not shown": 1}


def test_lines() -> None:
    """Every field of the line format; empty lines are passed over, empty turns counted."""
    full = {
        "content": "I moved.",
        "role": "user",
        "speaker": "Ada",
        "timestamp": "2024-05-01T10:00:00+02:00",
        "session_id": "s1",
        "message_id": "m1",
        "metadata": {"k": [1]},
        "tags": ["home"],
        "importance": 0.9,
    }
    dated, empty = {"content": "x", "timestamp": 1.5}, {"content": " \u200b"}
    text = "\n".join(("\ufeff" + json.dumps(full), "", json.dumps(dated), json.dumps(empty)))
    turns, left_out = read(lines.read, text)
    assert turns[0] == FoundTurn(
        session="s1",
        place="line 1",
        content="I moved.",
        speaker="Ada",
        timestamp=datetime.fromisoformat("2024-05-01T10:00:00+02:00"),
        message_id="m1",
        metadata={"k": [1]},
        tags=("home",),
        importance=0.9,
    )
    assert turns[1].timestamp == datetime.fromtimestamp(1.5, UTC)
    assert (turns[1].session, turns[1].place) == ("imported", "line 3")
    assert left_out == {"empty": 1}


@pytest.mark.parametrize(
    "line",
    [
        '{"content": "secret"',
        '["secret"]',
        '{"content": 7}',
        '{"role": "user"}',
        '{"content": "x", "secret": 1}',
        '{"content": "x", "timestamp": "secret"}',
        '{"content": "x", "timestamp": 1e30}',
        '{"content": "x", "timestamp": true}',
        "[" * 100_000,
    ],
)
def test_a_broken_line_is_named(line: str) -> None:
    """The error names the line and quotes nothing of it."""
    with pytest.raises(UnreadableSource) as refused:
        read(lines.read, '{"content": "fine"}\n' + line)
    assert "line 2" in str(refused.value).lower()
    assert "secret" not in str(refused.value)


TRANSCRIPTS = {
    "bold": "# A talk\n\n**User:** I live in Porto.\n\nNote: not a speaker.\n\n---\n\n"
    "**Assistant:** Nice!\n",
    "bold outside": "**User**: I live in Porto.\n\nNote: not a speaker.\n\n**Assistant**: Nice!",
    "plain": "User: I live in Porto.\n\nNote: not a speaker.\nAssistant: Nice!\n",
    "headings": "## User\n\nI live in Porto.\n\nNote: not a speaker.\n\n## Assistant:\nNice!",
    "emoji": "## 👤 User\n\nI live in Porto.\n\nNote: not a speaker.\n\n## 🤖 Claude\nNice!",
}


@pytest.mark.parametrize("style", TRANSCRIPTS)
def test_transcripts(style: str) -> None:
    """Each way of writing who speaks gives the same two turns."""
    turns, _ = read(transcript.read, TRANSCRIPTS[style])
    assert [(one.role, one.content) for one in turns] == [
        ("user", "I live in Porto.\n\nNote: not a speaker."),
        ("assistant", "Nice!"),
    ]


def test_a_transcript_with_times_and_people() -> None:
    """Names that are no role's are speakers; times are read, without zone where there is none."""
    text = (
        "[2024-05-01 9:05] Ada: I moved to Lisbon.\nIn May.\n"
        "[2024-05-01 09:07:30] Bob Marsh: Good for you!\n"
        "2024-05-01T09:08+02:00 - Ada: Thanks.\n"
        "Ada (2024-05-01 09:09): Bye.\n[2024-13-01 09:10] Ada: Odd day."
    )
    turns, _ = read(transcript.read, text)
    assert [(one.speaker, one.content) for one in turns] == [
        ("Ada", "I moved to Lisbon.\nIn May."),
        ("Bob Marsh", "Good for you!"),
        ("Ada", "Thanks."),
        ("Ada", "Bye."),
        ("Ada", "Odd day."),
    ]
    assert turns[0].timestamp == datetime(2024, 5, 1, 9, 5)  # noqa: DTZ001 - its zone comes later
    assert turns[2].timestamp == datetime.fromisoformat("2024-05-01T09:08+02:00")
    assert turns[4].timestamp is None
    assert turns[4].place == "line 6"


@pytest.mark.parametrize(
    "name",
    [
        "+351 912 345 678",
        "Ada 🌸",
        "Bob (work)",
        "O'Brien, Pat",
        "3PO",
        "Anne-Marie van der Berg " * 3,
    ],
)
@pytest.mark.parametrize("line", ["[2024-05-01 10:01] {}: Mine.", "2024-05-01 10:01 - {}: Mine."])
def test_whoever_speaks_behind_a_time_is_somebody(name: str, line: str) -> None:
    """A name that looks like none is a speaker, and not words of whoever spoke before."""
    text = f"[2024-05-01 10:00] Ada: I live in Porto.\n{line.format(name.strip())}\n"
    turns, _ = read(transcript.read, text)
    assert [(one.speaker, one.content) for one in turns] == [
        ("Ada", "I live in Porto."),
        (name.strip(), "Mine."),
    ]


def test_a_log_within_a_conversation_is_part_of_it() -> None:
    """A line that begins with a time does not hide those that a role begins."""
    log = "2024-05-01 10:00:05 ERROR: disk full"
    turns, left = read(transcript.read, f"User: What is this?\n{log}\nAssistant: A full disk.")
    assert [one.content for one in turns] == [f"What is this?\n{log}", "A full disk."]
    assert not left
    dated = "Model: x\n\n[2024-05-01 10:00] Ada: Hi.\n[2024-05-01 10:01] Bob: Hello."
    assert len(read(transcript.read, dated)[0]) == 2


def test_lines_of_a_transcript_end_as_editors_end_them() -> None:
    """Windows', Unix' and old Macs' line ends; others are words, and count no line."""
    text = "User: I live\u2028in\x0cPorto.\r\nAssistant: Nice\x85!\rSystem: Stop.\n"
    turns, _ = read(transcript.read, text)
    assert [one.content for one in turns] == ["I live\u2028in\x0cPorto.", "Nice\x85!"]
    places = [one.place for one in transcript.read(io.BytesIO(text.encode()))]
    assert places == ["line 1", "line 2", "line 3"]


def test_a_line_in_another_encoding() -> None:
    """It is refused as no UTF-8, by its number, and not as no JSON."""
    with pytest.raises(UnreadableSource, match="not UTF-8 at line 2"):
        read(lines.read, b'{"content": "Ola"}\n' + '{"content": "Olá"}'.encode("latin-1"))


def test_a_text_that_is_no_transcript() -> None:
    """Refused, because nothing in it begins a turn; what is no UTF-8 is refused with its line."""
    for text in ("Dear diary,\nnote: nothing.\n", "", "Title: x\nBody follows."):
        with pytest.raises(UnreadableSource, match="begins a turn"):
            read(transcript.read, text)
    with pytest.raises(UnreadableSource, match="line 2"):
        read(transcript.read, b"User: x\nUser: \xff")


LOCOMO = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ilse",
        "speaker_b": "Tomas",
        "session_2_date_time": "12:05 am on 4 March, 2024",
        "session_2": [{"speaker": "Ilse", "dia_id": "D2:1", "text": "Later."}],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ilse", "dia_id": "D1:1", "text": "Morning!"},
            {"speaker": "Tomas", "dia_id": "D1:2", "text": "Look:", "blip_caption": "a dog"},
            {"speaker": "Tomas", "dia_id": "D1:3", "text": ""},
            7,
        ],
        "session_3": "nothing",
        "session_3_date_time": "never",
    },
    "qa": [],
}


def test_locomo() -> None:
    """Sittings in order, dates a second apart, captions within the words."""
    for text in (json.dumps([LOCOMO]), json.dumps(LOCOMO)):
        turns, left_out = read(locomo.read, text)
        assert [(one.speaker, one.content, one.message_id) for one in turns] == [
            ("Ilse", "Morning!", "D1:1"),
            ("Tomas", "Look: [shares a photo: a dog]", "D1:2"),
            ("Ilse", "Later.", "D2:1"),
        ]
        assert turns[1].timestamp == datetime(2023, 5, 8, 13, 56, 1, tzinfo=UTC)
        assert turns[2].timestamp == datetime(2024, 3, 4, 0, 5, tzinfo=UTC)
        assert turns[2].session == "conv-1-session-2"
        assert left_out == {"empty": 1, "not a turn": 1, "a session without turns": 1}


def test_a_long_list_is_read_in_pieces() -> None:
    """Elements come out one by one, whatever lies on the border of two reads."""

    class Slow(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(7 if size is None or size > 7 else size)

    given = [{"text": 'ünïcödé \\ " 😀 \n', "n": [1, 2.5, True, None]}, "x", [], {}] * 50
    for text in (json.dumps(given), json.dumps(given, ensure_ascii=False, indent=2)):
        assert list(elements(Slow(text.encode()))) == given


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b'[{"a": 1}, {"secret', "element 2"),
        (b'[{"a": 1}, {"secret": nope}, 3]', "element 2"),
        (b'[1, "\xff"]', "element 2"),
        (b'[1, "\xff"]' + b" " * 3_000_000, "element 2"),
        (b"[" * 1_000_000, "Element 1"),
        (b'[{"a":' * 200_000, "Element 1"),
        (b"[1, 2] secret", "element 2"),
        (b"", "no JSON list"),
        (b"secret", "no JSON list"),
    ],
)
def test_broken_json_is_named(data: bytes, place: str) -> None:
    """Cut off, misspelt, nested without end, not text: typed, with the number, quoting nothing."""
    with pytest.raises(UnreadableSource) as refused:
        list(elements(io.BytesIO(data)))
    assert place in str(refused.value) or "element 1" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_number_that_python_does_not_read_is_a_typed_error() -> None:
    """An integer of thousands of digits names its element, in a list and in a line."""
    digits = "7" * 5000
    for reader, text in (
        (chatgpt.read, f'[{{"a": {digits}}}]'),
        (claude.read, f'[{{}}, {{"a": {digits}}}]'),
        (lines.read, f'{{"content": "a", "importance": {digits}}}'),
    ):
        with pytest.raises(UnreadableSource) as refused:
            read(reader, text)
        assert digits[:50] not in str(refused.value)
