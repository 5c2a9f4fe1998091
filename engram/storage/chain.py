"""Files of lines, each authenticated together with all before it.

A line is a JSON object that ends with a MAC over itself and the MAC before it, so that a line
that was changed, removed, put elsewhere or added is noticed by whoever has the key. The first
line is the head: how many lines there are, with a MAC of its own, so that lines that were cut
off at the end are noticed, too. It has a fixed length and is written in its place.
"""

from __future__ import annotations

import errno
import hmac
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from engram.system import FileLock, private

_HEAD_BYTES: Final = 160
_MAC_BYTES: Final = 16
_BEFORE_MAC: Final = b',"mac":"'
_AFTER_MAC: Final = b'"}\n'
_MAC_PLACE: Final = len(_BEFORE_MAC) + 2 * _MAC_BYTES + len(_AFTER_MAC)


class BreakKind(StrEnum):
    """What is wrong at a place of the trail.

    Attributes:
        CHANGED: This line, or what stood before it, is not as it was written.
        CUT: Lines are missing at the end, or the head is not as it was written.
        MISSING: A whole file is not there.
        UNREADABLE: A file cannot be read.
        MISSED: Before this line, entries could not be written: the disk was full, say.
    """

    CHANGED = "changed"
    CUT = "cut"
    MISSING = "missing"
    UNREADABLE = "unreadable"
    MISSED = "missed"


@dataclass(frozen=True, slots=True)
class ChainBreak:
    """Where a chain does not hold.

    Attributes:
        file: Its name.
        line: Counted from 1, the head left out; 0: the file as a whole.
        kind: What is wrong.
    """

    file: str
    line: int
    kind: BreakKind


@dataclass(frozen=True, slots=True)
class ChainLine:
    """One line as it is read.

    Attributes:
        number: Counted from 1, the head left out.
        body: What it holds; empty if that cannot be read.
        intact: Whether it follows the line before it as it was written.
    """

    number: int
    body: dict[str, Any]
    intact: bool


@dataclass(frozen=True, slots=True)
class _ChainHead:
    """What the head says: how many lines, how many bytes, and the MAC of the last line."""

    lines: int
    size: int
    last: bytes

    def written(self, key: bytes, name: str) -> bytes:
        """The head as it stands in the file."""
        said = f'{{"lines":{self.lines},"size":{self.size},"last":"{self.last.hex()}"'
        mac = _mac(key, b"head", name.encode(), said.encode())
        return f'{said},"mac":"{mac.hex()}"}}'.encode().ljust(_HEAD_BYTES - 1) + b"\n"

    @classmethod
    def read(cls, key: bytes, name: str, found: bytes) -> _ChainHead | None:
        """The head; None if it is not as it was written."""
        try:
            body = json.loads(found)
            head = cls(int(body["lines"]), int(body["size"]), bytes.fromhex(body["last"]))
        except (ValueError, KeyError, TypeError):
            return None
        return head if hmac.compare_digest(head.written(key, name), found) else None


def _mac(key: bytes, *parts: bytes) -> bytes:
    return hmac.digest(key, b"\0".join(parts), "sha256")[:_MAC_BYTES]


def _first(key: bytes, name: str) -> bytes:
    """What the first line follows: bound to the file's name, so that no file stands for another."""
    return _mac(key, b"first", name.encode())


