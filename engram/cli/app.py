"""All commands together."""

from __future__ import annotations

from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from engram import __version__
from engram.cli import (
    admin,
    browse,
    evaluation,
    exits,
    histories,
    lifecycle,
    output,
    passes,
    server,
    transfer,
    turns,
)
from engram.cli.config import commands as config
from engram.cli.doctor import commands as doctor
from engram.cli.running import JSON_ASKED, given_url
from engram.errors import EngramError

# --- the group of all commands: its order in the help, and how typed errors end a command

# Typer's methods take the base class of its own Context, which it does not export.
Context = Any

_ORDER: Final[dict[str, tuple[str, ...]]] = {
    "Start": ("demo", "up", "doctor", "config"),
    "Tell and ask": ("encode", "recall", "context", "profile", "topics", "boxes", "briefing"),
    "Sessions": ("working-memory", "end-session"),
    "Look at memories": ("list", "show", "history", "verify", "inspect"),
    "Say what is right": (
        *("confirm", "dispute", "reviews", "review", "protect", "unprotect", "demote"),
        *("resolve", "forget", "erase"),
    ),
    "Passes": ("consolidate", "decay", "promote", "force-promote", "schedules"),
    "Operate": (
        *("status", "energy", "promotions", "health", "validate", "repair", "usage"),
        *("replay", "save-histories", "ui", "test", "eval", "compact", "audit"),
    ),
    "Bring in and take out": ("migrate", "import", "export"),
    "Serve": ("serve", "keys", "encryption", "codec", "temporal", "mcp", "worker"),
}
"""Commands by what they are for, in the order of the help; others name their panel themselves."""


class EngramGroup(TyperGroup):
    """Sorts commands by purpose, and turns what is raised on purpose into words and exit codes."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for panel, names in PANELS.items():
            for name in names:
                if (command := self.commands.get(name)) is not None:
                    # Commands and groups have it; the type that they share does not say so.
                    command.rich_help_panel = panel  # type: ignore[attr-defined]

    def list_commands(self, ctx: Context) -> list[str]:
        """The names of all commands, in the order of the help."""
        order = [name for names in PANELS.values() for name in names]
        known = [name for name in order if name in self.commands]
        return known + [name for name in self.commands if name not in order]

    def invoke(self, ctx: Context) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except EngramError as error:
            output.print_error(error, as_json=bool(ctx.meta.get(JSON_ASKED)))
            raise typer.Exit(exits.code_of(error)) from error
        except BrokenPipeError as error:
            raise typer.Exit(exits.UNREAD) from error


# --- all commands together

app = typer.Typer(
    name="engram",
    cls=EngramGroup,
    help="Durable memory for LLM applications.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    url: Annotated[
        str | None,
        typer.Option(
            help="Work through this HTTP API, with the key in ENGRAM_API_KEY; else ENGRAM_URL."
        ),
    ] = None,
) -> None:
    given_url.set(url)
    if version:
        typer.echo(f"engram {__version__}")
        raise typer.Exit


for _module in (
    *(server, turns, browse, lifecycle, passes, histories),
    *(admin, evaluation, transfer, config, doctor),
):
    app.add_typer(_module.commands)


def _newcomers(panel: str) -> tuple[str, ...]:
    """The commands that name this panel where they are declared."""
    groups: list[Any] = [group.typer_instance for group in app.registered_groups]
    declared = [command for group in groups for command in group.registered_commands]
    return tuple(command.name for command in declared if command.rich_help_panel == panel)


PANELS: Final = {panel: (*names, *_newcomers(panel)) for panel, names in _ORDER.items()}
"""Every command by what it is for, in the order of the help."""
