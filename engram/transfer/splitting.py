"""Words that are too long for one turn, in parts that end where a reader would pause."""

from __future__ import annotations

import re
from typing import Final

# From the widest pause to the narrowest.
_PAUSES: Final = tuple(
    re.compile(pattern) for pattern in (r"\n\s*\n", r"\n", r"(?<=[.!?\u2026\u3002])\s", r"\s")
)
# A part that ends before so much of what it may hold is cut at the next narrower pause.
_LEAST: Final = 0.5


def split(text: str, limit: int) -> list[str]:
    """``text`` in parts of at most ``limit`` bytes of UTF-8; nothing but space between is lost.

    Args:
        text: Valid Unicode.
        limit: At least 4, so that every character fits.
    """
    parts: list[str] = []
    rest = text
    while len(rest.encode()) > limit:
        end = _cut(rest, len(rest.encode()[:limit].decode("utf-8", "ignore")))
        parts.append(rest[:end].strip())
        rest = rest[end:].lstrip()
    parts.append(rest)
    return [part for part in parts if part.strip()] or [text]


def _cut(text: str, most: int) -> int:
    """Where to cut, at ``most`` characters at the latest."""
    for pause in _PAUSES:
        ends = [found.start() for found in pause.finditer(text, int(most * _LEAST), most)]
        if ends and ends[-1] > 0:
            return ends[-1]
    return most
