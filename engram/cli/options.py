"""Options and arguments that many commands take, named and described in one place."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

JSON_ASKED: Final = "engram.json"
"""In the context's ``meta``: whether the command was asked for JSON."""

# Names only: reading the types themselves would load all of what a memory is, at every <Tab>.
# A test compares them with the types.
MEMORY_TYPES: Final = ("episodic", "factual", "semantic", "procedural", "negation")
MEMORY_STATES: Final = ("active", "superseded", "archived", "expired")
ROLES: Final = ("user", "assistant", "system", "tool")


def _note_json(context: typer.Context, value: bool) -> bool:
    context.meta[JSON_ASKED] = value
    return value


User = Annotated[
    str, typer.Option("--user", "-u", envvar="ENGRAM_USER", help="Whose memory.", metavar="ID")
]
SomeUser = Annotated[
    str | None,
    typer.Option("--user", "-u", envvar="ENGRAM_USER", help="Whose memory.", metavar="ID"),
]
Session = Annotated[str, typer.Option("--session", "-s", help="The conversation.", metavar="ID")]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document, errors too.", callback=_note_json),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        "-d",
        help="Folder of the embedded mode; else ENGRAM_DATA_DIR.",
        show_default="~/.engram",
        file_okay=True,
        metavar="FOLDER",
    ),
]
Connected = Annotated[
    bool,
    typer.Option(
        "--connected", help="Use the Temporal and Qdrant servers that the ENGRAM_ settings name."
    ),
]
MemoryId = Annotated[
    str, typer.Argument(help="The memory's id, as `engram list` and --json print it.")
]
MemoryTypes = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        "-t",
        help=f"Only this type; may be repeated: {', '.join(MEMORY_TYPES)}.",
        autocompletion=lambda: list(MEMORY_TYPES),
        metavar="TYPE",
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Write nothing; say what would change.")]
TestOnly = Annotated[
    bool, typer.Option("--test-only", help="Test memories only; without it, all others.")
]
OnlyTests = Annotated[
    bool, typer.Option("--test-only", help="Refuse it for what is no test memory.")
]
