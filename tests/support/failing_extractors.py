"""Extractors that fail on every turn with the word "bomb", here as in another process."""

from __future__ import annotations

import re
from datetime import datetime

from engram.language.extractor import Extractor
from engram.language.found import Extraction
from engram.settings import Settings

# A match of this takes longer than anybody waits.
_ENDLESS = re.compile(r"(a|a)*b")


class Raising(Extractor):
    """Raises, and counts how often it was asked."""

    def __init__(self) -> None:
        super().__init__(Settings())
        self.asked = 0

    def extract(
        self,
        text: str,
        role: str,
        speaker: str | None,
        timestamp: datetime,
        before: str | None = None,
    ) -> Extraction:
        """See the base class."""
        if "bomb" in text:
            self.asked += 1
            raise KeyError(text)
        return super().extract(text, role, speaker, timestamp, before)


class Endless(Extractor):
    """Reads for ever."""

    def __init__(self) -> None:
        super().__init__(Settings())

    def extract(
        self,
        text: str,
        role: str,
        speaker: str | None,
        timestamp: datetime,
        before: str | None = None,
    ) -> Extraction:
        """See the base class."""
        if "bomb" in text:
            _ENDLESS.fullmatch("a" * 60)
        return super().extract(text, role, speaker, timestamp, before)
