"""Commands on the schedules, and replaying what they ran."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from engram.cli import output
from engram.cli.app import Connected, DataDir, Json, _moment, _run, app
from engram.contracts.maintenance import PassKind
from engram.errors import InvalidQuery
from engram.extras import needs_extra

if TYPE_CHECKING:
    from engram.client.schedules import ScheduleInfo, Schedules
    from workflows.replaying import Replayed

schedules = typer.Typer(
    name="schedules",
    help="The Temporal Schedules that run passes over all users.",
    no_args_is_help=True,
)
app.add_typer(schedules)

Kind = Annotated[PassKind, typer.Argument(help="consolidation, decay or promotion.")]


@schedules.command("list")
def list_schedules(
    data_dir: DataDir = None, connected: Connected = False, as_json: Json = False
) -> None:
    """How each schedule stands.

    Example: engram schedules list
    """
    found: list[ScheduleInfo] = []

    async def work(them: Schedules) -> None:
        found.extend(await them.list())

    _with_schedules(work, data_dir, connected)
    if as_json:
        output.print_json(found)
        return
    table = Table(box=None, pad_edge=False)
    for name in ("schedule", "every", "state", "next", "last"):
        table.add_column(name)
    for info in found:
        next_at = f"{info.next_at:%Y-%m-%d %H:%M}" if info.next_at else "-"
        every = str(info.every) if info.every else "-"
        last = info.recent[-1] if info.recent else "-"
        table.add_row(info.kind.value, every, _state(info), next_at, last)
    output.console.print(table)


@schedules.command()
def pause(
    kind: Kind,
    note: Annotated[str, typer.Option(help="Why; shown by list.")] = "paused by an operator",
    data_dir: DataDir = None,
    connected: Connected = False,
) -> None:
    """Start no passes until it is resumed; a pass that runs goes on.

    Example: engram schedules pause decay --note "before the import"
    """
    _with_schedules(lambda them: them.pause(kind, note=note), data_dir, connected)
    output.console.print(f"{kind.value} is paused.")


@schedules.command()
def resume(kind: Kind, data_dir: DataDir = None, connected: Connected = False) -> None:
    """Start passes again."""
    _with_schedules(lambda them: them.resume(kind), data_dir, connected)
    output.console.print(f"{kind.value} is resumed.")


@schedules.command()
def trigger(kind: Kind, data_dir: DataDir = None, connected: Connected = False) -> None:
    """Start a pass now, as the schedule would."""
    _with_schedules(lambda them: them.trigger(kind), data_dir, connected)
    output.console.print(f"{kind.value} is triggered; engram schedules list names its workflow.")


@schedules.command()
def backfill(
    kind: Kind,
    start: Annotated[str, typer.Argument(help="ISO 8601 with zone.")],
    end: Annotated[str, typer.Argument(help="ISO 8601 with zone.")],
    data_dir: DataDir = None,
    connected: Connected = False,
) -> None:
    """Start what would have started in a past stretch of time.

    Example: engram schedules backfill decay 2026-01-01T00:00:00Z 2026-01-02T00:00:00Z
    """
    since, until = _moment(start, InvalidQuery), _moment(end, InvalidQuery)
    if since is None or until is None:
        raise typer.BadParameter("give a start and an end")
    _with_schedules(lambda them: them.backfill(kind, since, until), data_dir, connected)
    output.console.print(f"{kind.value} is backfilled.")


@schedules.command()
def delete(kind: Kind, data_dir: DataDir = None, connected: Connected = False) -> None:
    """Remove a schedule. A worker that starts makes it again, unless ENGRAM_SCHEDULES is off."""
    gone: list[bool] = []

    async def work(them: Schedules) -> None:
        gone.append(await them.delete(kind))

    _with_schedules(work, data_dir, connected)
    output.console.print(f"{kind.value} is removed." if gone[0] else "There was none.")


@app.command()
def replay(
    workflow_id: Annotated[str, typer.Argument(help="As the Temporal UI shows it.")],
    run_id: Annotated[str | None, typer.Option(help="One of its runs; else the latest.")] = None,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Replay a workflow's history against the code as it is now; exit code 1 if it does not fit.

    Example: engram replay session/default/ada/s1
    """
    from engram.cli.temporal import temporal  # noqa: PLC0415 - only what is used loads

    with needs_extra("worker"):
        from workflows import replaying  # noqa: PLC0415 - same

    async def work() -> Replayed:
        async with temporal(data_dir, connected) as (client, _):
            return await replaying.replay(client, workflow_id, run_id)

    with output.errors.status("Replaying"):
        replayed = _run(work)
    if as_json:
        output.print_json(replayed)
    else:
        output.print_fields("Fits" if replayed.fits else "Does not fit", replayed)
    if not replayed.fits:
        raise typer.Exit(1)


def _with_schedules(
    work: Callable[[Schedules], Awaitable[None]], data_dir: Path | None, connected: bool
) -> None:
    from engram.cli.temporal import temporal  # noqa: PLC0415 - only what is used loads
    from engram.client.schedules import Schedules  # noqa: PLC0415 - same

    async def main() -> None:
        async with temporal(data_dir, connected) as (client, settings):
            await work(Schedules(client, settings))

    _run(main)


def _state(info: ScheduleInfo) -> str:
    if not info.exists:
        return "not there"
    return f"paused: {info.note}" if info.paused else "runs"
