"""All commands together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from engram import __version__
from engram.cli import exits
from engram.cli.running import JSON_ASKED, Commands, given_url, name_of

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
        for panel, names in _ORDER.items():
            for name in names:
                if (command := self.commands.get(name)) is not None:
                    # Commands and groups have it; the type that they share does not say so.
                    command.rich_help_panel = panel  # type: ignore[attr-defined]

    def list_commands(self, ctx: Context) -> list[str]:
        """The names of all commands, in the order of the help."""
        order = [name for names in panels().values() for name in names]
        known = [name for name in order if name in self.commands]
        return known + [name for name in self.commands if name not in order]

    def invoke(self, ctx: Context) -> Any:
        """Run the command that was asked for."""
        with exits.ending(lambda: bool(ctx.meta.get(JSON_ASKED))):
            return super().invoke(ctx)


# --- all commands together, or as many as are needed

_HOMES: Final[dict[str, tuple[str, ...]]] = {
    "server": (
        *("demo", "up", "ui", "codec", "temporal", "worker", "mcp", "serve"),
        *("keys", "encryption"),
    ),
    "turns": ("encode", "wait", "recall", "end-session"),
    "browse": (
        *("list", "count", "show", "history", "context", "working-memory", "resolve", "usage"),
        *("profile", "topics", "boxes"),
    ),
    "lifecycle": (
        *("verify", "forget", "erase", "compact", "force-promote", "confirm", "dispute"),
        *("protect", "unprotect", "demote", "reviews", "review", "briefing"),
    ),
    "passes": ("consolidate", "decay", "promote", "schedules"),
    "histories": ("replay", "save-histories"),
    "admin": (
        *("audit", "status", "energy", "promotions", "health", "validate", "inspect", "repair"),
        "test",
    ),
    "evaluation": ("eval",),
    "transfer": ("import", "export", "migrate"),
    "config.commands": ("config",),
    "doctor.commands": ("doctor",),
}
"""The commands of each module below :mod:`engram.cli`: one that is called loads its own only."""


def _commands(module: str) -> Commands:
    found: Commands = import_module(f"engram.cli.{module}").commands
    return found


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


def _together(groups: Iterable[typer.Typer]) -> typer.Typer:
    app = typer.Typer(
        name="engram",
        cls=EngramGroup,
        help="Durable memory for LLM applications.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_root)
    for group in groups:
        app.add_typer(group)
    return app


@cache
def whole() -> typer.Typer:
    """Every command, as each is called."""
    return _together(_commands(module).ready() for module in _HOMES)


def for_words(words: Sequence[str]) -> typer.Typer:
    """What a command line needs: the module of the command that it names, or all of them.

    Args:
        words: What follows the program's name.
    """
    if words and set(words) <= {"-h", "--help"}:
        return _together(_commands(module).outline() for module in _HOMES)
    called = _called(words)
    for module, names in _HOMES.items():
        if called in names:
            return _together([_commands(module).ready()])
    return whole()


def _called(words: Sequence[str]) -> str | None:
    """The command's name, where nothing but ``--url`` stands before it."""
    rest = list(words)
    while rest and rest[0].startswith("--url"):
        rest = rest[1:] if rest[0].startswith("--url=") else rest[2:]
    return rest[0] if rest else None


@cache
def panels() -> dict[str, tuple[str, ...]]:
    """Every command by what it is for, in the order of the help."""
    infos = [each for module in _HOMES for each in _commands(module).registered_commands]
    return {
        panel: (*names, *(name_of(each) for each in infos if each.rich_help_panel == panel))
        for panel, names in _ORDER.items()
    }
