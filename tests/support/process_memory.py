"""How much memory a process and all that it started have to themselves, and how much they work."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.repeated import repeated

_MB = 1024
_PROC = Path("/proc")


@dataclass(frozen=True)
class Held:
    """Megabytes.

    Attributes:
        private: Anonymous memory that no other process shares.
        pss: All that is mapped, files too, where what is shared counts by its share.
        parts: The first of each process, by its name.
    """

    private: float
    pss: float
    parts: dict[str, float]

    def __str__(self) -> str:
        parts = ", ".join(f"{name} {held:.0f}" for name, held in self.parts.items())
        return f"{self.private:.0f} MB of its own ({parts}), Pss {self.pss:.0f} MB"


def held_by(root: int) -> Held:
    """What a process and its descendants hold now; those that just ended hold nothing."""
    private = pss = 0.0
    parts: dict[str, float] = {}
    for process in _family(root):
        try:
            lines = (process / "smaps_rollup").read_text().splitlines()[1:]
            name = (process / "comm").read_text().strip()
        except (FileNotFoundError, ProcessLookupError):
            continue
        sizes = {line.partition(":")[0]: int(line.split()[1]) / _MB for line in lines}
        own = sizes["Pss_Anon"]
        private, pss = private + own, pss + sizes["Pss"]
        parts[name] = parts.get(name, 0.0) + own
    return Held(private, pss, parts)


def worked_by(root: int) -> float:
    """Seconds of the processor that a process and its descendants took so far."""
    ticks = 0
    for process in _family(root):
        try:
            fields = (process / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def _family(root: int) -> Iterator[Path]:
    waiting = [root]
    while waiting:
        process = _PROC / str(waiting.pop())
        try:
            for children in (process / "task").glob("*/children"):
                waiting += map(int, children.read_text().split())
        except (FileNotFoundError, ProcessLookupError):
            continue
        yield process


class Peak:
    """The most that was held while somebody looked."""

    def __init__(self, first: Held) -> None:
        self.most = first

    def look(self, held: Held) -> None:
        """Take what is held now."""
        if held.private > self.most.private:
            self.most = held


@contextmanager
def peak_of(root: int, every: float = 0.5) -> Iterator[Peak]:
    """Look at a process and its descendants now and then, from a thread."""
    peak = Peak(held_by(root))
    with repeated(lambda: peak.look(held_by(root)), every):
        yield peak
