"""The command that finds what is wrong with an installation."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli import exits, output
from engram.cli.config.commands import examine
from engram.cli.running import Commands, Connected, DataDir, Json, keep_core_quiet

if TYPE_CHECKING:
    from engram.cli.doctor.installation import Check, CheckContext, CheckResult

commands = Commands()

_COLOURS = {"ok": "green", "warning": "yellow", "failed": "bold red"}


@commands.command()
def doctor(
    ask_model: Annotated[
        bool, typer.Option("--ask-model", help="Ask the language model something; costs a little.")
    ] = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Find what is wrong with this installation, and say what to do; exit code 1 if something is.

    Looks at Python, packages, settings, models and the data folder, or with
    --connected at the servers. Nothing is changed, started or sent.

    Example: engram doctor

    Example: engram doctor --connected --ask-model
    """
    import asyncio  # noqa: PLC0415 - slow; no help text needs it

    from engram.cli.doctor.installation import CheckContext  # noqa: PLC0415 - same

    if connected:
        keep_core_quiet()
    effective, settings = examine(data_dir)
    around = CheckContext(settings, effective, connected=connected, ask_model=ask_model)
    with output.errors.status("Looking"):
        results = asyncio.run(examined(around))
    if as_json:
        output.print_json({"ok": not _failures(results), "checks": results})
    else:
        _print(results)
    if _failures(results):
        raise typer.Exit(exits.FAILED)


def checks(*, connected: bool) -> Sequence[Check]:
    """What is looked at, in order."""
    from engram.cli.doctor import installation, local  # noqa: PLC0415 - slow to load

    common: list[Check] = [
        installation.python,
        installation.needed_extra,
        installation.optional_extras,
        installation.temporal_program,
        local.settings,
        local.variables,
        local.embedder,
        local.model,
        local.learning,
        local.model_answers,
    ]
    if connected:
        from engram.cli.doctor import servers  # noqa: PLC0415 - slow to load

        return [
            *common,
            *(servers.temporal, servers.search_attributes, servers.workers, servers.schedules),
            *(servers.encryption, servers.runs),
            *(servers.qdrant, servers.collections, servers.clock, local.audit),
        ]
    from engram.cli.doctor import local  # noqa: PLC0415 - slow to load

    return [
        *common,
        *(local.folder, local.space, local.owner, local.server, local.runs),
        *(local.store, local.ports, local.keys, local.audit),
    ]


async def examined(around: CheckContext) -> list[CheckResult]:
    """What every check found. A check that breaks is a finding too, not the end of the others."""
    return [await _one(check, around) for check in checks(connected=around.connected)]


async def _one(check: Check, around: CheckContext) -> CheckResult:
    from engram.cli.doctor.installation import failed  # noqa: PLC0415 - slow to load

    try:
        found = check(around)
        return await found if inspect.isawaitable(found) else found
    except Exception as error:  # noqa: BLE001 - the other checks still tell what they find
        return failed(
            check.__name__.replace("_", " "),
            f"could not be looked at: {type(error).__name__}: {error}",
            "this is a fault of Engram; please report it",
        )


def _print(results: Sequence[CheckResult]) -> None:
    if not output.console.is_terminal:
        output.print_table(
            ("state", "check", "found", "advice"),
            [(each.state, each.check, each.found, each.advice or "") for each in results],
        )
        return
    from rich.text import Text  # noqa: PLC0415 - slow; no help text needs it

    width = max(len(each.check) for each in results)
    for each in results:
        style = _COLOURS[each.state]
        output.console.print(
            Text.assemble((f"{each.state:<8}", style), f"{each.check:<{width}}  {each.found}")
        )
        if each.advice is not None:
            output.console.print(Text(f"{'':<8}{'':<{width}}  {each.advice}", style="dim"))
    bad, doubtful = _failures(results), sum(each.state == "warning" for each in results)
    said = f"{bad} failed, {doubtful} warnings." if bad or doubtful else "All is well."
    output.console.print(said, style="bold")


def _failures(results: Sequence[CheckResult]) -> int:
    return sum(each.state == "failed" for each in results)
