"""Which memories count as an answer: by status, by what was known when, by what was true when.

The same rule as conditions for a store is in ``engram.recall.conditions``; a
property test holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from engram.domain.memories import DerivedMemory, Memory, MemoryStatus


@dataclass(frozen=True, slots=True)
class Visibility:
    """From when, and of when, one looks at memory.

    Attributes:
        now: The present. Without ``as_of``, what counts is what is active now.
        as_of: Only what was known then, and had not been replaced then; whatever
            became of it later.
        valid_at: Only what was true then, of what is known (``as_of`` or now).
            This brings back replaced memories for the time they were true. It
            excludes no episode: what was said was said.
        include_archived: Archived memories count too.
        include_test: Test memories count too.
    """

    now: datetime
    as_of: datetime | None = None
    valid_at: datetime | None = None
    include_archived: bool = False
    include_test: bool = False

    @property
    def moment(self) -> datetime:
        """The moment one looks from."""
        return self.as_of or self.now

    def counts(self, memory: Memory) -> bool:
        """Whether ``memory`` counts."""
        return (
            (self.include_test or not memory.is_test)
            and (memory.expires_at is None or memory.expires_at > self.moment)
            and (self._stands(memory) if self.as_of is None else self._stood(memory, self.as_of))
            and (self.valid_at is None or self._true(memory, self.valid_at))
        )

    @property
    def standing(self) -> tuple[MemoryStatus, ...]:
        """The statuses that count now."""
        archived = (MemoryStatus.ARCHIVED,) if self.include_archived else ()
        replaced = (MemoryStatus.SUPERSEDED,) if self.valid_at is not None else ()
        return (MemoryStatus.ACTIVE, *archived, *replaced)

    def _stands(self, memory: Memory) -> bool:
        if memory.status is MemoryStatus.SUPERSEDED:
            return self._was_true(memory)
        return memory.status in self.standing

    def _stood(self, memory: Memory, then: datetime) -> bool:
        if memory.known_at > then:
            return False
        replaced = memory.superseded_known_at
        return replaced is None or replaced > then or self._was_true(memory)

    def _was_true(self, memory: Memory) -> bool:
        """Whether a replaced memory counts for the time before its end."""
        return (
            self.valid_at is not None
            and isinstance(memory, DerivedMemory)
            and memory.valid_to is not None
            and memory.valid_to > self.valid_at
        )

    def _true(self, memory: Memory, when: datetime) -> bool:
        if not isinstance(memory, DerivedMemory):
            return True
        if memory.valid_from is not None and memory.valid_from > when:
            return False
        return memory.valid_to is None or memory.valid_to > when or self._end_unknown(memory)

    def _end_unknown(self, memory: DerivedMemory) -> bool:
        """Whether its end was only learnt after ``as_of``, with what replaced it."""
        replaced = memory.superseded_known_at
        return self.as_of is not None and replaced is not None and replaced > self.as_of
