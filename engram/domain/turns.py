"""Conversation turns as applications hand them over, and which of them speak for the user."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from engram.domain.memories import Episode
from engram.errors import InvalidTurn

# --- what an application hands over: conversation turns, and the checks they pass first

Role = Literal["user", "assistant", "system", "tool"]
ROLES: tuple[str, ...] = get_args(Role)

EARLIEST_TIMESTAMP = datetime(1900, 1, 1, tzinfo=UTC)
CLOCK_SKEW_ALLOWED = timedelta(days=1)
MAX_NAME_CHARACTERS = 256
MAX_TAGS = 64
MAX_METADATA_BYTES = 8 * 1024
MAX_METADATA_DEPTH = 32


class Turn(BaseModel):
    """One utterance of a conversation, as the application knows it.

    Attributes:
        role: Who the application says is speaking.
        content: The words, kept verbatim.
        speaker: The speaker's name, where there is more than one person.
        timestamp: When it was said, with a timezone; the client's clock when absent.
        message_id: The application's own id for this message. Sending the same
            id again is acknowledged and stores nothing new.
        metadata: Free plain data that is kept with the turn.
        tags: Labels that recall can filter by.
        importance: 0 to 1; biases fading and ranking.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    role: str = "user"
    content: str
    speaker: str | None = None
    timestamp: datetime | None = None
    message_id: str | None = None
    metadata: Mapping[str, Any] = Field(default_factory=dict)
    tags: tuple[str, ...] = ()
    importance: float | None = None


def check_turn(turn: Turn, *, now: datetime, max_bytes: int) -> None:
    """Refuse a turn that cannot be kept faithfully.

    Args:
        turn: What the application handed over.
        now: The present, to tell absurd timestamps.
        max_bytes: Largest content accepted, in UTF-8 bytes.

    Raises:
        InvalidTurn: naming the field, what is allowed, and nothing of the content.
    """
    if turn.role not in ROLES:
        raise InvalidTurn("The role of a turn is unknown.", allowed=", ".join(ROLES))
    _check_text(turn.content, "content")
    if not turn.content.strip():
        raise InvalidTurn(
            "The content of a turn is empty.", allowed="text with at least one visible character"
        )
    size = len(turn.content.encode())
    if size > max_bytes:
        raise InvalidTurn(
            f"The content of a turn has {size} bytes.",
            allowed=f"up to {max_bytes} bytes of UTF-8",
            hint="Split it into several turns, or raise ENGRAM_MAX_TURN_BYTES.",
            details={"size": size, "limit": max_bytes},
        )
    for what, name in (("speaker", turn.speaker), ("message id", turn.message_id)):
        if name is not None:
            _check_name(name, what)
    if turn.timestamp is not None:
        check_timestamp(turn.timestamp, now=now)
    _check_labels(turn)


def check_timestamp(moment: datetime, *, now: datetime, what: str = "timestamp") -> None:
    """Refuse a moment without timezone, before 1900, or more than a day ahead.

    Raises:
        InvalidTurn: saying which of these it is.
    """
    allowed = "an aware datetime between 1900 and one day from now"
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise InvalidTurn(
            f"The {what} has no timezone.",
            allowed=allowed,
            hint="Pass datetime(..., tzinfo=timezone.utc) or the zone it was said in.",
        )
    if not EARLIEST_TIMESTAMP <= moment <= now + CLOCK_SKEW_ALLOWED:
        raise InvalidTurn(f"The {what} lies outside what is believable.", allowed=allowed)


def _check_text(text: str, what: str) -> None:
    if "\x00" in text:
        raise InvalidTurn(f"The {what} holds a NUL byte.", allowed="text without NUL")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidTurn(
            f"The {what} holds a lone surrogate, so it is not valid Unicode.",
            allowed="text that can be encoded as UTF-8",
            hint="Decode the original bytes with errors='replace'.",
        ) from error


def _check_name(name: str, what: str) -> None:
    _check_text(name, what)
    if not name.strip() or len(name) > MAX_NAME_CHARACTERS:
        raise InvalidTurn(
            f"The {what} of a turn is empty or too long.",
            allowed=f"1 to {MAX_NAME_CHARACTERS} characters, not only whitespace",
        )


