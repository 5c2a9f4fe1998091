"""Entries of an import as batches that each fit one update, packed as short texts."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from engram.contracts.importing import ExportedMemory, ImportBatch, ImportedTurn, ImportKind
from engram.domain.turns import is_just_before
from engram.errors import InvalidInput
from engram.language.guarding import PersonalDataGuard
from engram.transfer.gate import Refusals, place_of

# --- entries of an import as one short text: what crosses Temporal is kept in histories for weeks

E = TypeVar("E", bound=BaseModel)

# The quickest level; conversations still shrink to about a third.
_LEVEL: Final = 1
# Of what one batch may unpack to: clients send half a megabyte, a single memory may have more.
MOST_UNPACKED: Final = 16 * 1024 * 1024
# What takes a third of a second to look through, while the workflow does nothing else.
_MOST_LOOKED_AT: Final = 1024 * 1024
# Temporal takes 2 MB in all, and more than that would hold the importing workflow up.
MOST_PACKED: Final = 1_900_000
# The gate looks at each while nothing else runs, for some 20 ms.
MOST_ENTRIES: Final = 800

TURNS: Final = TypeAdapter(tuple[ImportedTurn, ...])
MEMORIES: Final = TypeAdapter(tuple[ExportedMemory, ...])


def pack(entries: Sequence[str]) -> str:
    """JSON documents as one text."""
    data = ("[" + ",".join(entries) + "]").encode()
    return base64.b64encode(zlib.compress(data, _LEVEL)).decode("ascii")


def check_packed(batch: ImportBatch) -> None:
    """Refuse a batch that could not cross Temporal, before it is sent there.

    Raises:
        InvalidInput: it is too large, or was not packed by :func:`pack`.
    """
    if not batch.packed.isascii():
        raise InvalidInput("A batch of an import is not packed.", allowed="what pack() gives")
    if len(batch.packed) > MOST_PACKED or batch.count > MOST_ENTRIES:
        raise InvalidInput(
            "A batch of an import is too large.",
            allowed=f"{MOST_ENTRIES} entries and {MOST_PACKED} bytes packed",
        )


def unpack(
    batch: ImportBatch, reader: TypeAdapter[tuple[E, ...]], *, most: int = MOST_UNPACKED
) -> tuple[E, ...]:
    """The entries of a batch.

    Args:
        batch: As :func:`pack` made it.
        reader: Of its kind.
        most: Bytes that it may unpack to.

    Raises:
        InvalidInput: it was not packed by :func:`pack`, is too large, or holds something else.
    """
    check_packed(batch)
    try:
        unzip = zlib.decompressobj()
        data = unzip.decompress(base64.b64decode(batch.packed, validate=True), most)
        if unzip.unconsumed_tail or not unzip.eof:
            raise InvalidInput(
                "A batch of an import is too large.", allowed=f"{most} bytes unpacked"
            )
    except (binascii.Error, zlib.error) as error:
        # Their messages quote what was sent.
        raise InvalidInput(
            "A batch of an import cannot be read.",
            hint="Use the same version of Engram in all processes.",
            details={"first": batch.first, "reason": type(error).__name__},
        ) from None
    entries = _read(batch, data, reader)
    if len(entries) != batch.count:
        raise InvalidInput(
            f"A batch of an import has {len(entries)} entries and says {batch.count}.",
            details={"first": batch.first},
        )
    return entries


def check_masked(
    guard: PersonalDataGuard, namespace: str, kind: ImportKind, batch: ImportBatch
) -> None:
    """Refuse a batch with words that the namespace would have masked, before anybody keeps it.

    Only that is looked at, and only as much as takes no noticeable time; where it is stored,
    all of the gate is.

    Raises:
        InvalidInput: it holds personal data, cannot be read, or has more than clients send.
    """
    refused = Refusals()
    if kind is ImportKind.TURNS:
        for index, turn in enumerate(unpack(batch, TURNS, most=_MOST_LOOKED_AT)):
            with refused.noting(place_of(batch, index, turn.place)):
                guard.check(namespace, turn, turn.before)
    else:
        for index, entry in enumerate(unpack(batch, MEMORIES, most=_MOST_LOOKED_AT)):
            with refused.noting(place_of(batch, index, entry.place)):
                guard.check_fields(namespace, entry.memory, entry.before)
    refused.check(batch.count, "entries of an import")


def _read(batch: ImportBatch, data: bytes, reader: TypeAdapter[tuple[E, ...]]) -> tuple[E, ...]:
    try:
        return reader.validate_json(data)
    except ValidationError as error:
        wrong = _wrong_entries(error)
    if not wrong:
        # Half of a pair of surrogates is no JSON to Pydantic, and the gate says where it is.
        try:
            return reader.validate_python(json.loads(data))
        except ValidationError as error:
            wrong = _wrong_entries(error)
        except (ValueError, RecursionError):
            wrong = []
    refused = Refusals()
    for index in wrong:
        refused.add(place_of(batch, index), InvalidInput("It has not the form of an entry."))
    refused.check(batch.count, "entries of an import")
    raise InvalidInput(
        "A batch of an import cannot be read.",
        hint="Use the same version of Engram in all processes.",
        details={"first": batch.first},
    )


def _wrong_entries(error: ValidationError) -> list[int]:
    """The positions of entries; neither names nor values of fields: they are the sender's."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    first = (one["loc"][0] for one in found if one["loc"])
    return list(dict.fromkeys(index for index in first if isinstance(index, int)))


# --- turns as batches that each fit one update, always cut at the same places

MOST_BATCH_BYTES: Final = 512 * 1024


def turn_batches(turns: Iterable[ImportedTurn], position: int = 0) -> Iterator[ImportBatch]:
    """The turns from ``position`` on, in batches.

    A batch says of its own what was said before its first turn.
    """
    entries: list[str] = []
    size, first = 0, position
    last: ImportedTurn | None = None
    for number, turn in enumerate(turns):
        previous, last = last, turn
        if number < position:
            continue
        text = turn.model_dump_json(exclude_defaults=True)
        if entries and (size + len(text) > MOST_BATCH_BYTES or len(entries) >= MOST_ENTRIES):
            yield batch(first, entries)
            first, entries, size = number, [], 0
        if not entries and previous is not None and _leads_to(previous, turn):
            joined = turn.model_copy(update={"before": previous.content})
            text = joined.model_dump_json(exclude_defaults=True)
        entries.append(text)
        size += len(text)
    if entries:
        yield batch(first, entries)


def _leads_to(previous: ImportedTurn, turn: ImportedTurn) -> bool:
    same = previous.session_id == turn.session_id
    return same and is_just_before(previous.timestamp, turn.timestamp)


def batch(first: int, entries: list[str]) -> ImportBatch:
    """One batch of JSON documents."""
    return ImportBatch(first=first, count=len(entries), packed=pack(entries))
