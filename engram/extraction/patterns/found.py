"""The text a pattern looks at, and what it reports."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

# Typographic signs become their plain forms one for one, so that offsets hold.
_PLAIN = str.maketrans(
    {
        "\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u201c": '"', "\u201d": '"',
        "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "-",
        "\u00a0": " ", "\u202f": " ", "\u2009": " ", "\t": " ",
    }
)  # fmt: skip
_MASK = "\ufffc"


class Found(NamedTuple):
    """A find: offsets into the turn, canonical value, and how to label it."""

    start: int
    end: int
    value: str
    event_at: datetime | None = None


def plain(text: str) -> str:
    """``text`` with plain quotes, dashes and spaces, same length."""
    return text if text.isascii() and "\t" not in text else text.translate(_PLAIN)


def fold(text: str) -> str:
    """``text`` in lower case, same length: a letter whose lower case is longer stays."""
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(lower if len(lower := letter.lower()) == 1 else letter for letter in text)


class Masked:
    """A turn whose already explained stretches are hidden from later patterns.

    Attributes:
        text: Plain form, original case.
        low: The same in lower case.
    """

    __slots__ = ("low", "text")

    def __init__(self, text: str) -> None:
        self.text = plain(text)
        self.low = fold(self.text)

    def hide(self, spans: list[Found]) -> None:
        """Make the stretches of ``spans`` invisible."""
        if not spans:
            return
        for which in ("text", "low"):
            parts: list[str] = []
            at = 0
            source: str = getattr(self, which)
            for span in sorted(spans):
                if span.end <= at:
                    continue
                start = max(span.start, at)
                parts += (source[at:start], _MASK * (span.end - start))
                at = span.end
            parts.append(source[at:])
            setattr(self, which, "".join(parts))
