"""The commands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from engram import __version__
from engram.cli import knowledge, looking, memories, output, schedules
from engram.cli.config import commands as config
from engram.cli.doctor import commands as doctor
from engram.cli.group import EngramGroup
from engram.cli.options import ROLES, Connected, DataDir, Json, MemoryTypes, Session, User
from engram.cli.running import (
    given_url,
    memory_of,
    moment,
    over_http,
    run,
    settings_from,
)
from engram.errors import InvalidQuery, InvalidTurn

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


@app.command()
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
    """Watch Engram remember a real conversation: nothing to set up, nothing left behind."""
    from engram.cli.demo.play import play  # noqa: PLC0415 - only what is used loads

    settings = _settings()
    _run(lambda: play(settings, conversation=conversation, data_dir=data_dir, keep=keep))


@app.command()
def up(data_dir: DataDir = None) -> None:
    """Run everything on this machine until Ctrl-C; other commands and programs attach.

    Example: engram up, and in another terminal: engram recall "where do I live?" -u ada
    """
    from engram.cli.serving import serve_embedded  # noqa: PLC0415 - only what is used loads

    settings = _settings(data_dir)
    _run(lambda: serve_embedded(settings))


@app.command()
def worker() -> None:
    """Run a worker against the Temporal and Qdrant servers that the settings name."""
    from engram.cli.serving import serve_worker  # noqa: PLC0415 - only what is used loads

    settings = _settings()
    _run(lambda: serve_worker(settings))


@app.command()
def mcp(user: User, data_dir: DataDir = None, connected: Connected = False) -> None:
    """Give an MCP client (an assistant, an editor) this user's memory; the client starts this.

    Example, in the client's configuration: {"command": "engram", "args": ["mcp", "-u", "ada"]}
    """
    from engram.cli.mcp import serve_stdio  # noqa: PLC0415 - only what is used loads

    _run(lambda: serve_stdio(lambda: _memory(user, data_dir, connected)))


@app.command()
def encode(
    text: Annotated[str, typer.Argument(help="What was said; - reads standard input.")],
    user: User,
    session: Session = "cli",
    role: Annotated[
        str,
        typer.Option(help=f"Who said it: {', '.join(ROLES)}.", autocompletion=lambda: list(ROLES)),
    ] = "user",
    speaker: Annotated[str | None, typer.Option(help="The speaker's name.")] = None,
    at: Annotated[str | None, typer.Option(help="When it was said, ISO 8601 with zone.")] = None,
    message_id: Annotated[
        str | None, typer.Option(help="Your id for it: sending it again stores nothing new.")
    ] = None,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Keep one conversation turn.

    Example: engram encode "I moved to Lisbon in May." -u ada
    """
    from engram.domain.turns import Turn  # noqa: PLC0415 - slow; no help text needs it

    turn = Turn(
        content=sys.stdin.read() if text == "-" else text,
        role=role,
        speaker=speaker,
        timestamp=_moment(at, InvalidTurn),
        message_id=message_id,
    )

    async def work() -> Any:
        async with _memory(user, data_dir, connected) as memory:
            return await memory.encode(turn, session_id=session)

    _show("Stored", _run(work), as_json)


@app.command()
def recall(
    query: Annotated[str, typer.Argument(help="A question, or a few words.")],
    user: User,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many answers at most.")] = 10,
    memory_type: MemoryTypes = None,
    as_of: Annotated[
        str | None, typer.Option(help="What was known then, ISO 8601 with zone.")
    ] = None,
    sources: Annotated[bool, typer.Option("--sources", help="Show the turns behind it.")] = False,
    links: Annotated[bool, typer.Option("--links", help="Follow links.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say why each came back.")] = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Ask what is remembered.

    Example: engram recall "Where does Ada live?" -u ada --sources
    """
    moment = _moment(as_of, InvalidQuery)

    async def work() -> Any:
        async with _memory(user, data_dir, connected) as memory:
            return await memory.recall(
                query,
                limit=limit,
                memory_types=memory_type,
                as_of=moment,
                include_sources=sources,
                follow_links=links,
                explain=explain,
            )

    hits = _run(work)
    if as_json:
        output.print_json(hits)
    else:
        output.print_hits(hits)


@app.command("end-session")
def end_session(
    session: Annotated[str, typer.Argument(help="The conversation.")],
    user: User,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """End a conversation; its consolidation follows in the background."""

    async def work() -> Any:
        async with _memory(user, data_dir, connected) as memory:
            return await memory.end_session(session)

    summary = _run(work)
    if summary is None and not as_json:
        output.console.print("This session was not running.", style="dim")
    else:
        _show("Ended", summary, as_json)


app.add_typer(config.commands)
app.add_typer(doctor.commands)
app.add_typer(looking.commands)
for _module in (knowledge, memories, schedules):
    app.add_typer(_module.commands)


def _show(title: str, answer: Any, as_json: bool) -> None:
    if as_json:
        output.print_json(answer)
    else:
        output.print_fields(title, answer)


from engram.cli import keys as keys  # noqa: E402, PLC0414 - adds its commands to the app
from engram.cli import lifecycle as lifecycle  # noqa: E402, PLC0414 - same
from engram.cli import migrate as migrate  # noqa: E402, PLC0414 - same
from engram.cli import operations as operations  # noqa: E402, PLC0414 - same
from engram.cli import passes as passes  # noqa: E402, PLC0414 - same
from engram.cli import transfer as transfer  # noqa: E402, PLC0414 - same
from engram.cli import trials as trials  # noqa: E402, PLC0414 - same
