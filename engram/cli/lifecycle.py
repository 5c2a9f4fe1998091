"""Commands on single memories: verify, confirm, protect, demote, forget, erase."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from rich.text import Text

from engram.cli import exits, output
from engram.cli.running import (
    Commands,
    DataDir,
    DryRun,
    Json,
    MemoryId,
    MemoryOptions,
    OnlyTests,
)
from engram.errors import InvalidInput

if TYPE_CHECKING:
    from engram.client.memory import MemoryStore
    from engram.consolidation.verify import Verification
    from engram.contracts.removal import CompactReceipt, ErasureReceipt, ForgetReceipt
    from engram.contracts.reviews import ReviewOutcome
    from engram.operations.memories import Acted
    from engram.operations.reviews import Review
    from engram.recall.context import Briefed

# --- commands about single memories: check one, forget one, erase all

commands = Commands()

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]


@commands.command()
def verify(memory_id: MemoryId, options: MemoryOptions) -> None:
    """Check a memory against the turns it was drawn from; exit code 1 if it does not stand.

    Example: engram verify 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada
    """
    found = options.answer(lambda memory: memory.verify(memory_id), _print_verification)
    if not found.ok:
        raise typer.Exit(exits.FAILED)


def _print_verification(found: Verification) -> None:
    verdict = ("stands", "green") if found.ok else ("does not stand", "red")
    told = f" ({found.method.value}): {found.explanation}"
    output.console.print(Text.assemble(verdict, told))
    for quote in found.evidence:
        output.console.print(Text(f"  “{quote.words}”"))


@commands.command()
def forget(memory_id: MemoryId, options: MemoryOptions, yes: Yes = False) -> None:
    """Forget one memory for good, and whatever was derived only from it.

    Example: engram forget 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada --yes
    """
    if not yes:
        _make_sure("Forget this memory for good?", as_json=options.as_json)
    options.answer(lambda memory: memory.forget(memory_id), _print_forgotten, doing="Forgetting")


def _print_forgotten(receipt: ForgetReceipt) -> None:
    gone = ", ".join(f"{count} {kind.value}" for kind, count in receipt.forgotten.items())
    output.console.print(f"Forgotten: {gone}. {receipt.amended} stay without it as a source.")


@commands.command()
def erase(options: MemoryOptions, yes: Yes = False) -> None:
    """Erase everything of a user for good: memories, running workflows, histories.

    Says when the memories are gone, and ends when histories and files are scrubbed, too. It
    goes on where this is interrupted.

    Example: engram erase -u ada --yes
    """
    if not yes:
        _make_sure(f"Erase everything of {options.user} for good?", as_json=options.as_json)

    async def erasing(memory: MemoryStore) -> ErasureReceipt:
        receipt = await memory.erase()
        output.errors.print(
            f"No memory is left, of {sum(receipt.memories.values())}. "
            "Histories and files are being scrubbed; this waits for it.",
            style="dim",
        )
        return await memory.erased() or receipt

    receipt = options.answer(
        erasing,
        _print_erased,
        doing="Erasing",
        left=lambda real, _: real.test_memories + sum(t.memories for t in real.types.values()),
    )
    if not receipt.complete:
        output.warn("not everything is gone: stop what writes for this user, and erase again")
        raise typer.Exit(exits.FAILED)


def _print_erased(receipt: ErasureReceipt) -> None:
    total = sum(receipt.memories.values())
    output.console.print(
        f"Erased: {total} memories, {receipt.histories_deleted} histories; "
        f"{receipt.workflows_stopped} workflows stopped, {receipt.histories_kept} kept."
    )
    _say_what_remains(receipt.may_remain)


def _make_sure(question: str, *, as_json: bool) -> None:
    """Ask the person at the terminal whether what cannot be undone is meant.

    Raises:
        InvalidInput: nobody is there to answer.
        typer.Exit: the answer is not yes.
    """
    if as_json or not sys.stdin.isatty():
        raise InvalidInput(
            "This cannot be undone, and nobody can be asked whether it is meant.",
            allowed="--yes; or a terminal to ask on, without --json",
            hint="Say --yes if it is.",
        )
    output.errors.print(Text(f"{question} [y/N] "), end="")
    # Not typer's: that prints on standard output too, and takes Ctrl-C for a no.
    if sys.stdin.buffer.readline().strip().lower() not in {b"y", b"yes"}:
        output.errors.print("Nothing was done.", style="dim")
        raise typer.Exit(exits.FAILED)


@commands.command()
def compact(data_dir: DataDir = None, as_json: Json = False) -> None:
    """Rewrite the files of the data folder without what was deleted; exit code 1 if not all.

    Forgetting leaves bytes in the files until then. Everybody goes on meanwhile.

    Example: engram compact
    """
    # Whose memory is opened makes no difference.
    options = MemoryOptions(user="operator", data_dir=data_dir, as_json=as_json)
    receipt = options.answer(
        lambda memory: memory.compact(), _print_compacted, doing="Rewriting files"
    )
    if receipt.may_remain:
        raise typer.Exit(exits.FAILED)


def _print_compacted(receipt: CompactReceipt) -> None:
    done = ", ".join(receipt.rewritten) or "nothing"
    output.console.print(f"Rewritten: {done}; {receipt.memories} memories.")
    _say_what_remains(receipt.may_remain)


def _say_what_remains(sentences: Sequence[str]) -> None:
    for sentence in sentences:
        output.console.print(Text(f"May remain: {sentence}"))


# --- commands on memories' lives: what the user says of a memory, and the briefing

_Act: TypeAlias = "Callable[[MemoryStore], Callable[..., Awaitable[Acted]]]"
_ACTS: dict[str, tuple[_Act, str]] = {
    "force-promote": (
        lambda memory: memory.force_promote,
        "Promote one memory by hand: knowledge to a habit, anything else one tier up.",
    ),
    "confirm": (
        lambda memory: memory.confirm,
        "Say that a conclusion is right; it counts for more, and comes back if it had left.",
    ),
    "dispute": (
        lambda memory: memory.dispute,
        "Say that a conclusion is wrong; it leaves the answers, and stays readable.",
    ),
    "protect": (
        lambda memory: memory.protect,
        "Keep a memory: no rule may take it away any more.",
    ),
    "unprotect": (
        lambda memory: memory.unprotect,
        "Let rules apply to a memory again.",
    ),
    "demote": (
        lambda memory: memory.demote,
        "Put a memory aside: it answers only where archived memories are asked for.",
    ),
}
"""By name of the command: what it does, and its help."""


def _add(name: str, act: _Act, told: str) -> None:
    """Make the command for an act on one memory."""
    example = f"Example: engram {name} 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada"

    @commands.command(name, help=f"{told}\n\n{example}")
    def command(
        memory_id: MemoryId,
        options: MemoryOptions,
        dry_run: DryRun = False,
        test_only: OnlyTests = False,
    ) -> None:
        options.answer(
            lambda memory: act(memory)(memory_id, dry_run=dry_run, test_only=test_only),
            lambda acted: _print_act(acted, dry_run=dry_run),
            doing="Writing",
        )


for _name, _row in _ACTS.items():
    _add(_name, *_row)


def _print_act(acted: Acted, *, dry_run: bool) -> None:
    output.print_memories([acted.memory])
    for change in acted.changes:
        of = "" if change.memory_id == acted.memory.id else f" of {change.memory_id}"
        output.console.print(f"{change.rule}{of}: {change.source} -> {change.target}")
    if acted.habit_id is not None:
        output.console.print(f"habit: {acted.habit_id}")
    elif not acted.changes:
        output.console.print("No state changed.", style="dim")
    if dry_run:
        output.console.print("This was a dry run: nothing was written.", style="dim")


@commands.command()
def reviews(options: MemoryOptions) -> None:
    """List disputes that wait for somebody to say what holds.

    Example: engram reviews -u ada
    """
    options.answer(lambda memory: memory.reviews(), _print_reviews)


@commands.command()
def review(
    review_id: Annotated[str, typer.Argument(help="As `engram reviews` shows it.")],
    options: MemoryOptions,
    keep: Annotated[
        str, typer.Option("--keep", "-k", help="Id of what holds; or newest, both, none.")
    ],
) -> None:
    """Say what holds of memories that contradict each other.

    Example: engram review 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada --keep newest
    """
    options.answer(
        lambda memory: memory.review(review_id, keep=keep), _print_outcome, doing="Writing"
    )


def _print_reviews(found: Sequence[Review]) -> None:
    if not found:
        output.console.print("Nothing is in dispute.", style="dim")
    for one in found:
        told = (
            f"{one.review_id}  until {output.utc(one.deadline)}, then {one.default}; "
            f"{one.reminders} reminders"
        )
        output.console.print(Text(told, style="bold"))
        output.print_memories(one.memories, ids=True)


def _print_outcome(outcome: ReviewOutcome) -> None:
    kept = f"kept {', '.join(outcome.kept)}" if outcome.kept else "nothing kept"
    output.console.print(Text(f"{outcome.ended.value}: {kept}"))
    for one in outcome.refuted:
        output.console.print(Text(f"refuted: {one}"))


@commands.command()
def briefing(
    options: MemoryOptions,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.")] = 10,
) -> None:
    """What matters most about a user, for the start of a conversation.

    Example: engram briefing -u ada -n 5
    """
    options.answer(lambda memory: memory.briefing(limit=limit), _print_briefing)


def _print_briefing(found: Sequence[Briefed]) -> None:
    output.print_table(
        ("score", "memory"),
        [(f"{one.score:.2f}", output.memory_text(one.memory)) for one in found],
        empty="Nothing is known yet that matters.",
        right=("score",),
        dim=("score",),
    )
