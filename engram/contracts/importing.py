"""What passes between clients, the importing workflow and its activities."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from pydantic import Field

from engram.contracts.messages import Message, ScopedMessage, TimedMessage, Timeout

MOST_PLACES = 20
"""Places that a tally names; past these it only counts."""


class ImportKind(StrEnum):
    """What an import brings in."""

    TURNS = "turns"
    """Turns of another program, from which facts are drawn as from any turn."""
    MEMORIES = "memories"
    """Memories of an export of Engram, which are put back as they were."""


class ImportedTurn(Message):
    """A turn on its way in: nothing about it is still open.

    Attributes:
        sequence: Its number within its session, from 0.
        before: What was said just before it, where that is not the turn before it in
            the same batch.
        place: Where it stands in its source, in words that hold nothing of it.
    """

    session_id: str
    message_id: str
    role: str
    content: str
    speaker: str | None = None
    timestamp: datetime
    metadata: Mapping[str, Any] = Field(default_factory=dict)
    tags: tuple[str, ...] = ()
    importance: float | None = None
    expires_at: datetime | None = None
    summary: str | None = None
    sequence: int = 0
    before: str | None = None
    place: str = ""


class ExportedMemory(Message):
    """A memory of an export on its way back in.

    Attributes:
        memory: Its fields, for the user it goes to.
        before: What was said just before it, of a turn.
        place: Where it stands in the export.
    """

    memory: Mapping[str, Any]
    before: str | None = None
    place: str = ""


class ImportBatch(Message):
    """A stretch of the source, as one update; see :mod:`engram.transfer.batches`."""

    first: int = Field(
        ge=0, description="Position of its first entry, counted from 0 over the whole source."
    )
    count: int = Field(ge=1, description="How many entries it has, 800 at most.")
    packed: str = Field(
        description="The entries: a JSON array, compressed by zlib, as base64, of 1,900,000 "
        "characters at most. What an entry has, docs/import.md says."
    )


class ImportTally(Message):
    """What became of the entries that were sent.

    Attributes:
        stored: Entries that are stored now and were not before.
        known: Entries that were there already; they stay as they are.
        forgotten: Entries that the user had forgotten, or that rest on what is: left out.
        facts: Pattern facts that the entries state, each counted once a batch.
        negations: The same of negations.
        conflicts: Entries whose id is taken by another turn; that one stays.
        conflict_places: Where the first of them stand in the source.
    """

    stored: int = 0
    known: int = 0
    facts: int = 0
    negations: int = 0
    conflicts: int = 0
    conflict_places: tuple[str, ...] = ()
    forgotten: int = 0

    def plus(self, other: ImportTally) -> ImportTally:
        """Both together."""
        return ImportTally(
            stored=self.stored + other.stored,
            known=self.known + other.known,
            forgotten=self.forgotten + other.forgotten,
            facts=self.facts + other.facts,
            negations=self.negations + other.negations,
            conflicts=self.conflicts + other.conflicts,
            conflict_places=(*self.conflict_places, *other.conflict_places)[:MOST_PLACES],
        )


class ImportPolicy(Message):
    """The numbers an import runs by, fixed when it starts so that replays agree."""

    updates_per_run: int = Field(ge=1)
    store_timeout: Timeout
    idle_time: timedelta = Field(gt=timedelta(0))


class ImportState(ScopedMessage):
    """All that an importing workflow knows; carried whole over continue-as-new.

    Attributes:
        import_id: Names the source; the same source names the same import.
        consolidate: Whether the user's consolidation is asked for at the end.
        position: So many entries from the beginning are stored.
        ahead: Stretches beyond that are stored too, as (first, count).
        total: How many entries the source has; None until all are there.
        runs: Runs of this workflow so far, this one included.
        epoch: The user's when the import began; see
            :meth:`engram.ports.MemoryRepository.epoch`.
    """

    import_id: str
    kind: ImportKind = ImportKind.TURNS
    policy: ImportPolicy
    consolidate: bool = True
    position: int = 0
    ahead: tuple[tuple[int, int], ...] = ()
    tally: ImportTally = ImportTally()
    total: int | None = None
    runs: int = 1
    epoch: int | None = None

    def with_stored(self, batch: ImportBatch, tally: ImportTally) -> ImportState:
        """The state once a batch is stored; a batch that was counted already changes nothing."""
        if self.has(batch):
            return self
        position = self.position
        waiting = sorted({*self.ahead, (batch.first, batch.count)})
        while waiting and waiting[0][0] <= position:
            first, count = waiting.pop(0)
            position = max(position, first + count)
        return self.model_copy(
            update={
                "position": position,
                "ahead": tuple(waiting),
                "tally": self.tally.plus(tally),
            }
        )

    def has(self, batch: ImportBatch) -> bool:
        """Whether the batch is stored already."""
        before = batch.first + batch.count <= self.position
        return before or (batch.first, batch.count) in self.ahead


class ImportProgress(Message):
    """How far an import has come.

    Attributes:
        position: So many entries from the beginning are stored: sending goes on here.
        complete: Whether all that the source has is stored.
    """

    import_id: str
    position: int = 0
    tally: ImportTally = ImportTally()
    complete: bool = False
    runs: int = 1
    workflow_id: str = ""


class BeginImport(Message):
    """A client is about to send, perhaps not for the first time."""


class FinishImport(Message):
    """All was sent.

    Attributes:
        total: How many entries the source has.
        consolidate: Whether the user's consolidation is asked for; None: as at the beginning.
    """

    total: int = Field(ge=0)
    consolidate: bool | None = None


class StoreBatchInput(TimedMessage):
    """Input of the activity that stores a batch."""

    kind: ImportKind
    batch: ImportBatch
    workflow_id: str
    run_id: str
    epoch: int | None = None
