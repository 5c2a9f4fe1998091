"""What processes under test write down as they work, and what can be read from it afterwards.

One line per mark, appended in one write: what a killed process wrote before its
death is all there, and no other process's line is torn.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PHASES = ("encode", "consolidation", "continue-as-new", "shutdown")


class Trace:
    """Appends marks to a file.

    Args:
        path: Shared by all processes of a test.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def mark(self, what: str, at: str, key: str) -> None:
        """Write one line: who, what, ``begin``, ``end`` or ``done``, and of which one."""
        os.write(self._descriptor, f"{os.getpid()} {what} {at} {key}\n".encode())

    @contextmanager
    def span(self, what: str, key: str) -> Iterator[None]:
        """Marks around the block, also when it fails."""
        self.mark(what, "begin", key)
        try:
            yield
        finally:
            self.mark(what, "end", key)


@dataclass(frozen=True, slots=True)
class Mark:
    """One line of a trace."""

    pid: int
    what: str
    at: str
    key: str


class Ledger:
    """Everything that a trace says so far."""

    def __init__(self, path: Path) -> None:
        lines = path.read_text().splitlines() if path.exists() else []
        self.marks = [Mark(int(pid), what, at, key) for pid, what, at, key in map(_split, lines)]

    def messages(self, at: str) -> dict[str, str]:
        """Session by message id, of turns that were ``begin`` (sent) or ``done`` (acknowledged)."""
        turns = (m.key for m in self.marks if m.what == "turn" and m.at == at)
        return {key.partition("/")[2]: key.partition("/")[0] for key in turns}

    def acknowledgements(self) -> Counter[str]:
        """How often each message id was acknowledged."""
        keys = (m.key for m in self.marks if m.what == "turn" and m.at == "done")
        return Counter(key.partition("/")[2] for key in keys)

    def unanswered(self) -> dict[str, str]:
        """Session by message id, of turns that were sent and never acknowledged."""
        done = self.messages("done")
        return {key: s for key, s in self.messages("begin").items() if key not in done}

    def phases(self, pid: int) -> tuple[str, ...]:
        """In what a process was when its last mark was made: phases that began and did not end."""
        open_spans: set[tuple[str, str]] = set()
        for mark in self.marks:
            if mark.pid != pid or mark.what not in PHASES:
                continue
            if mark.at == "begin":
                open_spans.add((mark.what, mark.key))
            else:
                open_spans.discard((mark.what, mark.key))
        return tuple(phase for phase in PHASES if any(what == phase for what, _ in open_spans))


def _split(line: str) -> tuple[str, str, str, str]:
    pid, what, at, key = line.split(" ", 3)
    return pid, what, at, key
