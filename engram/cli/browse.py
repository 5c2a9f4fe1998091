"""Commands that show what is kept: memories, histories, profiles, topics, boxes, costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text

from engram.cli import output
from engram.cli.running import (
    MEMORY_STATES,
    Connected,
    DataDir,
    Json,
    MemoryId,
    MemoryTypes,
    User,
    asked,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.domain.memories import AnyMemory
    from engram.operations.digests import Profile

# --- commands that look at what is kept: lists, single memories, their history, sessions, costs

commands = typer.Typer()

Status = Annotated[
    str | None,
    typer.Option(
        help=f"Only with this status: {', '.join(MEMORY_STATES)}.",
        autocompletion=lambda: list(MEMORY_STATES),
    ),
]


@commands.command("list")
def list_memories(
    user: User,
    memory_type: MemoryTypes = None,
    status: Status = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.")] = 50,
    cursor: Annotated[
        str | None, typer.Option(help="Go on where the page before said that there is more.")
    ] = None,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """What is kept, type by type, oldest first.

    Example: engram list -u ada -t semantic --status active

    Example: engram list -u ada --json
    """
    page = asked(
        lambda memory: memory.list(
            memory_types=memory_type, status=status, limit=limit, cursor=cursor
        ),
        user,
        data_dir,
        connected,
    )
    if as_json:
        output.print_json(page)
        return
    _print_memories(page.memories, empty="Nothing is kept yet.")
    if page.cursor is not None:
        output.errors.print(f"There is more: --cursor {page.cursor}", style="dim")


@commands.command("count", rich_help_panel="Look at memories")
def count(
    user: User,
    memory_type: MemoryTypes = None,
    status: Status = None,
    session: Annotated[str | None, typer.Option("--session", "-s", help="Only this one.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="Only with this tag; may be repeated: any of them.")
    ] = None,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """How many memories there are of a kind.

    Example: engram count -u ada -t semantic --status active

    Example: engram count -u ada --tag work --json
    """
    found = asked(
        lambda memory: memory.count(
            memory_types=memory_type, status=status, session_id=session, tags=tag
        ),
        user,
        data_dir,
        connected,
    )
    if as_json:
        output.print_json({"count": found})
    else:
        output.console.print(found)


@commands.command()
def show(
    memory_id: MemoryId,
    user: User,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """One memory with all that is kept of it.

    Example: engram show 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada
    """
    found = asked(lambda memory: memory.get(memory_id), user, data_dir, connected)
    if as_json:
        output.print_json(found)
    else:
        output.print_fields(str(output.memory_text(found)), found)


@commands.command()
def history(
    memory_id: MemoryId,
    user: User,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """What a memory replaced, and what replaced it, oldest first.

    Example: engram history 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada
    """
    found = asked(lambda memory: memory.history(memory_id), user, data_dir, connected)
    if as_json:
        output.print_json(found)
    else:
        _print_memories(found, empty=None)


@commands.command()
def context(
    query: Annotated[str, typer.Argument(help="What the conversation is about.")],
    user: User,
    tokens: Annotated[int, typer.Option(help="How long it may become.")] = 1000,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """A block of text for a prompt, with what is known about something.

    Example: engram context "Where does Ada live?" -u ada --tokens 300
    """
    block = asked(lambda memory: memory.context(query, tokens=tokens), user, data_dir, connected)
    if as_json:
        output.print_json({"context": block})
    elif block:
        output.console.print(block, markup=False, soft_wrap=True)
    else:
        output.errors.print("Nothing that bears on this is remembered.", style="dim")


@commands.command("working-memory")
def working_memory(
    session: Annotated[str, typer.Argument(help="The conversation.")],
    user: User,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """The last turns of a conversation that runs; nothing of one that ended.

    Example: engram working-memory monday -u ada
    """
    turns = asked(lambda memory: memory.working_memory(session), user, data_dir, connected)
    if as_json:
        output.print_json(turns)
        return
    output.print_table(
        ("said", "who", "turn"),
        [
            (f"{turn.timestamp:%Y-%m-%d %H:%M}", turn.speaker or turn.role, turn.content)
            for turn in turns
        ],
        empty="This session does not run.",
        dim=("said",),
    )


@commands.command()
def resolve(
    memory_id: MemoryId,
    resolution: Annotated[
        Literal["fulfilled", "expired"], typer.Argument(help="Kept, or come to nothing.")
    ],
    user: User,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Say how a commitment ended.

    Example: engram resolve 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 fulfilled -u ada
    """
    found = asked(lambda memory: memory.resolve(memory_id, resolution), user, data_dir, connected)
    if as_json:
        output.print_json(found)
    else:
        output.print_memories([found])


