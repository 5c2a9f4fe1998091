"""The demo: a conversation over eight months, remembered before your eyes."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from engram.cli.output import console, errors, print_hits, print_memories
from engram.client.memory import MemoryStore
from engram.domain.memories import (
    DERIVED_TYPES,
    AnyMemory,
    LinkKind,
    MemoryForm,
    MemoryType,
    SemanticMemory,
)
from engram.domain.turns import Turn
from engram.errors import InvalidInput
from engram.settings import Settings

# --- the file format of a demo: sessions of turns, and the questions asked afterwards


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DemoTurn(_Part):
    """One utterance."""

    text: str
    at: datetime
    speaker: str | None = None
    role: str = "user"

    def as_turn(self, message_id: str) -> Turn:
        """The turn as an application would hand it over."""
        return Turn(
            role=self.role,
            content=self.text,
            speaker=self.speaker,
            timestamp=self.at,
            message_id=message_id,
        )


class DemoSession(_Part):
    """One conversation."""

    id: str
    turns: tuple[DemoTurn, ...] = Field(min_length=1)


class DemoQuestion(_Part):
    """Something to ask."""

    query: str


class ThenAndNow(DemoQuestion):
    """A question whose answer changed."""

    before: datetime
    after: datetime


class Questions(_Part):
    """What the demo asks."""

    plain: DemoQuestion
    negation: DemoQuestion
    then_and_now: ThenAndNow
    sources: DemoQuestion


class DemoScript(_Part):
    """A whole demo."""

    about: str
    user_id: str
    sessions: tuple[DemoSession, ...] = Field(min_length=1)
    questions: Questions


def load_script(path: Path | None) -> DemoScript:
    """The demo of a file, or the one that comes with Engram.

    Raises:
        InvalidInput: the file is missing or has another form.
    """
    try:
        text = (
            path.read_text("utf-8")
            if path is not None
            else files("engram.cli").joinpath("conversation.json").read_text("utf-8")
        )
        return DemoScript.model_validate_json(text)
    except (OSError, UnicodeDecodeError, ValidationError) as error:
        raise InvalidInput(
            "The demo conversation cannot be read.",
            allowed="a JSON file of the form of engram/cli/conversation.json",
        ) from error


# --- playing a demo through the public API, and showing what came back from memory


async def play(
    settings: Settings, *, conversation: Path | None, data_dir: Path | None, keep: bool
) -> None:
    """Play a conversation, consolidate it, and ask the script's questions.

    Args:
        settings: Of the embedded mode.
        conversation: A script of the same form as the one that comes with Engram.
        data_dir: Where to keep the data; a temporary folder when absent.
        keep: Stay up until Ctrl-C, so that the Temporal UI can be looked at.
    """
    from engram.embedded.open import open as open_embedded  # noqa: PLC0415 - loads everything

    script = load_script(conversation)
    async with AsyncExitStack() as stack:
        if data_dir is None:
            data_dir = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="engram-demo-")))
        with errors.status("Starting Temporal, a worker and the store"):
            memory = await stack.enter_async_context(
                open_embedded(
                    data_dir,
                    user_id=script.user_id,
                    settings=settings.model_copy(update={"temporal_ui": keep}),
                )
            )
        console.print(f"[bold]{escape(script.about)}[/bold]")
        await _encode(memory, script)
        await _consolidate(memory)
        await _show_knowledge(memory)
        await _show_answers(memory, script)
        await _show_run(memory)
        if keep:
            console.print("\nEverything stays up for a look around. Ctrl-C stops.")
            await asyncio.Event().wait()


async def _encode(memory: MemoryStore, script: DemoScript) -> None:
    total = sum(len(session.turns) for session in script.sessions)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=errors) as progress:
        task = progress.add_task("Turns stored", total=total)
        for session in script.sessions:
            for number, turn in enumerate(session.turns):
                await memory.encode(turn.as_turn(f"{session.id}-{number}"), session_id=session.id)
                progress.advance(task)
            await memory.end_session(session.id)
    stats = await memory.stats()
    console.print(
        f"{len(script.sessions)} sessions, "
        f"{stats.counts[MemoryType.EPISODIC]} turns kept word for word."
    )


async def _consolidate(memory: MemoryStore) -> None:
    with errors.status("Consolidating"):
        report = await memory.consolidate()
    stats = await memory.stats()
    derived = sum(stats.counts[kind] for kind in DERIVED_TYPES)
    console.print(
        f"Consolidated: {derived} conclusions, {stats.waiting} turns left to look at, "
        f"{report.links} links in the last pass."
    )


async def _show_knowledge(memory: MemoryStore) -> None:
    _headline("Facts that patterns found at once")
    print_memories((await memory.list(memory_types=[MemoryType.FACTUAL])).memories)
    _headline("What is not so")
    print_memories((await memory.list(memory_types=[MemoryType.NEGATION])).memories)
    _headline("What consolidation concluded, with its history")
    everything = (await memory.list(memory_types=[MemoryType.SEMANTIC], limit=500)).memories
    semantic = [m for m in everything if isinstance(m, SemanticMemory)]
    known = [m for m in semantic if m.form is MemoryForm.STATEMENT]
    print_memories(known)
    _headline("A link")
    pairs = _about_the_same(known)
    if not pairs:
        console.print("No two memories are linked.", style="dim")
        return
    print_memories(pairs[0])


def _about_the_same(known: Sequence[SemanticMemory]) -> list[tuple[AnyMemory, AnyMemory]]:
    """The pairs that a name links, those that hold now first."""
    by_id = {memory.id: memory for memory in known}
    pairs: list[tuple[AnyMemory, AnyMemory]] = [
        (memory, by_id[link.target_id])
        for memory in sorted(known, key=lambda one: one.superseded_by is not None)
        for link in memory.links
        if link.kind is LinkKind.ENTITY and link.target_id in by_id
    ]
    return pairs


async def _show_answers(memory: MemoryStore, script: DemoScript) -> None:
    ask = script.questions
    await _ask(memory, ask.plain)
    _headline(f"A negation at work: {ask.negation.query}")
    print_hits(
        await memory.recall(
            ask.negation.query,
            limit=3,
            memory_types=[MemoryType.SEMANTIC, MemoryType.NEGATION],
        )
    )
    changed = ask.then_and_now
    for moment in (changed.before, changed.after):
        _headline(f"{changed.query} Asked as of {moment:%d %B %Y}:")
        print_hits(
            await memory.recall_at(
                changed.query, as_of=moment, limit=1, memory_types=[MemoryType.SEMANTIC]
            )
        )
    _headline(f"With its source: {ask.sources.query}")
    print_hits(
        await memory.recall(
            ask.sources.query,
            limit=1,
            memory_types=[MemoryType.SEMANTIC],
            include_sources=True,
        )
    )


async def _ask(memory: MemoryStore, question: DemoQuestion) -> None:
    _headline(question.query)
    print_hits(await memory.recall(question.query, limit=3))


async def _show_run(memory: MemoryStore) -> None:
    known = (await memory.list(memory_types=[MemoryType.SEMANTIC])).memories
    run = memory.run_of(known[-1]) if known else None
    if run is None:
        return
    _headline("The workflow that concluded this")
    console.print(run.workflow_id, markup=False, soft_wrap=True)
    if run.url is not None:
        console.print(run.url, soft_wrap=True)
    else:
        console.print("`engram demo --keep` shows its run in the Temporal UI.", style="dim")


def _headline(text: str) -> None:
    console.print(f"\n[bold cyan]{escape(text)}[/bold cyan]")
