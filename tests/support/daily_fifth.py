"""A fifth of the tests, another each day: what is too long for every change rots nowhere."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from datetime import date
from typing import Final, Protocol, TypeVar

_PARTS: Final = 5


class _Named(Protocol):
    @property
    def nodeid(self) -> str: ...


Named = TypeVar("Named", bound=_Named)


def fifth_of(day: date) -> int:
    """The fifth whose turn it is, 0 to 4; five days in a row have them all."""
    return day.toordinal() % _PARTS


def in_fifth(items: Sequence[Named], fifth: int) -> list[Named]:
    """The items of that fifth, in their order. Every item is in exactly one."""
    return [item for item in items if zlib.crc32(item.nodeid.encode()) % _PARTS == fifth]
