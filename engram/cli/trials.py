"""Commands on test memories, which are in no recall and no pass unless asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli import exits, output
from engram.cli.options import Connected, DataDir, DryRun, Json, User
from engram.cli.running import asked

if TYPE_CHECKING:
    from engram.domain.memories import AnyMemory

# The names of scenarios, which load too much for completion; a test compares them.
SCENARIOS = ("fade", "stay", "use", "habit", "apart")

commands = typer.Typer()
test = typer.Typer(
    name="test",
    help="Test memories, to try out what would happen to real ones.",
    no_args_is_help=True,
)
commands.add_typer(test)


@test.command()
def create(
    content: Annotated[str, typer.Argument(help="Its words.")],
    user: User,
    conclusion: Annotated[bool, typer.Option(help="Knowledge instead of a turn.")] = False,
    age_days: Annotated[float, typer.Option(help="Stored so many days ago.")] = 0.0,
    dry_run: DryRun = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Store a test memory.

    Example: engram test create "I like tea." -u ada --age-days 60
    """
    _show_memories(
        [
            asked(
                lambda memory: memory.create_test(
                    content, conclusion=conclusion, age_days=age_days, dry_run=dry_run
                ),
                user,
                data_dir,
                connected,
            )
        ],
        as_json,
    )


@test.command()
def boost(
    memory_id: Annotated[str, typer.Argument(help="The test memory's id.")],
    user: User,
    recalls: Annotated[int, typer.Option("--recalls", "-n", help="How often.")] = 1,
    dry_run: DryRun = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Recall a test memory so many times, now.

    Example: engram test boost 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada -n 5
    """
    _show_memories(
        [
            asked(
                lambda memory: memory.boost_test(memory_id, recalls=recalls, dry_run=dry_run),
                user,
                data_dir,
                connected,
            )
        ],
        as_json,
    )


@test.command("list")
def list_tests(
    user: User, data_dir: DataDir = None, connected: Connected = False, as_json: Json = False
) -> None:
    """The test memories of a user, 200 at most.

    Example: engram test list -u ada
    """
    _show_memories(asked(lambda memory: memory.list_tests(), user, data_dir, connected), as_json)


@test.command()
def delete(
    user: User,
    memory_ids: Annotated[
        list[str] | None, typer.Argument(help="These only; else all test memories.")
    ] = None,
    dry_run: DryRun = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Remove test memories, and nothing else.

    Example: engram test delete -u ada
    """
    number = asked(
        lambda memory: memory.delete_tests(memory_ids or None, dry_run=dry_run),
        user,
        data_dir,
        connected,
    )
    if as_json:
        output.print_json({"removed": 0 if dry_run else number, "found": number})
    else:
        output.console.print(f"{number} test memories {'found' if dry_run else 'removed'}.")


@test.command()
def scenario(
    name: Annotated[
        str,
        typer.Argument(
            help=f"One of {', '.join(SCENARIOS)}.", autocompletion=lambda: list(SCENARIOS)
        ),
    ],
    user: User,
    dry_run: DryRun = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Play a scenario with test memories and remove them; exit code 1 if it went otherwise.

    Example: engram test scenario fade -u ada
    """
    played = asked(
        lambda memory: memory.play_scenario(name, dry_run=dry_run),
        user,
        data_dir,
        connected,
        doing=f"Playing {name}",
    )
    if as_json:
        output.print_json(played)
    else:
        for step in played.steps:
            output.console.print(step)
        if played.dry_run:
            output.console.print("Nothing was done: this was a dry run.", style="dim")
            return
        output.console.print("As expected." if played.passed else "Not as expected.")
    if not played.passed:
        raise typer.Exit(exits.FAILED)


def _show_memories(memories: Sequence[AnyMemory], as_json: bool) -> None:
    if as_json:
        output.print_json(memories)
        return
    for memory in memories:
        output.console.print(
            f"{memory.id}  {memory.status.value}  {memory.access_count} recalls", style="dim"
        )
        output.print_memories([memory])
