"""Files of conversations and questions with evidence, in three formats.

- LoCoMo: a list of long conversations of two people.
- LongMemEval: evidence turns of many chats, pooled into one memory in which every turn is a
  session of its own: sessions that hold evidence only would tell on it.
- ours: ``{"turns": [{"id", "session", "at", "role", "speaker", "text"}], "questions":
  [{"id", "question", "at", "evidence": [ids], "user", "kind"}]}``. ``at`` is ISO 8601; speaker,
  the question's ``at`` and ``kind`` may be missing. Turns and questions may name a ``user``:
  each user is a memory of its own.
"""

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
_LOCOMO_WHEN = "%I:%M %p on %d %B, %Y"
_LONGMEMEVAL_WHEN = "%Y/%m/%d (%a) %H:%M"
_LOCOMO_KINDS = {1: "1 several turns", 2: "2 dates", 3: "3 open", 4: "4 one turn"}
MISLEADING = "5 misleading"
"""The kind whose evidence is the turn that misleads; never part of the overall figures."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question.

    Attributes:
        evidence: The ids of the turns that answer it, those that exist, each once.
        kind: What kind of question the file calls it.
        at: When it is asked; None for the present.
    """

    text: str
    evidence: tuple[str, ...]
    kind: str
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """One sitting: its turns carry their id as message id."""

    name: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """What one memory holds, and what is asked of it."""

    name: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]


def load(path: Path) -> list[Conversation]:
    """The conversations of a file in any of the formats.

    Questions without usable evidence are left out: nothing can be measured on them.
    """
    data = json.loads(path.read_text("utf-8"))
    if isinstance(data, list):
        return [_locomo(one) for one in data]
    return [_longmemeval(data)] if "other_turns" in data else list(_plain(data))


# --- LoCoMo


def _locomo(record: dict[str, Any]) -> Conversation:
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
        began = datetime.strptime(record[f"{name}_date_time"], _LOCOMO_WHEN).replace(tzinfo=UTC)
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
        str(asked["question"]),
        evidence_ids(asked.get("evidence", ()), known),
        _LOCOMO_KINDS.get(asked["category"], MISLEADING),
    )


def evidence_ids(given: Any, known: set[str | None]) -> tuple[str, ...]:
    """The usable ids: "D8:6; D9:17" is two, "D9:05" is D9:5, "D" and "D:11:26" are none."""
    found = (
        f"D{int(session)}:{int(turn)}"
        for text in given
        for session, turn in _EVIDENCE.findall(str(text))
    )
    return tuple(dict.fromkeys(one for one in found if one in known))


# --- LongMemEval


def _longmemeval(data: dict[str, Any]) -> Conversation:
    said = [turn for one in data["questions"] for turn in one["evidence_turns"]]
    ids: dict[str, str] = {}
    sessions: list[Session] = []
    for turn in (*said, *data["other_turns"]):
        content = turn["content"]
        if content in ids:
            continue
        name = ids[content] = f"turn_{len(ids)}"
        kept = Turn(
            content=content,
            role=turn["role"],
            timestamp=_when(turn["session_date"]),
            message_id=name,
        )
        sessions.append(Session(name, (kept,)))
    questions = tuple(
        Question(
            one["question"],
            tuple(dict.fromkeys(ids[turn["content"]] for turn in one["evidence_turns"])),
            one["question_type"],
            _when(one["question_date"]),
        )
        for one in data["questions"]
        if not one["abstention"]
    )
    return Conversation("pooled", tuple(sessions), questions)


def _when(text: str) -> datetime:
    return datetime.strptime(text, _LONGMEMEVAL_WHEN).replace(tzinfo=UTC)


# --- ours


def _plain(data: dict[str, Any]) -> Iterator[Conversation]:
    users = dict.fromkeys(str(turn.get("user", "user")) for turn in data["turns"])
    for user in users:
        sessions: dict[str, list[Turn]] = {}
        for turn in data["turns"]:
            if str(turn.get("user", "user")) == user:
                kept = Turn(
                    content=turn["text"],
                    role=turn.get("role") or "user",
                    speaker=turn.get("speaker"),
                    timestamp=_moment(turn["at"]),
                    message_id=turn["id"],
                )
                sessions.setdefault(str(turn["session"]), []).append(kept)
        known = {turn.message_id for turns in sessions.values() for turn in turns}
        asked = [one for one in data["questions"] if str(one.get("user", user)) == user]
        questions = (
            Question(
                one["question"],
                tuple(dict.fromkeys(turn for turn in one["evidence"] if turn in known)),
                str(one.get("kind", "all")),
                _moment(one["at"]) if one.get("at") else None,
            )
            for one in asked
        )
        yield Conversation(
            user,
            tuple(Session(name, tuple(turns)) for name, turns in sessions.items()),
            tuple(one for one in questions if one.evidence),
        )


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
