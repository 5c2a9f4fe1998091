"""Commands about single memories: check one, forget one, erase all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.text import Text

from engram.cli import exits, output
from engram.cli.options import Connected, DataDir, Json, MemoryId, User
from engram.cli.running import asked

commands = typer.Typer()

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@commands.command()
def verify(
    memory_id: MemoryId,
    user: User,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Check a memory against the turns it was drawn from; exit code 1 if it does not stand.

    Example: engram verify 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada
    """
    found = asked(lambda memory: memory.verify(memory_id), user, data_dir, connected)
    if as_json:
        output.print_json(found)
    else:
        verdict = ("stands", "green") if found.ok else ("does not stand", "red")
        told = f" ({found.method.value}): {found.explanation}"
        output.console.print(Text.assemble(verdict, output.harmless(told)))
        for quote in found.evidence:
            output.console.print(Text(f"  “{output.harmless(quote.words)}”"))
    if not found.ok:
        raise typer.Exit(exits.FAILED)


@commands.command()
def forget(
    memory_id: MemoryId,
    user: User,
    yes: Yes = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Forget one memory for good, and whatever was derived only from it.

    Example: engram forget 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada --yes
    """
    if not yes:
        typer.confirm("Forget this memory for good?", abort=True, err=True)
    receipt = asked(
        lambda memory: memory.forget(memory_id), user, data_dir, connected, doing="Forgetting"
    )
    if as_json:
        output.print_json(receipt)
    else:
        gone = ", ".join(f"{count} {kind.value}" for kind, count in receipt.forgotten.items())
        output.console.print(f"Forgotten: {gone}. {receipt.amended} stay without it as a source.")


@commands.command()
def erase(
    user: User,
    yes: Yes = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Erase everything of a user for good: memories, running workflows, histories.

    Example: engram erase -u ada --yes
    """
    if not yes:
        typer.confirm(f"Erase everything of {user} for good?", abort=True, err=True)
    receipt = asked(
        lambda memory: memory.erase(),
        user,
        data_dir,
        connected,
        doing="Erasing; a server takes its time to delete histories",
    )
    if as_json:
        output.print_json(receipt)
    else:
        total = sum(receipt.memories.values())
        output.console.print(
            f"Erased: {total} memories, {receipt.histories_deleted} histories; "
            f"{receipt.workflows_stopped} workflows stopped, {receipt.histories_kept} kept."
        )
        _say_what_remains(receipt.may_remain)
    if not receipt.complete:
        output.warn("not everything is gone: stop what writes for this user, and erase again")
        raise typer.Exit(exits.FAILED)


@commands.command()
def compact(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Rewrite the files of the data folder without what was deleted; exit code 1 if not all.

    Forgetting leaves bytes in the files until then. Everybody goes on meanwhile.

    Example: engram compact
    """
    # Whose memory is opened makes no difference.
    receipt = asked(
        lambda memory: memory.compact(), "operator", data_dir, False, doing="Rewriting files"
    )
    if as_json:
        output.print_json(receipt)
    else:
        done = ", ".join(receipt.rewritten) or "nothing"
        output.console.print(f"Rewritten: {done}; {receipt.memories} memories.")
        _say_what_remains(receipt.may_remain)
    if receipt.may_remain:
        raise typer.Exit(exits.FAILED)


def _say_what_remains(sentences: Sequence[str]) -> None:
    for sentence in sentences:
        output.console.print(Text(f"May remain: {sentence}"))
