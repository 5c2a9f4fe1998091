"""Files in LoCoMo's format: long conversations of two people, and questions with evidence."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from engram.domain.turns import Turn

_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D(\d+):(\d+)")
_WHEN = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    Attributes:
        evidence: The ids of the turns that answer it, those that exist, each once.
        category: 1 several turns, 2 dates, 3 open, 4 one turn, 5 misleading.
    """

    text: str
    evidence: tuple[str, ...]
    category: int


@dataclass(frozen=True, slots=True)
class Session:
    """One sitting: its turns carry their id as message id."""

    name: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """What two people said, and what is asked about it."""

    name: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]


def load(path: Path) -> list[Conversation]:
    """The conversations of a file.

    Questions without usable evidence are left out: nothing can be measured on them.
    """
    return [_conversation(one) for one in json.loads(path.read_text("utf-8"))]


def _conversation(record: dict[str, Any]) -> Conversation:
    sessions = tuple(_sessions(record["conversation"]))
    known = {turn.message_id for session in sessions for turn in session.turns}
    questions = (_question(asked, known) for asked in record["qa"])
    return Conversation(
        record["sample_id"], sessions, tuple(one for one in questions if one.evidence)
    )


def _sessions(record: dict[str, Any]) -> Iterator[Session]:
    numbers = sorted(int(found[1]) for key in record if (found := _SESSION.fullmatch(key)))
    for number in numbers:
        name = f"session_{number}"
        began = datetime.strptime(record[f"{name}_date_time"], _WHEN).replace(tzinfo=UTC)
        # One date is given for a whole session; a second apart keeps the order.
        turns = (
            _turn(said, began + timedelta(seconds=place)) for place, said in enumerate(record[name])
        )
        yield Session(name, tuple(turns))


def _turn(said: dict[str, Any], when: datetime) -> Turn:
    content = said["text"]
    if caption := said.get("blip_caption"):
        # What an application that shows pictures would hand over: the words, and what they show.
        content = f"{content} [shares a photo: {caption}]"
    return Turn(content=content, speaker=said["speaker"], timestamp=when, message_id=said["dia_id"])


def _question(asked: dict[str, Any], known: set[str | None]) -> Question:
    return Question(
        str(asked["question"]), evidence_ids(asked.get("evidence", ()), known), asked["category"]
    )


def evidence_ids(given: Any, known: set[str | None]) -> tuple[str, ...]:
    """The usable ids: "D8:6; D9:17" is two, "D9:05" is D9:5, "D" and "D:11:26" are none."""
    found = (
        f"D{int(session)}:{int(turn)}"
        for text in given
        for session, turn in _EVIDENCE.findall(str(text))
    )
    return tuple(dict.fromkeys(one for one in found if one in known))
