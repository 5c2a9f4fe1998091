"""Reading an export back: in the order in which turns followed each other, for any user."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import ValidationError

from engram.contracts.importing import ExportedMemory, ImportBatch
from engram.domain.memories import MemoryType
from engram.domain.scope import Scope
from engram.errors import UnreadableSource
from engram.transfer.batching import MOST_BYTES, MOST_ENTRIES, batch
from engram.transfer.exporting import EXPORT_VERSION, ExportHeader
from engram.transfer.moving import Mover
from engram.transfer.readers.lines import numbered, parsed


@dataclass(frozen=True, slots=True)
class _Turn:
    """Where a turn stands; ordered as turns of a session were stored."""

    session: str
    created_at: datetime
    sequence: int
    memory_id: str
    offset: int
    line: int


@dataclass(frozen=True, slots=True)
class _Other:
    offset: int
    line: int


class ExportedFile:
    """An export, read twice: for who is in it, then for what they are.

    Args:
        path: Where it lies.
        target: Whose the memories become.

    Raises:
        UnreadableSource: it is no export, was cut off, or is of a newer version;
            the line is named.
    """

    def __init__(self, path: Path, target: Scope) -> None:
        self._path = path
        self._turns: list[_Turn] = []
        self._others: list[_Other] = []
        with path.open("rb") as file:
            self.header = _header(file)
            source = Scope.of(self.header.namespace, self.header.user_id)
            self._mover = Mover(source, target)
            self._index(file)
        self._turns.sort(key=lambda one: (one.session, one.created_at, one.sequence, one.memory_id))

    def __len__(self) -> int:
        return len(self._turns) + len(self._others)

    def batches(self, position: int = 0) -> Iterator[ImportBatch]:
        """The memories from ``position`` on: turns first, what rests on them after."""
        entries: list[str] = []
        size, first = 0, position
        for number, entry in enumerate(self._entries()):
            if number < position:
                continue
            text = entry.model_dump_json(exclude_defaults=True)
            if entries and (size + len(text) > MOST_BYTES or len(entries) >= MOST_ENTRIES):
                yield batch(first, entries)
                first, entries, size = number, [], 0
            entries.append(text)
            size += len(text)
        if entries:
            yield batch(first, entries)

    def _entries(self) -> Iterator[ExportedMemory]:
        with self._path.open("rb") as file:
            before: tuple[_Turn, str] | None = None
            for turn in self._turns:
                fields = _memory_at(file, turn.offset, turn.line)
                words = None
                # As when it was stored: by the words of the turn before it in its session.
                if before is not None and _follows(before[0], turn):
                    words = before[1]
                before = (turn, str(fields.get("content", "")))
                yield ExportedMemory(
                    memory=self._mover.moved(fields), before=words, place=f"line {turn.line}"
                )
            for other in self._others:
                fields = _memory_at(file, other.offset, other.line)
                yield ExportedMemory(memory=self._mover.moved(fields), place=f"line {other.line}")

    def _index(self, file: BinaryIO) -> None:
        ended: int | None = None
        for number, data in numbered(file):
            line, place = number + 1, f"line {number + 1}"
            if ended is not None:
                raise UnreadableSource(f"The export goes on after its end at {place}.")
            given = parsed(data, place)
            if isinstance(given.get("end"), int):
                ended = given["end"]
            else:
                self._take(_fields(given, place), file.tell() - len(data), line, place)
        if ended is None or ended != len(self):
            raise UnreadableSource(
                "The export is not whole: its last line is missing or counts other memories.",
                hint="It was cut off; export again.",
            )

    def _take(self, fields: Mapping[str, Any], offset: int, line: int, place: str) -> None:
        self._mover.learn(fields, place)
        if fields.get("type") != MemoryType.EPISODIC:
            self._others.append(_Other(offset, line))
            return
        self._turns.append(
            _Turn(
                session=str(fields.get("session_id", "")),
                created_at=_moment(fields, place),
                sequence=int(fields.get("sequence", 0)),
                memory_id=str(fields.get("id")),
                offset=offset,
                line=line,
            )
        )


def _moment(fields: Mapping[str, Any], place: str) -> datetime:
    try:
        return datetime.fromisoformat(str(fields.get("created_at")))
    except ValueError:
        raise UnreadableSource(f"The memory of {place} does not say when it was stored.") from None


def _follows(before: _Turn, turn: _Turn) -> bool:
    return before.session == turn.session and before.sequence < turn.sequence


def _header(file: BinaryIO) -> ExportHeader:
    first = file.readline(1 << 20)
    try:
        header = ExportHeader.model_validate(parsed(first, "line 1"))
    except (ValidationError, UnreadableSource):
        raise UnreadableSource(
            "The file does not begin as an export of Engram does.",
            hint="`engram export` writes them.",
        ) from None
    if header.engram_export != EXPORT_VERSION:
        raise UnreadableSource(
            f"The export has format version {header.engram_export}.",
            allowed=str(EXPORT_VERSION),
            hint="Restore it with the version of Engram that wrote it, or a newer one.",
        )
    return header


def _memory_at(file: BinaryIO, offset: int, line: int) -> Mapping[str, Any]:
    file.seek(offset)
    return _fields(parsed(file.readline(), f"line {line}"), f"line {line}")


def _fields(given: Mapping[str, Any], place: str) -> Mapping[str, Any]:
    fields = given.get("memory")
    if not isinstance(fields, dict):
        raise UnreadableSource(f"{place.capitalize()} holds no memory.")
    return fields
