"""Conversation turns as applications hand them over, and which of them speak for the user."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Literal, Protocol, get_args

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue

from engram.domain.memories import MOST_DIGITS, Episode, has_too_many_digits
from engram.domain.sanitize import has_control_characters, is_visible, one_line
from engram.domain.values import is_none
from engram.errors import InvalidQuery, InvalidTurn

# --- what an application hands over: conversation turns, and the checks they pass first

Role = Literal["user", "assistant", "system", "tool"]
ROLES: tuple[str, ...] = get_args(Role)

EARLIEST_TIMESTAMP = datetime(1900, 1, 1, tzinfo=UTC)
_LATEST_MOMENT = datetime(3000, 1, 1, tzinfo=UTC)
_A_MOMENT = "2026-05-20T08:15:00+01:00"
CLOCK_SKEW_ALLOWED = timedelta(days=1)
MAX_NAME_CHARACTERS = 256
MAX_TAGS = 64
MAX_SEQUENCE = 2**53
MAX_METADATA_BYTES = 8 * 1024
MAX_METADATA_DEPTH = 32
MAX_SUMMARY_CHARACTERS = 1000
LONGEST_LIFE = timedelta(days=36_525)
"""How far ahead an expiry may lie: a hundred years."""

# Of a stretch of time; Pydantic, which reads both, tells of the text alone.
_SECONDS_TOO: list[JsonValue] = [
    {"type": "number", "description": "Seconds."},
    {"type": "string", "format": "duration"},
    {"type": "null"},
]


class Turn(BaseModel):
    """One utterance of a conversation, as the application knows it.

    Attributes:
        role: Who the application says is speaking: ``user`` for a person, whoever it is,
            and ``assistant``, ``system`` or ``tool`` for a program. Only what people say
            is evidence for a memory.
        content: The words, kept verbatim.
        speaker: The speaker's name, where there is more than one person.
        timestamp: When it was said, with a timezone, in which days such as "tomorrow" are read.
            When absent, when it came to the process that stores it, in UTC, and later than those
            of its session that came before without one, also where the clock was set back.
            `engram encode` and `engram mcp` give that of their machine.
        message_id: The application's own id for this message. Sending the same turn
            again is acknowledged and stores nothing new. With other words, further tags,
            other metadata or another summary it is refused.
        metadata: Free plain data that is kept with the turn.
        tags: Labels that recall can filter by.
        importance: 0 to 1; biases fading and ranking. 0.5 is what a turn has without one. What
            is concluded from the turn is at least as important.
        expires_at: From when on the turn no longer answers, with a timezone; it has to lie ahead,
            by a hundred years at most. It holds as well for what is concluded from this turn
            alone. None: only fading takes it.
        expires_in: The same, counted from when the turn is handed over; one of the two.
        summary: The turn in a sentence, up to 1000 characters; shown where the turn is too long.
    """

    # What was said is in no error, whoever prints it.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    role: str = Field(default="user", json_schema_extra={"enum": [*ROLES]})
    content: str
    speaker: str | None = None
    timestamp: datetime | None = None
    message_id: str | None = None
    metadata: Mapping[str, Any] = Field(default_factory=dict)
    tags: tuple[str, ...] = ()
    importance: float | None = None
    # What is not given is not sent: most turns have none of these.
    expires_at: datetime | None = Field(default=None, exclude_if=is_none)
    expires_in: timedelta | None = Field(
        default=None, exclude_if=is_none, json_schema_extra={"anyOf": _SECONDS_TOO}
    )
    summary: str | None = Field(default=None, exclude_if=is_none)


class TurnLike(Protocol):
    """What every form of a turn on its way in has."""

    @property
    def role(self) -> str:
        """Who is speaking."""

    @property
    def content(self) -> str:
        """The words."""

    @property
    def speaker(self) -> str | None:
        """The speaker's name."""

    @property
    def timestamp(self) -> datetime | None:
        """When it was said."""

    @property
    def message_id(self) -> str | None:
        """The application's id."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Plain data."""

    @property
    def tags(self) -> tuple[str, ...]:
        """Labels."""

    @property
    def importance(self) -> float | None:
        """0 to 1."""

    @property
    def expires_at(self) -> datetime | None:
        """When it ends."""

    @property
    def summary(self) -> str | None:
        """In a sentence."""


def check_turn(
    turn: TurnLike, *, now: datetime, max_bytes: int, ends_after: datetime | None = None
) -> None:
    """Refuse a turn that cannot be kept faithfully.

    Asked where a turn is handed over, so that its author learns it at once, and again
    where it is stored: not everything that reaches a worker came through a client.

    Args:
        turn: What the application handed over.
        now: The present, to tell absurd timestamps.
        max_bytes: Largest content accepted, in UTF-8 bytes.
        ends_after: Its expiry has to lie after this; None: after ``now``. Earlier where a turn
            may have been on its way for a while, or is one of an export.

    Raises:
        InvalidTurn: naming the field, what is allowed, and nothing of the content.
    """
    if turn.role not in ROLES:
        raise InvalidTurn("The role of a turn is unknown.", allowed=", ".join(ROLES))
    check_content(turn.content, max_bytes=max_bytes)
    for what, name in (("speaker", turn.speaker), ("message id", turn.message_id)):
        if name is not None:
            check_name(name, what)
    if turn.timestamp is not None:
        check_timestamp(turn.timestamp, now=now)
    if turn.expires_at is not None:
        _check_expiry(turn.expires_at, ends_after or now, now + LONGEST_LIFE)
    if turn.summary is not None:
        check_name(turn.summary, "summary", longest=MAX_SUMMARY_CHARACTERS)
    _check_labels(turn)


