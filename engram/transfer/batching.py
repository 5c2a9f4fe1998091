"""Turns as batches that each fit one update, always cut at the same places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from engram.contracts.importing import ImportBatch, ImportedTurn
from engram.transfer.packing import pack

MOST_BYTES: Final = 512 * 1024
MOST_ENTRIES: Final = 800


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
        if entries and (size + len(text) > MOST_BYTES or len(entries) >= MOST_ENTRIES):
            yield batch(first, entries)
            first, entries, size = number, [], 0
        if not entries and previous is not None and previous.session_id == turn.session_id:
            joined = turn.model_copy(update={"before": previous.content})
            text = joined.model_dump_json(exclude_defaults=True)
        entries.append(text)
        size += len(text)
    if entries:
        yield batch(first, entries)


def batch(first: int, entries: list[str]) -> ImportBatch:
    """One batch of JSON documents."""
    return ImportBatch(first=first, count=len(entries), packed=pack(entries))
