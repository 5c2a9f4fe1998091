"""Commands that import conversations and memories, and export everything."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from engram.cli import output
from engram.cli.running import Commands, DryRun, MemoryOptions, StoreOptions, User, run
from engram.errors import InvalidInput

if TYPE_CHECKING:
    from engram.client.importing import ImportSummary
    from engram.contracts.importing import ImportProgress
    from engram.transfer.memories import ImportedMemory, ImportReport

# --- the commands that bring conversations in from files, and take everything out

_FORMATS = "chatgpt, claude, jsonl, transcript, locomo or engram"

commands = Commands()


@commands.command("import")
def import_(
    file: Annotated[
        Path,
        typer.Argument(
            help="An export (ChatGPT's and Claude's also as the zip), lines or a transcript; "
            "- reads standard input."
        ),
    ],
    options: MemoryOptions,
    source_format: Annotated[
        str | None, typer.Option("--format", help=f"{_FORMATS}; found out when absent.")
    ] = None,
    session_prefix: Annotated[
        str | None, typer.Option(help="Before the names of the conversations.")
    ] = None,
    zone: Annotated[
        str, typer.Option(help="Zone of times that name none, such as Europe/Lisbon.")
    ] = "UTC",
    consolidate: Annotated[
        bool | None,
        typer.Option(
            "--consolidate/--no-consolidate", help="Consolidate afterwards (of turns: yes)."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Store nothing; say what would be.")
    ] = False,
) -> None:
    """Bring in old conversations, or restore an export; the same file again adds nothing.

    Reads the data exports of ChatGPT and Claude, JSON lines, Markdown and text
    transcripts, LoCoMo files, and what engram export wrote. An import that was cut
    off goes on where it stopped.

    Example: engram import conversations.zip -u ada --dry-run
    """
    with _on_disk(file) as path:
        summary = _import(path, options, source_format, session_prefix, zone, consolidate, dry_run)
    options.show(summary, lambda one: _print(one, dry_run=dry_run))


def _import(
    path: Path,
    options: MemoryOptions,
    source_format: str | None,
    session_prefix: str | None,
    zone: str,
    consolidate: bool | None,
    dry_run: bool,
) -> ImportSummary:
    from engram.domain.values import zone_named  # noqa: PLC0415 - only what is used loads

    where = zone_named(zone)

    async def work() -> ImportSummary:
        async with options.memory_of(options.user) as memory:
            # Once through before anything is stored: what is broken is refused whole, and
            # one knows how much there is.
            checked = await memory.import_file(
                path,
                format=source_format,
                session_prefix=session_prefix,
                zone=where,
                dry_run=True,
            )
            if dry_run:
                return checked
            with _showing(checked.total) as show:
                return await memory.import_file(
                    path,
                    format=source_format,
                    session_prefix=session_prefix,
                    zone=where,
                    consolidate=consolidate,
                    on_progress=show,
                )

    return run(work)


@commands.command()
def export(
    file: Annotated[Path, typer.Argument(help="Where to; - writes to standard output.")],
    user: User,
    options: StoreOptions,
    include_test: Annotated[
        bool, typer.Option("--include-test", help="Test memories too.")
    ] = False,
) -> None:
    """Write everything of a user as JSON lines, which engram import reads again.

    Example: engram export ada.jsonl -u ada
    """

    async def work() -> int:
        async with options.memory_of(user) as memory:
            there = await memory.count(include_test=include_test)
            with _exporting(file, there) as advance:
                if str(file) != "-":
                    return await memory.export_file(
                        file, include_test=include_test, on_progress=advance
                    )
                # A line before the memories, and one behind them.
                lines = -2
                async for line in memory.export_lines(include_test=include_test):
                    output.print_document(line)
                    lines += 1
                    advance(max(lines, 0))
                return lines

    count = run(work)
    output.errors.print(f"{count} memories exported.", style="dim")


@contextmanager
def _exporting(file: Path, there: int) -> Iterator[Callable[[int], None]]:
    """Take how many are written; says nothing where the lines themselves are looked at."""
    if str(file) == "-" and output.console.is_terminal:
        yield lambda _: None
        return
    with output.advancing("Exporting") as advance:
        yield lambda done: advance(min(done, there), there)


@contextmanager
def _on_disk(file: Path) -> Iterator[Path]:
    """The file, or standard input as one: it is read more than once."""
    if str(file) != "-":
        yield file
        return
    with tempfile.TemporaryDirectory(prefix="engram-import-") as folder:
        path = Path(folder) / "stdin"
        with path.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        yield path


@contextmanager
def _showing(total: int) -> Iterator[Callable[[ImportProgress], None]]:
    """Rate and time left for who watches; a line now and then for a log."""
    began, first = time.monotonic(), -1

    def rate(progress: ImportProgress) -> str:
        nonlocal first
        first = progress.position if first < 0 else first
        return f"{(progress.position - first) / max(time.monotonic() - began, 0.001):,.0f}/s"

    if not output.errors.is_terminal:
        said = began

        def say(progress: ImportProgress) -> None:
            nonlocal said
            if time.monotonic() - said >= output.SAY_SO:
                said = time.monotonic()
                output.errors.print(f"{progress.position} of {total}, {rate(progress)}")

        yield say
        return
    columns = (
        *(TextColumn("Importing"), BarColumn(), MofNCompleteColumn()),
        *(TextColumn("{task.fields[rate]}"), TimeRemainingColumn()),
    )
    with Progress(*columns, console=output.errors, transient=True) as bar:
        task = bar.add_task("", total=total, rate="")

        def show(progress: ImportProgress) -> None:
            bar.update(task, completed=progress.position, rate=rate(progress))

        yield show


def _print(summary: ImportSummary, *, dry_run: bool) -> None:
    read, tally = summary.read, summary.tally
    lines: list[str] = []
    if read is not None:
        lines.append(
            f"{summary.format}: {read.turns} turns in {read.conversations} conversations"
            + (f", {read.first_at:%Y-%m-%d} to {read.last_at:%Y-%m-%d}" if read.first_at else "")
        )
        lines += [
            f"  {count} {what}"
            for count, what in (
                (read.split, "were too long for one turn and are split"),
                (read.undated, "have no time of their own and follow the turn before"),
                (read.repaired, "hold characters that no text can hold; those are replaced"),
            )
            if count
        ]
        lines += [
            f"  {count} left out: {reason} ({', '.join(read.places.get(reason, ()))}"
            + (", …)" if count > len(read.places.get(reason, ())) else ")")
            for reason, count in read.skipped.items()
        ]
    else:
        lines.append(f"{summary.format}: {summary.total} memories")
    if summary.left_out:
        lines.append(f"{summary.left_out} conclusions left out: they hold personal data")
    if dry_run:
        lines.append("Nothing was stored.")
    else:
        if summary.resumed_at:
            lines.append(f"Went on at {summary.resumed_at}, where an earlier import stopped.")
        lines.append(
            f"{tally.stored} stored, {tally.known} known already, "
            f"{tally.facts} facts and {tally.negations} negations found."
        )
        if tally.forgotten:
            lines.append(f"{tally.forgotten} left out: they were forgotten, or rest on what was")
        if tally.conflicts:
            places = ", ".join(tally.conflict_places)
            lines.append(
                f"{tally.conflicts} not stored: their ids are taken by other turns ({places})"
            )
    for line in lines:
        output.console.print(line, markup=False)


# --- the command that imports memories of another program

_PORTION = 200


@commands.command()
def migrate(
    file: Annotated[Path, typer.Argument(help="One JSON object a line; - reads standard input.")],
    options: MemoryOptions,
    dry_run: DryRun = False,
) -> None:
    """Import memories of another program; importing them again stores nothing new.

    Each line has content and timestamp, and may have role, speaker, session_id,
    message_id, importance, tags, metadata, conclusion, category, confidence,
    last_accessed_at, expires_at and summary.

    Example: engram migrate memories.jsonl -u ada --dry-run
    """
    items = _read(file)
    if dry_run:
        options.show(
            {"readable": len(items), "dry_run": True},
            lambda found: output.console.print(
                f"{found['readable']} memories can be read; nothing was stored."
            ),
        )
        return

    async def work() -> ImportReport:
        from engram.transfer.memories import ImportReport  # noqa: PLC0415 - only what is used loads

        report = ImportReport()
        async with options.memory_of(options.user) as memory:
            with output.advancing("Importing") as advance:
                for start in range(0, len(items), _PORTION):
                    part = items[start : start + _PORTION]
                    report = report.plus(await memory.import_memories(part))
                    advance(start + len(part), len(items))
        return report

    options.show(run(work), lambda report: output.print_fields("Imported", report))


def _read(file: Path) -> list[ImportedMemory]:
    from pydantic import ValidationError  # noqa: PLC0415 - slow; no help text needs it

    from engram.transfer.memories import ImportedMemory  # noqa: PLC0415 - same

    try:
        # The bytes: the locale, which standard input has its encoding from, says nothing of them.
        given = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
        text = given.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        named = "Standard input" if str(file) == "-" else f"The file {file}"
        raise InvalidInput(f"{named} cannot be read.", allowed="UTF-8 text") from error
    items: list[ImportedMemory] = []
    # Windows' editors begin a file with a signature. Nothing but a line feed ends a line: JSON may
    # hold Unicode's other line ends as they are.
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            items.append(ImportedMemory.model_validate(json.loads(line)))
        except ValidationError as error:
            wrong = "; ".join(
                f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}"
                for one in error.errors(include_input=False, include_url=False)
            )
            raise InvalidInput(f"Line {number} is no memory: {wrong}.") from None
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"Line {number} is no JSON.", allowed="one object a line") from error
    return items
