"""Entries of an import as one short text: what crosses Temporal is kept in histories for weeks."""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Sequence
from typing import Final, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from engram.contracts.importing import ExportedMemory, ImportBatch, ImportedTurn
from engram.errors import InvalidInput

E = TypeVar("E", bound=BaseModel)

# The quickest level; conversations still shrink to about a third.
_LEVEL: Final = 1
# Of what one batch may unpack to: clients send half a megabyte, a single memory may have more.
MOST_UNPACKED: Final = 16 * 1024 * 1024
# Temporal takes 2 MB in all, and more than that would hold the importing workflow up.
MOST_PACKED: Final = 1_900_000

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
    if len(batch.packed) > MOST_PACKED:
        raise InvalidInput(
            "A batch of an import is too large.", allowed=f"{MOST_PACKED} bytes packed"
        )


def unpack(batch: ImportBatch, reader: TypeAdapter[tuple[E, ...]]) -> tuple[E, ...]:
    """The entries of a batch.

    Raises:
        InvalidInput: it was not packed by :func:`pack`, is too large, or holds something else.
    """
    check_packed(batch)
    try:
        unzip = zlib.decompressobj()
        data = unzip.decompress(base64.b64decode(batch.packed, validate=True), MOST_UNPACKED)
        if unzip.unconsumed_tail or not unzip.eof:
            raise InvalidInput(
                "A batch of an import is too large.", allowed=f"{MOST_UNPACKED} bytes unpacked"
            )
        entries = reader.validate_json(data)
    except (binascii.Error, zlib.error, ValidationError) as error:
        # Their messages quote what was sent.
        raise InvalidInput(
            "A batch of an import cannot be read.",
            hint="Use the same version of Engram in all processes.",
            details={"first": batch.first, "reason": type(error).__name__},
        ) from None
    if len(entries) != batch.count:
        raise InvalidInput(
            f"A batch of an import has {len(entries)} entries and says {batch.count}.",
            details={"first": batch.first},
        )
    return entries
