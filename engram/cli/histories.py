"""Commands on histories: replaying them against the code as it is now, saving them for that."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli import exits, output
from engram.cli.passes import temporal
from engram.cli.running import AnswerOptions, Commands, run, settings_from
from engram.errors import EncryptionKeysUnusable, needs_extra
from engram.system import system_clock

if TYPE_CHECKING:
    from temporalio.client import Client, WorkflowHistory
    from temporalio.converter import DataConverter

    from engram.settings import Settings
    from engram.workflows.replaying import Replayed, Replays, Saved

commands = Commands()


@dataclass(frozen=True, kw_only=True)
class HistoryOptions(AnswerOptions):
    """Where the memory is, and which histories are meant."""

    workflow_id: Annotated[
        str | None, typer.Argument(help="One workflow, as the Temporal UI shows it.")
    ] = None
    run_id: Annotated[
        str | None, typer.Option(help="One of its runs; else the latest.", show_default=False)
    ] = None
    running: Annotated[bool, typer.Option("--open", help="All that run now.")] = False
    recent: Annotated[
        bool, typer.Option("--recent", help="A sample of what ran in the last days.")
    ] = False
    days: Annotated[float, typer.Option(min=0.01, help="How many days are recent.")] = 7
    limit: Annotated[
        int,
        typer.Option(
            "--limit",
            "-n",
            min=1,
            max=1_000_000,
            help="At most so many, dealt out among the types.",
        ),
    ] = 100

    def check(self, *others: object) -> None:
        """Refuse what does not say in exactly one way which are meant."""
        if sum(map(bool, (self.workflow_id, self.running, self.recent, *others))) != 1:
            raise typer.BadParameter(
                "give one of: a workflow's id, or an option that says which histories"
            )

    def found(
        self,
        client: Client,
        settings: Settings,
        on_left_out: Callable[[int], None] | None = None,
    ) -> AsyncIterator[WorkflowHistory]:
        """The histories, from a server; where asked, with how many more run than the limit says."""
        from engram.workflows import replaying  # noqa: PLC0415 - only what is used loads

        store = settings.collection_prefix
        if self.workflow_id is not None:
            return replaying.one_history(client, self.workflow_id, self.run_id)
        if self.running:
            return replaying.open_histories(client, store, self.limit, on_left_out)
        return replaying.recent_histories(
            client, store, self.limit, days=self.days, clock=system_clock
        )


@commands.command()
def replay(
    options: HistoryOptions,
    file: Annotated[
        list[Path] | None,
        typer.Option(help="A saved history, or a folder of them; needs no server."),
    ] = None,
) -> None:
    """Replay histories against the code as it is now; exit code 1 if one does not fit.

    Run it with the code that you are about to deploy, where the old code runs. Nothing is
    changed, no activity runs and no model is asked. With --open the exit code is also 1 where more
    run than the limit lets in: --recent is for a sample.

    Example: engram replay session/default/ada/s1

    Example: engram replay --recent --days 3

    Example: engram replay --open --limit 1000
    """
    options.check(file)
    with needs_extra("worker"):
        from engram.workflows import replaying  # noqa: PLC0415 - same

    left_out: list[int] = []

    async def work(tell: Callable[[str], None]) -> list[Replayed]:
        if file:
            converter = _converter(settings_from(options.data_dir))
            came = []
            for path, history in replaying.histories_in(file):
                came.append(await replaying.replayed(history, converter, file=path))
                tell(_so_many(len(came)))
            return came
        async with temporal(options) as (client, settings):
            return [
                await replaying.replayed(history, client.data_converter)
                async for history in _counted(
                    options.found(client, settings, left_out.append), tell
                )
            ]

    with output.telling("Replaying") as tell:
        came = run(lambda: work(tell))
    replays = replaying.Replays.of(came, sum(left_out))
    if options.workflow_id is not None:
        options.show(came[0], _print_replayed)
    else:
        options.show(replays, _print_replays)
    if not replays.fit:
        raise typer.Exit(exits.FAILED)


@commands.command()
def save_histories(
    folder: Annotated[Path, typer.Argument(help="Made if it is missing.")],
    options: HistoryOptions,
) -> None:
    """Save histories without the words in them, to replay them in your own CI.

    Texts, and names of users and sessions, become marks; the order of events, times and numbers
    stay. Each is replayed before it is written; exit code 1 if one is left out.

    Example: engram save-histories histories --recent --limit 20
    """
    options.check()
    with needs_extra("worker"):
        from engram.workflows import replaying  # noqa: PLC0415 - same

    async def work(tell: Callable[[str], None]) -> Saved:
        async with temporal(options) as (client, settings):
            kept = _counted(options.found(client, settings), tell)
            return await replaying.save(kept, client.data_converter, folder)

    with output.telling("Saving") as tell:
        saved = run(lambda: work(tell))
    options.show(saved, _print_saved)
    if saved.left_out:
        raise typer.Exit(exits.FAILED)


async def _counted(
    histories: AsyncIterator[WorkflowHistory], tell: Callable[[str], None]
) -> AsyncIterator[WorkflowHistory]:
    """The histories, telling how many were dealt with when the next is asked for."""
    done = 0
    async for history in histories:
        yield history
        done += 1
        tell(_so_many(done))


def _so_many(histories: int) -> str:
    return f"{histories} histories"


def _converter(settings: Settings) -> DataConverter:
    """What reads saved histories: encrypted ones too, where the keys are."""
    from engram.embedded.keys import folder_keys  # noqa: PLC0415 - only what is used loads
    from engram.temporal.encryption import EncryptionCodec, data_converter  # noqa: PLC0415 - same

    try:
        keys = folder_keys(settings.data_dir, settings)
    except EncryptionKeysUnusable:
        # What was saved for this is readable.
        return data_converter(None)
    return data_converter(EncryptionCodec(keys))


def _print_replayed(one: Replayed) -> None:
    output.print_fields("Fits" if one.fits else "Does not fit", one)


def _print_replays(came: Replays) -> None:
    rows = [(name, str(number)) for name, number in came.workflow_types.items()]
    output.print_table(
        ("workflow", "replayed"), rows, right=("replayed",), empty="Nothing to replay."
    )
    for one in came.misfits:
        _print_replayed(one)
    all_of_them = came.replayed + came.unreadable + came.left_out
    told = f"{came.replayed} of {all_of_them}" if came.left_out else f"{came.replayed}"
    told += f" replayed, {len(came.misfits)} do not fit"
    told += f", {came.unreadable} cannot be read" if came.unreadable else ""
    output.errors.print(f"{told}.", style="dim")
    if came.left_out:
        output.errors.print(
            f"--limit left {came.left_out} out; {all_of_them} would leave out none."
        )


def _print_saved(saved: Saved) -> None:
    output.console.print(f"{len(saved.files)} histories are in {saved.folder}.")
    for one in saved.left_out:
        output.print_fields("Not saved", one)
