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
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar, Final, TypeAlias, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError, field_validator

from engram.domain.turns import Turn
from engram.errors import UnreadableSource
from engram.evaluation.questions import exported_talk
from engram.evaluation.talks import Talk, TalkQuestion
from engram.transfer.readers.lines import numbered, parsed
from engram.transfer.readers.locomo import sample_turns
from engram.transfer.readers.reading import FoundTurn, line_of

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

    Questions without usable evidence are left out, and counted: nothing can be measured on them.

    Args:
        path: The file.

    Raises:
        UnreadableSource: it is in none of the formats; the place is named, nothing quoted.
    """
    try:
        data = _parsed(path.read_bytes())
        if isinstance(data, dict) and "engram_export" in data:
            return [exported_talk(path)]
        return list(_talks(data))
    except UnreadableSource as error:
        raise UnreadableSource(
            f"{path.name} cannot be measured. {error.message}", allowed=error.allowed or _FORMATS
        ) from None
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise UnreadableSource(
            f"{path.name} is in no format that can be measured ({_why(error)}).",
            allowed=_FORMATS,
        ) from error
    except OSError as error:
        raise UnreadableSource(f"{path.name} cannot be read ({error.strerror}).") from error


def _why(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"broken at line {error.lineno}"
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 at line {line_of(error)}"
    return type(error).__name__


def _parsed(data: bytes) -> Any:
    """The JSON of a file; of lines of JSON the first, where it says that an export follows."""
    try:
        return json.loads(data)
    except ValueError:
        given: list[_Placed] = []
        for number, line in numbered(BytesIO(data)):
            try:
                given.append((f"Line {number}", parsed(line, f"line {number}")))
            except UnreadableSource:
                if given:
                    raise
                # Not even the first line: it is one document, and broken further down.
                break
        if not given:
            raise
    return given[0][1] if "engram_export" in given[0][1] else given


def _talks(data: Any) -> Iterator[Talk]:
    if isinstance(data, dict):
        yield from [_pooled(data)] if "other_turns" in data else _ours(_listed(data))
    elif data and isinstance(data[0], tuple):
        yield from _ours(data)
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


_Placed: TypeAlias = tuple[str, Mapping[str, Any]]
"""A turn or a question, behind the words for where it stands."""


class _OwnLine(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")
    what: ClassVar[str]

    user: str = "user"

    @field_validator("at", mode="before", check_fields=False)
    @classmethod
    def _zoned(cls, value: Any) -> Any:
        """A moment without a zone is UTC."""
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(moment, datetime) and moment.tzinfo is None:
            return moment.replace(tzinfo=UTC)
        return moment


class _TurnLine(_OwnLine):
    what: ClassVar = "turn"

    at: AwareDatetime
    id: str
    text: str
    session: str = "session"
    role: str | None = None
    speaker: str | None = None


class _QuestionLine(_OwnLine):
    what: ClassVar = "question"

    at: AwareDatetime | None = None
    question: str
    evidence: tuple[str, ...]
    kind: str = "all"
    answer: str | None = None


_AnyLine = TypeVar("_AnyLine", _TurnLine, _QuestionLine)
_Owners: TypeAlias = Mapping[str, Mapping[str, None]]
"""Who said the turn with an id: ids are of one user each."""


def _listed(data: Mapping[str, Any]) -> list[_Placed]:
    """The entries of one object, which is a line by itself where it has no lists."""
    if "text" in data or "question" in data:
        return [("Line 1", data)]
    return [
        (f"{what} {number}", one)
        for what, name in (("Turn", "turns"), ("Question", "questions"))
        for number, one in enumerate(data[name], start=1)
    ]


def _ours(given: Iterable[_Placed]) -> Iterator[Talk]:
    said: dict[str, dict[str, list[Turn]]] = {}
    owners: dict[str, dict[str, None]] = {}
    asked: list[_QuestionLine] = []
    for place, fields in given:
        if "question" in fields:
            asked.append(_entry(_QuestionLine, fields, place))
            continue
        one = _entry(_TurnLine, fields, place)
        if one.user in owners.setdefault(one.id, {}):
            raise UnreadableSource(
                f"{place} has the id of a turn before it.", allowed="an id for each turn of a user"
            )
        owners[one.id][one.user] = None
        said.setdefault(one.user, {}).setdefault(one.session, []).append(_turn(one))
    questions: dict[str, list[TalkQuestion]] = {}
    for line in asked:
        for user in _asked_of(line, owners):
            questions.setdefault(user, []).append(_asked(line, user, owners))
    # Whoever is asked and said nothing has no question that can be measured: they are counted.
    for user in dict.fromkeys((*said, *questions)):
        yield Talk.of(user, said.get(user, {}), questions.get(user, []))


def _entry(model: type[_AnyLine], fields: Any, place: str) -> _AnyLine:
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        found = error.errors(include_input=False, include_url=False, include_context=False)
        wrong = dict.fromkeys(
            f"{one['loc'][0]} ({one['type'].replace('_', ' ')})" if one["loc"] else "no object"
            for one in found
        )
        raise UnreadableSource(f"{place} is no {model.what}: {', '.join(wrong)}.") from None


def _turn(line: _TurnLine) -> Turn:
    return Turn(
        content=line.text,
        role=line.role or "user",
        speaker=line.speaker,
        timestamp=line.at,
        message_id=line.id,
    )


def _asked(line: _QuestionLine, user: str, owners: _Owners) -> TalkQuestion:
    evidence = tuple(dict.fromkeys(one for one in line.evidence if user in owners.get(one, ())))
    return TalkQuestion(line.question, evidence, line.kind, line.at, answer=line.answer)


def _asked_of(line: _QuestionLine, owners: _Owners) -> Iterable[str]:
    """The users that a question goes to: whom it names, or else who said its evidence."""
    if "user" in line.model_fields_set:
        return [line.user]
    return dict.fromkeys(user for one in line.evidence for user in owners.get(one, ())) or [
        line.user
    ]
