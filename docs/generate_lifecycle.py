"""Writes the table of docs/lifecycle.md from the table that the code runs.

Run it after changing a rule: ``uv run python docs/generate_lifecycle.py``
A test compares the page with what this gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from engram.domain.memories import STORED_TYPES, MemoryStatus
from engram.lifecycle.table import TABLE, Event, TransitionRule

PAGE = Path(__file__).with_name("lifecycle.md")
BEGIN = "<!-- table: made by docs/generate_lifecycle.py -->"
END = "<!-- end of the table -->"


def table() -> Iterator[str]:
    """The lines of the table."""
    yield "| Rule | What happens | Of | From | To | When |"
    yield "|---|---|---|---|---|---|"
    for row in TABLE:
        cells = (f"`{row.name}`", event(row), f"{row.aspect}", sources(row), row.target, when(row))
        yield "| " + " | ".join(cells) + " |"


def event(row: TransitionRule) -> str:
    """What makes the rule act."""
    return "time passes" if row.event is Event.TIME else f"`{row.event}`"


def sources(row: TransitionRule) -> str:
    """From which states."""
    return ", ".join(row.sources)


def when(row: TransitionRule) -> str:
    """The condition, with the types and statuses it is limited to."""
    limits = []
    if row.types != STORED_TYPES:
        limits.append(", ".join(row.types) + " memories")
    if row.statuses not in {(MemoryStatus.ACTIVE,), tuple(MemoryStatus)} and row.aspect != "status":
        limits.append("status " + " or ".join(row.statuses))
    if row.takes:
        limits.append("unless protected")
    return row.condition + (f" ({'; '.join(limits)})" if limits else "")


def page(text: str) -> str:
    """The page with its table made anew."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return "\n".join([head + BEGIN, *table(), END]) + tail


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
