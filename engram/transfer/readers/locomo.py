"""LoCoMo's format: long conversations of two people, in sittings with a date each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO, Final

from engram.domain.sanitize import is_visible
from engram.transfer.readers.reading import FoundTurn, LeftOut, ReadEntry, elements

_SITTING: Final = re.compile(r"session_(\d{1,6})\Z")
_WHEN: Final = re.compile(
    r"\s*(\d{1,2}):(\d{2})\s*([ap])\.?m\.?\s+on\s+(\d{1,2})\s+([A-Za-z]+),?\s+(\d{4})\s*\Z",
    re.IGNORECASE,
)
_MONTHS: Final = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)


def read(stream: BinaryIO) -> Iterator[ReadEntry]:
    """The turns, sitting by sitting. Both speakers are people: theirs are the names.

    Raises:
        UnreadableSource: the file is no JSON; the sample is named by its number.
    """
    for number, sample in enumerate(elements(stream, "sample"), start=1):
        yield from sample_turns(sample, number)


def sample_turns(given: Any, number: int) -> Iterator[ReadEntry]:
    """The turns of one sample.

    Args:
        given: As the file has it.
        number: Counted from 1; stands for a sample that has no name.
    """
    place = f"sample {number}"
    talk = given.get("conversation") if isinstance(given, dict) else None
    if not isinstance(talk, dict):
        yield LeftOut("a sample without conversation", place)
        return
    name = given.get("sample_id")
    name = str(name) if isinstance(name, str | int) and str(name) else f"sample-{number}"
    sittings = sorted(int(found[1]) for key in talk if (found := _SITTING.match(key)))
    for sitting in sittings:
        yield from _turns(talk, name, sitting, f"{place}, session {sitting}")


def _turns(talk: Mapping[str, Any], name: str, sitting: int, place: str) -> Iterator[ReadEntry]:
    said = talk.get(f"session_{sitting}")
    if not isinstance(said, list):
        yield LeftOut("a session without turns", place)
        return
    began = _moment(talk.get(f"session_{sitting}_date_time"))
    for number, one in enumerate(said):
        where = f"{place}, turn {number + 1}"
        words = one.get("text") if isinstance(one, dict) else None
        if not isinstance(words, str):
            yield LeftOut("not a turn", where)
            continue
        if isinstance(caption := one.get("blip_caption"), str) and caption:
            # What an application that shows pictures would hand over: words, and what they show.
            words = f"{words} [shares a photo: {caption}]"
        if not is_visible(words):
            yield LeftOut("empty", where)
            continue
        yield FoundTurn(
            session=f"{name}-session-{sitting}",
            place=where,
            content=words,
            speaker=_text(one, "speaker"),
            # One date is given for a whole sitting; a second apart keeps the order.
            timestamp=None if began is None else began + timedelta(seconds=number),
            message_id=_text(one, "dia_id"),
        )


def _text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    return value if isinstance(value, str) and value.strip() else None


def _moment(text: Any) -> datetime | None:
    """The moment of '1:56 pm on 8 May, 2023'; no zone is given, so it is Greenwich's."""
    found = _WHEN.match(text) if isinstance(text, str) else None
    if found is None or found[5].lower() not in _MONTHS:
        return None
    hour = int(found[1]) % 12 + (12 if found[3].lower() == "p" else 0)
    month = _MONTHS.index(found[5].lower()) + 1
    try:
        return datetime(int(found[6]), month, int(found[4]), hour, int(found[2]), tzinfo=UTC)
    except ValueError:
        return None
