"""All commands together."""

from __future__ import annotations

from typing import Annotated

import typer

from engram import __version__
from engram.cli import knowledge, looking, memories, schedules, starting, telling
from engram.cli.config import commands as config
from engram.cli.doctor import commands as doctor
from engram.cli.group import EngramGroup
from engram.cli.options import Connected, DataDir, Json, User
from engram.cli.running import (
    given_url,
    memory_of,
    moment,
    over_http,
    run,
    settings_from,
)

# Command modules take these from here.
__all__ = ["Connected", "DataDir", "Json", "User", "app", "over_http"]

app = typer.Typer(
    name="engram",
    cls=EngramGroup,
    help="Durable memory for LLM applications.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_run, _settings, _memory, _moment = run, settings_from, memory_of, moment


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


for _module in (starting, telling, looking, knowledge, memories, schedules, config, doctor):
    app.add_typer(_module.commands)


from engram.cli import keys as keys  # noqa: E402, PLC0414 - adds its commands to the app
from engram.cli import lifecycle as lifecycle  # noqa: E402, PLC0414 - same
from engram.cli import migrate as migrate  # noqa: E402, PLC0414 - same
from engram.cli import operations as operations  # noqa: E402, PLC0414 - same
from engram.cli import passes as passes  # noqa: E402, PLC0414 - same
from engram.cli import transfer as transfer  # noqa: E402, PLC0414 - same
from engram.cli import trials as trials  # noqa: E402, PLC0414 - same
