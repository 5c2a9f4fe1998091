"""Commands on memories' lives: what the user says of a memory, and the briefing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from engram.cli import output
from engram.cli.app import Connected, DataDir, Json, User, _memory, _run, app

if TYPE_CHECKING:
    from engram.client.operations.lifecycle import Acted

DryRun = Annotated[bool, typer.Option("--dry-run", help="Write nothing; say what would change.")]
TestOnly = Annotated[
    bool, typer.Option("--test-only", help="Test memories only; without it, all others.")
]
OnlyTests = Annotated[
    bool, typer.Option("--test-only", help="Refuse it for what is no test memory.")
]
MemoryId = Annotated[str, typer.Argument(help="The memory's id.")]


@app.command("force-promote")
def force_promote(
    memory_id: MemoryId,
    user: User,
    dry_run: DryRun = False,
    test_only: OnlyTests = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Promote one memory by hand: knowledge to a habit, anything else one tier up.

    Example: engram force-promote 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada
    """
    tried = (dry_run, test_only)
    _act("force_promote", memory_id, user, tried, data_dir, connected, as_json)


@app.command()
def confirm(
    memory_id: MemoryId,
    user: User,
    dry_run: DryRun = False,
    test_only: OnlyTests = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Say that a conclusion is right; it counts for more, and comes back if it had left."""
    tried = (dry_run, test_only)
    _act("confirm", memory_id, user, tried, data_dir, connected, as_json)


@app.command()
def dispute(
    memory_id: MemoryId,
    user: User,
    dry_run: DryRun = False,
    test_only: OnlyTests = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Say that a conclusion is wrong; it counts for less, and stays readable."""
    tried = (dry_run, test_only)
    _act("dispute", memory_id, user, tried, data_dir, connected, as_json)


@app.command()
def protect(
    memory_id: MemoryId,
    user: User,
    dry_run: DryRun = False,
    test_only: OnlyTests = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Keep a memory: no rule may take it away any more."""
    tried = (dry_run, test_only)
    _act("protect", memory_id, user, tried, data_dir, connected, as_json)


@app.command()
def unprotect(
    memory_id: MemoryId,
    user: User,
    dry_run: DryRun = False,
    test_only: OnlyTests = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Let rules apply to a memory again."""
    tried = (dry_run, test_only)
    _act("unprotect", memory_id, user, tried, data_dir, connected, as_json)


@app.command()
def briefing(
    user: User,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.")] = 10,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """What matters most about a user, for the start of a conversation.

    Example: engram briefing -u ada -n 5
    """

    async def work() -> Any:
        async with _memory(user, data_dir, connected) as memory:
            return await memory.briefing(limit=limit)

    found = _run(work)
    if as_json:
        output.print_json(found)
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("score", justify="right", style="dim")
    table.add_column("memory", overflow="fold")
    for one in found:
        table.add_row(f"{one.score:.2f}", output.memory_text(one.memory))
    output.console.print(table)


def _act(
    name: str,
    memory_id: str,
    user: str,
    tried: tuple[bool, bool],
    data_dir: Path | None,
    connected: bool,
    as_json: bool,
) -> None:
    dry_run, test_only = tried

    async def work() -> Acted:
        async with _memory(user, data_dir, connected) as memory:
            act = getattr(memory, name)
            acted: Acted = await act(memory_id, dry_run=dry_run, test_only=test_only)
            return acted

    acted = _run(work)
    if as_json:
        output.print_json(acted)
        return
    output.print_memories([acted.memory])
    for change in acted.changes:
        output.console.print(f"{change.rule}: {change.source} -> {change.target}")
    if acted.habit_id is not None:
        output.console.print(f"habit: {acted.habit_id}")
    elif not acted.changes:
        output.console.print("No state changed.", style="dim")
    if dry_run:
        output.console.print("This was a dry run: nothing was written.", style="dim")
