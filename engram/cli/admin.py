"""Commands for operators: status, health, repair, and test memories."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from engram.cli import exits, output
from engram.cli.running import (
    AnswerOptions,
    Commands,
    DryRun,
    Json,
    MemoryId,
    MemoryOptions,
    OnlyTests,
    SomeUser,
    TestOnly,
    moment,
    run,
    settings_from,
    watched,
)
from engram.errors import InvalidInput

if TYPE_CHECKING:
    from engram.client.memory import MemoryStore
    from engram.domain.memories import AnyMemory
    from engram.lifecycle.checks import Finding
    from engram.operations.admin import (
        EnergyReport,
        HealthReport,
        Inspection,
        PromotionsReport,
        RepairReport,
        StatusReport,
        ValidationReport,
    )
    from engram.operations.audit import AuditPage
    from engram.operations.learning import LearningTrial
    from engram.operations.trials import ScenarioReport

# --- the audit trail

commands = Commands()


@commands.command()
def audit(
    options: AnswerOptions,
    user: SomeUser = None,
    action: Annotated[
        str | None, typer.Option("--action", help="Only this: recall, forget, erase and so on.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="Only by this API key.", metavar="ID")
    ] = None,
    memory: Annotated[
        str | None, typer.Option("--memory", help="Only about this memory.", metavar="ID")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", help="From then on; ISO 8601 with a time zone.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", help="Before that; ISO 8601 with a time zone.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="1 to 1000.")] = 50,
    cursor: Annotated[
        str | None, typer.Option("--cursor", help="That of the page before.", metavar="TEXT")
    ] = None,
) -> None:
    """Who read, changed or removed what, the newest first; exit code 1 if something is missing.

    Ids only, never words. Without --user, of everybody. For who owns the data folder; no API key
    opens it.

    Example: engram audit -u ada --action erase
    """
    from engram.errors import InvalidQuery  # noqa: PLC0415 - no help text needs it

    found = options.of(user or "operator").answer(
        lambda store: store.audit(
            everybody=user is None,
            action=action,
            key_id=key,
            memory_id=memory,
            since=moment(since, InvalidQuery),
            until=moment(until, InvalidQuery),
            limit=limit,
            cursor=cursor,
        ),
        _print_trail,
    )
    if found.breaks:
        raise typer.Exit(exits.FAILED)


def _print_trail(found: AuditPage) -> None:
    output.print_table(
        ("at", "by", "action", "user", "memories", "outcome"),
        [
            (
                output.utc(one.at, seconds=True),
                " ".join(filter(None, (one.actor.door, one.actor.key_id or one.actor.workflow))),
                " ".join(filter(None, (one.action, one.step))),
                f"{one.namespace}/{one.user_id or one.user_mark}",
                str(one.touched),
                f"{one.outcome.value}{f' ({one.error})' if one.error else ''}"
                f"{'' if one.intact else ', changed'}",
            )
            for one in found.entries
        ],
        empty="Nothing of this is in the audit trail.",
        right=("memories",),
    )
    for place in found.breaks:
        output.warn(f"not as it was written: {place.file}, line {place.line}: {place.kind.value}")
    if found.cursor is not None:
        output.errors.print(f"There is more: --cursor '{found.cursor}'", style="dim")


# --- reports on a user's memories: each command asks for one and prints it

Report = TypeVar("Report")


def _reports(
    ask: Callable[[MemoryStore], Callable[..., Awaitable[Report]]],
    *,
    wrong: Callable[[Report], object] = lambda _: False,
) -> Callable[[Callable[[Report], None]], None]:
    """Make the command that a function is named and described like, which prints the report.

    Args:
        ask: The method of the memory that makes the report.
        wrong: Whether the report ends the command with exit code 1.
    """

    def add(plain: Callable[[Report], None]) -> None:
        @commands.command(plain.__name__, help=plain.__doc__)
        def command(options: MemoryOptions, test_only: TestOnly = False) -> None:
            found = options.answer(lambda memory: ask(memory)(test_only=test_only), plain)
            if wrong(found):
                raise typer.Exit(exits.FAILED)

    return add


@_reports(lambda memory: memory.status)
def status(found: StatusReport) -> None:
    """How a user's memories stand: by type and status, what is due, what waits.

    Example: engram status -u ada
    """
    rows = [
        (kind.value, str(one.memories), _listed(one.by_status), str(one.due))
        for kind, one in found.types.items()
    ]
    output.print_table(("type", "memories", "by status", "due"), rows)
    output.console.print(
        f"{found.policy} policy; {found.waiting} turns wait for consolidation, "
        f"{found.to_consider} memories for promotion; {found.test_memories} test memories beside."
    )


@_reports(lambda memory: memory.energy)
def energy(found: EnergyReport) -> None:
    """How lively active memories are, by tier, and which leave first.

    Example: engram energy -u ada
    """
    output.print_table(
        ("tier", "memories", "lowest", "mean", "highest"),
        [
            (t.tier, str(t.memories), f"{t.lowest:.3f}", f"{t.mean:.3f}", f"{t.highest:.3f}")
            for t in found.tiers
        ],
        empty="There are no active memories yet.",
    )
    output.print_table(
        ("leaves first", "type", "energy", "decay", "leaves"),
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
        ids=("leaves first",),
    )


@_reports(lambda memory: memory.promotions)
def promotions(found: PromotionsReport) -> None:
    """What was promoted, and what lacks at most one condition.

    Example: engram promotions -u ada
    """
    output.print_table(
        ("habit", "made of", "status", "when"),
        [
            (h.habit_id, h.source_id or "-", h.status.value, f"{h.promoted_at:%Y-%m-%d}")
            for h in found.promoted
        ],
        empty="Nothing was promoted yet.",
        ids=("habit", "made of"),
    )
    output.print_table(
        ("candidate", "lacks"),
        [(c.memory_id, ", ".join(c.missing) or "nothing: ready") for c in found.candidates],
        empty="Nothing is ready for promotion yet, or nearly.",
        ids=("candidate",),
    )


@_reports(lambda memory: memory.health, wrong=lambda found: found.diagnoses)
def health(found: HealthReport) -> None:
    """What is not well with a user's memories; exit code 1 if something is not.

    Looks for missing memories, wrong energies, orphans, everything or nothing being promoted, and
    decay that is too eager.

    Example: engram health -u ada
    """
    if not found.diagnoses:
        output.console.print(f"All well: {found.memories} memories.", style="green")
    for one in found.diagnoses:
        output.console.print(f"[yellow]{one.ailment.value}[/]: {one.what}")
        output.console.print(f"  {one.hint}", style="dim")
        for example in one.examples:
            output.console.print(f"  {example}", style="dim")


@_reports(lambda memory: memory.validate, wrong=lambda found: found.counts)
def validate(found: ValidationReport) -> None:
    """Find orphans, broken and one-way links, duplicates, bad fields; exit code 1 if there are any.

    Example: engram validate -u ada
    """
    if not found.counts:
        output.console.print(f"Nothing wrong in {found.memories} memories.", style="green")
        return
    output.console.print(_listed(found.counts), style="yellow")
    _print_findings(found.findings)
    lost = [name for name in ("missing", "unreadable") if name in found.counts]
    output.console.print(
        f"Restore a backup before you repair anything: memories are {' or '.join(lost)}."
        if lost
        else "engram repair ID mends one.",
        style="dim",
    )


# --- single memories: everything about one, and mending it


@commands.command()
def inspect(memory_id: MemoryId, options: MemoryOptions) -> None:
    """Everything about one memory's life: states, numbers with their parts, links, problems.

    Example: engram inspect 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada
    """
    options.answer(lambda memory: memory.inspect(memory_id), _print_inspection)


def _print_inspection(found: Inspection) -> None:
    output.print_memories([found.memory])
    output.print_table(("state", "value"), list(found.states.items()))
    output.print_table(("number", "now"), [(k, f"{v:.3f}") for k, v in found.values.items()])
    for sentence in found.explanations:
        output.console.print(sentence)
    if found.leaves_at is not None:
        output.console.print(f"Leaves on {output.utc(found.leaves_at)} if nothing happens to it.")
    if found.next_step is not None:
        step = found.next_step
        output.console.print(f"Due: {step.rule}: {step.source} -> {step.target}")
    output.print_table(
        ("link", "to", "conf", "there"),
        [(x.kind, x.target_id, f"{x.confidence:.2f}", str(x.exists)) for x in found.links],
        ids=("to",),
    )
    _print_findings(found.problems)


@commands.command()
def repair(
    memory_id: MemoryId,
    options: MemoryOptions,
    dry_run: DryRun = False,
    test_only: OnlyTests = False,
) -> None:
    """Mend what validate finds about one memory; again, it finds nothing to do.

    Example: engram repair 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada --dry-run
    """

    def plain(found: RepairReport) -> None:
        _print_findings(found.found if dry_run else found.mended)
        if not dry_run:
            left = len(found.found) - len(found.mended)
            output.console.print(f"{len(found.mended)} mended, {left} left.")

    options.answer(
        lambda memory: memory.repair(memory_id, dry_run=dry_run, test_only=test_only), plain
    )


def _print_findings(findings: Iterable[Finding]) -> None:
    rows = [(f.problem.value, f.memory_id, f.other_id or "-", f.what) for f in findings]
    output.print_table(("problem", "memory", "other", "what"), rows, ids=("memory", "other"))


def _listed(counts: Any) -> str:
    return ", ".join(f"{name} {number}" for name, number in counts.items())


# --- commands on test memories, which are in no recall and no pass unless asked for

# The names of scenarios, which load too much for completion; a test compares them.
SCENARIOS = ("fade", "stay", "use", "habit", "apart")

test = Commands(
    name="test",
    help="Test memories, to try out what would happen to real ones.",
    no_args_is_help=True,
)
commands.add_typer(test)


@test.command()
def create(
    content: Annotated[str, typer.Argument(help="Its words.")],
    options: MemoryOptions,
    conclusion: Annotated[bool, typer.Option(help="Knowledge instead of a turn.")] = False,
    age_days: Annotated[float, typer.Option(help="Stored so many days ago.")] = 0.0,
    dry_run: DryRun = False,
) -> None:
    """Store a test memory.

    Example: engram test create "I like tea." -u ada --age-days 60
    """
    made = options.ask(
        lambda memory: memory.create_test(
            content, conclusion=conclusion, age_days=age_days, dry_run=dry_run
        )
    )
    options.show([made], _print_tests)


@test.command()
def boost(
    memory_id: Annotated[str, typer.Argument(help="The test memory's id.")],
    options: MemoryOptions,
    recalls: Annotated[int, typer.Option("--recalls", "-n", help="How often.")] = 1,
    dry_run: DryRun = False,
) -> None:
    """Recall a test memory so many times, now.

    Example: engram test boost 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada -n 5
    """
    boosted = options.ask(
        lambda memory: memory.boost_test(memory_id, recalls=recalls, dry_run=dry_run)
    )
    options.show([boosted], _print_tests)


@test.command("list")
def list_tests(options: MemoryOptions) -> None:
    """The test memories of a user, 200 of each type at most.

    Example: engram test list -u ada
    """
    options.answer(lambda memory: memory.list_tests(), _print_tests)


@test.command()
def delete(
    options: MemoryOptions,
    memory_ids: Annotated[
        list[str] | None, typer.Argument(help="These only; else all test memories.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Remove test memories, and nothing else.

    Example: engram test delete -u ada
    """
    number = options.ask(lambda memory: memory.delete_tests(memory_ids or None, dry_run=dry_run))
    options.show(
        {"removed": 0 if dry_run else number, "found": number},
        lambda _: output.console.print(
            f"{number} test memories {'found' if dry_run else 'removed'}."
        ),
    )


