"""Commands that tell a memory something, and ask it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from engram.cli import output
from engram.cli.exits import FAILED
from engram.cli.running import (
    ROLES,
    STAGES,
    Commands,
    Forms,
    IncludeTest,
    MemoryOptions,
    MemoryTypes,
    Metadata,
    OneSession,
    OptionGroup,
    Roles,
    Session,
    Tags,
    WithoutTags,
    duration,
    moment,
    one_of,
    pairs,
)
from engram.errors import InvalidQuery, InvalidTurn, StageNotReached
from engram.system import local_time, local_zone

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engram.client.memory import MemoryStore
    from engram.contracts.session import SessionSummary
    from engram.operations.progress import TurnProgress
    from engram.operations.turns import Receipt

commands = Commands()

Within = Annotated[
    float, typer.Option("--within", help="Seconds to wait at most.", metavar="SECONDS", min=0)
]


@dataclass(frozen=True, kw_only=True)
class TurnOptions(OptionGroup):
    """What a turn can be given besides its words."""

    tag: Annotated[
        list[str] | None, typer.Option(help="A label that recall can filter by; may be repeated.")
    ] = None
    importance: Annotated[float | None, typer.Option(help="0 to 1; biases fading and ranking.")] = (
        None
    )
    metadata: Metadata = None
    summary: Annotated[str | None, typer.Option(help="What it comes to, in a sentence.")] = None
    expires_at: Annotated[str | None, typer.Option(help="When it ends, ISO 8601 with zone.")] = None
    expires_in: Annotated[
        str | None, typer.Option(help="How long it lasts: 90s, 30m, 12h, 7d, 2w.")
    ] = None

    def fields(self) -> dict[str, Any]:
        """As fields of a turn."""
        return {
            "tags": tuple(self.tag or ()),
            "importance": self.importance,
            "metadata": pairs(self.metadata),
            "summary": self.summary,
            "expires_at": moment(self.expires_at, InvalidTurn),
            "expires_in": duration(self.expires_in),
        }


@dataclass(frozen=True, kw_only=True)
class WaitOptions(OptionGroup):
    """How far a turn is waited for, and how long."""

    wait: Annotated[str | None, one_of(STAGES, "Wait until it is as far")] = None
    within: Within = 60.0


@dataclass(frozen=True, kw_only=True)
class RecallOptions(OptionGroup):
    """What answers are narrowed to, and widened by."""

    valid_at: Annotated[
        str | None, typer.Option(help="What was true then, ISO 8601 with zone.")
    ] = None
    min_score: Annotated[
        float | None, typer.Option(help="Leave out answers with a lower score, 0 to 1.")
    ] = None
    min_confidence: Annotated[
        float | None, typer.Option(help="Leave out conclusions that are less sure, 0 to 1.")
    ] = None
    min_selectivity: Annotated[
        float | None, typer.Option(help="Leave out knowledge of lower selectivity, 0 to 1.")
    ] = None
    session: OneSession = None
    tag: Tags = None
    without_tag: WithoutTags = None
    role: Roles = None
    form: Forms = None
    metadata: Metadata = None
    context: Annotated[
        str | None,
        typer.Option(help="Circumstances, in words: habits bound to others come further behind."),
    ] = None
    zone: Annotated[
        str | None,
        typer.Option(
            help="Zone that days in the question are read in, such as Europe/Lisbon; this "
            "machine's if absent."
        ),
    ] = None
    include_archived: Annotated[
        bool, typer.Option("--include-archived", help="Archived memories too.")
    ] = False
    include_test: IncludeTest = False
    no_stale: Annotated[
        bool, typer.Option("--no-stale", help="Leave out what was not used for long.")
    ] = False

    def arguments(self) -> dict[str, Any]:
        """As arguments of ``recall``."""
        return {
            "valid_at": moment(self.valid_at, InvalidQuery),
            "min_score": self.min_score,
            "min_confidence": self.min_confidence,
            "min_selectivity": self.min_selectivity,
            "session_id": self.session,
            "tags": self.tag,
            "without_tags": self.without_tag,
            "roles": self.role,
            "forms": self.form,
            "metadata": pairs(self.metadata) or None,
            "context": self.context,
            # Who types it is where this machine is: "yesterday" is theirs.
            "timezone": local_zone() if self.zone is None else self.zone,
            "include_archived": self.include_archived,
            "include_test": self.include_test,
            "include_stale": not self.no_stale,
        }


@commands.command()
def encode(
    text: Annotated[str, typer.Argument(help="What was said; - reads standard input.")],
    options: MemoryOptions,
    given: TurnOptions,
    waiting: WaitOptions,
    session: Session = "cli",
    role: Annotated[str, one_of(ROLES, "Who said it")] = "user",
    speaker: Annotated[str | None, typer.Option(help="The speaker's name.")] = None,
    at: Annotated[str | None, typer.Option(help="When it was said, ISO 8601 with zone.")] = None,
    message_id: Annotated[
        str | None, typer.Option(help="Your id for it: sending it again stores nothing new.")
    ] = None,
) -> None:
    """Keep one conversation turn.

    Example: engram encode "I moved to Lisbon in May." -u ada

    Example: engram encode - -u ada -s monday < notes.txt

    Example: engram encode "The gate is B12." -u ada --expires-in 12h --wait linked
    """
    from engram.domain.turns import Turn  # noqa: PLC0415 - slow; no help text needs it

    turn = Turn(
        content=_read() if text == "-" else text,
        role=role,
        speaker=speaker,
        # Who types it is where this machine is: "tomorrow" is theirs.
        timestamp=moment(at, InvalidTurn) or local_time(),
        message_id=message_id,
        **given.fields(),
    )
    stage = waiting.wait
    if stage is not None:
        from engram.operations.progress import stage_of  # noqa: PLC0415 - only what is used loads

        # Before anything is stored.
        stage_of(stage)
    else:
        options.answer(
            lambda memory: memory.encode(turn, session_id=session),
            lambda receipt: output.print_fields("Stored", receipt),
            doing="Storing",
        )
        return

    async def work(memory: MemoryStore) -> tuple[Receipt, TurnProgress]:
        receipt = await memory.encode(turn, session_id=session)
        return receipt, await _waited(memory, receipt.episode_ids, stage, waiting.within)

    receipt, progress = options.ask(work, doing="Storing")
    if options.as_json:
        told = progress.model_dump(mode="json")
        output.print_json({**receipt.model_dump(mode="json"), "progress": told})
    else:
        output.print_fields("Stored", receipt)
        _print_progress(progress)
    _exit_by(progress)


@commands.command("wait", rich_help_panel="Sessions")
def wait_until(
    episode_ids: Annotated[
        list[str], typer.Argument(help="Ids of turns, as `engram encode` printed them.")
    ],
    options: MemoryOptions,
    until: Annotated[str, one_of(STAGES, "How far")] = "linked",
    within: Within = 60.0,
) -> None:
    """Wait until turns are consolidated, and say where they stand.

    Example: engram wait 6f1c1b0e-5d0f-5f3e-9a43-1f2f8f0c7a11 -u ada --until extracted
    """
    progress = options.ask(
        lambda memory: _waited(memory, episode_ids, until, within), doing="Waiting"
    )
    options.show(progress, _print_progress)
    _exit_by(progress)


async def _waited(
    memory: MemoryStore, episode_ids: Sequence[str], stage: str, within: float
) -> TurnProgress:
    """Where the turns stand when they are as far, or the time is over."""
    try:
        # The method itself looks at the name.
        found = await memory.wait_until(episode_ids, stage, within=within)  # type: ignore[arg-type]
    except StageNotReached as error:
        from engram.operations.progress import TurnProgress  # noqa: PLC0415 - only what is used loads

        return TurnProgress.model_validate(error.details)
    return found


def _print_progress(progress: TurnProgress) -> None:
    stage = str(progress.stage)
    output.print_fields(stage.capitalize() if progress.reached else f"Not {stage} yet", progress)


def _exit_by(progress: TurnProgress) -> None:
    if not progress.reached:
        raise typer.Exit(FAILED)


@commands.command()
def recall(
    query: Annotated[
        str, typer.Argument(help="A question, or a few words; - reads standard input.")
    ],
    options: MemoryOptions,
    narrowing: RecallOptions,
    limit: Annotated[int, typer.Option("--limit", "-n", help="How many answers at most.")] = 10,
    memory_type: MemoryTypes = None,
    as_of: Annotated[
        str | None, typer.Option(help="What was known then, ISO 8601 with zone.")
    ] = None,
    sources: Annotated[bool, typer.Option("--sources", help="Show the turns behind it.")] = False,
    links: Annotated[bool, typer.Option("--links", help="Follow links.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say why each came back.")] = False,
    ids: Annotated[bool, typer.Option("--ids", help="Show the ids of memories.")] = False,
) -> None:
    """Ask what is remembered.

    Example: engram recall "Where does Ada live?" -u ada --sources

    Example: engram recall tea -u ada -t factual -t semantic --json

    Example: engram recall tea -u ada --tag home --metadata app=diary --min-score 0.4

    Example: engram recall "How do I relax?" -u ada --context "working late"
    """
    question = _read() if query == "-" else query
    when = moment(as_of, InvalidQuery)
    options.answer(
        lambda memory: memory.recall(
            question,
            limit=limit,
            memory_types=memory_type,
            as_of=when,
            include_sources=sources,
            follow_links=links,
            explain=explain,
            **narrowing.arguments(),
        ),
        lambda hits: output.print_hits(hits, ids=ids),
    )


@commands.command("end-session")
def end_session(
    session: Annotated[str, typer.Argument(help="The conversation.")],
    options: MemoryOptions,
) -> None:
    """End a conversation; its consolidation follows in the background.

    Example: engram end-session monday -u ada
    """
    options.answer(lambda memory: memory.end_session(session), _print_end, doing="Ending")


def _print_end(summary: SessionSummary | None) -> None:
    if summary is None:
        output.errors.print("This session was not running.", style="dim")
    else:
        output.print_fields("Ended", summary)


def _read() -> str:
    """Standard input, whatever the locale says; the last line's end is no part of what is said.

    Raises:
        InvalidTurn: it is no text.
    """
    try:
        return sys.stdin.buffer.read().decode("utf-8").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InvalidTurn("Standard input is no text.", allowed="UTF-8") from error
