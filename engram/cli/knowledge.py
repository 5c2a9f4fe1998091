"""Commands about whom and what is known: profiles, topics, boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from engram.cli import output
from engram.cli.app import Connected, DataDir, Json, User, _memory, _run, app

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.client.operations.digests import MemoryBox, Profile, Topic


@app.command()
def profile(
    user: User,
    name: Annotated[str | None, typer.Argument(help="Any name; without one, the user.")] = None,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """What is known about somebody or something, in few lines.

    Example: engram profile "Sam Okafor" -u ada
    """

    async def work() -> Profile:
        async with _memory(user, data_dir, connected) as memory:
            return await memory.profile(name)

    found = _run(work)
    if as_json:
        output.print_json(found)
    else:
        _print_profile(found)


@app.command()
def topics(
    user: User, data_dir: DataDir = None, connected: Connected = False, as_json: Json = False
) -> None:
    """What is known, by topic."""

    async def work() -> Sequence[Topic]:
        async with _memory(user, data_dir, connected) as memory:
            return await memory.topics()

    found = _run(work)
    if as_json:
        output.print_json(found)
    else:
        rows = [(topic.name, str(len(topic.member_ids))) for topic in found]
        _print_rows(("topic", "memories"), rows)


@app.command()
def boxes(
    user: User,
    session: Annotated[str | None, typer.Option("--session", "-s", help="Only this one.")] = None,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Runs of turns on one topic."""

    async def work() -> Sequence[MemoryBox]:
        async with _memory(user, data_dir, connected) as memory:
            return await memory.boxes(session)

    found = _run(work)
    if as_json:
        output.print_json(found)
    else:
        rows = [
            (
                f"{box.opened:%Y-%m-%d %H:%M}",
                str(len(box.episode_ids)),
                str(box.sealed),
                ", ".join(box.topic),
            )
            for box in found
        ]
        _print_rows(("opened", "turns", "sealed", "topic"), rows)


def _print_profile(found: Profile) -> None:
    names = f", also {', '.join(found.aliases)}" if found.aliases else ""
    output.console.print(Text.assemble((found.name, "bold"), f" ({found.kind}){names}"))
    for line in found.lines:
        output.console.print(Text(f"- {line.text}"))
    for merge in found.merges:
        told = f"{merge.first} is {merge.second}: {merge.reason}"
        output.console.print(Text(told, style="dim"))


def _print_rows(columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]) -> None:
    if not rows:
        output.console.print("There are none yet.", style="dim")
        return
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    output.console.print(table)
