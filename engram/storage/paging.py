"""Ordered listings that neither skip nor repeat, however many moments are equal.

Engines order by a field without saying how ties are ordered, and cannot
continue after a tie. A page therefore continues after (moment, id): first the
rest of the tied moment in order of ids, then what comes after that moment; and
if the engine cuts its answer in the midst of a tie, the tied moment is read
again in order of ids. At most three reads a page, nothing kept in between.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from engram.domain.memories import MemoryType
from engram.errors import InvalidQuery
from engram.storage.payload import format_time, is_memory_id

MAX_PAGE: Final = 1_000
"""As many as the in-process engine reads without holding up the event loop for long."""
_VERSION: Final = 1

Payload = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Listing:
    """What is listed, and in which order."""

    memory_type: MemoryType
    order_by: str
    descending: bool


@dataclass(frozen=True, slots=True)
class Position:
    """The last memory of a page: its moment in the store's form, and its id."""

    moment: str
    memory_id: str


def check_limit(limit: int) -> None:
    """Refuse a page size out of range.

    Raises:
        InvalidQuery: always with the range.
    """
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidQuery(f"A page of {limit} was asked for.", allowed=f"1 to {MAX_PAGE}")


def write_cursor(listing: Listing, position: Position) -> str:
    """The opaque text that continues a listing."""
    parts = [_VERSION, listing.memory_type.value, listing.order_by, listing.descending]
    text = json.dumps([*parts, position.moment, position.memory_id], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(listing: Listing, cursor: str) -> Position:
    """Where a cursor stands.

    Raises:
        InvalidQuery: it is none of ours, or comes from a listing in another order.
    """
    expected = [_VERSION, listing.memory_type.value, listing.order_by, listing.descending]
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        *parts, moment, memory_id = json.loads(text)
        # Engines read fewer forms of a time than Python: only the one that is written here.
        ours = moment == format_time(datetime.fromisoformat(moment))
        if ours and parts == expected and is_memory_id(memory_id):
            return Position(moment, memory_id)
    except (binascii.Error, ValueError, TypeError, AttributeError, RecursionError):
        pass  # Refused below, together with the cursors of other listings.
    raise InvalidQuery(
        "The cursor does not continue this listing.",
        allowed="the cursor of the page before, with the same type and order",
    )


ReadTie = Callable[[str, str | None, int], Awaitable[list[Payload]]]
"""(moment, after id, limit) -> those of exactly that moment, by ascending id."""
ReadOrdered = Callable[[str | None, int], Awaitable[list[Payload]]]
"""(beyond moment, limit) -> in order of the field, ties in any order."""


async def read_page(
    order_by: str,
    position: Position | None,
    limit: int,
    *,
    tie: ReadTie,
    ordered: ReadOrdered,
) -> list[Payload]:
    """The next ``limit`` payloads after ``position``, by moment and then id."""
    found: list[Payload] = []
    if position is not None:
        found = await tie(position.moment, position.memory_id, limit)
    wanted = limit - len(found)
    if wanted <= 0:
        return found
    later = await ordered(position.moment if position else None, wanted)
    if len(later) < wanted:
        return found + in_order(later, order_by)
    last = later[-1][order_by]
    whole = [payload for payload in later if payload[order_by] != last]
    cut_off = await tie(last, None, wanted - len(whole))
    return found + in_order(whole, order_by) + cut_off


def in_order(payloads: list[Payload], order_by: str) -> list[Payload]:
    """Ties by id; the moments are in the engine's order already, up or down."""
    result: list[Payload] = []
    start = 0
    for index in range(1, len(payloads) + 1):
        if index == len(payloads) or payloads[index][order_by] != payloads[start][order_by]:
            result += sorted(payloads[start:index], key=lambda payload: str(payload["id"]))
            start = index
    return result
