"""Commands on test memories, which are in no recall and no pass unless asked for."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from engram.cli import output
from engram.cli.app import Connected, DataDir, Json, User, _memory, _run, app
from engram.cli.lifecycle import DryRun

test = typer.Typer(
    name="test",
    help="Test memories, to try out what would happen to real ones.",
    no_args_is_help=True,
)
app.add_typer(test)


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

    async def work() -> Any:
        async with _memory(user, data_dir, connected) as memory:
            return await memory.create_test(
                content, conclusion=conclusion, age_days=age_days, dry_run=dry_run
            )

    _show_memories([_run(work)], as_json)


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

    async def work() -> Any:
        async with _memory(user, data_dir, connected) as memory:
            return await memory.boost_test(memory_id, recalls=recalls, dry_run=dry_run)

    _show_memories([_run(work)], as_json)


@test.command("list")
def list_tests(
    user: User, data_dir: DataDir = None, connected: Connected = False, as_json: Json = False
) -> None:
    """The test memories of a user, 200 at most."""

    async def work() -> Any:
        async with _memory(user, data_dir, connected) as memory:
            return await memory.list_tests()

    _show_memories(_run(work), as_json)


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

    async def work() -> int:
        async with _memory(user, data_dir, connected) as memory:
            return await memory.delete_tests(memory_ids or None, dry_run=dry_run)

    number = _run(work)
    if as_json:
        output.print_json({"removed": 0 if dry_run else number, "found": number})
    else:
        output.console.print(f"{number} test memories {'found' if dry_run else 'removed'}.")


@test.command()
def scenario(
    name: Annotated[str, typer.Argument(help="fade, stay, use, habit or apart.")],
    user: User,
    dry_run: DryRun = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Play a scenario with test memories and remove them; exit code 1 if it went otherwise.

    Example: engram test scenario fade -u ada
    """

    async def work() -> Any:
        async with _memory(user, data_dir, connected) as memory:
            with output.errors.status(f"Playing {name}"):
                return await memory.play_scenario(name, dry_run=dry_run)

    played = _run(work)
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
        raise typer.Exit(1)


def _show_memories(memories: Any, as_json: bool) -> None:
    if as_json:
        output.print_json(memories)
        return
    for memory in memories:
        output.console.print(
            f"{memory.id}  {memory.status.value}  {memory.access_count} recalls", style="dim"
        )
        output.print_memories([memory])
