"""Reading sources, and sending what is in them, batch by batch."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from engram.contracts.importing import ImportBatch, ImportedTurn, ImportProgress, ImportTally
from engram.domain.scope import Scope, check_identifier
from engram.domain.turns import Turn, end_of
from engram.errors import InvalidInput
from engram.language.guarding import PersonalDataGuard
from engram.operations.registry import Operation
from engram.operations.transfer import IMPORTING, RESTORING, Begin, Finish, ImportStages, Send
from engram.ports import Clock
from engram.transfer.accept import Acceptance, Acceptor, ReadReport
from engram.transfer.batches import turn_batches
from engram.transfer.export import ORDER, ExportedFile
from engram.transfer.readers.reading import FoundTurn, ReadEntry
from engram.transfer.source import SourceFile, SourceFormat

# --- sending what is imported, batch by batch

_IN_FLIGHT: Final = 2
"""Batches that are on their way at once: the next one waits where it will be stored."""

Call = Callable[[Operation[Any, ImportProgress], Any], Awaitable[ImportProgress]]
OnProgress = Callable[[ImportProgress], None]


class Counted:
    """The turns, counted as they go by."""

    def __init__(self, turns: Iterable[ImportedTurn]) -> None:
        self._turns = turns
        self.count = 0

    def __iter__(self) -> Iterator[ImportedTurn]:
        for turn in self._turns:
            self.count += 1
            yield turn

    def exhaust(self) -> None:
        """Go through all of them."""
        deque(self, maxlen=0)


class Sending:
    """Sends batches, a few at a time."""

    def __init__(
        self,
        call: Call,
        stages: ImportStages,
        import_id: str,
        on_progress: OnProgress | None,
    ) -> None:
        self._call = call
        self._stages = stages
        self._import_id = import_id
        self._on_progress = on_progress

    async def begin(self, *, consolidate: bool) -> ImportProgress:
        """Begin, or find where it stopped."""
        asked = Begin(import_id=self._import_id, consolidate=consolidate)
        return self._told(await self._call(self._stages.begin, asked))

    async def send(self, batches: Iterator[ImportBatch]) -> None:
        """Send all; when one fails, those on their way are waited for, and no more are sent.

        Who cancels it waits for none: what reached the workflow is stored all the same, and the
        same import goes on from there.
        """
        waiting: deque[asyncio.Task[ImportProgress]] = deque()
        try:
            # Reading takes its time, and the event loop has other things to do.
            while (batch := await asyncio.to_thread(next, batches, None)) is not None:
                if len(waiting) >= _IN_FLIGHT:
                    self._told(await waiting.popleft())
                waiting.append(asyncio.create_task(self._send(batch)))
            while waiting:
                self._told(await waiting.popleft())
        except BaseException as error:
            if not isinstance(error, Exception):
                for one in waiting:
                    one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            raise

    async def finish(self, total: int, consolidate: bool | None) -> ImportProgress:
        """Say that all is there."""
        asked = Finish(import_id=self._import_id, total=total, consolidate=consolidate)
        return self._told(await self._call(self._stages.finish, asked))

    async def _send(self, batch: ImportBatch) -> ImportProgress:
        asked = Send(import_id=self._import_id, batch=batch)
        return await self._call(self._stages.send, asked)

    def _told(self, progress: ImportProgress) -> ImportProgress:
        if self._on_progress is not None:
            self._on_progress(progress)
        return progress


# --- what comes of it

_PREFIXES: Final = {SourceFormat.CHATGPT: "chatgpt-", SourceFormat.CLAUDE: "claude-"}


class ImportSummary(BaseModel):
    """What came of an import.

    Attributes:
        import_id: Names the source; importing it again has the same.
        format: Of the source.
        read: What it holds, and what was left out and why; of an export, None.
        tally: What became of what was sent, by this call and those before it.
        resumed_at: So many entries were stored by an earlier call that did not end.
        total: How many entries the source has.
        left_out: Conclusions of an export that are not among them: they hold personal data, which
            this namespace masks. Its turns are masked.
        workflow_id: Where the Temporal UI shows it; empty for a dry run.
    """

    model_config = ConfigDict(frozen=True)

    import_id: str = ""
    format: str
    read: ReadReport | None = None
    tally: ImportTally = ImportTally()
    resumed_at: int = 0
    total: int = 0
    left_out: int = 0
    workflow_id: str = ""


@dataclass(frozen=True)
class Importing:
    """Imports into one user's memory.

    Attributes:
        call: Asks for an operation, for this user.
        scope: Whose memory it is.
        clock: The present.
        guard: Masks what its namespace masks.
        max_turn_bytes: Longer turns are split.
        dry_run: Store nothing; say what would be.
        consolidate: Whether to consolidate afterwards; None: after turns.
        on_progress: Called after each batch that is stored.
    """

    call: Call
    scope: Scope
    clock: Clock
    guard: PersonalDataGuard
    max_turn_bytes: int
    dry_run: bool
    consolidate: bool | None
    on_progress: OnProgress | None

    async def file(
        self,
        path: Path,
        source_format: SourceFormat | str | None,
        session_prefix: str | None,
        zone: tzinfo,
    ) -> ImportSummary:
        """See :meth:`engram.MemoryStore.import_file`."""
        source = await asyncio.to_thread(SourceFile, path, _format(source_format))
        if source.format is SourceFormat.ENGRAM:
            return await self._restore(source)
        prefix = _PREFIXES.get(source.format, "") if session_prefix is None else session_prefix
        how = self._acceptance(prefix, zone, source.changed_at)
        fingerprint = await asyncio.to_thread(source.fingerprint)
        import_id = _import_id(source.format, fingerprint, how, source.path.stem)
        return await self._turns(source.found, how, str(source.format), import_id)

    async def turns(self, turns: Iterable[tuple[str, Turn]]) -> ImportSummary:
        """See :meth:`engram.MemoryStore.import_turns`."""
        now = self.clock()
        found = [_given(number, *one, now) for number, one in enumerate(turns, start=1)]
        how = self._acceptance("", UTC, now)
        said = hashlib.sha256()
        for one in found:
            kept = [one.session, one.message_id, one.role, one.speaker, one.content]
            said.update(json.dumps(kept).encode())
        import_id = _import_id("turns", said.hexdigest(), how, "")
        return await self._turns(lambda: iter(found), how, "turns", import_id)

    def _acceptance(self, prefix: str, zone: tzinfo, undated_at: datetime) -> Acceptance:
        if prefix:
            check_identifier(prefix, "session prefix")
        now = self.clock()
        return Acceptance(
            session_prefix=prefix,
            zone=zone,
            undated_at=min(undated_at, now),
            now=now,
            max_turn_bytes=self.max_turn_bytes,
            namespace=self.scope.namespace,
            guard=self.guard,
        )

    async def _turns(
        self,
        found: Callable[[], Iterator[ReadEntry]],
        how: Acceptance,
        format_name: str,
        import_id: str,
    ) -> ImportSummary:
        acceptor = Acceptor(how)
        counted = Counted(acceptor.turns(found()))
        if self.dry_run:
            await asyncio.to_thread(counted.exhaust)
            read = acceptor.report(format_name)
            return ImportSummary(format=format_name, read=read, total=counted.count)
        sending = Sending(self.call, IMPORTING, import_id, self.on_progress)
        begun = await sending.begin(consolidate=self.consolidate is not False)
        await sending.send(turn_batches(counted, begun.position))
        done = await sending.finish(counted.count, self.consolidate)
        return ImportSummary(
            import_id=import_id,
            format=format_name,
            read=acceptor.report(format_name),
            tally=done.tally,
            resumed_at=begun.position,
            total=counted.count,
            workflow_id=done.workflow_id,
        )

    async def _restore(self, source: SourceFile) -> ImportSummary:
        export = await asyncio.to_thread(ExportedFile, source.path, self.scope, self.guard)
        summary = ImportSummary(
            format=str(source.format), total=len(export), left_out=export.left_out
        )
        if self.dry_run:
            return summary
        fingerprint = await asyncio.to_thread(source.fingerprint)
        name = "masked" if self.guard.masks(self.scope.namespace) else "engram"
        import_id = hashlib.sha256(f"{name} {ORDER} {fingerprint}".encode()).hexdigest()[:32]
        consolidate = bool(self.consolidate)
        sending = Sending(self.call, RESTORING, import_id, self.on_progress)
        begun = await sending.begin(consolidate=consolidate)
        await sending.send(export.batches(begun.position))
        done = await sending.finish(len(export), consolidate)
        return summary.model_copy(
            update={
                "import_id": import_id,
                "tally": done.tally,
                "resumed_at": begun.position,
                "workflow_id": done.workflow_id,
            }
        )


def _format(given: SourceFormat | str | None) -> SourceFormat | None:
    try:
        return None if given is None else SourceFormat(given)
    except ValueError:
        # Not from it: its text would repeat what was given.
        raise InvalidInput("The format is unknown.", allowed=", ".join(SourceFormat)) from None


def _given(number: int, session: str, turn: Turn, now: datetime) -> FoundTurn:
    return FoundTurn(
        session=session,
        place=f"turn {number}",
        content=turn.content,
        role=turn.role,
        speaker=turn.speaker,
        timestamp=turn.timestamp,
        message_id=turn.message_id,
        metadata=turn.metadata,
        tags=turn.tags,
        importance=turn.importance,
        expires_at=end_of(turn, now),
        summary=turn.summary,
    )


def _import_id(format_name: str, fingerprint: str, how: Acceptance, stem: str) -> str:
    """Names the source together with all that decides what its turns become."""
    shift = how.zone.utcoffset(datetime(2000, 1, 1, tzinfo=UTC).replace(tzinfo=None)) or timedelta()
    # A transcript's conversation is named after its file.
    named = stem if format_name == SourceFormat.TRANSCRIPT else ""
    zone = f"{how.zone}/{shift.total_seconds()}"
    parts = [str(format_name), fingerprint, how.session_prefix, zone, how.max_turn_bytes, named]
    if how.guard.masks(how.namespace):
        parts.append("masked")
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]
