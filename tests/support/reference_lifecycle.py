"""A plain account of what a year does to memories, in other words than the code's."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta

DAYS = {"episodic": 30.0, "semantic": 180.0}
IMPORTANCE = 0.5
THRESHOLD = 0.05


@dataclass
class ReferenceLife:
    """One memory under the default rules, by hand: retention, staleness, use, confirmation.

    Attributes:
        kind: episodic or semantic.
        born: When it was stored.
        extraction: How sure the extraction was; only semantic memories have it.
    """

    kind: str
    born: datetime
    extraction: float = 0.9
    accesses: int = 0
    touched: datetime | None = None
    told: datetime | None = None
    confirmed: bool = False
    protected: bool = False
    status: str = "active"
    state: str = ""
    steps: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = self.state or ("active" if self.kind == "episodic" else "candidate")
        self.touched = self.told = self.born

    def recalled(self, at: datetime) -> None:
        """It was an answer."""
        self.accesses += 1
        self.touched = at

    def confirm(self, at: datetime) -> None:
        """The user says that it is so."""
        self.confirmed, self.status = True, "active"
        self._enter("validated")
        self.touched = self.told = at

    def protect(self) -> None:
        """The user protects it: it comes back if it had left, and no rule takes it."""
        self.protected = True
        if self.status != "active":
            self.status = self.state = "active"

    def reviewed(self, at: datetime) -> None:
        """A pass at this moment looks at everything, due or not."""
        if self.status != "active":
            return
        assert self.touched is not None
        assert self.told is not None
        idle = (at - self.touched) / timedelta(days=1)
        strength = (1 + 0.1 * self.accesses) * IMPORTANCE
        lasts = DAYS[self.kind] * math.log(strength / THRESHOLD)
        speculative = self.kind == "semantic" and self.extraction < 0.4 and not self.confirmed
        if speculative and at >= self.told + timedelta(days=30) and not self.protected:
            self._leave("expired")
            return
        if self.state == "stale" and (idle < lasts / 2 or self.protected):
            self._enter("active")
        if self.state == "candidate" and self.accesses:
            self._enter("active")
        if self.confirmed and self.state == "active":
            self._enter("validated")
        if idle >= lasts / 2 and not self.protected:
            self._enter("stale")
        if idle > lasts and not self.protected:
            self._leave("archived")

    def _enter(self, state: str) -> None:
        self.state = state
        self.steps.append(state)

    def _leave(self, status: str) -> None:
        self.status, self.state = status, "archived"
        self.steps.append(status)
