"""Commands that run passes by hand, and those on the schedules that run them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, get_args

import typer

from engram.cli import output
from engram.cli.running import (
    AnswerOptions,
    Commands,
    DryRun,
    SomeUser,
    StoreOptions,
    TestOnly,
    keep_core_quiet,
    moment,
    over_http,
    run,
    settings_from,
    watched,
)
from engram.errors import InvalidQuery, InvalidSettings, TemporalUnavailable

if TYPE_CHECKING:
    from temporalio.client import Client

    from engram.contracts.consolidation import ConsolidationReport, PlannedChange
    from engram.contracts.lifecycle import Change, MaintenanceReport, PassKind, PassReport
    from engram.domain.plan import Eligibility
    from engram.settings import Settings
    from engram.temporal.gateway import ConsolidationRehearsal
    from engram.temporal.schedules import ScheduleInfo, Schedules

# --- reaching the Temporal server behind a memory, embedded, attached or connected


@asynccontextmanager
async def temporal(options: StoreOptions) -> AsyncIterator[tuple[Client, Settings]]:
    """A client of Temporal, and the settings that go with it.

    Raises:
        InvalidSettings: the memory is reached over HTTP, which does not lead to Temporal.
        TemporalUnavailable: no server can be reached.
    """
    settings = settings_from(options.data_dir)
    if over_http(settings, options.data_dir, options.connected):
        raise InvalidSettings(
            "This command is about everybody's memory and needs Temporal itself, which an HTTP "
            "API does not give.",
            allowed="--connected, or --data-dir on the machine of `engram up`",
            hint="Run it there, without --url and ENGRAM_URL.",
        )
    if options.connected:
        from engram.temporal.connection import connect_temporal  # noqa: PLC0415 - only what is used loads

        keep_core_quiet()
        yield await connect_temporal(settings), settings
        return
    from engram.embedded.open import run  # noqa: PLC0415 - same

    async with run(settings) as running:
        address = running.address or _address_of_owner(running.folder)
        yield await _connected(address, running.folder, settings), settings


async def _connected(address: str, folder: Path, settings: Settings) -> Client:
    from engram.embedded.keys import folder_keys  # noqa: PLC0415 - only what is used loads
    from engram.temporal.connection import connect_client  # noqa: PLC0415 - same

    keys = folder_keys(folder, settings)
    try:
        return await connect_client(address, settings.temporal_namespace, keys)
    except RuntimeError as error:
        raise TemporalUnavailable(
            f"Temporal's development server does not answer at {address}."
        ) from error


def _address_of_owner(folder: Path) -> str:
    """Where the process that owns the folder has its server."""
    from engram.embedded.folder import DataFolder, ServerRecord  # noqa: PLC0415 - only what is used loads

    record = ServerRecord.read(DataFolder(folder).server_record)
    if record is None:
        raise TemporalUnavailable(
            "The process that owns the folder has not said where its Temporal server is.",
            hint="It may be starting or ending; try again.",
        )
    return record.address


# --- commands that run passes by hand: consolidation, decay, promotion

commands = Commands()

Everybody = Annotated[bool, typer.Option("--all", help="All users, whoever has something due.")]
_MOST_SHOWN = 20
_PLANNED: Final = ("action", "reason", "rests on", "words")
_CHANGED: Final = ("memory", "rule", "from", "to")


@commands.command()
def consolidate(
    options: AnswerOptions,
    user: SomeUser = None,
    everybody: Everybody = False,
    dry_run: DryRun = False,
    test_only: TestOnly = False,
) -> None:
    """Consolidate a user's memory now, and say what that did; with --all, ask for it.

    Test turns are read only with --test-only, and then nothing else is. With --all --dry-run,
    each user's turns that wait are read to say what would change; a language model is asked.

    Example: engram consolidate -u ada

    Example: engram consolidate --all --dry-run
    """
    if everybody:
        _over_everybody("consolidation", options, dry_run=dry_run, test_only=test_only)
        return

    def plain(report: ConsolidationReport) -> None:
        tests = " test" if test_only else ""
        title = f"Would consolidate{tests} turns" if dry_run else f"Consolidated{tests} turns"
        output.print_fields(title, report.model_copy(update={"changes": ()}))
        if report.changes:
            rows = [_planned(one) for one in report.changes[:_MOST_SHOWN]]
            output.print_table(_PLANNED, rows, title="Would change")

    options.of(_one_user(user)).answer(
        lambda memory: memory.consolidate(test_only=test_only, dry_run=dry_run),
        plain,
        doing="Consolidating",
        left=lambda real, tests: (tests if test_only else real).waiting,
    )


def _planned(one: PlannedChange) -> tuple[str, ...]:
    return (one.action, one.reason, _rests_on(one.eligibility), one.content)


def _rests_on(found: Eligibility) -> str:
    return f"{found.source}, {found.confidence:.2f} sure, {found.state}"


@commands.command()
def decay(
    options: AnswerOptions,
    user: SomeUser = None,
    everybody: Everybody = False,
    dry_run: DryRun = False,
    test_only: TestOnly = False,
    at: Annotated[
        str | None,
        typer.Option(help="With --dry-run: what will have happened by then, ISO 8601 with zone."),
    ] = None,
) -> None:
    """Run a decay pass now: what is due leaves the answers, or changes its state.

    Example: engram decay -u ada --dry-run --at 2027-01-01T00:00:00Z
    """
    when = moment(at, InvalidQuery)
    if everybody and when is not None:
        raise InvalidQuery("--at looks ahead for one user.", allowed="--at without --all")
    if everybody:
        _over_everybody("decay", options, dry_run=dry_run, test_only=test_only)
        return
    options.of(_one_user(user)).answer(
        lambda memory: memory.decay(dry_run=dry_run, test_only=test_only, at=when),
        lambda report: _print_pass("Decay", report),
        doing="Reviewing what is due",
        left=lambda real, tests: sum(
            kind.due for kind in (tests if test_only else real).types.values()
        ),
    )


@commands.command()
def promote(
    options: AnswerOptions,
    user: SomeUser = None,
    everybody: Everybody = False,
    dry_run: DryRun = False,
    test_only: TestOnly = False,
) -> None:
    """Run a promotion pass now: earned knowledge becomes habits, lively memories rise.

    Example: engram promote -u ada --dry-run
    """
    if everybody:
        _over_everybody("promotion", options, dry_run=dry_run, test_only=test_only)
        return
    options.of(_one_user(user)).answer(
        lambda memory: memory.promote(dry_run=dry_run, test_only=test_only),
        lambda report: _print_pass("Promotion", report),
        doing="Promoting what is ready",
        left=lambda real, tests: (tests if test_only else real).to_consider,
    )


def _one_user(user: str | None) -> str:
    if user is None:
        raise typer.BadParameter("name a user with --user, or take --all")
    return user


def _over_everybody(kind: str, options: AnswerOptions, *, dry_run: bool, test_only: bool) -> None:
    from engram.contracts.lifecycle import PassKind  # noqa: PLC0415 - same
    from engram.contracts.messages import Population  # noqa: PLC0415 - same
    from engram.temporal.gateway import rehearse_consolidation  # noqa: PLC0415 - same
    from engram.temporal.passes import PassRunner  # noqa: PLC0415 - same

    population = Population.TEST if test_only else Population.REAL
    asked = PassKind(kind)

    async def rehearsed(advance: Callable[[int, int], None]) -> ConsolidationRehearsal:
        async with temporal(options) as (client, settings):
            return await rehearse_consolidation(client, settings, population, advance)

    async def work(tell: Callable[[str], None]) -> MaintenanceReport:
        async with temporal(options) as (client, settings):
            runner = PassRunner(client, settings)

            async def look() -> str | None:
                far = await runner.progress(asked, population=population, dry_run=dry_run)
                return None if far is None else f"{far.served} of {far.found}"

            passing = runner.maintain(asked, population=population, dry_run=dry_run)
            return await watched(passing, tell, look)

    doing = f"Passing over all users: {kind}"
    if dry_run and asked is PassKind.CONSOLIDATION:
        with output.advancing(doing) as advance:
            rehearsal = run(lambda: rehearsed(advance))
        options.show(rehearsal, _print_rehearsal)
    else:
        with output.telling(doing) as tell:
            report = run(lambda: work(tell))
        options.show(report, _print_maintenance)


def _print_maintenance(report: MaintenanceReport) -> None:
    shown = report.model_copy(update={"transitions": (), "would_change": ()})
    output.print_fields(_titled(f"{report.kind.value} of all users", report), shown)
    _print_steps(report)
    rows, left = list[tuple[str, ...]](), 0
    for one in report.would_change:
        told = one.changes[:_MOST_SHOWN]
        rows += [(one.scope.tenant, *_changed(change)) for change in told]
        left += sum(count.memories for count in one.transitions) - len(told)
    output.print_table(("user", *_CHANGED), rows, title="Would change", ids=("memory",))
    _say_how_many_more(left)


def _print_rehearsal(report: ConsolidationRehearsal) -> None:
    shown = report.model_copy(update={"would_change": (), "of_users": ()})
    output.print_fields(_titled(f"{report.kind.value} of all users", report), shown)
    rows, left = list[tuple[str, ...]](), 0
    for one in report.of_users:
        if one.report is not None:
            told = one.report.changes[:_MOST_SHOWN]
            rows += [(one.scope.tenant, *_planned(change)) for change in told]
            left += sum(one.report.actions.values()) - len(told)
    empty = "Nothing would change." if report.users else "Nothing waits."
    output.print_table(("user", *_PLANNED), rows, title="Would change", empty=empty)
    _say_how_many_more(left)
    unread = report.users - len(report.of_users)
    if unread > 0:
        output.console.print(f"Of {unread} more users, nothing was read.", style="dim")


def _print_pass(title: str, report: PassReport) -> None:
    shown = report.model_copy(update={"transitions": (), "changes": ()})
    output.print_fields(_titled(title, report), shown)
    _print_steps(report)
    if report.dry_run and report.changes:
        rows = [_changed(change) for change in report.changes[:_MOST_SHOWN]]
        output.print_table(_CHANGED, rows, title="Would change", ids=("memory",))
        _say_how_many_more(report.changed - len(rows))


def _changed(change: Change) -> tuple[str, ...]:
    return (change.memory_id, change.rule, change.source, change.target)


def _say_how_many_more(left: int) -> None:
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


# --- commands on the schedules

schedules = Commands(
    name="schedules",
    help="The Temporal Schedules that run passes over all users.",
    no_args_is_help=True,
)
commands.add_typer(schedules)

_Kinds: TypeAlias = Literal["consolidation", "decay", "promotion"]
KINDS: Final = get_args(_Kinds)
"""The values of PassKind, which loads too much for help and completion; a test compares them."""
PassArgument: TypeAlias = Annotated[_Kinds, typer.Argument(help="Which passes.")]


@schedules.command("list")
def list_schedules(options: AnswerOptions) -> None:
    """How each schedule stands.

    Example: engram schedules list
    """
    found: list[ScheduleInfo] = []

    async def work(them: Schedules) -> None:
        found.extend(await them.list())

    _with_schedules(work, options)
    options.show(found, _print_schedules)


def _print_schedules(found: Sequence[ScheduleInfo]) -> None:
    output.print_table(
        ("schedule", "every", "state", "next", "last"),
        [
            (
                info.kind.value,
                str(info.every) if info.every else "-",
                _state(info),
                output.utc(info.next_at) if info.next_at else "-",
                info.recent[-1] if info.recent else "-",
            )
            for info in found
        ],
    )


@schedules.command()
def pause(
    kind: PassArgument,
    options: StoreOptions,
    note: Annotated[str, typer.Option(help="Why; shown by list.")] = "paused by an operator",
) -> None:
    """Start no passes until it is resumed; a pass that runs goes on.

    Example: engram schedules pause decay --note "before the import"
    """
    _with_schedules(lambda them: them.pause(_kind(kind), note=note), options)
    output.console.print(f"{kind} is paused.")


@schedules.command()
def resume(kind: PassArgument, options: StoreOptions) -> None:
    """Start passes again.

    Example: engram schedules resume decay
    """
    _with_schedules(lambda them: them.resume(_kind(kind)), options)
    output.console.print(f"{kind} is resumed.")


@schedules.command()
def trigger(kind: PassArgument, options: StoreOptions) -> None:
    """Start a pass now, as the schedule would.

    Example: engram schedules trigger promotion
    """
    _with_schedules(lambda them: them.trigger(_kind(kind)), options)
    output.console.print(f"{kind} is triggered; engram schedules list names its workflow.")


@schedules.command()
def backfill(
    kind: PassArgument,
    start: Annotated[str, typer.Argument(help="ISO 8601 with zone.")],
    end: Annotated[str, typer.Argument(help="ISO 8601 with zone.")],
    options: StoreOptions,
) -> None:
    """Start what would have started in a past stretch of time.

    Example: engram schedules backfill decay 2026-01-01T00:00:00Z 2026-01-02T00:00:00Z
    """
    since, until = moment(start, InvalidQuery), moment(end, InvalidQuery)
    if since is None or until is None:
        raise typer.BadParameter("give a start and an end")
    _with_schedules(lambda them: them.backfill(_kind(kind), since, until), options)
    output.console.print(f"{kind} is backfilled.")


@schedules.command()
def delete(kind: PassArgument, options: StoreOptions) -> None:
    """Remove a schedule. A worker that starts makes it again, unless ENGRAM_SCHEDULES is off.

    Example: engram schedules delete consolidation
    """
    gone: list[bool] = []

    async def work(them: Schedules) -> None:
        gone.append(await them.delete(_kind(kind)))

    _with_schedules(work, options)
    output.console.print(f"{kind} is removed." if gone[0] else "There was none.")


def _with_schedules(work: Callable[[Schedules], Awaitable[None]], options: StoreOptions) -> None:
    from engram.temporal.schedules import Schedules  # noqa: PLC0415 - same

    async def main() -> None:
        async with temporal(options) as (client, settings):
            await work(Schedules(client, settings))

    run(main)


def _kind(name: str) -> PassKind:
    from engram.contracts.lifecycle import PassKind  # noqa: PLC0415 - only what is used loads

    return PassKind(name)


def _state(info: ScheduleInfo) -> str:
    if not info.exists:
        return "not there"
    return f"paused: {info.note}" if info.paused else "runs"
