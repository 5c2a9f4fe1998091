"""Engram's own line format: one turn as a JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, BinaryIO, Final, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from engram.domain.sanitize import is_visible
from engram.errors import UnreadableSource
from engram.transfer.readers.reading import FoundTurn, LeftOut, ReadEntry

MOST_LINE_BYTES: Final = 16 * 1024 * 1024


def _read_moment(value: Any) -> Any:
    """Seconds since 1970 are a moment; texts are ISO 8601, never numbers as text."""
    if isinstance(value, bool):
        raise ValueError("a moment is ISO 8601 text or a number of seconds")  # noqa: TRY004 - pydantic wants ValueError
    if isinstance(value, int | float):
        try:
            return datetime.fromtimestamp(value, UTC)
        except (OverflowError, OSError):
            raise ValueError("the number lies beyond every calendar") from None
    return datetime.fromisoformat(value) if isinstance(value, str) else value


_Moment: TypeAlias = Annotated[datetime | None, BeforeValidator(_read_moment)]


class _Line(BaseModel):
    """One line.

    Attributes:
        content: The words.
        timestamp: ISO 8601, or seconds since 1970.
        session_id: The conversation.
        expires_at: From when on it no longer answers, as ``timestamp``.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    content: str
    role: str = "user"
    speaker: str | None = None
    timestamp: _Moment = None
    session_id: str = Field(default="imported", min_length=1)
    message_id: str | None = None
    metadata: dict[str, Any] = Field(default_factory=dict)
    tags: list[str] = Field(default_factory=list)
    importance: float | None = None
    expires_at: _Moment = None
    summary: str | None = None


def read(stream: BinaryIO) -> Iterator[ReadEntry]:
    """The turns, in order. Empty lines are passed over.

    Raises:
        UnreadableSource: a line is no such object; it is named by its number.
    """
    for number, data in numbered(stream):
        place = f"line {number}"
        given = parsed(data, place)
        try:
            line = _Line.model_validate(given)
        except ValidationError as error:
            raise UnreadableSource(
                f"Line {number} is no turn: {_told(error)}.",
                allowed=", ".join(_Line.model_fields),
                details={"line": number},
            ) from None
        if not is_visible(line.content):
            yield LeftOut("empty", place)
            continue
        yield FoundTurn(
            session=line.session_id,
            place=place,
            content=line.content,
            role=line.role,
            speaker=line.speaker,
            timestamp=line.timestamp,
            message_id=line.message_id,
            metadata=line.metadata,
            tags=tuple(line.tags),
            importance=line.importance,
            expires_at=line.expires_at,
            summary=line.summary,
        )


def numbered(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines that hold something, with their numbers from 1.

    Raises:
        UnreadableSource: a line is too long.
    """
    number = 0
    while data := stream.readline(MOST_LINE_BYTES + 1):
        number += 1
        if len(data) > MOST_LINE_BYTES:
            raise UnreadableSource(
                f"Line {number} is too long.",
                allowed=f"{MOST_LINE_BYTES} bytes",
                details={"line": number},
            )
        if number == 1:
            data = data.removeprefix(b"\xef\xbb\xbf")
        if data.strip():
            yield number, data


def parsed(data: bytes, place: str) -> Mapping[str, Any]:
    """The JSON object of a line.

    Raises:
        UnreadableSource: it is none.
    """
    try:
        given = json.loads(data)
    except UnicodeDecodeError:
        raise UnreadableSource(f"The file is not UTF-8 at {place}.") from None
    except (ValueError, RecursionError):
        raise UnreadableSource(
            f"{place.capitalize()} is no JSON.", allowed="one JSON object a line"
        ) from None
    if not isinstance(given, dict):
        raise UnreadableSource(
            f"{place.capitalize()} is no JSON object.", allowed="one JSON object a line"
        )
    return given


def _told(error: ValidationError) -> str:
    """Which fields are wrong and how; a name that is no field of ours is not repeated."""
    wrong: list[str] = []
    for one in error.errors(include_input=False, include_url=False, include_context=False):
        name = str(one["loc"][0]) if one["loc"] else ""
        known = name if name in _Line.model_fields else "a field that does not exist"
        wrong.append(f"{known} ({one['type'].replace('_', ' ')})")
    return "; ".join(dict.fromkeys(wrong))
