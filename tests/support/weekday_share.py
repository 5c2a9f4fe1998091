"""A seventh of the tests, each weekday another: what is too long for every change rots nowhere."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from datetime import date
from typing import Final, Protocol, TypeVar

PARTS: Final = 7
"""One for each day of the week."""


class _Named(Protocol):
    @property
    def nodeid(self) -> str: ...


Named = TypeVar("Named", bound=_Named)


def share_of(day: date) -> int:
    """The share whose turn it is, 0 on a Monday to 6 on a Sunday; a week has them all."""
    return day.weekday()


def in_share(items: Sequence[Named], share: int) -> list[Named]:
    """The items of that share, in their order. Every item is in exactly one."""
    return [item for item in items if zlib.crc32(item.nodeid.encode()) % PARTS == share]
