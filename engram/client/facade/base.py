"""What the groups of methods of a memory store share."""

from __future__ import annotations

from abc import ABC, abstractmethod

from engram.client.operations.operation import Answer, Asked, Operation


class StoreMethods(ABC):
    """A group of methods that ask operations of one user's memory."""

    @abstractmethod
    async def _perform(self, operation: Operation[Asked, Answer], asked: Asked) -> Answer:
        """Ask for an operation, for the user of this store."""
