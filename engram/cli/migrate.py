"""The command that imports memories of another program."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress

from engram.cli import output
from engram.cli.options import Connected, DataDir, DryRun, Json, User
from engram.cli.running import memory_of, run
from engram.errors import InvalidInput

if TYPE_CHECKING:
    from engram.writing.imports import ImportedMemory, ImportReport

_PORTION = 200


commands = typer.Typer()


@commands.command()
def migrate(
    file: Annotated[Path, typer.Argument(help="One JSON object a line; - reads standard input.")],
    user: User,
    dry_run: DryRun = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Import memories of another program; importing them again stores nothing new.

    Each line has content and timestamp, and may have role, speaker, session_id,
    message_id, importance, tags, metadata, conclusion, category, confidence and
    last_accessed_at.

    Example: engram migrate memories.jsonl -u ada --dry-run
    """
    items = _read(file)
    if dry_run:
        output.console.print(f"{len(items)} memories can be read; nothing was stored.")
        return

    async def work() -> ImportReport:
        from engram.writing.imports import ImportReport  # noqa: PLC0415 - only what is used loads

        report = ImportReport()
        async with memory_of(user, data_dir, connected) as memory:
            with Progress(console=output.errors, transient=True) as progress:
                task = progress.add_task("Importing", total=len(items))
                for start in range(0, len(items), _PORTION):
                    part = items[start : start + _PORTION]
                    report = report.plus(await memory.import_memories(part))
                    progress.advance(task, len(part))
        return report

    report = run(work)
    if as_json:
        output.print_json(report)
    else:
        output.print_fields("Imported", report)


def _read(file: Path) -> list[ImportedMemory]:
    from pydantic import ValidationError  # noqa: PLC0415 - slow; no help text needs it

    from engram.writing.imports import ImportedMemory  # noqa: PLC0415 - same

    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The file {file} cannot be read.", allowed="UTF-8 text") from error
    items: list[ImportedMemory] = []
    for number, line in enumerate(text.splitlines(), start=1):
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
        except ValueError as error:
            raise InvalidInput(f"Line {number} is no JSON.", allowed="one object a line") from error
    return items
