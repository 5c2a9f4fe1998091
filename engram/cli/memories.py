"""Commands about single memories: check one, end a promise, forget one, erase all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli import output
from engram.cli.app import Connected, DataDir, Json, User, _memory, _run, app

if TYPE_CHECKING:
    from engram.contracts.erasure import ErasureReceipt
    from engram.contracts.forgetting import ForgetReceipt
    from engram.domain.verifying import Verification

MemoryId = Annotated[str, typer.Argument(help="As recall --json prints it.")]


@app.command()
def verify(
    memory_id: MemoryId,
    user: User,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Check a memory against the turns it was drawn from; exit status 1 if it does not stand.

    Example: engram verify 0b3a… -u ada
    """

    async def work() -> Verification:
        async with _memory(user, data_dir, connected) as memory:
            return await memory.verify(memory_id)

    found = _run(work)
    if as_json:
        output.print_json(found)
    else:
        verdict = "[green]stands[/]" if found.ok else "[red]does not stand[/]"
        output.console.print(f"{verdict} ({found.method.value}): ", end="")
        output.console.print(found.explanation, markup=False)
        for quote in found.evidence:
            output.console.print(f"  “{quote.words}”", markup=False)
    if not found.ok:
        raise typer.Exit(1)


@app.command()
def forget(
    memory_id: MemoryId,
    user: User,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Forget one memory for good, and whatever was derived only from it.

    Example: engram forget 0b3a… -u ada
    """
    if not yes:
        typer.confirm("Forget this memory for good?", abort=True, err=True)

    async def work() -> ForgetReceipt:
        async with _memory(user, data_dir, connected) as memory:
            return await memory.forget(memory_id)

    receipt = _run(work)
    if as_json:
        output.print_json(receipt)
    else:
        gone = ", ".join(f"{count} {kind.value}" for kind, count in receipt.forgotten.items())
        output.console.print(f"Forgotten: {gone}. {receipt.amended} stay without it as a source.")


@app.command()
def erase(
    user: User,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Erase everything of a user for good: memories, running workflows, histories.

    Example: engram erase -u ada
    """
    if not yes:
        typer.confirm(f"Erase everything of {user} for good?", abort=True, err=True)

    async def work() -> ErasureReceipt:
        async with _memory(user, data_dir, connected) as memory:
            with output.errors.status("Erasing; a server takes its time to delete histories"):
                return await memory.erase()

    receipt = _run(work)
    if as_json:
        output.print_json(receipt)
    else:
        total = sum(receipt.memories.values())
        output.console.print(
            f"Erased: {total} memories, {receipt.histories_deleted} histories; "
            f"{receipt.workflows_stopped} workflows stopped, {receipt.histories_kept} kept."
        )
    if not receipt.complete:
        output.errors.print("Something was written meanwhile: stop that, and erase again.")
        raise typer.Exit(1)
