"""What a newer memory means for an older one, and what may come of it (row K5)."""

from __future__ import annotations

from enum import StrEnum


class Relation(StrEnum):
    """How a newer memory stands to an older one."""

    SAME = "same"
    """Both say the same in other words."""
    UPDATES = "updates"
    """The newer one replaces the older one."""
    CONTRADICTS = "contradicts"
    """Both cannot be true."""
    FULFILS = "fulfils"
    """The newer one says that the promise of the older one was kept."""