def check_content(content: str, *, max_bytes: int, what: str = "content") -> None:
    """Refuse words that are none, are no Unicode text, or are too many.

    Args:
        content: The words.
        max_bytes: As many are accepted, in UTF-8.
        what: How the error calls them.

    Raises:
        InvalidTurn: saying which of these it is.
    """
    check_text(content, what)
    if not is_visible(content):
        raise InvalidTurn(
            f"The {what} of a turn is empty.", allowed="text with at least one visible character"
        )
    size = len(content.encode())
    if size > max_bytes:
        raise InvalidTurn(
            f"The {what} of a turn has {size} bytes.",
            allowed=f"up to {max_bytes} bytes of UTF-8",
            hint="Split it into several turns, or raise ENGRAM_MAX_TURN_BYTES.",
            details={"size": size, "limit": max_bytes},
        )


def check_timestamp(moment: datetime, *, now: datetime, what: str = "timestamp") -> None:
    """Refuse a moment without timezone, before 1900, or more than a day ahead.

    Raises:
        InvalidTurn: saying which of these it is.
    """
    allowed = "a moment with its timezone, between 1900 and one day from now"
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise InvalidTurn(
            f"The {what} has no timezone.",
            allowed=allowed,
            hint=f"Such as {_A_MOMENT}.",
        )
    if not EARLIEST_TIMESTAMP <= moment <= now + CLOCK_SKEW_ALLOWED:
        raise InvalidTurn(f"The {what} lies outside what is believable.", allowed=allowed)


def check_moment(moment: datetime) -> None:
    """Refuse a moment without timezone, and one that is too far away to reckon with.

    Raises:
        InvalidQuery: saying which of these it is.
    """
    if moment.utcoffset() is None:
        raise InvalidQuery(
            "The moment has no timezone.", allowed=f"one with its timezone, such as {_A_MOMENT}"
        )
    if not EARLIEST_TIMESTAMP <= moment <= _LATEST_MOMENT:
        raise InvalidQuery("The moment is out of range.", allowed="the years 1900 to 2999")


def end_of(turn: Turn, now: datetime) -> datetime | None:
    """When a turn that is handed over now ends, by whichever of its fields says so.

    Raises:
        InvalidTurn: both do, or its life is no stretch of time ahead.
    """
    if turn.expires_in is None:
        return turn.expires_at
    if turn.expires_at is not None:
        raise InvalidTurn("A turn has two expiries.", allowed="expires_at or expires_in")
    if not timedelta(0) < turn.expires_in <= LONGEST_LIFE:
        raise InvalidTurn(
            "The life of a turn is out of range.",
            allowed=f"expires_in of more than 0 and up to {LONGEST_LIFE.days} days",
        )
    return now + turn.expires_in


def _check_expiry(moment: datetime, after: datetime, latest: datetime) -> None:
    if moment.utcoffset() is None:
        raise InvalidTurn(
            "The expiry of a turn has no timezone.",
            allowed=f"a moment with its timezone, such as {_A_MOMENT}",
            hint="Or give expires_in.",
        )
    if not after < moment <= latest:
        raise InvalidTurn(
            "The expiry of a turn lies in the past, or too far ahead.",
            allowed=f"a moment within the next {LONGEST_LIFE.days} days",
        )


def check_text(text: str, what: str) -> None:
    """Refuse what no store and no JSON document can hold.

    Raises:
        InvalidTurn: it has a NUL, or half of a pair of surrogates.
    """
    if "\x00" in text:
        raise InvalidTurn(f"The {what} holds a NUL byte.", allowed="text without NUL")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidTurn(
            f"The {what} holds a lone surrogate, so it is not valid Unicode.",
            allowed="text that can be encoded as UTF-8",
            hint="Send well-formed Unicode, with U+FFFD where a character cannot be read.",
        ) from error


def check_sequence(sequence: int) -> None:
    """Refuse a number that no turn can have within its session.

    Raises:
        InvalidTurn: it is negative, or more than a store counts.
    """
    if not 0 <= sequence <= MAX_SEQUENCE:
        raise InvalidTurn(
            "The number of a turn in its session is out of range.", allowed=f"0 to {MAX_SEQUENCE}"
        )


