"""Conversations and questions with their evidence, read from the formats that people have.

- **LoCoMo**: a list of long conversations of two people.
- **LongMemEval**: a list of questions, each with the chats to search in; or the evidence turns of
  many of them pooled into one memory, in which every turn is a session of its own, for sessions
  that hold evidence only would tell on it.
- **Ours**: lines of JSON, or one object with the lists ``turns`` and ``questions``. A turn has
  ``id``, ``text``, ``at`` (ISO 8601) and may have ``session``, ``role``, ``speaker``, ``user``;
  a question has ``question`` and ``evidence`` (ids of turns) and may have ``at``, ``user`` and
  ``kind``. Each user is a memory of its own.
- **An export** of Engram: its turns, with questions made from what was concluded of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pydantic import AwareDatetime, BaseModel, ConfigDict, field_validator

from engram.domain.turns import Turn
from engram.errors import UnreadableSource
from engram.evaluation.questions import exported_talk
from engram.evaluation.talks import Talk, TalkQuestion
from engram.transfer.readers.locomo import sample_turns
from engram.transfer.readers.reading import FoundTurn

MISLEADING: Final = "5 misleading"
"""The kind whose evidence is the turn that misleads; never part of the overall figures."""
_EVIDENCE: Final = re.compile(r"D(\d+):(\d+)")
_LONGMEMEVAL_WHEN: Final = "%Y/%m/%d (%a) %H:%M"
_LOCOMO_KINDS: Final = {1: "1 several turns", 2: "2 dates", 3: "3 open", 4: "4 one turn"}
_FORMATS: Final = (
    "LoCoMo or LongMemEval, lines of JSON with turns and questions, or an export of Engram; "
    "docs/evaluation.md shows each"
)


def load(path: Path) -> list[Talk]:
    """The conversations of a file in any of the formats.

    Questions without usable evidence are left out: nothing can be measured on them.

    Args:
        path: The file.

    Raises:
        UnreadableSource: it is in none of the formats; the place is named, nothing quoted.
    """
    try:
        text = path.read_text("utf-8-sig")
        data = _parsed(text)
        if isinstance(data, dict) and "engram_export" in data:
            return [exported_talk(path)]
        return list(_talks(data))
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise UnreadableSource(
            f"{path.name} is in no format that can be measured ({type(error).__name__}).",
            allowed=_FORMATS,
        ) from error
    except OSError as error:
        raise UnreadableSource(f"{path.name} cannot be read ({error.strerror}).") from error


def _parsed(text: str) -> Any:
    """The JSON of a file; of lines of JSON the first, where it says that an export follows."""
    try:
        return json.loads(text)
    except ValueError:
        lines = [json.loads(line) for line in text.split("\n") if line.strip()]
    if not lines or "engram_export" in lines[0]:
        return lines[0] if lines else {}
    return {
        "turns": [line for line in lines if "question" not in line],
        "questions": [line for line in lines if "question" in line],
    }


def _talks(data: Any) -> Iterator[Talk]:
    if isinstance(data, dict):
        yield from [_pooled(data)] if "other_turns" in data else _ours(data)
    elif data and "haystack_sessions" in data[0]:
        yield from (_haystack(one) for one in data if not _abstains(one))
    else:
        yield from (_locomo(one) for one in data)


# --- LoCoMo


def _locomo(record: dict[str, Any]) -> Talk:
    sessions: dict[str, list[Turn]] = {}
    for found in sample_turns(record, 1):
        if isinstance(found, FoundTurn):
            turn = Turn(
                content=found.content,
                speaker=found.speaker,
                timestamp=found.timestamp,
                message_id=found.message_id,
            )
            sessions.setdefault(found.session, []).append(turn)
    known = {turn.message_id for turns in sessions.values() for turn in turns}
    asked = [
        TalkQuestion(
            str(one["question"]),
            evidence_ids(one.get("evidence", ()), known),
            _LOCOMO_KINDS.get(one["category"], MISLEADING),
            answer=_text(one.get("answer")),
        )
        for one in record["qa"]
    ]
    return Talk.of(str(record["sample_id"]), sessions, asked)


def evidence_ids(given: Any, known: set[str | None]) -> tuple[str, ...]:
    """LoCoMo's usable ids: "D8:6; D9:17" is two, "D9:05" is D9:5, "D" and "D:11:26" are none."""
    found = (
        f"D{int(session)}:{int(turn)}"
        for text in given
        for session, turn in _EVIDENCE.findall(str(text))
    )
    return tuple(dict.fromkeys(one for one in found if one in known))


