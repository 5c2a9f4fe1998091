"""All commands together."""

from __future__ import annotations

from typing import Annotated

import typer

from engram import __version__
from engram.cli import (
    keys,
    knowledge,
    lifecycle,
    looking,
    memories,
    migrate,
    operations,
    passes,
    schedules,
    starting,
    telling,
    transfer,
    trials,
)
from engram.cli.config import commands as config
from engram.cli.doctor import commands as doctor
from engram.cli.group import EngramGroup
from engram.cli.running import given_url

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
    *(starting, telling, looking, knowledge, memories, lifecycle, passes, schedules),
    *(operations, trials, migrate, transfer, keys, config, doctor),
):
    app.add_typer(_module.commands)
