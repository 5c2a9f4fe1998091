"""Commands about whom and what is known: profiles, topics, boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from engram.cli import output
from engram.cli.options import Connected, DataDir, Json, User
from engram.cli.running import asked

if TYPE_CHECKING:
    from engram.client.operations.digests import Profile

commands = typer.Typer()


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
