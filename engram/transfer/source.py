"""Files that are imported: which bytes they hold, in which format, under which fingerprint."""

from __future__ import annotations

import codecs
import hashlib
import io
import json
import lzma
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, Final

from engram.errors import UnreadableSource
from engram.transfer.readers import chatgpt, claude, lines, locomo, transcript
from engram.transfer.readers.reading import ReadEntry, line_of

EXPORT_MARK: Final = "engram_export"

_ZIP: Final = b"PK\x03\x04"
_MEMBER: Final = re.compile(r"(?:.*/)?conversations(?:[-_]\d+)?\.json\Z")
_MOST_MEMBERS: Final = 10_000
# Conversations shrink to a fifth, a tenth at most; a bomb of zeros to a thousandth.
_MOST_GROWTH: Final = 100
_ALWAYS_ALLOWED: Final = 64 * 1024 * 1024
# RuntimeError: it is encrypted. NotImplementedError: packed in a way that is not known. OSError and
# the errors of what unpacks: its bytes are damaged, which is seen before their checksum is.
_NOT_UNPACKED: Final = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, OSError),
    *(NotImplementedError, RuntimeError, EOFError),
)
_HEAD_BYTES: Final = 256 * 1024
_HASHED_AT_ONCE: Final = 1 << 20


class SourceFormat(StrEnum):
    """What a file can be."""

    CHATGPT = "chatgpt"
    CLAUDE = "claude"
    JSONL = "jsonl"
    TRANSCRIPT = "transcript"
    LOCOMO = "locomo"
    ENGRAM = "engram"


_READERS: Final[dict[SourceFormat, Callable[[BinaryIO], Iterator[ReadEntry]]]] = {
    SourceFormat.CHATGPT: chatgpt.read,
    SourceFormat.CLAUDE: claude.read,
    SourceFormat.JSONL: lines.read,
    SourceFormat.LOCOMO: locomo.read,
}
# Names of the format that stand early in every file of it.
_SIGNS: Final = (
    (SourceFormat.CHATGPT, re.compile(rb'"mapping"\s*:\s*\{')),
    (SourceFormat.CLAUDE, re.compile(rb'"chat_messages"\s*:\s*\[')),
    (SourceFormat.LOCOMO, re.compile(rb'"session_\d+(?:_date_time)?"\s*:')),
)
# A line that is longer than what is looked at, or broken: its reader says what is wrong with it.
_TURN: Final = re.compile(rb'\{\s*"(?:content|role|speaker|timestamp|session_id|message_id)"\s*:')


class SourceFile:
    """A file that is imported. It is read several times, so it must lie on a disk.

    Args:
        path: Where.
        wanted: Its format; None: what it looks like.

    Raises:
        UnreadableSource: it cannot be read, or looks like no format.
    """

    def __init__(self, path: Path, wanted: SourceFormat | None = None) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                head = file.read(_HEAD_BYTES)
            stat = path.stat()
        except OSError as error:
            raise UnreadableSource(
                f"The file {path} cannot be read.", allowed="a file that is there"
            ) from error
        self._members = _members(path) if head.startswith(_ZIP) else None
        self.changed_at = datetime.fromtimestamp(stat.st_mtime, UTC)
        self.size = stat.st_size
        self.format = wanted or self._looks_like(head)

    def fingerprint(self) -> str:
        """SHA-256 of the file."""
        found = hashlib.sha256()
        with self.path.open("rb") as file:
            while data := file.read(_HASHED_AT_ONCE):
                found.update(data)
        return found.hexdigest()

    def found(self) -> Iterator[ReadEntry]:
        """What the reader of its format finds in it.

        Raises:
            UnreadableSource: it is not in its format; the place is named.
        """
        several = self._members is not None and len(self._members) > 1
        for number, stream in enumerate(self.streams(), start=1):
            try:
                for one in self._read(stream):
                    # Each file counts its conversations from 1.
                    yield replace(one, place=f"file {number}, {one.place}") if several else one
            except UnreadableSource as error:
                if not several:
                    raise
                raise UnreadableSource(
                    f"File {number} of the archive: {error.message}",
                    allowed=error.allowed,
                    hint=error.hint,
                ) from None

    def _read(self, stream: BinaryIO) -> Iterator[ReadEntry]:
        if self.format is SourceFormat.TRANSCRIPT:
            return transcript.read(stream, self.path.stem or "transcript")
        reader = _READERS.get(self.format)
        if reader is None:
            raise UnreadableSource("An export of Engram is restored, not read turn by turn.")
        return reader(stream)

    def streams(self) -> Iterator[BinaryIO]:
        """The files that hold what is said: itself, or those inside the archive."""
        if self._members is None:
            with self.path.open("rb") as file:
                yield file
            return
        allowed = _ALWAYS_ALLOWED + _MOST_GROWTH * self.size
        with _archive(self.path) as archive:
            for name in self._members:
                with _unpacking(), archive.open(name) as member:
                    bounded = _Bounded(member, allowed)
                    yield io.BufferedReader(bounded, _HASHED_AT_ONCE)
                    allowed = bounded.left

    def _looks_like(self, head: bytes) -> SourceFormat:
        if self._members is not None:
            with _archive(self.path) as archive, archive.open(self._members[0]) as member:
                head = member.read(_HEAD_BYTES)
        return looks_like(head)