# --- LongMemEval


def _abstains(record: Mapping[str, Any]) -> bool:
    return bool(record.get("abstention")) or str(record["question_id"]).endswith("_abs")


def _haystack(record: dict[str, Any]) -> Talk:
    """One question with its chats; its evidence is the turns that are marked as its answer."""
    sessions: dict[str, list[Turn]] = {}
    evidence: list[str] = []
    chats = zip(
        record["haystack_session_ids"],
        record["haystack_dates"],
        record["haystack_sessions"],
        strict=True,
    )
    for number, (name, when, chat) in enumerate(chats):
        for place, said in enumerate(chat):
            turn_id = f"{number}:{place}"
            turn = Turn(
                content=said["content"],
                role=said["role"],
                timestamp=_longmemeval_moment(when),
                message_id=turn_id,
            )
            if said["content"].strip():
                sessions.setdefault(f"{number}-{name}", []).append(turn)
            if said.get("has_answer"):
                evidence.append(turn_id)
    asked = TalkQuestion(
        record["question"],
        tuple(evidence),
        record["question_type"],
        _longmemeval_moment(record["question_date"]),
        answer=_text(record.get("answer")),
    )
    return Talk.of(record["question_id"], sessions, [asked])


def _pooled(data: dict[str, Any]) -> Talk:
    said = [turn for one in data["questions"] for turn in one["evidence_turns"]]
    ids: dict[str, str] = {}
    sessions: dict[str, list[Turn]] = {}
    for turn in (*said, *data["other_turns"]):
        content = turn["content"]
        if content not in ids:
            name = ids[content] = f"turn_{len(ids)}"
            when = _longmemeval_moment(turn["session_date"])
            kept = Turn(content=content, role=turn["role"], timestamp=when, message_id=name)
            sessions[name] = [kept]
    asked = [
        TalkQuestion(
            one["question"],
            tuple(dict.fromkeys(ids[turn["content"]] for turn in one["evidence_turns"])),
            one["question_type"],
            _longmemeval_moment(one["question_date"]),
            answer=_text(one.get("answer")),
        )
        for one in data["questions"]
        if not one["abstention"]
    ]
    return Talk.of("pooled", sessions, asked)


def _longmemeval_moment(text: str) -> datetime:
    return datetime.strptime(text, _LONGMEMEVAL_WHEN).replace(tzinfo=UTC)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


# --- ours


class _OwnLine(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    user: str = "user"
    at: AwareDatetime | None = None

    @field_validator("at", mode="before")
    @classmethod
    def _zoned(cls, value: Any) -> Any:
        """A moment without a zone is UTC."""
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(moment, datetime) and moment.tzinfo is None:
            return moment.replace(tzinfo=UTC)
        return moment


class _TurnLine(_OwnLine):
    id: str
    text: str
    session: str = "session"
    role: str | None = None
    speaker: str | None = None


class _QuestionLine(_OwnLine):
    question: str
    evidence: tuple[str, ...]
    kind: str = "all"
    answer: str | None = None


def _ours(data: dict[str, Any]) -> Iterator[Talk]:
    turns = [_TurnLine.model_validate(one) for one in data["turns"]]
    asked = [_QuestionLine.model_validate(one) for one in data["questions"]]
    owner = {one.id: one.user for one in turns}
    said: dict[str, dict[str, list[Turn]]] = {}
    for one in turns:
        said.setdefault(one.user, {}).setdefault(one.session, []).append(_turn(one))
    questions: dict[str, list[TalkQuestion]] = {}
    for line in asked:
        for user in _asked_of(line, owner):
            questions.setdefault(user, []).append(_asked(line, owner))
    for user, sessions in said.items():
        yield Talk.of(user, sessions, questions.get(user, []))


def _turn(line: _TurnLine) -> Turn:
    return Turn(
        content=line.text,
        role=line.role or "user",
        speaker=line.speaker,
        timestamp=line.at,
        message_id=line.id,
    )


def _asked(line: _QuestionLine, known: Mapping[str, str]) -> TalkQuestion:
    evidence = tuple(dict.fromkeys(one for one in line.evidence if one in known))
    return TalkQuestion(line.question, evidence, line.kind, line.at, answer=line.answer)


def _asked_of(line: _QuestionLine, owner: Mapping[str, str]) -> Iterable[str]:
    """The users that a question goes to: whom it names, or else who said its evidence."""
    if "user" in line.model_fields_set:
        return [line.user]
    return dict.fromkeys(owner[one] for one in line.evidence if one in owner)
