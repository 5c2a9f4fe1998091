"""How a memory store imports from other programs, and exports all it has."""

from __future__ import annotations

import asyncio
import hashlib
import json
from abc import abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from engram.client.engine import StoreMethods
from engram.contracts.importing import ImportBatch, ImportedTurn, ImportProgress, ImportTally
from engram.domain.scope import Scope, check_identifier
from engram.domain.turns import Turn, end_of
from engram.errors import InvalidInput
from engram.language.guarding import PersonalDataGuard
from engram.operations.memories import MemoryPage
from engram.operations.registry import Operation
from engram.operations.transfer import (
    EXPORT_HEADER,
    IMPORTING,
    RESTORING,
    AskExport,
    Begin,
    Finish,
    ImportStages,
    Send,
)
from engram.ports import Clock
from engram.settings import Settings
from engram.system import private_draft
from engram.transfer.accept import Acceptance, Acceptor, ReadReport
from engram.transfer.batches import turn_batches
from engram.transfer.export import ExportedFile, ExportHeader, header_line, last_line, memory_line
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
        """Send all; when one fails, those on their way are waited for, and no more are sent."""
        waiting: deque[asyncio.Task[ImportProgress]] = deque()
        try:
            # Reading takes its time, and the event loop has other things to do.
            while (batch := await asyncio.to_thread(next, batches, None)) is not None:
                if len(waiting) >= _IN_FLIGHT:
                    self._told(await waiting.popleft())
                waiting.append(asyncio.create_task(self._send(batch)))
            while waiting:
                self._told(await waiting.popleft())
        except BaseException:
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


# --- how a memory store takes in what other programs know, and gives out all it has

_PAGE: Final = 500
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


