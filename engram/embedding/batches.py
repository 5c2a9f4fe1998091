"""How many texts are embedded at a time, and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

BATCH_TEXTS: Final = 64
BATCH_CHARACTERS: Final = 64_000
CHARACTERS_ON_THE_LOOP: Final = 3_000
"""About a millisecond of work; more goes to a thread so that the event loop stays free."""


def batches(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """``texts`` in order, in runs of bounded number and length; a longer text runs alone."""
    start, characters = 0, 0
    for index, text in enumerate(texts):
        full = index - start >= BATCH_TEXTS or characters + len(text) > BATCH_CHARACTERS
        if full and index > start:
            yield texts[start:index]
            start, characters = index, 0
        characters += len(text)
    if start < len(texts):
        yield texts[start:]
