"""Commands that show what is kept: memories, histories, profiles, topics, boxes, costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text

from engram.cli import output
from engram.cli.running import (
    ANSWERING_FORMS,
    MEMORY_STATES,
    Commands,
    Forms,
    IncludeTest,
    MemoryId,
    MemoryOptions,
    MemoryTypes,
    OneRun,
    OneSession,
    Roles,
    Tags,
    WithoutTags,
    one_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.client.memory import MemoryStore
    from engram.contracts.messages import UserUsage
    from engram.domain.buffer import RememberedTurn
    from engram.domain.memories import AnyMemory, RunLink
    from engram.operations.digests import MemoryBox, Profile, Topic
    from engram.operations.memories import MemoryPage

# --- commands that look at what is kept: lists, single memories, their history, sessions, costs

commands = Commands()

Status = Annotated[str | None, one_of(MEMORY_STATES, "Only with this status")]


@commands.command("list")
def list_memories(
    options: MemoryOptions,
    memory_type: MemoryTypes = None,
    status: Status = None,
    form: Forms = ANSWERING_FORMS,
    role: Roles = None,
    session: OneSession = None,
    tag: Tags = None,
    without_tag: WithoutTags = None,
    run_id: OneRun = None,
    include_test: IncludeTest = False,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many at most.")] = 50,
    cursor: Annotated[
        str | None, typer.Option(help="Go on where the page before said that there is more.")
    ] = None,
) -> None:
    """What is kept, type by type, oldest first; digests with --form.

    Example: engram list -u ada -t semantic --status active

    Example: engram list -u ada -t semantic --form topic --form box

    Example: engram list -u ada --json

    Example: engram list -u ada --run-id 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11
    """
    options.answer(
        lambda memory: memory.list(
            memory_types=memory_type,
            status=status,
            limit=limit,
            cursor=cursor,
            include_test=include_test,
            forms=form,
            roles=role,
            session_id=session,
            tags=tag,
            without_tags=without_tag,
            run_id=run_id,
        ),
        _print_page,
    )


def _print_page(page: MemoryPage) -> None:
    _print_memories(page.memories, empty="Nothing is kept yet.")
    if page.cursor is not None:
        output.errors.print(f"There is more: --cursor {page.cursor}", style="dim")


@commands.command("count", rich_help_panel="Look at memories")
def count(
    options: MemoryOptions,
    memory_type: MemoryTypes = None,
    status: Status = None,
    session: OneSession = None,
    tag: Tags = None,
    without_tag: WithoutTags = None,
    form: Forms = None,
    role: Roles = None,
    run_id: OneRun = None,
) -> None:
    """How many memories there are of a kind.

    Example: engram count -u ada -t semantic --status active

    Example: engram count -u ada --tag work --json
    """
    found = options.ask(
        lambda memory: memory.count(
            memory_types=memory_type,
            status=status,
            session_id=session,
            tags=tag,
            without_tags=without_tag,
            forms=form,
            roles=role,
            run_id=run_id,
        )
    )
    options.show({"count": found}, lambda answer: output.console.print(answer["count"]))


@commands.command()
def show(
    memory_id: MemoryId,
    options: MemoryOptions,
) -> None:
    """One memory with all that is kept of it, and the run that wrote it.

    Example: engram show 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada
    """

    async def read(memory: MemoryStore) -> tuple[AnyMemory, RunLink | None]:
        found = await memory.get(memory_id)
        return found, memory.run_of(found)

    found, run = options.ask(read)
    where = None if run is None else run.url or run.workflow_id
    options.show(
        {**found.model_dump(mode="json"), "run": run},
        lambda _: output.print_fields(str(output.memory_text(found)), found, run=where),
    )


@commands.command()
def history(
    memory_id: MemoryId,
    options: MemoryOptions,
) -> None:
    """What a memory replaced, and what replaced it, oldest first.

    Example: engram history 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada
    """
    options.answer(
        lambda memory: memory.history(memory_id),
        lambda found: _print_memories(found, empty=None),
    )


@commands.command()
def context(
    query: Annotated[str, typer.Argument(help="What the conversation is about.")],
    options: MemoryOptions,
    tokens: Annotated[int, typer.Option(help="How long it may become.")] = 1000,
) -> None:
    """A block of text for a prompt, with what is known about something.

    Example: engram context "Where does Ada live?" -u ada --tokens 300
    """
    block = options.ask(lambda memory: memory.context(query, tokens=tokens))
    options.show({"context": block}, lambda _: _print_context(block))


def _print_context(block: str) -> None:
    if block:
        output.console.print(block, markup=False, soft_wrap=True)
    else:
        output.errors.print("Nothing that bears on this is remembered.", style="dim")


@commands.command("working-memory")
def working_memory(
    session: Annotated[str, typer.Argument(help="The conversation.")],
    options: MemoryOptions,
) -> None:
    """The last turns of a conversation that runs; nothing of one that ended.

    Example: engram working-memory monday -u ada
    """
    options.answer(lambda memory: memory.working_memory(session), _print_turns)


def _print_turns(turns: Sequence[RememberedTurn]) -> None:
    output.print_table(
        ("said", "who", "turn"),
        [(output.utc(turn.timestamp), turn.speaker or turn.role, turn.content) for turn in turns],
        empty="This session does not run.",
        dim=("said",),
    )


@commands.command()
def resolve(
    memory_id: MemoryId,
    resolution: Annotated[
        Literal["fulfilled", "expired"], typer.Argument(help="Kept, or come to nothing.")
    ],
    options: MemoryOptions,
) -> None:
    """Say how a commitment ended.

    Example: engram resolve 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 fulfilled -u ada
    """
    options.answer(
        lambda memory: memory.resolve(memory_id, resolution),
        lambda found: output.print_memories([found]),
    )


@commands.command()
def usage(options: MemoryOptions) -> None:
    """What language models were asked for this user, and what it cost.

    Example: engram usage -u ada
    """

    def plain(found: UserUsage) -> None:
        if found.attempts:
            output.print_fields(f"Models asked for {options.user}", found)
        else:
            output.errors.print("No language model was asked for this user.", style="dim")

    options.answer(lambda memory: memory.usage(), plain)


def _print_memories(memories: Sequence[AnyMemory], *, empty: str | None) -> None:
    output.print_table(
        ("id", "type", "status", "known", "memory"),
        [
            (
                memory.id,
                memory.type.value,
                memory.status.value,
                f"{memory.known_at:%Y-%m-%d}",
                output.memory_text(memory),
            )
            for memory in memories
        ],
        empty=empty,
        dim=("id", "known"),
        ids=("id",),
    )


# --- commands about whom and what is known: profiles, topics, boxes


@commands.command()
def profile(
    options: MemoryOptions,
    name: Annotated[str | None, typer.Argument(help="Any name; without one, the user.")] = None,
) -> None:
    """What is known about somebody or something, in few lines.

    Example: engram profile -u ada

    Example: engram profile "Sam Okafor" -u ada
    """
    options.answer(lambda memory: memory.profile(name), _print_profile)


@commands.command()
def topics(options: MemoryOptions) -> None:
    """What is known, by topic.

    Example: engram topics -u ada
    """
    options.answer(lambda memory: memory.topics(), _print_topics)


def _print_topics(found: Sequence[Topic]) -> None:
    output.print_table(
        ("topic", "memories"),
        [(topic.name, str(len(topic.member_ids))) for topic in found],
        empty="There are no topics yet.",
        right=("memories",),
    )


@commands.command()
def boxes(
    options: MemoryOptions,
    session: Annotated[str | None, typer.Option("--session", "-s", help="Only this one.")] = None,
) -> None:
    """Runs of turns on one topic.

    Example: engram boxes -u ada -s monday
    """
    options.answer(lambda memory: memory.boxes(session), _print_boxes)


def _print_boxes(found: Sequence[MemoryBox]) -> None:
    output.print_table(
        ("opened", "turns", "sealed", "topic"),
        [
            (
                output.utc(box.opened),
                str(len(box.episode_ids)),
                box.sealed or "open",
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
        doubt = ("  (disputed)", "yellow") if line.disputed else ""
        output.console.print(Text.assemble(f"- {line.text}", doubt))
    if not found.lines:
        output.console.print("Nothing is known yet.")
    for merge in found.merges:
        told = f"{merge.first} is {merge.second}: {merge.reason}"
        output.console.print(Text(told, style="dim"))
