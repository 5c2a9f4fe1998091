"""E-mail addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from engram.extraction.patterns.found import Found, Masked

_LOCAL = re.compile(r"[A-Za-z0-9._%+'\-]{1,64}\Z")
_DOMAIN = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![\w@])"
)
_LOCAL_LENGTH = 64
_FIRST_CJK = 0x2E80
# A turn with more signs than this is a table or an attack, not somebody's address.
_MOST_SIGNS = 400


def find(turn: Masked) -> Iterator[Found]:
    """Addresses; value in lower case, as two spellings reach the same mailbox in practice."""
    at = turn.text.find("@")
    earliest = 0
    for _ in range(_MOST_SIGNS):
        if at < 0:
            return
        found = _around(turn.text, at, earliest)
        if found is not None:
            yield found
            earliest = found.end
        at = turn.text.find("@", at + 1)


def _around(text: str, at: int, earliest: int) -> Found | None:
    domain = _DOMAIN.match(text, at + 1)
    if domain is None:
        return None
    window = max(earliest, at - _LOCAL_LENGTH)
    local = _LOCAL.search(text, window, at)
    if local is None:
        return None
    start = local.start()
    while start < at and not text[start].isalnum():
        start += 1
    before = text[start - 1] if start else ""
    # A letter that could not be taken along belongs to an address we cannot spell.
    cut = before.isalnum() and ord(before) < _FIRST_CJK
    name = text[start:at]
    if not name or cut or before == "@" or ".." in name or name.endswith("."):
        return None
    return Found(start, domain.end(), text[start : domain.end()].lower())
