"""Recalled memories inside a conversation: marked when they go out, recognised when they return.

An application puts what it recalled into a prompt, and may hand that prompt, or
an answer that quotes it, back as a turn. What Engram said itself is no new
evidence for it, so a block is fenced by two lines that no one writes by chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

OPENING = "<engram-memory>"
CLOSING = "</engram-memory>"
_BLOCK = re.compile(rf"{OPENING}.*?(?:{CLOSING}|\Z)", re.DOTALL)
_FENCE = re.compile(r"</?engram-memory>", re.IGNORECASE)


def context_block(lines: Iterable[str]) -> str:
    """The lines as one fenced block; a fence inside a line is taken out, so that none closes it."""
    kept = [_FENCE.sub("", line) for line in lines]
    return "\n".join((OPENING, *kept, CLOSING))


def without_context_blocks(text: str) -> str:
    """The text as its author wrote it: every fenced block, also one cut off, is left out."""
    return _BLOCK.sub(" ", text)
