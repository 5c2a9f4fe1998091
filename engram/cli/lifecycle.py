"""Commands on memories' lives: what the user says of a memory, and the briefing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli import output
from engram.cli.options import Connected, DataDir, DryRun, Json, MemoryId, OnlyTests, User
from engram.cli.running import asked

if TYPE_CHECKING:
    from engram.client.operations.lifecycle import Acted
    from engram.client.store import MemoryStore

commands = typer.Typer()


@commands.command("force-promote")
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
    _act(
        lambda memory: memory.force_promote(memory_id, dry_run=dry_run, test_only=test_only),
        (user, data_dir, connected),
        dry_run,
        as_json,
    )


@commands.command()
def confirm(
    memory_id: MemoryId,
    user: User,
    dry_run: DryRun = False,
    test_only: OnlyTests = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Say that a conclusion is right; it counts for more, and comes back if it had left.

    Example: engram confirm 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada
    """
    _act(
        lambda memory: memory.confirm(memory_id, dry_run=dry_run, test_only=test_only),
        (user, data_dir, connected),
        dry_run,
        as_json,
    )


@commands.command()
def dispute(
    memory_id: MemoryId,
    user: User,
    dry_run: DryRun = False,
    test_only: OnlyTests = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Say that a conclusion is wrong; it counts for less, and stays readable.

    Example: engram dispute 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada
    """
    _act(
        lambda memory: memory.dispute(memory_id, dry_run=dry_run, test_only=test_only),
        (user, data_dir, connected),
        dry_run,
        as_json,
    )


@commands.command()
def protect(
    memory_id: MemoryId,
    user: User,
    dry_run: DryRun = False,
    test_only: OnlyTests = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Keep a memory: no rule may take it away any more.

    Example: engram protect 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada
    """
    _act(
        lambda memory: memory.protect(memory_id, dry_run=dry_run, test_only=test_only),
        (user, data_dir, connected),
        dry_run,
        as_json,
    )


@commands.command()
def unprotect(
    memory_id: MemoryId,
    user: User,
    dry_run: DryRun = False,
    test_only: OnlyTests = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Let rules apply to a memory again.

    Example: engram unprotect 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada
    """
    _act(
        lambda memory: memory.unprotect(memory_id, dry_run=dry_run, test_only=test_only),
        (user, data_dir, connected),
        dry_run,
        as_json,
    )


@commands.command()
def demote(
    memory_id: MemoryId,
    user: User,
    dry_run: DryRun = False,
    test_only: OnlyTests = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Put a memory aside: it answers only where archived memories are asked for.

    Example: engram demote 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada
    """
    _act(
        lambda memory: memory.demote(memory_id, dry_run=dry_run, test_only=test_only),
        (user, data_dir, connected),
        dry_run,
        as_json,
    )


@commands.command()
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
    found = asked(lambda memory: memory.briefing(limit=limit), user, data_dir, connected)
    if as_json:
        output.print_json(found)
        return
    output.print_table(
        ("score", "memory"),
        [(f"{one.score:.2f}", output.memory_text(one.memory)) for one in found],
        empty="Nothing is known yet that matters.",
        right=("score",),
        dim=("score",),
    )


def _act(
    act: Callable[[MemoryStore], Awaitable[Acted]],
    where: tuple[str, Path | None, bool],
    dry_run: bool,
    as_json: bool,
) -> None:
    acted = asked(act, *where, doing="Writing")
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
