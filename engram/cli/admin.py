"""Commands for operators: status, health, repair, and test memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engram.cli import exits, output
from engram.cli.running import (
    Connected,
    DataDir,
    DryRun,
    Json,
    MemoryId,
    OnlyTests,
    TestOnly,
    User,
    asked,
)

if TYPE_CHECKING:
    from engram.domain.memories import AnyMemory
    from engram.lifecycle.audit import Finding

# --- commands for whoever operates a memory: how it stands, what is wrong, mending, importing

commands = typer.Typer()


@commands.command()
def status(
    user: User,
    test_only: TestOnly = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """How a user's memories stand: by type and status, what is due, what waits.

    Example: engram status -u ada
    """
    found = asked(lambda m: m.status(test_only=test_only), user, data_dir, connected)
    if as_json:
        output.print_json(found)
        return
    rows = [
        (kind.value, str(one.memories), _listed(one.by_status), str(one.due))
        for kind, one in found.types.items()
    ]
    output.print_table(("type", "memories", "by status", "due"), rows)
    output.console.print(
        f"{found.policy} policy; {found.waiting} turns wait for consolidation, "
        f"{found.to_consider} memories for promotion; {found.test_memories} test memories beside."
    )


@commands.command()
def energy(
    user: User,
    test_only: TestOnly = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """How lively active memories are, by tier, and which leave first.

    Example: engram energy -u ada
    """
    found = asked(lambda m: m.energy(test_only=test_only), user, data_dir, connected)
    if as_json:
        output.print_json(found)
        return
    output.print_table(
        ("tier", "memories", "lowest", "mean", "highest"),
        [
            (t.tier, str(t.memories), f"{t.lowest:.3f}", f"{t.mean:.3f}", f"{t.highest:.3f}")
            for t in found.tiers
        ],
    )
    output.print_table(
        ("faintest first", "type", "energy", "decay", "leaves"),
        [
            (
                one.memory_id,
                one.memory_type.value,
                f"{one.energy:.3f}",
                f"{one.decay:.2f}",
                f"{one.leaves_at:%Y-%m-%d}" if one.leaves_at else "never",
            )
            for one in found.faintest[:10]
        ],
    )


@commands.command()
def promotions(
    user: User,
    test_only: TestOnly = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """What was promoted, and what lacks at most one condition.

    Example: engram promotions -u ada
    """
    found = asked(lambda m: m.promotions(test_only=test_only), user, data_dir, connected)
    if as_json:
        output.print_json(found)
        return
    output.print_table(
        ("habit", "made of", "status", "when"),
        [
            (h.habit_id, h.source_id or "-", h.status.value, f"{h.promoted_at:%Y-%m-%d}")
            for h in found.promoted
        ],
    )
    output.print_table(
        ("candidate", "lacks"),
        [(c.memory_id, ", ".join(c.missing) or "nothing: ready") for c in found.candidates],
    )


@commands.command()
def health(
    user: User,
    test_only: TestOnly = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """What is not well with a user's memories; exit code 1 if something is not.

    Looks for wrong energies, orphans, everything or nothing being promoted, and
    decay that is too eager.

    Example: engram health -u ada
    """
    found = asked(lambda m: m.health(test_only=test_only), user, data_dir, connected)
    if as_json:
        output.print_json(found)
    elif not found.diagnoses:
        output.console.print(f"All well: {found.memories} memories.", style="green")
    else:
        for one in found.diagnoses:
            output.console.print(f"[yellow]{one.ailment.value}[/]: {one.what}")
            output.console.print(f"  {one.hint}", style="dim")
            for example in one.examples:
                output.console.print(f"  {example}", style="dim")
    if found.diagnoses:
        raise typer.Exit(exits.FAILED)


@commands.command()
def inspect(
    memory_id: MemoryId,
    user: User,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Everything about one memory's life: states, numbers with their parts, links, problems.

    Example: engram inspect 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada
    """
    found = asked(lambda m: m.inspect(memory_id), user, data_dir, connected)
    if as_json:
        output.print_json(found)
        return
    output.print_memories([found.memory])
    output.print_table(("state", "value"), list(found.states.items()))
    output.print_table(("number", "now"), [(k, f"{v:.3f}") for k, v in found.values.items()])
    for sentence in found.explanations:
        output.console.print(sentence)
    if found.leaves_at is not None:
        output.console.print(f"Leaves on {found.leaves_at:%Y-%m-%d %H:%M} unless it is used.")
    if found.next_step is not None:
        step = found.next_step
        output.console.print(f"Due: {step.rule}: {step.source} -> {step.target}")
    output.print_table(
        ("link", "to", "conf", "there"),
        [(x.kind, x.target_id, f"{x.confidence:.2f}", str(x.exists)) for x in found.links],
    )
    _print_findings(found.problems)


@commands.command()
def validate(
    user: User,
    test_only: TestOnly = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Find orphans, broken and one-way links, duplicates, bad fields; exit code 1 if there are any.

    Example: engram validate -u ada
    """
    found = asked(lambda m: m.validate(test_only=test_only), user, data_dir, connected)
    if as_json:
        output.print_json(found)
    elif not found.counts:
        output.console.print(f"Nothing wrong in {found.memories} memories.", style="green")
    else:
        output.console.print(_listed(found.counts), style="yellow")
        _print_findings(found.findings)
        output.console.print("engram repair ID mends one.", style="dim")
    if found.counts:
        raise typer.Exit(exits.FAILED)


@commands.command()
def repair(
    memory_id: MemoryId,
    user: User,
    dry_run: DryRun = False,
    test_only: OnlyTests = False,
    data_dir: DataDir = None,
    connected: Connected = False,
    as_json: Json = False,
) -> None:
    """Mend what validate finds about one memory; again, it finds nothing to do.

    Example: engram repair 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada --dry-run
    """
    found = asked(
        lambda m: m.repair(memory_id, dry_run=dry_run, test_only=test_only),
        user,
        data_dir,
        connected,
    )
    if as_json:
        output.print_json(found)
        return
    _print_findings(found.found if dry_run else found.mended)
    if not dry_run:
        left = len(found.found) - len(found.mended)
        output.console.print(f"{len(found.mended)} mended, {left} left.")


def _print_findings(findings: Iterable[Finding]) -> None:
    rows = [(f.problem.value, f.memory_id, f.other_id or "-", f.what) for f in findings]
    output.print_table(("problem", "memory", "other", "what"), rows)


def _listed(counts: Any) -> str:
    return ", ".join(f"{name} {number}" for name, number in counts.items())


# --- commands on test memories, which are in no recall and no pass unless asked for

# The names of scenarios, which load too much for completion; a test compares them.
SCENARIOS = ("fade", "stay", "use", "habit", "apart")

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
