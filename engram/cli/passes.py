"""Commands that run passes by hand: consolidation, decay, promotion."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli import output
from engram.cli.options import Connected, DataDir, DryRun, Json, SomeUser, TestOnly
from engram.cli.running import asked, moment, run
from engram.errors import InvalidQuery

if TYPE_CHECKING:
    from engram.contracts.lifecycle import PassReport
    from engram.contracts.maintenance import MaintenanceReport

commands = typer.Typer()

Everybody = Annotated[bool, typer.Option("--all", help="All users, whoever has something due.")]
_MOST_SHOWN = 20


@commands.command()
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

    Example: engram consolidate -u ada

    Example: engram consolidate --all --dry-run
    """
    if everybody:
        _over_everybody("consolidation", dry_run, test_only, data_dir, connected, as_json)
        return
    report = asked(
        lambda memory: memory.consolidate(test_only=test_only, dry_run=dry_run),
        _one_user(user),
        data_dir,
        connected,
        doing="Consolidating",
    )
    if as_json:
        output.print_json(report)
        return
    tests = " test" if test_only else ""
    if dry_run:
        output.console.print(f"{report.episodes}{tests} turns would be read (dry run).")
    else:
        output.print_fields(f"Consolidated{tests} turns", report)


@commands.command()
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
    when = moment(at, InvalidQuery)
    if everybody:
        _over_everybody("decay", dry_run, test_only, data_dir, connected, as_json)
        return
    report = asked(
        lambda memory: memory.decay(dry_run=dry_run, test_only=test_only, at=when),
        _one_user(user),
        data_dir,
        connected,
        doing="Reviewing what is due",
    )
    _print_pass("Decay", report, as_json)


@commands.command()
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
    if everybody:
        _over_everybody("promotion", dry_run, test_only, data_dir, connected, as_json)
        return
    report = asked(
        lambda memory: memory.promote(dry_run=dry_run, test_only=test_only),
        _one_user(user),
        data_dir,
        connected,
        doing="Promoting what is ready",
    )
    _print_pass("Promotion", report, as_json)


def _one_user(user: str | None) -> str:
    if user is None:
        raise typer.BadParameter("name a user with --user, or take --all")
    return user


def _over_everybody(
    kind: str,
    dry_run: bool,
    test_only: bool,
    data_dir: Path | None,
    connected: bool,
    as_json: bool,
) -> None:
    from engram.cli.temporal import temporal  # noqa: PLC0415 - only what is used loads
    from engram.client.passes import PassRunner  # noqa: PLC0415 - same
    from engram.contracts.lifecycle import Population  # noqa: PLC0415 - same
    from engram.contracts.maintenance import PassKind  # noqa: PLC0415 - same

    population = Population.TEST if test_only else Population.REAL

    async def work() -> MaintenanceReport:
        async with temporal(data_dir, connected) as (client, settings):
            runner = PassRunner(client, settings)
            return await runner.maintain(PassKind(kind), population=population, dry_run=dry_run)

    with output.errors.status(f"Passing over all users: {kind}"):
        report = run(work)
    _print_maintenance(report, as_json)


def _print_maintenance(report: MaintenanceReport, as_json: bool) -> None:
    if as_json:
        output.print_json(report)
        return
    shown = report.model_copy(update={"transitions": ()})
    output.print_fields(_titled(f"{report.kind.value} of all users", report), shown)
    _print_steps(report)


def _print_pass(title: str, report: PassReport, as_json: bool) -> None:
    if as_json:
        output.print_json(report)
        return
    shown = report.model_copy(update={"transitions": (), "changes": ()})
    output.print_fields(_titled(title, report), shown)
    _print_steps(report)
    if report.dry_run and report.changes:
        output.print_table(
            ("memory", "rule", "from", "to"),
            [
                (change.memory_id, change.rule, change.source, change.target)
                for change in report.changes[:_MOST_SHOWN]
            ],
            title="Would change",
        )
        left = report.changed - min(len(report.changes), _MOST_SHOWN)
        if left > 0:
            output.console.print(f"and {left} more; --json quotes the first 200", style="dim")


def _print_steps(report: PassReport | MaintenanceReport) -> None:
    if not report.transitions:
        output.console.print("No state changed.", style="dim")
        return
    output.print_table(
        ("rule", "from", "to", "memories"),
        [
            (count.rule, count.source, count.target, str(count.memories))
            for count in report.transitions
        ],
        right=("memories",),
    )


def _titled(title: str, report: PassReport | MaintenanceReport) -> str:
    tests = " of test memories" if report.population == "test" else ""
    return f"{title}{tests}{' (dry run)' if report.dry_run else ''}"
