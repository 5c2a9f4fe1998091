"""Exports: everything of one user as lines of JSON, written, and read back for any user."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from engram.contracts.importing import ExportedMemory, ImportBatch
from engram.domain.identity import derived_id, episode_id
from engram.domain.memories import DIGEST_FORMS, AnyMemory, MemoryType
from engram.domain.scope import Scope
from engram.domain.turns import is_just_before
from engram.errors import InvalidInput, UnreadableSource
from engram.language.guarding import UNGUARDED, PersonalDataGuard
from engram.storage.payload import MEMORY_ID
from engram.transfer.batches import MOST_BATCH_BYTES, MOST_ENTRIES, batch
from engram.transfer.gate import CHANGED_ELSEWHERE, readable_memory
from engram.transfer.readers.lines import numbered, parsed

# --- everything of one user as lines of JSON: a header, every memory, and a last line
#
# The format is compatibility data: docs/import.md describes it, and what this
# version cannot read is refused by the number in the header.

EXPORT_VERSION: Final = 1
ORDER: Final = 2
"""Of the order in which a file's memories are sent. What was begun in another order is begun anew:
its position would tell of other memories."""


class ExportHeader(BaseModel):
    """The first line.

    Attributes:
        engram_export: Version of the format.
        engram: Version of the program that wrote it.
        namespace: Whose memory it is.
        user_id: Whose memory it is.
        exported_at: When.
        embedder: What its vectors were made by; they are made anew where it is restored.
        counts: How many memories of each type there were when it began.
        include_test: Whether test memories are part of it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    engram_export: int
    engram: str
    namespace: str
    user_id: str
    exported_at: datetime
    embedder: str
    counts: Mapping[MemoryType, int]
    include_test: bool = False


def header_line(header: ExportHeader) -> str:
    """The first line, without its end."""
    return header.model_dump_json()


def memory_line(memory: AnyMemory) -> str:
    """The line of a memory: what is empty is left out."""
    dumped = memory.model_dump(mode="json", exclude_none=True, exclude={"metadata"})
    fields: dict[str, Any] = {
        name: value for name, value in dumped.items() if value not in ([], {}, "")
    }
    if memory.metadata:
        # As it is: a value that is null means something there.
        fields["metadata"] = memory.metadata
    return json.dumps({"memory": fields}, ensure_ascii=True, separators=(",", ":"))


def last_line(memories: int) -> str:
    """The last line: by it one sees that a file is whole."""
    return json.dumps({"end": memories})


# --- an export for another user: every id derived anew, and every reference with it
#
# Ids are derived from whose a memory is. Kept as they are, they would name nothing
# where the same conversation is told again; so each memory gets the id it would
# have had if it had been made there, wherever an id stands.

_PRINT: Final = 8
# Fields that hold words, names of the application or what other systems call things.
_FIELDS_OF_WORDS: Final = frozenset(
    {"content", "summary", "metadata", "tags", "message_id", "session_id", "speaker", "value"}
    | {"words", "text", "name", "negates_pattern", "subject", "slot", "provenance", "write_id"}
    | {"role", "identity", "folded_sources", "entities"}
)


