"""Commands on single memories: verify, confirm, protect, demote, forget, erase."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.text import Text

from engram.cli import exits, output
from engram.cli.running import Connected, DataDir, DryRun, Json, MemoryId, OnlyTests, User, asked

if TYPE_CHECKING:
    from engram.client.memory import MemoryStore
    from engram.operations.registry import Acted

# --- commands about single memories: check one, forget one, erase all

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


# --- commands on memories' lives: what the user says of a memory, and the briefing


_SAID: Final = {
    "force-promote": "Promote one memory by hand: knowledge to a habit, anything else one tier up.",
    "confirm": (
        "Say that a conclusion is right; it counts for more, and comes back if it had left."
    ),
    "dispute": "Say that a conclusion is wrong; it counts for less, and stays readable.",
    "protect": "Keep a memory: no rule may take it away any more.",
    "unprotect": "Let rules apply to a memory again.",
    "demote": "Put a memory aside: it answers only where archived memories are asked for.",
}
"""What users say of a memory, by the operation's name, and what the help says of it."""


def _add_action(name: str, help_text: str) -> None:
    @commands.command(
        name,
        help=f"{help_text}\n\nExample: engram {name} 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada",
    )
    def act(
        memory_id: MemoryId,
        user: User,
        dry_run: DryRun = False,
        test_only: OnlyTests = False,
        data_dir: DataDir = None,
        connected: Connected = False,
        as_json: Json = False,
    ) -> None:
        def say(memory: MemoryStore) -> Awaitable[Acted]:
            method = getattr(memory, name.replace("-", "_"))
            said: Awaitable[Acted] = method(memory_id, dry_run=dry_run, test_only=test_only)
            return said

        acted = asked(say, user, data_dir, connected, doing="Writing")
        _print_acted(acted, dry_run=dry_run, as_json=as_json)


for _name, _help in _SAID.items():
    _add_action(_name, _help)


@commands.command()
def briefing(
    user: User,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.")] = 10,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """What matters most about a user, for the start of a conversation.

    Example: engram briefing -u ada -n 5
    """
    found = asked(lambda memory: memory.briefing(limit=limit), user, data_dir, connected)
    if as_json:
        output.print_json(found)
        return
    output.print_table(
        ("score", "memory"),
        [(f"{one.score:.2f}", output.memory_text(one.memory)) for one in found],
        empty="Nothing is known yet that matters.",
        right=("score",),
        dim=("score",),
    )


def _print_acted(acted: Acted, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        output.print_json(acted)
        return
    output.print_memories([acted.memory])
    for change in acted.changes:
        output.console.print(f"{change.rule}: {change.source} -> {change.target}")
    if acted.habit_id is not None:
        output.console.print(f"habit: {acted.habit_id}")
    elif not acted.changes:
        output.console.print("No state changed.", style="dim")
    if dry_run:
        output.console.print("This was a dry run: nothing was written.", style="dim")