@commands.command()
def usage(
    user: User, data_dir: DataDir = None, connected: Connected = False, as_json: Json = False
) -> None:
    """What language models were asked for this user, and what it cost.

    Example: engram usage -u ada
    """
    found = asked(lambda memory: memory.usage(), user, data_dir, connected)
    if as_json:
        output.print_json(found)
    elif not found.attempts:
        output.errors.print("No language model was asked for this user.", style="dim")
    else:
        output.print_fields(f"Models asked for {user}", found)


def _print_memories(memories: Sequence[AnyMemory], *, empty: str | None) -> None:
    output.print_table(
        ("id", "type", "status", "known", "memory"),
        [
            (
                memory.id,
                memory.type.value,
                memory.status.value,
                f"{memory.known_at:%Y-%m-%d}",
                output.memory_text(memory),
            )
            for memory in memories
        ],
        empty=empty,
        dim=("id", "known"),
    )


# --- commands about whom and what is known: profiles, topics, boxes


@commands.command()
def profile(
    user: User,
    name: Annotated[str | None, typer.Argument(help="Any name; without one, the user.")] = None,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """What is known about somebody or something, in few lines.

    Example: engram profile -u ada

    Example: engram profile "Sam Okafor" -u ada
    """
    found = asked(lambda memory: memory.profile(name), user, data_dir, connected)
    if as_json:
        output.print_json(found)
    else:
        _print_profile(found)


@commands.command()
def topics(
    user: User, data_dir: DataDir = None, connected: Connected = False, as_json: Json = False
) -> None:
    """What is known, by topic.

    Example: engram topics -u ada
    """
    found = asked(lambda memory: memory.topics(), user, data_dir, connected)
    if as_json:
        output.print_json(found)
        return
    output.print_table(
        ("topic", "memories"),
        [(topic.name, str(len(topic.member_ids))) for topic in found],
        empty="There are no topics yet.",
        right=("memories",),
    )


@commands.command()
def boxes(
    user: User,
    session: Annotated[str | None, typer.Option("--session", "-s", help="Only this one.")] = None,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Runs of turns on one topic.

    Example: engram boxes -u ada -s monday
    """
    found = asked(lambda memory: memory.boxes(session), user, data_dir, connected)
    if as_json:
        output.print_json(found)
        return
    output.print_table(
        ("opened", "turns", "sealed", "topic"),
        [
            (
                f"{box.opened:%Y-%m-%d %H:%M}",
                str(len(box.episode_ids)),
                "yes" if box.sealed else "no",
                ", ".join(box.topic),
            )
            for box in found
        ],
        empty="There are no boxes yet.",
        right=("turns",),
    )


def _print_profile(found: Profile) -> None:
    names = f", also {', '.join(found.aliases)}" if found.aliases else ""
    output.console.print(Text.assemble((found.name, "bold"), f" ({found.kind}){names}"))
    for line in found.lines:
        output.console.print(Text(f"- {line.text}"))
    for merge in found.merges:
        told = f"{merge.first} is {merge.second}: {merge.reason}"
        output.console.print(Text(told, style="dim"))