def _check_labels(turn: Turn) -> None:
    if len(turn.tags) > MAX_TAGS:
        raise InvalidTurn(f"A turn has {len(turn.tags)} tags.", allowed=f"up to {MAX_TAGS}")
    for tag in turn.tags:
        _check_name(tag, "tag")
    if turn.importance is not None and not 0.0 <= turn.importance <= 1.0:
        raise InvalidTurn("The importance of a turn is out of range.", allowed="0.0 to 1.0")
    _check_metadata(turn.metadata)


def _check_metadata(metadata: Mapping[str, Any]) -> None:
    pending: list[tuple[Any, int]] = [(metadata, 0)]
    size = 0
    while pending:
        value, depth = pending.pop()
        size += 8 + (0 if _holds_others(value) else _plain_size(value))
        if size > MAX_METADATA_BYTES:
            raise InvalidTurn(
                "The metadata of a turn is too large.",
                allowed=f"about {MAX_METADATA_BYTES} bytes",
            )
        if depth > MAX_METADATA_DEPTH:
            raise InvalidTurn(
                "The metadata of a turn is nested too deeply.",
                allowed=f"lists and objects in each other up to {MAX_METADATA_DEPTH} levels",
            )
        pending.extend((inner, depth + 1) for inner in _inside(value))


def _holds_others(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)
    )


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return [*value.keys(), *value.values()]
    return value if _holds_others(value) else ()


def _plain_size(value: Any) -> int:
    """Roughly the bytes of one value that holds no others; refuses what JSON has no form for."""
    if isinstance(value, str):
        _check_text(value, "metadata")
        return len(value.encode())
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidTurn(
            "The metadata of a turn holds a number that is not finite.",
            allowed="plain JSON values, which infinity and NaN are not",
        )
    if value is not None and not isinstance(value, bool | int | float):
        raise InvalidTurn(
            f"The metadata of a turn holds a {type(value).__name__}.",
            allowed="plain JSON values: text, numbers, booleans, null, lists and objects",
        )
    # An integer may have thousands of digits.
    return value.bit_length() // 8 if isinstance(value, int) else 0


# --- a block of recalled memories: marked when it goes out, recognised when it returns
#
# An application puts what it recalled into a prompt, and may hand that prompt, or
# an answer that quotes it, back as a turn. What Engram said itself is no new
# evidence for it, so a block is fenced by two lines that no one writes by chance.

OPENING = "<engram-memory>"
CLOSING = "</engram-memory>"
_BLOCK = re.compile(rf"{OPENING}.*?(?:{CLOSING}|\Z)", re.DOTALL)
_FENCE = re.compile(r"</?engram-memory>", re.IGNORECASE)


def context_block(lines: Iterable[str]) -> str:
    """The lines as one fenced block; a fence inside a line is taken out, so that none closes it."""
    kept = [_FENCE.sub("", line) for line in lines]
    return "\n".join((OPENING, *kept, CLOSING))


def without_context_blocks(text: str) -> str:
    """The text as its author wrote it: every fenced block, also one cut off, is left out."""
    return _BLOCK.sub(" ", text)


# --- whose turns speak for the user, and whose are only context

_USER = "user"
_ASSISTANT = "assistant"
# A speaker's name of this kind is a machine's, and what it says is no testimony.
_MACHINE = re.compile(r"\b(?:assistant|bot|ai|agent|system|tool|model)\b", re.IGNORECASE)


def is_first_party(episode: Episode) -> bool:
    """Whether what the turn says is said by a person about themselves.

    Users do. Of the assistant's turns only those of a named person do: a recorded
    conversation of two people has one of them in that role. Tools and system
    messages never do.
    """
    if episode.role == _USER:
        return True
    named = episode.speaker is not None and not _MACHINE.search(episode.speaker)
    return episode.role == _ASSISTANT and named


def without_injected_context(episode: Episode) -> Episode:
    """The turn without recalled memories that stand in it: those are no news of anybody."""
    return episode.model_copy(update={"content": without_context_blocks(episode.content)})
