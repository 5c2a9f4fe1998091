"""Dates written out in full, read by dateparser."""

from __future__ import annotations

import threading
from datetime import date
from functools import cache, lru_cache

from dateparser.date import DateDataParser

# One parser for the process, its state guarded: it keeps the language it saw last.
_reading = threading.Lock()


@cache
def _parser() -> DateDataParser:
    # Languages are pinned: guessed ones cost 85 ms and read "we" as Wednesday.
    return DateDataParser(
        languages=["en"],
        settings={"REQUIRE_PARTS": ["day", "month", "year"], "PARSERS": ["absolute-time"]},
    )


@lru_cache(maxsize=1024)
def read_written(text: str) -> date | None:
    """The day that "9 september 2018" names; None where there is no such day."""
    with _reading:
        moment = _parser().get_date_data(text).date_obj
    return None if moment is None else moment.date()
