"""Commands that tell a memory something, and ask it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli import output
from engram.cli.running import ROLES, Commands, MemoryOptions, MemoryTypes, Session, moment
from engram.errors import InvalidQuery, InvalidTurn

if TYPE_CHECKING:
    from engram.contracts.session import SessionSummary

commands = Commands()


@commands.command()
def encode(
    text: Annotated[str, typer.Argument(help="What was said; - reads standard input.")],
    options: MemoryOptions,
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
) -> None:
    """Keep one conversation turn.

    Example: engram encode "I moved to Lisbon in May." -u ada

    Example: engram encode - -u ada -s monday < notes.txt
    """
    from engram.domain.turns import Turn  # noqa: PLC0415 - slow; no help text needs it

    turn = Turn(
        content=_read() if text == "-" else text,
        role=role,
        speaker=speaker,
        timestamp=moment(at, InvalidTurn),
        message_id=message_id,
    )
    options.answer(
        lambda memory: memory.encode(turn, session_id=session),
        lambda receipt: output.print_fields("Stored", receipt),
        doing="Storing",
    )


@commands.command()
def recall(
    query: Annotated[
        str, typer.Argument(help="A question, or a few words; - reads standard input.")
    ],
    options: MemoryOptions,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many answers at most.")] = 10,
    memory_type: MemoryTypes = None,
    as_of: Annotated[
        str | None, typer.Option(help="What was known then, ISO 8601 with zone.")
    ] = None,
    sources: Annotated[bool, typer.Option("--sources", help="Show the turns behind it.")] = False,
    links: Annotated[bool, typer.Option("--links", help="Follow links.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say why each came back.")] = False,
    ids: Annotated[bool, typer.Option("--ids", help="Show the ids of memories.")] = False,
) -> None:
    """Ask what is remembered.

    Example: engram recall "Where does Ada live?" -u ada --sources

    Example: engram recall tea -u ada -t factual -t semantic --json
    """
    question = _read() if query == "-" else query
    when = moment(as_of, InvalidQuery)
    options.answer(
        lambda memory: memory.recall(
            question,
            limit=limit,
            memory_types=memory_type,
            as_of=when,
            include_sources=sources,
            follow_links=links,
            explain=explain,
        ),
        lambda hits: output.print_hits(hits, ids=ids),
    )


@commands.command("end-session")
def end_session(
    session: Annotated[str, typer.Argument(help="The conversation.")],
    options: MemoryOptions,
) -> None:
    """End a conversation; its consolidation follows in the background.

    Example: engram end-session monday -u ada
    """
    options.answer(lambda memory: memory.end_session(session), _print_end, doing="Ending")


def _print_end(summary: SessionSummary | None) -> None:
    if summary is None:
        output.errors.print("This session was not running.", style="dim")
    else:
        output.print_fields("Ended", summary)


def _read() -> str:
    """Standard input, whatever the locale says; the last line's end is no part of what is said.

    Raises:
        InvalidTurn: it is no text.
    """
    try:
        return sys.stdin.buffer.read().decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InvalidTurn("Standard input is no text.", allowed="UTF-8") from error