@test.command()
def scenario(
    name: Annotated[
        str,
        typer.Argument(
            help=f"One of {', '.join(SCENARIOS)}.", autocompletion=lambda: list(SCENARIOS)
        ),
    ],
    options: MemoryOptions,
    dry_run: DryRun = False,
) -> None:
    """Play a scenario with test memories and remove them; exit code 1 if it went otherwise.

    Example: engram test scenario fade -u ada
    """
    played = options.answer(
        lambda memory: memory.play_scenario(name, dry_run=dry_run),
        _print_scenario,
        doing=f"Playing {name}",
    )
    if not played.passed:
        raise typer.Exit(exits.FAILED)


@test.command("learning")
def learning_trial(
    file: Annotated[
        Path, typer.Argument(help="Turns: an export or a transcript, as engram import reads them.")
    ],
    learning: Annotated[
        Path | None,
        typer.Option(help="JSON file of what to ask for, in place of what is set."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Try what the namespace asks to learn over the turns of a file; nothing is stored.

    The language model of ENGRAM_MODEL reads them with and without what is asked for, 20
    batches at most. Shown with + is what is learnt only so, with - what is learnt only without.

    Example: engram test learning conversations.zip --learning clinic.json
    """
    from engram.agents.asking import thinker  # noqa: PLC0415 - slow; no help text needs it
    from engram.operations.learning import try_learning  # noqa: PLC0415 - same
    from engram.settings import Settings  # noqa: PLC0415 - same
    from engram.system import system_clock  # noqa: PLC0415 - same

    settings = settings_from()
    if learning is not None:
        asked = {settings.namespace: _json_of(learning)}
        settings = Settings.load(learning_by_namespace=asked)
    model = thinker(settings.model)
    with output.telling("Asking the model") as tell:
        tried = run(lambda: watched(try_learning(file, settings, model, now=system_clock()), tell))
    if as_json:
        output.print_json(tried)
    else:
        _print_learning(tried)


def _json_of(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"{path} cannot be read as JSON ({type(error).__name__}).",
            allowed='one JSON object, such as {"instructions": "...", "entity_types": ["drug"]}',
        ) from None


def _print_learning(tried: LearningTrial) -> None:
    asked = "what was asked for cannot be followed" if tried.not_followed else "nothing asked for"
    version = f"version {tried.version}" if tried.version else asked
    output.console.print(f"{tried.namespace}, {tried.model}: {version}", style="dim", markup=False)
    now, before = (dict.fromkeys(x.content for x in each) for each in (tried.learnt, tried.without))
    for one in tried.learnt:
        mark = "+" if tried.version and one.content not in before else " "
        labels = ", ".join((one.category.value, *one.tags))
        output.console.print(f"{mark} {one.content}  ({labels})", markup=False)
    for content in before:
        if content not in now:
            output.console.print(f"- {content}", markup=False)
    if tried.not_followed:
        parts = ", ".join(tried.not_followed)
        output.console.print(f"The language rules cannot follow: {parts}.", markup=False)
    more = "; there are more, which were not" if tried.remaining else ""
    output.console.print(f"{tried.turns} turns read{more}. Nothing was stored.", style="dim")


def _print_scenario(played: ScenarioReport) -> None:
    for step in played.steps:
        output.console.print(step)
    if played.dry_run:
        output.console.print("Nothing was done: this was a dry run.", style="dim")
    else:
        output.console.print("As expected." if played.passed else "Not as expected.")


def _print_tests(memories: Sequence[AnyMemory]) -> None:
    if not memories:
        output.errors.print("There are no test memories.", style="dim")
    for memory in memories:
        output.console.print(
            f"{memory.id}  {memory.status.value}  {memory.access_count} recalls", style="dim"
        )
        output.print_memories([memory])