class Mover:
    """Ids of one user as another user's.

    Args:
        source: Whose the memories were.
        target: Whose they become.
    """

    def __init__(self, source: Scope, target: Scope) -> None:
        self._source = source
        self._target = target
        self._ids: dict[str, str] = {}
        self._prints: dict[str, str] = {}

    @property
    def moves(self) -> bool:
        """Whether anything changes at all."""
        return self._source != self._target

    def learn(self, fields: Mapping[str, Any], place: str) -> None:
        """Take a memory's id in; turns have to come before what rests on them.

        Raises:
            UnreadableSource: the id is not derived from what the memory is.
        """
        old, new = self._both(fields, place)
        if old != fields.get("id"):
            raise UnreadableSource(
                f"The memory of {place} has an id that is not derived from what it is.",
                hint="The export was changed by another program.",
            )
        if not self.moves:
            return
        self._ids[old] = new
        if fields.get("type") == MemoryType.EPISODIC:
            self._prints[_print(old)] = _print(new)

    def moved(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """The memory as the other user's; all ids have to be known."""
        if not self.moves:
            return dict(fields)
        made = {
            name: value if _is_words(name, value) else self._replaced(value)
            for name, value in fields.items()
        }
        made["namespace"] = self._target.namespace
        made["user_id"] = self._target.user_id
        if "identity" in fields:
            made["identity"] = self._identity(fields)
        if folded := fields.get("folded_sources"):
            made["folded_sources"] = "".join(
                self._prints.get(folded[at : at + _PRINT], folded[at : at + _PRINT])
                for at in range(0, len(folded), _PRINT)
            )
        return made

    def _both(self, fields: Mapping[str, Any], place: str) -> tuple[str, str]:
        try:
            if fields["type"] == MemoryType.EPISODIC:
                named = (fields.get("session_id") or "", fields["message_id"])
                return episode_id(self._source, *named), episode_id(self._target, *named)
            kind, generation = fields["type"], fields.get("generation", 0)
            return (
                derived_id(self._source, kind, fields["identity"], generation),
                derived_id(self._target, kind, self._identity(fields), generation),
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise UnreadableSource(
                f"The memory of {place} lacks what its id is derived from."
            ) from error

    def _identity(self, fields: Mapping[str, Any]) -> str:
        """What the memory is, there. Of a digest it says by which key, which can be a turn's."""
        identity = str(fields["identity"])
        keys = (fields.get("detail") or {}).get("keys", ())
        for key in keys:
            if identity == _digest(fields, key) and (there := self._within(key)) != key:
                return _digest(fields, there)
        return identity

    def _replaced(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._within(value) if len(value) < 100 else value  # noqa: PLR2004 - keys and ids are short
        if isinstance(value, dict):
            return {
                name: one if _is_words(name, one) else self._replaced(one)
                for name, one in value.items()
            }
        if isinstance(value, list):
            return [self._replaced(one) for one in value]
        return value

    def _within(self, text: str) -> str:
        return MEMORY_ID.sub(lambda found: self._ids.get(found[0], found[0]), text)


def _is_words(name: str, value: Any) -> bool:
    # The evidence of a pattern fact is a text, that of a statement names turns.
    return name in _FIELDS_OF_WORDS or (name == "evidence" and isinstance(value, str))


def _digest(fields: Mapping[str, Any], key: str) -> str:
    """As :mod:`engram.digests.versions` identifies digests."""
    parts = json.dumps([fields.get("form"), key, fields.get("content")], ensure_ascii=True)
    return hashlib.sha256(parts.encode()).hexdigest()


def _print(memory_id: str) -> str:
    """As :mod:`engram.consolidation.amendments` remembers sources that it does not keep whole."""
    return hashlib.sha256(memory_id.encode()).hexdigest()[:_PRINT]


# --- reading an export back: in the order in which turns followed each other, for any user


@dataclass(frozen=True, slots=True)
class _TurnPlace:
    """Where a turn stands; ordered as turns of a session were stored."""

    session: str
    created_at: datetime
    sequence: int
    memory_id: str
    said_at: datetime
    offset: int
    line: int


@dataclass(frozen=True, slots=True)
class _Other:
    composed: bool
    offset: int
    line: int


class ExportedFile:
    """An export, read twice: for who is in it, then for what they are.

    Args:
        path: Where it lies.
        target: Whose the memories become.
        guard: Masks turns, where the target's namespace wants it. Conclusions that hold
            something personal are left out: they would not follow from what is left.

    Raises:
        UnreadableSource: it is no export, was cut off, or is of a newer version;
            the line is named.
    """

    def __init__(self, path: Path, target: Scope, guard: PersonalDataGuard = UNGUARDED) -> None:
        self._path = path
        self._namespace = target.namespace
        self._guard = guard
        self.left_out = 0
        self._turns: list[_TurnPlace] = []
        self._others: list[_Other] = []
        with path.open("rb") as file:
            self.header = _header(file)
            source = Scope.of(self.header.namespace, self.header.user_id)
            self._mover = Mover(source, target)
            self._index(file)
        self._turns.sort(key=lambda one: (one.session, one.created_at, one.sequence, one.memory_id))
        # Composed anew before all that it tells is there, a digest would lose what is not.
        self._others.sort(key=lambda one: (one.composed, one.line))

    def __len__(self) -> int:
        return len(self._turns) + len(self._others)

    def batches(self, position: int = 0) -> Iterator[ImportBatch]:
        """The memories from ``position`` on: turns, what rests on them, what is composed."""
        entries: list[str] = []
        size, first = 0, position
        for number, entry in enumerate(self._entries()):
            if number < position:
                continue
            text = entry.model_dump_json(exclude_defaults=True)
            if entries and (size + len(text) > MOST_BATCH_BYTES or len(entries) >= MOST_ENTRIES):
                yield batch(first, entries)
                first, entries, size = number, [], 0
            entries.append(text)
            size += len(text)
        if entries:
            yield batch(first, entries)

    def _entries(self) -> Iterator[ExportedMemory]:
        with self._path.open("rb") as file:
            before: tuple[_TurnPlace, str] | None = None
            for turn in self._turns:
                fields = self._masked(_memory_at(file, turn.offset, turn.line))
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

    def _masked(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**fields, **self._guard.masked_fields(self._namespace, fields)}

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
        if ended is None or ended != len(self) + self.left_out:
            raise UnreadableSource(
                "The export is not whole: its last line is missing or counts other memories.",
                hint="It was cut off; export again.",
            )

    def _take(self, fields: Mapping[str, Any], offset: int, line: int, place: str) -> None:
        self._mover.learn(fields, place)
        self._place(fields, offset, line, place)
        _check_readable(fields, place)

    def _place(self, fields: Mapping[str, Any], offset: int, line: int, place: str) -> None:
        if fields.get("type") != MemoryType.EPISODIC:
            if self._guard.found_in(self._namespace, fields):
                self.left_out += 1
                return
            composed = fields.get("form") in DIGEST_FORMS
            self._others.append(_Other(composed, offset, line))
            return
        self._turns.append(
            _TurnPlace(
                session=str(fields.get("session_id", "")),
                created_at=_moment(fields, "created_at", place),
                said_at=_moment(fields, "timestamp", place),
                sequence=_place_in_session(fields, place),
                memory_id=str(fields.get("id")),
                offset=offset,
                line=line,
            )
        )


def _check_readable(fields: Mapping[str, Any], place: str) -> None:
    """Refuse what would be refused where it is stored, when others may be stored already."""
    try:
        readable_memory(fields)
        # Halves of characters, which JSON can write and no text can hold.
        json.dumps(fields, ensure_ascii=False).encode()
    except InvalidInput as error:
        why = str(error.details["reason"]).replace("_", " ")
    except UnicodeEncodeError:
        why = "no text"
    else:
        return
    raise UnreadableSource(
        f"The memory of {place} cannot be read ({why}).",
        hint=CHANGED_ELSEWHERE,
    )


def _moment(fields: Mapping[str, Any], name: str, place: str) -> datetime:
    try:
        moment = datetime.fromisoformat(str(fields.get(name)))
    except ValueError:
        moment = None
    if moment is None or moment.utcoffset() is None:
        raise UnreadableSource(f"The memory of {place} has no time as its {name}.")
    return moment


def _place_in_session(fields: Mapping[str, Any], place: str) -> int:
    number = fields.get("sequence", 0)
    if not isinstance(number, int):
        raise UnreadableSource(f"The memory of {place} has no number as its sequence.")
    return number


def _follows(before: _TurnPlace, turn: _TurnPlace) -> bool:
    comes_next = before.session == turn.session and before.sequence < turn.sequence
    return comes_next and is_just_before(before.said_at, turn.said_at)


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