class TransferMethods(StoreMethods):
    """Importing and exporting."""

    _settings: Settings
    _clock: Clock
    _guard: PersonalDataGuard

    @property
    @abstractmethod
    def scope(self) -> Scope:
        """Whose memory this is."""

    @abstractmethod
    async def list(
        self, *, limit: int = 100, cursor: str | None = None, include_test: bool = False
    ) -> MemoryPage:
        """A page of memories."""

    async def import_file(
        self,
        path: str | Path,
        *,
        format: SourceFormat | str | None = None,  # noqa: A002 - the word that everybody uses for it
        session_prefix: str | None = None,
        zone: tzinfo = UTC,
        dry_run: bool = False,
        consolidate: bool | None = None,
        on_progress: OnProgress | None = None,
    ) -> ImportSummary:
        """Bring in the conversations of a file, or the memories of an export.

        Turns become episodes as if they had been encoded when they were said; what
        patterns find in them is stored too, and the user is consolidated afterwards in
        the background. Importing the same file again adds nothing; an import that was
        cut off, by any death of any process, goes on where it stopped.

        Args:
            path: A data export of ChatGPT or Claude (JSON or zip), JSON lines, a
                transcript, a file in LoCoMo's format, or an export of Engram.
            format: What it is; found out when absent.
            session_prefix: Before the source's names of conversations; when absent,
                "chatgpt-" or "claude-" for these, else nothing.
            zone: Of times that name none.
            dry_run: Store nothing; say what would be.
            consolidate: Whether to consolidate afterwards; when absent, after turns.
            on_progress: Called after each batch that is stored.

        Returns:
            How many turns or memories were new, known and refused.

        Raises:
            UnreadableSource: the file is in no known format, or not in its own; the
                place is named. What came before it may be stored already.
            InvalidInput: the prefix or the format is none.
            ImportOutOfStep: the import ended under way, or another call imports the
                same file at the same time; calling again is safe.
            TemporalUnavailable: no acknowledgement came in time; calling again goes on.
        """
        source = await asyncio.to_thread(SourceFile, Path(path), _format(format))
        if source.format is SourceFormat.ENGRAM:
            return await self._restore(source, dry_run, bool(consolidate), on_progress)
        prefix = _PREFIXES.get(source.format, "") if session_prefix is None else session_prefix
        how = self._acceptance(prefix, zone, source.changed_at)
        fingerprint = await asyncio.to_thread(source.fingerprint)
        import_id = _import_id(source.format, fingerprint, how, source.path.stem)
        return await self._import(
            source.found, how, str(source.format), import_id, dry_run, consolidate, on_progress
        )

    async def import_turns(
        self,
        turns: Iterable[tuple[str, Turn]],
        *,
        dry_run: bool = False,
        consolidate: bool | None = None,
        on_progress: OnProgress | None = None,
    ) -> ImportSummary:
        """Bring in turns that a program has, as (session id, turn) pairs, many at a time.

        For a whole history. Turns of a conversation that is going on are for
        :meth:`encode`. The turns are kept in memory until all are stored; the same
        turns again add nothing.

        Args:
            turns: In order. A turn without message id gets one from its place and words.
            dry_run: Store nothing; say what would be.
            consolidate: Whether to consolidate afterwards; when absent, yes.
            on_progress: Called after each batch that is stored.

        Returns:
            How many turns or memories were new, known and refused.

        Raises:
            ImportOutOfStep: another call imports the same turns at the same time.
            TemporalUnavailable: no acknowledgement came in time; calling again goes on.
        """
        now = self._clock()
        found = [_given(number, *one, now) for number, one in enumerate(turns, start=1)]
        how = self._acceptance("", UTC, now)
        said = hashlib.sha256()
        for one in found:
            kept = [one.session, one.message_id, one.role, one.speaker, one.content]
            said.update(json.dumps(kept).encode())
        import_id = _import_id("turns", said.hexdigest(), how, "")
        return await self._import(
            lambda: iter(found), how, "turns", import_id, dry_run, consolidate, on_progress
        )

    async def export_lines(self, *, include_test: bool = False) -> AsyncIterator[str]:
        """Export everything of this user as lines of JSON, without their ends.

        First a header, then every memory of every type with its history, sources,
        links and life, then a line that says how many there were. Vectors are not
        part of it. Written while others write, it holds each memory as it was when
        its page was read.

        Args:
            include_test: Test memories too.

        Yields:
            One line after the other.

        Raises:
            StorageUnavailable: the store does not answer; asking again is safe.
        """
        asked = AskExport(include_test=include_test)
        header: ExportHeader = await self._call(EXPORT_HEADER, asked)
        yield header_line(header)
        count, cursor = 0, None
        while True:
            page = await self.list(limit=_PAGE, cursor=cursor, include_test=include_test)
            for memory in page.memories:
                count += 1
                yield memory_line(memory)
            cursor = page.cursor
            if cursor is None:
                break
        yield last_line(count)

    async def export_file(
        self,
        path: str | Path,
        *,
        include_test: bool = False,
        on_progress: Callable[[int], None] | None = None,
    ) -> int:
        """Write :meth:`export_lines` into a file, which appears when it is whole.

        Only its owner can read it.

        Args:
            path: Where; a file that is there, or a link, is replaced.
            include_test: Test memories too.
            on_progress: Told how many are written, after each.

        Returns:
            How many memories it holds.

        Raises:
            OSError: the file cannot be written.
            StorageUnavailable: the store does not answer; what was written is left out.
        """
        lines = 0
        with private_draft(Path(path)) as file:
            async for line in self.export_lines(include_test=include_test):
                file.write(line + "\n")
                lines += 1
                if on_progress is not None and lines > 1:
                    on_progress(lines - 1)
        return lines - 2

    def _acceptance(self, prefix: str, zone: tzinfo, undated_at: datetime) -> Acceptance:
        if prefix:
            check_identifier(prefix, "session prefix")
        now = self._clock()
        return Acceptance(
            session_prefix=prefix,
            zone=zone,
            undated_at=min(undated_at, now),
            now=now,
            max_turn_bytes=self._settings.max_turn_bytes,
            namespace=self.scope.namespace,
            guard=self._guard,
        )

    async def _import(
        self,
        found: Callable[[], Iterator[ReadEntry]],
        how: Acceptance,
        format_name: str,
        import_id: str,
        dry_run: bool,
        consolidate: bool | None,
        on_progress: OnProgress | None,
    ) -> ImportSummary:
        acceptor = Acceptor(how)
        counted = Counted(acceptor.turns(found()))
        if dry_run:
            await asyncio.to_thread(counted.exhaust)
            read = acceptor.report(format_name)
            return ImportSummary(format=format_name, read=read, total=counted.count)
        sending = Sending(self._call, IMPORTING, import_id, on_progress)
        begun = await sending.begin(consolidate=consolidate is not False)
        await sending.send(turn_batches(counted, begun.position))
        done = await sending.finish(counted.count, consolidate)
        return ImportSummary(
            import_id=import_id,
            format=format_name,
            read=acceptor.report(format_name),
            tally=done.tally,
            resumed_at=begun.position,
            total=counted.count,
            workflow_id=done.workflow_id,
        )

    async def _restore(
        self,
        source: SourceFile,
        dry_run: bool,
        consolidate: bool,
        on_progress: OnProgress | None,
    ) -> ImportSummary:
        export = await asyncio.to_thread(ExportedFile, source.path, self.scope, self._guard)
        summary = ImportSummary(
            format=str(source.format), total=len(export), left_out=export.left_out
        )
        if dry_run:
            return summary
        fingerprint = await asyncio.to_thread(source.fingerprint)
        name = "masked" if self._guard.masks(self.scope.namespace) else "engram"
        import_id = hashlib.sha256(f"{name} {fingerprint}".encode()).hexdigest()[:32]
        sending = Sending(self._call, RESTORING, import_id, on_progress)
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
    except ValueError as error:
        raise InvalidInput("The format is unknown.", allowed=", ".join(SourceFormat)) from error


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
