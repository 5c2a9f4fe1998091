"""What somebody may do with a memory: read it, also write, also operate it."""

from __future__ import annotations

from enum import StrEnum


class Access(StrEnum):
    """Each includes what comes before it.

    Attributes:
        READ: Ask, and look at what is kept.
        WRITE: Also add, confirm, dispute, protect and forget single memories.
        ADMIN: Also erase a user, run passes, repair, import and play with test memories.
    """

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"

    def includes(self, needed: Access) -> bool:
        """Whether who may do this may also do ``needed``."""
        order = tuple(Access)
        return order.index(self) >= order.index(needed)
