"""Commands that start something and stay: the demo, everything at once, a worker, MCP."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from engram.cli.options import Connected, DataDir, User
from engram.cli.running import memory_of, run, settings_from

commands = typer.Typer()


@commands.command()
def demo(
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave everything up for a look at the Temporal UI.")
    ] = False,
    conversation: Annotated[
        Path | None, typer.Option("--conversation", help="Play this file instead.")
    ] = None,
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", "-d", help="Keep the demo's data here.")
    ] = None,
) -> None:
    """Watch Engram remember a real conversation: nothing to set up, nothing left behind.

    Example: engram demo --keep
    """
    from engram.cli.demo.play import play  # noqa: PLC0415 - only what is used loads

    settings = settings_from()
    run(lambda: play(settings, conversation=conversation, data_dir=data_dir, keep=keep))


@commands.command()
def up(data_dir: DataDir = None) -> None:
    """Run everything on this machine until Ctrl-C; other commands and programs attach.

    In another terminal: engram recall "Where do I live?" -u ada

    Example: engram up
    """
    from engram.cli.serving import serve_embedded  # noqa: PLC0415 - only what is used loads

    settings = settings_from(data_dir, stays=True)
    run(lambda: serve_embedded(settings))


@commands.command()
def worker() -> None:
    """Run a worker against the Temporal and Qdrant servers that the settings name.

    Example: ENGRAM_TEMPORAL_ADDRESS=temporal.example.org:7233 engram worker
    """
    from engram.cli.serving import serve_worker  # noqa: PLC0415 - only what is used loads

    settings = settings_from(stays=True)
    run(lambda: serve_worker(settings))


@commands.command()
def mcp(user: User, data_dir: DataDir = None, connected: Connected = False) -> None:
    """Give an MCP client (an assistant, an editor) this user's memory; the client starts this.

    In the client's configuration: {"command": "engram", "args": ["mcp", "-u", "ada"]}

    Example: engram mcp -u ada
    """
    from engram.cli.mcp import serve_stdio  # noqa: PLC0415 - only what is used loads

    run(lambda: serve_stdio(lambda: memory_of(user, data_dir, connected)))