def looks_like(head: bytes) -> SourceFormat:
    """The format of a file, from how it begins.

    Raises:
        UnreadableSource: it is JSON of no known format, holds nothing, or is no UTF-8.
    """
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start[:1] not in {b"{", b"["}:
        return SourceFormat.TRANSCRIPT
    # "[2024-05-01 10:00] Ada: ..." is no list, nor is a date in another order, which is refused.
    if re.match(rb"\[\d{1,4}[-/.]\d{1,2}[-/.]\d", start):
        return SourceFormat.TRANSCRIPT
    first = _first_line(start)
    if isinstance(first, dict):
        if EXPORT_MARK in first:
            return SourceFormat.ENGRAM
        if isinstance(first.get("content"), str):
            return SourceFormat.JSONL
    signs = [
        (found.start(), kind) for kind, sign in _SIGNS if (found := sign.search(start)) is not None
    ]
    if signs:
        return min(signs)[1]
    _check_encoding(head)
    if _TURN.match(start):
        return SourceFormat.JSONL
    if not start[1:].strip().removesuffix(b"]"):
        raise UnreadableSource(
            "The file is JSON without anything in it.",
            allowed="a list of conversations",
            hint="Export it again, or see whether it is the right file.",
        )
    raise UnreadableSource(
        "The file is JSON of no known format.",
        allowed=", ".join(SourceFormat),
        hint="Name its format, or turn it into lines; docs/import.md describes each.",
    )


def _check_encoding(head: bytes) -> None:
    try:
        # It may end within a character.
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError as error:
        raise UnreadableSource(f"The file is not UTF-8 at line {line_of(error)}.") from None


def _first_line(start: bytes) -> object:
    line = start.split(b"\n", 1)[0]
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _members(path: Path) -> list[str]:
    with _archive(path) as archive:
        names = archive.namelist()
    if len(names) > _MOST_MEMBERS:
        raise UnreadableSource(
            f"The archive holds {len(names)} files.", allowed=f"up to {_MOST_MEMBERS}"
        )
    found = sorted(name for name in names if _MEMBER.match(name))
    if not found:
        raise UnreadableSource("The archive holds no conversations.json.")
    return found


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    with _unpacking(), zipfile.ZipFile(path) as archive:
        yield archive


@contextmanager
def _unpacking() -> Iterator[None]:
    try:
        yield
    except _NOT_UNPACKED as error:
        raise UnreadableSource(
            "The archive cannot be unpacked.",
            hint="It may have been cut off or damaged, or need a password.",
            details={"reason": type(error).__name__},
        ) from None


class _Bounded(io.RawIOBase):
    """A stream that ends in an error when more comes out than can be true."""

    def __init__(self, inner: object, allowed: int) -> None:
        super().__init__()
        self._inner = inner
        self.left = allowed

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        with _unpacking():
            count: int = self._inner.readinto(buffer)  # type: ignore[attr-defined]  # zipfile's members can
        self.left -= count
        if self.left < 0:
            raise UnreadableSource(
                "The archive unpacks to far more than conversations do.",
                allowed=f"{_MOST_GROWTH} times its own size",
            )
        return count
