"""The group of all commands: its order in the help, and how typed errors end a command."""

from __future__ import annotations

from typing import Any, Final

import typer
from typer.core import TyperGroup

from engram.cli import exits, output
from engram.cli.options import JSON_ASKED
from engram.errors import EngramError

# Typer's methods take the base class of its own Context, which it does not export.
Context = Any

PANELS: Final[dict[str, tuple[str, ...]]] = {
    "Start": ("demo", "up", "doctor", "config"),
    "Tell and ask": ("encode", "recall", "context", "profile", "topics", "boxes", "briefing"),
    "Sessions": ("working-memory", "end-session"),
    "Look at memories": ("list", "show", "history", "verify", "inspect"),
    "Say what is right": (
        *("confirm", "dispute", "protect", "unprotect", "demote", "resolve", "forget", "erase"),
    ),
    "Passes": ("consolidate", "decay", "promote", "force-promote", "schedules"),
    "Operate": (
        *("status", "energy", "promotions", "health", "validate", "repair", "usage"),
        *("replay", "test", "compact"),
    ),
    "Bring in and take out": ("migrate", "import", "export"),
    "Serve": ("serve", "keys", "mcp", "worker"),
}
"""Every command by what it is for, in the order of the help."""


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
