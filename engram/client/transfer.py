"""How a memory store takes in what other programs know, and gives out all it has."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import UTC, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Final

from engram import operations
from engram.client.engine import StoreMethods
from engram.contracts.refusals import typed_refusals
from engram.domain.scope import Scope
from engram.domain.turns import Turn
from engram.errors import InvalidInput
from engram.language.guarding import PersonalDataGuard
from engram.settings import Settings
from engram.system import private_draft

if TYPE_CHECKING:
    from engram.client.importing import Importing, ImportSummary, OnProgress
    from engram.operations.memories import MemoryPage
    from engram.ports import Clock
    from engram.transfer.source import SourceFormat

_PAGE: Final = 500


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
        importing = self._importing(dry_run, consolidate, on_progress)
        return await importing.file(Path(path), format, session_prefix, zone)

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
        return await self._importing(dry_run, consolidate, on_progress).turns(turns)

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
        from engram.transfer.export import (  # noqa: PLC0415 - only what is used loads
            header_line,
            last_line,
            memory_line,
        )

        with typed_refusals():
            asked = operations.transfer.AskExport(include_test=include_test)
        header = await self._call(operations.transfer.EXPORT_HEADER, asked)
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
            InvalidInput: the file cannot be written.
            StorageUnavailable: the store does not answer; what was written is left out.
        """
        lines = 0
        try:
            with private_draft(Path(path)) as file:
                async for line in self.export_lines(include_test=include_test):
                    file.write(line + "\n")
                    lines += 1
                    if on_progress is not None and lines > 1:
                        on_progress(lines - 1)
        except OSError as error:
            raise InvalidInput(
                f"The file {path} cannot be written: {error.strerror or error}.",
                allowed="a file, in a folder that is there and has room",
            ) from error
        return lines - 2

    def _importing(
        self, dry_run: bool, consolidate: bool | None, on_progress: OnProgress | None
    ) -> Importing:
        from engram.client.importing import Importing  # noqa: PLC0415 - only what is used loads

        return Importing(
            call=self._call,
            scope=self.scope,
            clock=self._clock,
            guard=self._guard,
            max_turn_bytes=self._settings.max_turn_bytes,
            dry_run=dry_run,
            consolidate=consolidate,
            on_progress=on_progress,
        )
