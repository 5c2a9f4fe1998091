"""Commands on memories' lives: passes by hand, what the user says of a memory, the briefing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from engram.cli import output
from engram.cli.app import Connected, DataDir, Json, User, _memory, _moment, _run, app
from engram.contracts.lifecycle import DecayReport, PassReport, Population, PromotionReport
from engram.contracts.maintenance import MaintenanceReport, PassKind
from engram.errors import InvalidQuery

if TYPE_CHECKING:
    from engram.client.operations.lifecycle import Acted

SomeUser = Annotated[
    str | None, typer.Option("--user", "-u", envvar="ENGRAM_USER", help="Whose memory.")
]
Everybody = Annotated[bool, typer.Option("--all", help="All users, whoever has something due.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Write nothing; say what would change.")]
TestOnly = Annotated[
    bool, typer.Option("--test-only", help="Test memories only; without it, all others.")
]
MemoryId = Annotated[str, typer.Argument(help="The memory's id.")]
_MOST_SHOWN = 20


@app.command()
def decay(
    user: SomeUser = None,
    everybody: Everybody = False,
    dry_run: DryRun = False,
    test_only: TestOnly = False,
    at: Annotated[
        str | None,
        typer.Option(help="With --dry-run: what will have happened by then, ISO 8601 with zone."),
    ] = None,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Run a decay pass now: what is due leaves the answers, or changes its state.

    Example: engram decay -u ada --dry-run --at 2027-01-01T00:00:00Z
    """
    moment = _moment(at, InvalidQuery)

    async def work(whose: str) -> DecayReport:
        async with _memory(whose, data_dir, connected) as memory:
            return await memory.decay(dry_run=dry_run, test_only=test_only, at=moment)

    if everybody:
        _over_everybody(PassKind.DECAY, dry_run, test_only, data_dir, connected, as_json)
    else:
        whose = one_user(user)
        with output.errors.status("Reviewing what is due"):
            report = _run(lambda: work(whose))
        print_pass("Decay", report, as_json)


@app.command()
def promote(
    user: SomeUser = None,
    everybody: Everybody = False,
    dry_run: DryRun = False,
    test_only: TestOnly = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Run a promotion pass now: earned knowledge becomes habits, lively memories rise.

    Example: engram promote -u ada --dry-run
    """

    async def work(whose: str) -> PromotionReport:
        async with _memory(whose, data_dir, connected) as memory:
            return await memory.promote(dry_run=dry_run, test_only=test_only)

    if everybody:
        _over_everybody(PassKind.PROMOTION, dry_run, test_only, data_dir, connected, as_json)
    else:
        whose = one_user(user)
        with output.errors.status("Promoting what is ready"):
            report = _run(lambda: work(whose))
        print_pass("Promotion", report, as_json)


@app.command("force-promote")
def force_promote(
    memory_id: MemoryId,
    user: User,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Promote one memory by hand: knowledge to a habit, anything else one tier up.

    Example: engram force-promote 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada
    """
    _act("force_promote", memory_id, user, data_dir, connected, as_json)


@app.command()
def confirm(
    memory_id: MemoryId,
    user: User,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Say that a conclusion is right; it counts for more, and comes back if it had left."""
    _act("confirm", memory_id, user, data_dir, connected, as_json)


@app.command()
def dispute(
    memory_id: MemoryId,
    user: User,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Say that a conclusion is wrong; it counts for less, and stays readable."""
    _act("dispute", memory_id, user, data_dir, connected, as_json)


@app.command()
def protect(
    memory_id: MemoryId,
    user: User,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Keep a memory: no rule may take it away any more."""
    _act("protect", memory_id, user, data_dir, connected, as_json)


@app.command()
def unprotect(
    memory_id: MemoryId,
    user: User,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Let rules apply to a memory again."""
    _act("unprotect", memory_id, user, data_dir, connected, as_json)


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


def one_user(user: str | None) -> str:
    """The user that was named."""
    if user is None:
        raise typer.BadParameter("name a user with --user, or take --all")
    return user


def over_everybody(
    kind: PassKind, dry_run: bool, test_only: bool, data_dir: Path | None, connected: bool
) -> MaintenanceReport:
    """Run a pass over all users, and wait for it."""
    from engram.cli.temporal import temporal  # noqa: PLC0415 - only what is used loads
    from engram.client.passes import PassRunner  # noqa: PLC0415 - same

    population = Population.TEST if test_only else Population.REAL

    async def work() -> MaintenanceReport:
        async with temporal(data_dir, connected) as (client, settings):
            runner = PassRunner(client, settings)
            return await runner.maintain(kind, population=population, dry_run=dry_run)

    with output.errors.status(f"Passing over all users: {kind.value}"):
        return _run(work)


def print_maintenance(report: MaintenanceReport, as_json: bool) -> None:
    """A pass over all users."""
    if as_json:
        output.print_json(report)
        return
    shown = report.model_copy(update={"transitions": ()})
    output.print_fields(_titled(f"{report.kind.value} of all users", report), shown)
    _print_steps(report)


def print_pass(title: str, report: PassReport, as_json: bool) -> None:
    """A pass over one user's memories."""
    if as_json:
        output.print_json(report)
        return
    shown = report.model_copy(update={"transitions": (), "changes": ()})
    output.print_fields(_titled(title, report), shown)
    _print_steps(report)
    if report.dry_run and report.changes:
        table = Table(title="Would change", title_justify="left", box=None, pad_edge=False)
        for name in ("memory", "rule", "from", "to"):
            table.add_column(name)
        for change in report.changes[:_MOST_SHOWN]:
            table.add_row(change.memory_id, change.rule, change.source, change.target)
        output.console.print(table)
        left = report.changed - min(len(report.changes), _MOST_SHOWN)
        if left > 0:
            output.console.print(f"and {left} more; --json quotes the first 200", style="dim")


def _over_everybody(
    kind: PassKind,
    dry_run: bool,
    test_only: bool,
    data_dir: Path | None,
    connected: bool,
    as_json: bool,
) -> None:
    print_maintenance(over_everybody(kind, dry_run, test_only, data_dir, connected), as_json)


def _act(
    name: str, memory_id: str, user: str, data_dir: Path | None, connected: bool, as_json: bool
) -> None:
    async def work() -> Acted:
        async with _memory(user, data_dir, connected) as memory:
            acted: Acted = await getattr(memory, name)(memory_id)
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


def _print_steps(report: PassReport | MaintenanceReport) -> None:
    if not report.transitions:
        output.console.print("No state changed.", style="dim")
        return
    table = Table(box=None, pad_edge=False)
    for name in ("rule", "from", "to"):
        table.add_column(name)
    table.add_column("memories", justify="right")
    for count in report.transitions:
        table.add_row(count.rule, count.source, count.target, Text(str(count.memories)))
    output.console.print(table)


def _titled(title: str, report: PassReport | MaintenanceReport) -> str:
    tests = " of test memories" if report.population is Population.TEST else ""
    return f"{title}{tests}{' (dry run)' if report.dry_run else ''}"