def check_name(name: str, what: str, *, longest: int = MAX_NAME_CHARACTERS) -> None:
    """Refuse a short text that is empty, too long, or more than one line.

    Args:
        name: A speaker, a message id, a tag.
        what: How the error calls it.
        longest: Characters that it may have.

    Raises:
        InvalidTurn: saying which of these it is.
    """
    check_text(name, what)
    if not is_visible(name) or len(name) > longest:
        raise InvalidTurn(
            f"The {what} of a turn is empty or too long.",
            allowed=f"1 to {longest} characters, at least one of them visible",
        )
    if has_control_characters(name):
        # It stands on lines of prompts and tables, and would begin one of its own.
        raise InvalidTurn(
            f"The {what} of a turn holds a control character.",
            allowed="text on one line, without control characters",
            hint="Replace line ends by spaces.",
        )


def _check_labels(turn: TurnLike) -> None:
    if len(turn.tags) > MAX_TAGS:
        raise InvalidTurn(f"A turn has {len(turn.tags)} tags.", allowed=f"up to {MAX_TAGS}")
    for tag in turn.tags:
        check_name(tag, "tag")
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
        check_text(value, "metadata")
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
    if isinstance(value, int) and has_too_many_digits(value):
        raise InvalidTurn(
            "The metadata of a turn holds a whole number that is too long.",
            allowed=f"up to {MOST_DIGITS:,} digits",
            hint="Give it as text.",
        )
    # An integer may have thousands of digits.
    return value.bit_length() // 8 if isinstance(value, int) else 0


# --- what is context of what

# A note of this morning is no context of one of tonight, whoever keeps both in one session.
JUST_BEFORE = timedelta(hours=1)
"""How long a turn is context of the one after it."""


def is_just_before(earlier: datetime, later: datetime) -> bool:
    """Whether a turn of then is context of the turn after it in its session: within an hour."""
    return later - earlier <= JUST_BEFORE


class SaidAt(BaseModel):
    """Where in its session a turn stands.

    Attributes:
        session_id: The session.
        sequence: Its number there, 0 or more.
        timestamp: When it was said.
    """

    model_config = ConfigDict(frozen=True)

    session_id: str
    sequence: int
    timestamp: AwareDatetime

    @classmethod
    def of(cls, episode: Episode) -> SaidAt:
        """That of a stored turn."""
        return cls(
            session_id=episode.session_id or "",
            sequence=episode.sequence,
            timestamp=episode.timestamp,
        )


# --- a block of recalled memories: marked when it goes out, recognised when it returns
#
# An application puts what it recalled into a prompt, and may hand that prompt, or
# an answer that quotes it, back as a turn. What Engram said itself is no new
# evidence for it, so a block is fenced by two lines that no one writes by chance.

_FENCE = "engram-memory"
OPENING = f"<{_FENCE} ...>"
"""How instructions for a model write the fence that opens; each block has its own mark there."""
CLOSING = f"</{_FENCE} ...>"
"""The same of the fence that closes."""
LEAST_TOKENS = 32
"""The smallest room that a block can be given: its fences and a short line."""
MOST_ALREADY = 256
"""So many texts of a prompt, at most, are compared with what a block would say."""
_MARK_DIGITS = 12
_BLOCK = re.compile(
    rf"<{_FENCE}(?P<mark>(?: [0-9a-f]{{{_MARK_DIGITS}}})?)>.*?(?:</{_FENCE}(?P=mark)>|\Z)",
    re.DOTALL,
)
# Whatever a model could take for a fence: other widths of the bracket, spaces, either slash.
_LIKE_A_FENCE = re.compile(
    r"[<\uff1c\ufe64\u2039\u27e8](?=[\s/\\\uff0f]{0,8}engram)", re.IGNORECASE
)


def context_block(lines: Iterable[str]) -> str:
    """The lines as one fenced block, out of which none of them reaches.

    Opening and closing fence carry a mark, made from all of the lines, that no line
    can hold.
    """
    kept = [block_line(line) for line in lines]
    mark = sha256("\n".join(kept).encode("utf-8", "replace")).hexdigest()[:_MARK_DIGITS]
    return "\n".join((f"<{_FENCE} {mark}>", *kept, f"</{_FENCE} {mark}>"))


def block_line(line: str) -> str:
    """The line as it stands in a block: still one line, and without anything like a fence.

    The bracket of whatever looks like one becomes ``&lt;``. How far a line is
    indented stays: it says what the line belongs to.
    """
    indent = len(line) - len(line.lstrip(" "))
    return " " * indent + _LIKE_A_FENCE.sub("&lt;", one_line(line))


def without_context_blocks(text: str) -> str:
    """The text as its author wrote it: every fenced block, also one cut off, is left out."""
    return _BLOCK.sub(" ", text)


# --- whose turns speak for the user, and whose are only context

_USER = "user"


def is_first_party(episode: Episode) -> bool:
    """Whether what the turn says is said by a person about themselves.

    Users do, and in a conversation of several people each is a user with a name. What
    an assistant says is a model's, whatever it is called: its words, or what somebody
    made it say, are no evidence about anybody. Tools and system messages are none either.
    """
    return episode.role == _USER


def without_injected_context(episode: Episode) -> Episode:
    """The turn without recalled memories that stand in it: those are no news of anybody."""
    return episode.model_copy(update={"content": without_context_blocks(episode.content)})
