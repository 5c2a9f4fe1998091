"""Memories that were decoded before: reading one again costs a comparison, not a validation."""

from __future__ import annotations

from typing import Final

from engram.domain.memories import AnyMemory
from engram.storage.paging import Payload
from engram.storage.payload import decode

MOST: Final = 4096
"""Memories kept, about 5 KB each."""


class DecodedPayloads:
    """The last memories decoded, by id; memories never change, so they can be shared.

    A memory is only given again if the whole payload is the same as then, so that
    nothing depends on who changed it or how.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._kept: dict[str, tuple[Payload, AnyMemory]] = {}

    def __call__(self, payload: Payload) -> AnyMemory:
        """The memory of a payload.

        Raises:
            StorageError: this version of Engram cannot read it.
        """
        known = self._kept.get(payload.get("id", ""))
        if known is not None and known[0] == payload:
            return known[1]
        memory = decode(payload)
        # Taken out first, so that what was read last stands last.
        self._kept.pop(memory.id, None)
        self._kept[memory.id] = (payload, memory)
        if len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]
        return memory
