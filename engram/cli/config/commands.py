"""The command that shows settings."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engram.cli import exits, output
from engram.cli.running import OPTION_VARIABLES, Commands, DataDir, Json

if TYPE_CHECKING:
    from engram.cli.config.effective import Effective, Setting
    from engram.settings import Settings

commands = Commands()


def _names(incomplete: str) -> list[str]:
    from engram.cli.config.reference import settings_of  # noqa: PLC0415 - only what is used loads

    return [name for name, _ in settings_of() if name.startswith(incomplete)]


@commands.command()
def config(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A setting, a group of them, or an ENGRAM_ variable; all without one.",
            autocompletion=_names,
        ),
    ] = None,
    changed: Annotated[
        bool, typer.Option("--changed", help="Only what is not left at its default.")
    ] = False,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Show what is set, and where each value comes from; exit code 1 if one cannot be used.

    Secrets are never shown. Variables that set nothing are pointed out.

    Example: engram config

    Example: engram config buffer_turns

    Example: engram config --changed --json
    """
    found, _ = examine(data_dir)
    shown = [each for each in found.settings if not changed or each.origin != "default"]
    if name is not None:
        shown = _named(name, found, shown)
    if as_json:
        output.print_json({"settings": shown, "problems": found.problems, "unknown": found.unknown})
    elif name is not None and len(shown) == 1:
        _print_one(shown[0])
    else:
        _print_all(shown)
    _warn(found)
    if found.problems:
        raise typer.Exit(exits.FAILED)


def examine(data_dir: Path | None) -> tuple[Effective, Settings]:
    """The settings of this command line and its environment."""
    from engram.cli.config.effective import effective  # noqa: PLC0415 - only what is used loads

    return effective(
        os.environ,
        options={} if data_dir is None else {"data_dir": data_dir},
        other_variables=OPTION_VARIABLES,
    )


def _named(name: str, found: Effective, shown: list[Setting]) -> list[Setting]:
    from engram.cli.config.effective import nearest  # noqa: PLC0415 - only what is used loads
    from engram.settings import NESTING, VARIABLE_PREFIX  # noqa: PLC0415 - same

    wanted = (
        name.upper().removeprefix(VARIABLE_PREFIX).replace(NESTING, ".").lower().replace("-", "_")
    )
    names = [each.name for each in found.settings]
    if not any(each == wanted or each.startswith(f"{wanted}.") for each in names):
        meant = nearest(wanted, names)
        raise typer.BadParameter(
            f"No setting is called {name!r}."
            + (f" Did you mean {meant!r}?" if meant else " `engram config` lists them all."),
            param_hint="NAME",
        )
    return [each for each in shown if each.name == wanted or each.name.startswith(f"{wanted}.")]


def _print_all(shown: list[Setting]) -> None:
    rows = [(each.name, _value(each.value), each.origin.value) for each in shown]
    output.print_table(
        ("setting", "value", "from"), rows, empty="Everything is at its default.", dim=("from",)
    )


def _print_one(setting: Setting) -> None:
    rows = [
        ("setting", setting.name),
        ("meaning", setting.meaning),
        ("value", _value(setting.value)),
        ("from", setting.origin.value),
        ("default", _value(setting.default)),
        ("allowed", setting.allowed),
        ("variable", setting.variable),
    ]
    for label, text in rows:
        output.console.print(f"{label:<9}{text}", markup=False)


def _warn(found: Effective) -> None:
    for variable, said in found.problems.items():
        output.warn(f"{variable}: {said}; it is not used")
    for unknown in found.unknown:
        meant = f"; did you mean {unknown.nearest}?" if unknown.nearest else ""
        output.warn(f"{unknown.variable} is no setting{meant}")


def _value(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    return output.plain(value) or "-"
