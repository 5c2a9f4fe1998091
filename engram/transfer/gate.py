"""What comes in bulk is checked where it is stored: turns of an import, memories of an export.

Clients check, too, so that a source is told at once what is wrong with it. This is for
what no client checked: a batch made by another program, an import started directly in
Temporal, an export that somebody changed. A batch with one entry that cannot be kept is
refused as a whole, with the places of such entries, before anything of it is stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import ValidationError

from engram.contracts.importing import MOST_PLACES, ExportedMemory, ImportBatch, ImportedTurn
from engram.domain.memories import (
    MEMORY_ADAPTER,
    AnyMemory,
    DerivedMemory,
    Episode,
    SemanticMemory,
)
from engram.domain.sanitize import has_control_characters
from engram.domain.scope import Scope, check_identifier
from engram.domain.turns import (
    CLOCK_SKEW_ALLOWED,
    EARLIEST_TIMESTAMP,
    check_content,
    check_name,
    check_sequence,
    check_text,
    check_timestamp,
    check_turn,
)
from engram.errors import InvalidInput
from engram.language.guarding import UNGUARDED, PersonalDataGuard
from engram.storage.payload import is_memory_id

CHANGED_ELSEWHERE: Final = (
    "It was written by a newer version of Engram, or changed by another program."
)
"""The hint for a memory of an export that cannot be read."""
_LONGEST_PLACE: Final = 256
_LONGEST_RUN_NAME: Final = 1024
# Conclusions are sentences, digests a page; the largest turn that any setting allows has as much.
_MOST_DERIVED_BYTES: Final = 256 * 1024
# Of all texts of one memory, in characters: what is stored beside its content counts, too.
_MOST_TEXT_CHARACTERS: Final = 2 * 1024 * 1024
# When something is, was or will be true or due is said by words, which may speak of any year.
_ANY_YEAR: Final = frozenset({"event_at", "valid_from", "valid_to", "expires_at", "review_at"})
_ANY_YEAR_PLACES: Final = frozenset({"metadata", "detail"})


# --- entries that cannot be kept, counted, with the places of the first


@dataclass(slots=True)
class Refusals:
    """Entries of a batch that cannot be kept.

    Attributes:
        count: How many.
        places: Where the first of them stand.
        first: What is wrong with the first.
    """

    count: int = 0
    places: list[str] = field(default_factory=list)
    first: InvalidInput | None = None

    def add(self, place: str, error: InvalidInput) -> None:
        """Note that the entry at ``place`` cannot be kept."""
        self.count += 1
        self.first = self.first or error
        if len(self.places) < MOST_PLACES:
            self.places.append(place)

    @contextmanager
    def noting(self, place: str) -> Iterator[None]:
        """Note what is refused in the block, which is about the entry at ``place``."""
        try:
            yield
        except InvalidInput as error:
            self.add(place, error)

    def check(self, entries: int, what: str) -> None:
        """Refuse the batch if any entry cannot be kept.

        Args:
            entries: How many entries the batch has.
            what: What an entry is called.

        Raises:
            InvalidInput: with how many, where, and why the first of them.
        """
        if self.first is None:
            return
        raise InvalidInput(
            f"{self.count} of {entries} {what} cannot be kept. "
            f"The first is {self.places[0]}: {self.first.message}",
            allowed=self.first.allowed,
            hint="Nothing of this batch was stored.",
            details={"refused": self.count, "places": list(self.places)},
        )


def place_of(batch: ImportBatch, index: int, said: str = "") -> str:
    """Where an entry stands, as its source says, else by its number, counted from 1."""
    if said and len(said) <= _LONGEST_PLACE and not has_control_characters(said):
        return said
    return f"entry {batch.first + index + 1}"


# --- turns of an import


def check_turns(
    scope: Scope,
    batch: ImportBatch,
    turns: Sequence[ImportedTurn],
    *,
    now: datetime,
    max_bytes: int,
    guard: PersonalDataGuard = UNGUARDED,
) -> None:
    """Refuse a batch of which a turn could not be kept, as ``encode`` would have refused it.

    Args:
        scope: Whose memory they go to.
        batch: Which batch they are.
        turns: What it holds.
        now: The present, to tell absurd timestamps.
        max_bytes: Largest content accepted, in UTF-8 bytes.
        guard: Refuses what should be masked.

    Raises:
        InvalidScope: there can be no such user.
        InvalidInput: with the places of the turns that cannot be kept.
    """
    Scope.of(scope.namespace, scope.user_id)
    refused = Refusals()
    for index, turn in enumerate(turns):
        with refused.noting(place_of(batch, index, turn.place)):
            check_identifier(turn.session_id, "session id")
            late = now - CLOCK_SKEW_ALLOWED
            check_turn(turn, now=now, max_bytes=max_bytes, ends_after=late)
            check_sequence(turn.sequence)
            check_before(turn.before, max_bytes)
            guard.check(scope.namespace, turn, turn.before)
    refused.check(len(turns), "turns")


def check_before(before: str | None, max_bytes: int) -> None:
    """Refuse words that nobody can have said before a turn.

    Raises:
        InvalidTurn: they are none, no text, or too many.
    """
    if before is not None:
        check_content(before, max_bytes=max_bytes, what="preceding content")


# --- memories of an export


def check_memory(
    entry: ExportedMemory, memory: AnyMemory, *, now: datetime, max_bytes: int
) -> None:
    """Refuse a memory that Engram cannot have written.

    That a turn was said, or a conclusion confirmed, is believed: an export is its
    user's. Its form is not: what dates of the future or ids of no memory would do to
    the other memories could not be undone by talking.

    Args:
        entry: The memory as it was sent.
        memory: The same, read.
        now: The present, to tell absurd times.
        max_bytes: Largest content of a turn, in UTF-8 bytes.

    Raises:
        InvalidInput: saying what is wrong with it.
    """
    check_before(entry.before, max_bytes)
    if isinstance(memory, Episode):
        check_identifier(memory.session_id, "session id")
        # An export has what has ended, too.
        check_turn(memory, now=now, max_bytes=max_bytes, ends_after=EARLIEST_TIMESTAMP)
    else:
        check_content(memory.content, max_bytes=_MOST_DERIVED_BYTES)
        if memory.session_id is not None:
            check_identifier(memory.session_id, "session id")
    _check_values(memory.model_dump(), now)
    _check_provenance(memory)
    wrong = next((one for one in _named_memories(memory) if not is_memory_id(one)), None)
    if wrong is not None:
        raise InvalidInput("A memory names another one by what is no id.", allowed="UUIDs")


def _check_values(fields: Mapping[str, Any], now: datetime) -> None:
    """Check every text, number and time that a memory holds, however deep."""
    pending: list[tuple[str, Any, bool]] = [(name, value, False) for name, value in fields.items()]
    characters = 0
    while pending:
        name, value, free = pending.pop()
        if isinstance(value, str):
            check_text(value, name)
            characters += len(value)
        elif isinstance(value, datetime):
            _check_time(name, value, now, any_year=free or name in _ANY_YEAR)
        elif isinstance(value, float) and not math.isfinite(value):
            raise InvalidInput(f"The {name} of a memory is no finite number.", allowed="a number")
        elif isinstance(value, Mapping):
            inside = free or name in _ANY_YEAR_PLACES
            pending.extend((name, key, inside) for key in value)
            # Keys of metadata are its author's, and stand in no error.
            pending.extend((name if inside else key, one, inside) for key, one in value.items())
        elif isinstance(value, Iterable):
            pending.extend((name, one, free) for one in value)
    if characters > _MOST_TEXT_CHARACTERS:
        raise InvalidInput(
            f"A memory has {characters} characters.", allowed=f"{_MOST_TEXT_CHARACTERS} in all"
        )


def _check_time(name: str, value: datetime, now: datetime, *, any_year: bool) -> None:
    if not any_year:
        check_timestamp(value, now=now, what=name)
        return
    try:
        known = value.utcoffset() is not None and value.astimezone(UTC)
    except OverflowError:
        known = None
    if not known:
        raise InvalidInput(f"The {name} of a memory is no moment.", allowed="one with its timezone")


def _check_provenance(memory: AnyMemory) -> None:
    named = memory.provenance.model_dump(exclude_none=True)
    for what, value in named.items():
        check_name(value, what.replace("_", " "), longest=_LONGEST_RUN_NAME)


def _named_memories(memory: AnyMemory) -> Iterator[str]:
    """The ids of other memories that it names."""
    vitals = memory.vitals
    if vitals is not None:
        yield from (one.memory_id for one in vitals.together)
        yield from filter(None, (vitals.promoted_from,))
    if not isinstance(memory, DerivedMemory):
        return
    yield from memory.source_episode_ids
    yield from memory.supersedes
    yield from filter(None, (memory.superseded_by,))
    yield from memory.related_ids
    if isinstance(memory, SemanticMemory):
        yield from memory.disputed_with
        yield from memory.settled_with
        yield from filter(None, (memory.duplicate_of,))
        yield from (one.episode_id for one in memory.evidence)
        yield from (key for telling in memory.tellings for key in telling.episode_ids)


def readable_memory(fields: Mapping[str, Any]) -> AnyMemory:
    """The memory that an export tells.

    Raises:
        InvalidInput: it is none that this version knows; what is wrong is among the details.
    """
    try:
        memory: AnyMemory = MEMORY_ADAPTER.validate_python(fields, extra="forbid")
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        raise InvalidInput(
            "It cannot be read.",
            hint=CHANGED_ELSEWHERE,
            details={"reason": str(first["type"])},
        ) from None
    return memory
