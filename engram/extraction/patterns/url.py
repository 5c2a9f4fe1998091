"""Web addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from engram.extraction.patterns.found import Found, Masked

_ADDRESS = re.compile(r"(?<![\w@.])(?:https?://|www\.)[^\s<>\"`\ufffc]{1,2048}")
_HOST = re.compile(r"(?:[^/?#@]*@)?(?P<host>[^/?#:@]+)(?::\d{1,5})?(?=[/?#]|\Z)")
_HOST_NAME = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.)+[^\W\d_][\w-]{1,23}\Z|localhost\Z")
_IP = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}\Z")
_CLOSING = {")": "(", "]": "[", "}": "{"}


def find(turn: Masked) -> Iterator[Found]:
    """Addresses with a scheme, or beginning with www; a bare domain could be a file name."""
    if "www." not in turn.low and "://" not in turn.low:
        return
    for match in _ADDRESS.finditer(turn.low):
        start = match.start()
        address = _without_closing(turn.text[start : match.end()])
        value = _canonical(address)
        if value is not None:
            yield Found(start, start + len(address), value)


def _without_closing(address: str) -> str:
    while address:
        last = address[-1]
        opening = _CLOSING.get(last)
        if opening is not None and address.count(opening) >= address.count(last):
            break
        if opening is None and last not in ".,;:!?'*_~>|":
            break
        address = address[:-1]
    return address


def _canonical(address: str) -> str | None:
    if address[:4].lower() == "www.":
        address = f"https://{address}"
    scheme, _, rest = address.partition("://")
    match = _HOST.match(rest)
    if match is None:
        return None
    host = match["host"].lower()
    if not (_HOST_NAME.match(host) or _IP.match(host)):
        return None
    start, end = match.span("host")
    return f"{scheme.lower()}://{rest[:start]}{host}{rest[end:]}"
