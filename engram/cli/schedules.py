"""Commands on the schedules, and replaying what they ran."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, get_args

import typer

from engram.cli import exits, output
from engram.cli.options import Connected, DataDir, Json
from engram.cli.running import moment, run
from engram.errors import InvalidQuery
from engram.extras import needs_extra

if TYPE_CHECKING:
    from engram.client.schedules import ScheduleInfo, Schedules
    from engram.contracts.maintenance import PassKind
    from workflows.replaying import Replayed

commands = typer.Typer()
schedules = typer.Typer(
    name="schedules",
    help="The Temporal Schedules that run passes over all users.",
    no_args_is_help=True,
)
commands.add_typer(schedules)

_Kinds: TypeAlias = Literal["consolidation", "decay", "promotion"]
KINDS: Final = get_args(_Kinds)
"""The values of PassKind, which loads too much for help and completion; a test compares them."""
Kind: TypeAlias = Annotated[_Kinds, typer.Argument(help="Which passes.")]


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
    output.print_table(
        ("schedule", "every", "state", "next", "last"),
        [
            (
                info.kind.value,
                str(info.every) if info.every else "-",
                _state(info),
                f"{info.next_at:%Y-%m-%d %H:%M}" if info.next_at else "-",
                info.recent[-1] if info.recent else "-",
            )
            for info in found
        ],
    )


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
    _with_schedules(lambda them: them.pause(_kind(kind), note=note), data_dir, connected)
    output.console.print(f"{kind} is paused.")


@schedules.command()
def resume(kind: Kind, data_dir: DataDir = None, connected: Connected = False) -> None:
    """Start passes again.

    Example: engram schedules resume decay
    """
    _with_schedules(lambda them: them.resume(_kind(kind)), data_dir, connected)
    output.console.print(f"{kind} is resumed.")


@schedules.command()
def trigger(kind: Kind, data_dir: DataDir = None, connected: Connected = False) -> None:
    """Start a pass now, as the schedule would.

    Example: engram schedules trigger promotion
    """
    _with_schedules(lambda them: them.trigger(_kind(kind)), data_dir, connected)
    output.console.print(f"{kind} is triggered; engram schedules list names its workflow.")


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
    since, until = moment(start, InvalidQuery), moment(end, InvalidQuery)
    if since is None or until is None:
        raise typer.BadParameter("give a start and an end")
    _with_schedules(lambda them: them.backfill(_kind(kind), since, until), data_dir, connected)
    output.console.print(f"{kind} is backfilled.")


@schedules.command()
def delete(kind: Kind, data_dir: DataDir = None, connected: Connected = False) -> None:
    """Remove a schedule. A worker that starts makes it again, unless ENGRAM_SCHEDULES is off.

    Example: engram schedules delete consolidation
    """
    gone: list[bool] = []

    async def work(them: Schedules) -> None:
        gone.append(await them.delete(_kind(kind)))

    _with_schedules(work, data_dir, connected)
    output.console.print(f"{kind} is removed." if gone[0] else "There was none.")


@commands.command()
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
        replayed = run(work)
    if as_json:
        output.print_json(replayed)
    else:
        output.print_fields("Fits" if replayed.fits else "Does not fit", replayed)
    if not replayed.fits:
        raise typer.Exit(exits.FAILED)


def _with_schedules(
    work: Callable[[Schedules], Awaitable[None]], data_dir: Path | None, connected: bool
) -> None:
    from engram.cli.temporal import temporal  # noqa: PLC0415 - only what is used loads
    from engram.client.schedules import Schedules  # noqa: PLC0415 - same

    async def main() -> None:
        async with temporal(data_dir, connected) as (client, settings):
            await work(Schedules(client, settings))

    run(main)


def _kind(name: str) -> PassKind:
    from engram.contracts.maintenance import PassKind  # noqa: PLC0415 - only what is used loads

    return PassKind(name)


def _state(info: ScheduleInfo) -> str:
    if not info.exists:
        return "not there"
    return f"paused: {info.note}" if info.paused else "runs"
