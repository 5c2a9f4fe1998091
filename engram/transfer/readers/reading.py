"""What every reader uses: the entries it yields, and JSON arrays in bounded memory."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, BinaryIO, Final, TypeAlias

from engram.errors import UnreadableSource


def line_of(error: UnicodeDecodeError) -> int:
    """The line, from 1, of the first byte that is no text."""
    return error.object.count(b"\n", 0, error.start) + 1


# --- what readers find in a source: turns, and what they leave out and why


@dataclass(frozen=True, slots=True)
class FoundTurn:
    """A turn as its source has it.

    Attributes:
        session: The source's own name of the conversation.
        place: Where it stands, in words that hold nothing of it: "conversation 3, message 12".
        message_id: The source's own id; None where it has none.
        timestamp: As the source has it, perhaps without zone; None where it has none.
    """

    session: str
    place: str
    content: str
    role: str = "user"
    speaker: str | None = None
    timestamp: datetime | None = None
    message_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    importance: float | None = None
    expires_at: datetime | None = None
    summary: str | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that is no turn to remember.

    Attributes:
        reason: Why, in a few words that hold nothing of it.
        place: Where it stands.
    """

    reason: str
    place: str


ReadEntry: TypeAlias = FoundTurn | LeftOut


# --- the elements of a long JSON array, one after the other, in bounded memory
#
# With the standard library's decoder: it refuses deep nesting, takes lone
# surrogates, and is several times as fast as decoders that call back for every
# value (docs/decisions/0017-importing.md has the figures).

_CHARACTERS_READ: Final = 1 << 20
# Of one element. The longest conversations that people have are some megabytes.
MOST_ELEMENT_CHARACTERS: Final = 256 * 1024 * 1024
# So near the end of what was read so far, an error may only mean that more is to come.
_TORN: Final = 32
_GAP: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder()


def elements(stream: BinaryIO, what: str = "element") -> Iterator[Any]:
    """The elements of the array in ``stream``; a single object counts as an array of itself.

    Args:
        stream: UTF-8, with or without byte order mark.
        what: The word for an element in errors.

    Raises:
        UnreadableSource: it is no such array, no UTF-8, or nested too deeply; the
            number of the element is named, counted from 1.
    """
    text = _Text(stream, what)
    opening = text.peek()
    if opening == "{":
        yield text.value()
        text.check_end()
        return
    if opening != "[":
        raise UnreadableSource("The file is no JSON list.", allowed="a JSON list, or one object")
    text.skip()
    if text.peek() == "]":
        text.skip()
        text.check_end()
        return
    while True:
        yield text.value()
        match text.peek():
            case ",":
                text.skip()
            case "]":
                text.skip()
                text.check_end()
                return
            case _:
                raise text.broken()


class _Text:
    """What was read and not used yet."""

    def __init__(self, stream: BinaryIO, what: str) -> None:
        self._stream = stream
        self._what = what
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._text = ""
        self._at = 0
        self._ended = False
        self._number = 0

    def peek(self) -> str:
        """The next character that is no space; empty at the end."""
        while True:
            self._at = _GAP.match(self._text, self._at).end()  # type: ignore[union-attr]  # it matches nothing, too
            if self._at < len(self._text) or not self._more(_CHARACTERS_READ):
                return self._text[self._at : self._at + 1]

    def skip(self) -> None:
        """Go past one character."""
        self._at += 1

    def value(self) -> Any:
        """The JSON value that comes next."""
        self._number += 1
        self.peek()
        wanted = _CHARACTERS_READ
        while True:
            try:
                found, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                torn = error.msg.startswith("Unterminated") or error.pos > len(self._text) - _TORN
                if not torn or not self._more(wanted):
                    raise self.broken() from None
                # Doubled, so that what is read again stays a part of the whole.
                wanted = min(wanted * 2, 64 * _CHARACTERS_READ)
            except ValueError:
                # Python reads no integer of more than 4,300 digits, and does not call it bad JSON.
                raise UnreadableSource(
                    f"{self._what.capitalize()} {self._number} holds a number that is too long.",
                    details={self._what: self._number},
                ) from None
            except RecursionError:
                raise UnreadableSource(
                    f"{self._what.capitalize()} {self._number} is nested too deeply."
                ) from None
            else:
                self._at = end
                return found

    def check_end(self) -> None:
        """Refuse what comes after the end."""
        if self.peek():
            raise self.broken()

    def broken(self) -> UnreadableSource:
        """The error for what is no JSON here. The decoder's own would quote the text."""
        return UnreadableSource(
            f"The file is no JSON at {self._what} {self._number}.",
            hint="It may have been cut off; download it again.",
            details={self._what: self._number},
        )

    def _more(self, size: int) -> bool:
        if self._ended:
            return False
        if len(self._text) - self._at > MOST_ELEMENT_CHARACTERS:
            raise UnreadableSource(
                f"{self._what.capitalize()} {self._number} is too long.",
                allowed=f"{MOST_ELEMENT_CHARACTERS} characters",
            )
        data = self._stream.read(size)
        self._ended = not data
        try:
            new = self._decode.decode(data, final=self._ended)
        except UnicodeDecodeError:
            raise UnreadableSource(
                f"The file is not UTF-8 at {self._what} {max(self._number, 1)}."
            ) from None
        self._text = self._text[self._at :] + new
        self._at = 0
        return not self._ended


# --- what data exports of chat programs have in common: an array of conversations


def conversations(
    stream: BinaryIO, turns: Callable[[Any, str], Iterator[ReadEntry]]
) -> Iterator[ReadEntry]:
    """What ``turns`` finds in each conversation, given where it stands, in order.

    Raises:
        UnreadableSource: the file is no JSON; the conversation is named by its number.
    """
    for number, conversation in enumerate(elements(stream, "conversation"), start=1):
        yield from turns(conversation, f"conversation {number}")


def text_of(given: Mapping[str, Any], name: str) -> str | None:
    """A text that is there and not empty."""
    value = given.get(name)
    return value if isinstance(value, str) and value else None
