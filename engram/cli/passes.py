"""Commands that run passes by hand: consolidation, decay, promotion."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from engram.cli import output
from engram.cli.app import Connected, DataDir, Json, _memory, _moment, _run, app
from engram.cli.lifecycle import DryRun, TestOnly
from engram.contracts.lifecycle import DecayReport, PassReport, Population, PromotionReport
from engram.contracts.maintenance import MaintenanceReport, PassKind
from engram.errors import InvalidQuery

if TYPE_CHECKING:
    from engram.contracts.consolidation import ConsolidationReport

SomeUser = Annotated[
    str | None, typer.Option("--user", "-u", envvar="ENGRAM_USER", help="Whose memory.")
]
Everybody = Annotated[bool, typer.Option("--all", help="All users, whoever has something due.")]
_MOST_SHOWN = 20


@app.command()
def consolidate(
    user: SomeUser = None,
    everybody: Everybody = False,
    dry_run: DryRun = False,
    test_only: TestOnly = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Consolidate a user's memory now, and say what that did; with --all, ask for it.

    Test turns are read only with --test-only, and then nothing else is.

    Example: engram consolidate -u ada, or: engram consolidate --all
    """

    async def work(whose: str) -> ConsolidationReport:
        async with _memory(whose, data_dir, connected) as memory:
            return await memory.consolidate(test_only=test_only, dry_run=dry_run)

    if everybody:
        _over_everybody(PassKind.CONSOLIDATION, dry_run, test_only, data_dir, connected, as_json)
        return
    whose = one_user(user)
    with output.errors.status("Consolidating"):
        report = _run(lambda: work(whose))
    if as_json:
        output.print_json(report)
        return
    tests = " test" if test_only else ""
    if dry_run:
        output.console.print(f"{report.episodes}{tests} turns would be read (dry run).")
    else:
        output.print_fields(f"Consolidated{tests} turns", report)


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