class ChainWriter:
    """Appends to a file that no other process appends to meanwhile.

    Args:
        path: The file; its name is part of what is authenticated.
        key: Of the MACs.

    Raises:
        OSError: it cannot be written to.
    """

    def __init__(self, path: Path, key: bytes) -> None:
        self._key = key
        self._path = path
        self._lock = FileLock(path)
        self._file = -1
        self._head = _ChainHead(0, _HEAD_BYTES, _first(key, path.name))

    def try_open(self) -> bool:
        """Open the file, made if there is none, and go on where it ends.

        Returns:
            Whether it can be appended to: nobody else does, and its end is as it was written.
        """
        # The lock would follow a link.
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        if not self._lock.try_acquire():
            return False
        self._file = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW)
        size = os.fstat(self._file).st_size
        head = self._head if size == 0 else self._end(size)
        if head is None:
            self.close()
            return False
        self._head = head
        self._write_head()
        return True

    def _end(self, size: int) -> _ChainHead | None:
        """Where the file ends: at its head's word, or one line behind it that was written last."""
        head = _ChainHead.read(self._key, self._path.name, os.pread(self._file, _HEAD_BYTES, 0))
        if head is None or size < head.size:
            return None
        lines, last = head.lines, head.last
        rest = os.pread(self._file, size - head.size, head.size)
        for line in rest.splitlines(keepends=True):
            mac, _, intact = _parted(self._key, last, line)
            if not intact:
                return None
            lines, last = lines + 1, mac
        return _ChainHead(lines, size, last)

    def append(self, body: dict[str, Any]) -> None:
        """Add one line; it survives the death of the process.

        Args:
            body: Plain values; at least one.

        Raises:
            OSError: it could not be written, and nothing of it stays.
        """
        text = json.dumps(body, separators=(",", ":")).encode()
        mac = _mac(self._key, self._head.last, text)
        line = text[:-1] + _BEFORE_MAC + mac.hex().encode() + _AFTER_MAC
        before = self._head
        try:
            self._put(line, before.size)
            self._head = _ChainHead(before.lines + 1, before.size + len(line), mac)
            self._write_head()
        except OSError:
            self._head = before
            with suppress(OSError):
                os.ftruncate(self._file, before.size)
            raise

    @property
    def in_place(self) -> bool:
        """Whether the file is still in its folder."""
        return os.fstat(self._file).st_nlink > 0

    def duplicate(self) -> int:
        """Another descriptor of the file, to flush and to close while this one is written to."""
        return os.dup(self._file)

    def close(self) -> None:
        """Let another process go on with the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        self._lock.release()

    def _write_head(self) -> None:
        self._put(self._head.written(self._key, self._path.name), 0)

    def _put(self, data: bytes, place: int) -> None:
        if os.pwrite(self._file, data, place) != len(data):
            # What a full disk does; trying on would tear the line.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def read_chain(path: Path, key: bytes, breaks: list[ChainBreak]) -> Iterator[ChainLine]:
    """Read a file, line by line, while others may append to it.

    Args:
        path: The file.
        key: Of the MACs.
        breaks: Gets what is wrong; complete when all is read.

    Yields:
        Every line that there is, also those behind a break.
    """
    name = path.name
    try:
        with open(path, "rb", opener=private) as file:
            head = _ChainHead.read(key, name, file.read(_HEAD_BYTES))
            number, last, cut = 0, _first(key, name), head is None
            for line in file:
                number += 1
                mac, body, intact = _parted(key, last, line)
                if not line.endswith(b"\n") and (head is None or number > head.lines):
                    # Being written in this moment, or torn when its process died: it said nothing.
                    break
                if not intact:
                    breaks.append(ChainBreak(name, number, BreakKind.CHANGED))
                yield ChainLine(number, _read(body), intact)
                if head is not None and number == head.lines:
                    cut = cut or mac != head.last
                last = mac
    except OSError:
        breaks.append(ChainBreak(name, 0, BreakKind.UNREADABLE))
        return
    if cut or (head is not None and number < head.lines):
        breaks.append(ChainBreak(name, number + 1, BreakKind.CUT))


def _parted(key: bytes, last: bytes, line: bytes) -> tuple[bytes, bytes, bool]:
    """The MAC of a line, what it is of, and whether it follows the line with the MAC ``last``."""
    end = line[-_MAC_PLACE:]
    if not (end.startswith(_BEFORE_MAC) and end.endswith(_AFTER_MAC)):
        return b"", b"", False
    try:
        mac = bytes.fromhex(end[len(_BEFORE_MAC) : -len(_AFTER_MAC)].decode())
    except ValueError:
        return b"", b"", False
    body = line[:-_MAC_PLACE] + b"}"
    return mac, body, hmac.compare_digest(mac, _mac(key, last, body))


def _read(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
