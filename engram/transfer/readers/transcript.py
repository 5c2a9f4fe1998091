"""Transcripts for people: Markdown and plain text, with a name before what each one says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO, Final

from engram.errors import UnreadableSource
from engram.transfer.readers.reading import FoundTurn, LeftOut, ReadEntry, line_of

MOST_TRANSCRIPT_BYTES: Final = 64 * 1024 * 1024

_USERS = "user human me you prompt question"
_ASSISTANTS = "assistant ai bot model chatgpt gpt claude gemini copilot response answer"
_ROLE_OF_NAME: Final = {
    **dict.fromkeys(_USERS.split(), "user"),
    **dict.fromkeys(_ASSISTANTS.split(), "assistant"),
    "system": "system",
    "tool": "tool",
}
_SPEAKER_NAME = r"(?P<name>[^\W\d_][\w.'’ -]{0,38}[\w.]|[^\W\d_])"
# Behind a time, whatever ends with a colon speaks: a number, "Ada (work)", "Ada 🌸".
_ANY_NAME = r"(?P<name>[^\s:*][^:*]{0,78}[^\s:*]|[^\s:*])"
_SAID_AT = (
    r"(?P<when>\d{4}-\d{2}-\d{2}[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)"
)
# From the plainest sign of a new turn to the least plain one.
_STYLES: Final = (
    (
        "dated",
        re.compile(rf"\[{_SAID_AT}\]\s*(?:\*\*)?{_ANY_NAME}(?:\*\*)?:(?:\*\*)?\s*(?P<text>.*)"),
    ),
    (
        "dated",
        re.compile(
            rf"{_SAID_AT}\s*[-–|,]?\s*(?:\*\*)?{_SPEAKER_NAME}(?:\*\*)?:(?:\*\*)?\s+(?P<text>.*)"
        ),
    ),
    (
        "dated",
        re.compile(rf"{_SAID_AT}\s+[-–|]\s+(?:\*\*)?{_ANY_NAME}(?:\*\*)?:(?:\*\*)?\s+(?P<text>.*)"),
    ),
    (
        "dated",
        re.compile(
            rf"(?:\*\*)?{_SPEAKER_NAME}(?:\*\*)?\s*[(\[]{_SAID_AT}[)\]]:?(?:\*\*)?\s*(?P<text>.*)"
        ),
    ),
    ("bold", re.compile(rf"\*\*{_SPEAKER_NAME}(?::\*\*|\*\*\s*:)\s*(?P<text>.*)")),
    ("bold", re.compile(rf"__{_SPEAKER_NAME}(?::__|__\s*:)\s*(?P<text>.*)")),
    ("heading", re.compile(rf"#{{2,6}}\s+(?:\W{{1,3}}\s+)?{_SPEAKER_NAME}\s*:?\s*(?P<text>)")),
    ("plain", re.compile(rf"{_SPEAKER_NAME}:(?:\s+(?P<text>.*)|$)")),
)
# As editors count lines; Unicode's other line ends may stand within what somebody says.
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_RULE: Final = re.compile(r"\s*(?:-{3,}|\*{3,}|_{3,}|={3,})\s*\Z")
_MOST_WORDS_IN_A_NAME: Final = 3


@dataclass(slots=True)
class _TranscriptTurn:
    name: str
    line: int
    when: str | None
    words: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Head:
    style: str
    name: str
    when: str | None
    text: str


def read(stream: BinaryIO, session: str = "transcript") -> Iterator[ReadEntry]:
    """The turns, in order. Names other than a role's are speakers of the user's side.

    What stands before the first name, and lines that look like one and are none
    by the style of the file, are no turns or part of the turn that runs.

    Raises:
        UnreadableSource: no line begins a turn, the file is too long or no UTF-8.
    """
    data = stream.read(MOST_TRANSCRIPT_BYTES + 1)
    if len(data) > MOST_TRANSCRIPT_BYTES:
        raise UnreadableSource(
            "The transcript is too long.", allowed=f"{MOST_TRANSCRIPT_BYTES} bytes"
        )
    try:
        lines = _LINE_END.split(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise UnreadableSource(f"The file is not UTF-8 at line {line_of(error)}.") from None
    heads = _heads(lines)
    if not heads:
        raise UnreadableSource(
            "No line of the file begins a turn.",
            allowed="lines such as 'User: ...', '**Ada:** ...', '## Assistant' or "
            "'[2024-05-01 10:00] Ada: ...'",
            hint="docs/import.md shows a sample of each format.",
        )
    yield from _turns(lines, heads, session)


def _heads(lines: list[str]) -> dict[int, _Head]:
    """The lines that begin turns, all of one style: that of the first that plainly does."""
    found: dict[str, dict[int, _Head]] = {}
    for number, line in enumerate(lines):
        if (head := _head(line)) is not None:
            found.setdefault(head.style, {})[number] = head
    roles_said = [
        head.style
        for heads in found.values()
        for head in heads.values()
        if head.style != "dated" and head.name.casefold() in _ROLE_OF_NAME
    ]
    for style in ("dated", "bold", "heading", "plain"):
        heads = found.get(style, {})
        if style == "dated" and len(heads) < max(Counter(roles_said).values(), default=0):
            # A line of a log that somebody shows in a conversation begins with its time, too.
            continue
        names = Counter(head.name.casefold() for head in heads.values())
        # "Note:" may begin any line; a name that speaks comes back, or is a role's.
        known = {
            name
            for name, count in names.items()
            if name in _ROLE_OF_NAME or style == "dated" or (count > 1 and _like_a_name(name))
        }
        roles = known & _ROLE_OF_NAME.keys()
        if roles or len(known) > (style != "dated"):
            return {n: head for n, head in heads.items() if head.name.casefold() in known}
    return {}


def _head(line: str) -> _Head | None:
    for style, pattern in _STYLES:
        if found := pattern.fullmatch(line.rstrip()):
            fields = found.groupdict()
            return _Head(style, fields["name"].strip(), fields.get("when"), fields["text"] or "")
    return None


def _like_a_name(name: str) -> bool:
    return len(name.split()) <= _MOST_WORDS_IN_A_NAME


def _turns(lines: list[str], heads: dict[int, _Head], session: str) -> Iterator[ReadEntry]:
    turn: _TranscriptTurn | None = None
    before = [n for n, line in enumerate(lines[: min(heads)]) if line.strip()]
    if before:
        yield LeftOut("before the first turn", f"line {before[0] + 1}")
    for number, line in enumerate(lines):
        head = heads.get(number)
        if head is None:
            if turn is not None:
                turn.words.append(line)
            continue
        if turn is not None:
            yield _found(turn, session)
        turn = _TranscriptTurn(head.name, number + 1, head.when, [head.text])
    if turn is not None:
        yield _found(turn, session)


def _found(turn: _TranscriptTurn, session: str) -> ReadEntry:
    place = f"line {turn.line}"
    words = turn.words
    while words and (not words[-1].strip() or _RULE.match(words[-1])):
        words.pop()
    content = "\n".join(words).strip()
    if not content:
        return LeftOut("empty", place)
    role = _ROLE_OF_NAME.get(turn.name.casefold())
    if role in {"system", "tool"}:
        return LeftOut(f"role {role}", place)
    return FoundTurn(
        session=session,
        place=place,
        content=content,
        role=role or "user",
        speaker=None if role else turn.name,
        timestamp=_moment(turn.when),
    )


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    day, hour = text[:10], text[11:]
    # "9:05" is how people write it; the standard wants two digits.
    padded = f"{day}T{'0' if hour[1] == ':' else ''}{hour}"
    try:
        return datetime.fromisoformat(padded)
    except ValueError:
        return None
