"""What the command line prints: tables for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python
from rich.console import Console
from rich.table import Table
from rich.text import Text

from engram.domain.memories import AnyMemory, Episode, MemoryStatus
from engram.errors import EngramError
from engram.recall.models import RecallHit

console = Console(highlight=False)
errors = Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:
    """One JSON document on standard output, never wrapped or coloured."""
    plain = to_jsonable_python(value)
    console.file.write(json.dumps(plain, ensure_ascii=False, indent=2) + "\n")


def print_error(error: EngramError) -> None:
    """An error on standard error: what was wrong, what is allowed, what to do."""
    errors.print(Text.assemble(("error: ", "bold red"), str(error)))
    if error.retryable:
        errors.print("The same command can succeed later.", style="dim")


def print_fields(title: str, model: BaseModel) -> None:
    """A model's fields, one a line; empty ones are left out."""
    table = Table(title=title, title_justify="left", box=None, show_header=False)
    for name, value in model.model_dump(mode="json").items():
        if value not in (None, [], {}, ""):
            table.add_row(Text(name.replace("_", " "), style="cyan"), Text(_plain(value)))
    console.print(table)


def print_hits(hits: Sequence[RecallHit]) -> None:
    """Answers, best first."""
    if not hits:
        console.print("Nothing that answers this is remembered.", style="dim")
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("score", justify="right", style="dim")
    table.add_column("type", style="cyan")
    table.add_column("known", style="dim")
    table.add_column("memory", overflow="fold")
    for hit in hits:
        table.add_row(
            f"{hit.score:.2f}",
            str(hit.memory.type),
            f"{hit.memory.known_at:%Y-%m-%d}",
            _told(hit),
        )
    console.print(table)


def print_memories(memories: Iterable[AnyMemory]) -> None:
    """Memories, one a line."""
    for memory in memories:
        console.print(
            Text.assemble(
                (f"{memory.known_at:%Y-%m-%d} ", "dim"),
                (f"{memory.type!s:<11}", "cyan"),
                memory_text(memory),
            )
        )


def memory_text(memory: AnyMemory) -> Text:
    """The words of a memory, with who said them or what became of it."""
    if isinstance(memory, Episode):
        return Text(f"{memory.speaker or memory.role}: {memory.content}")
    text = Text(memory.content)
    if memory.status is not MemoryStatus.ACTIVE:
        text.append(f"  ({memory.status}", style="dim")
        text.append(f" until {memory.valid_to:%Y-%m-%d})" if memory.valid_to else ")", style="dim")
    return text


def _told(hit: RecallHit) -> Text:
    text = memory_text(hit.memory)
    if hit.negated_by:
        text.append("  (denied later)", style="yellow")
    for source in hit.sources:
        text.append("\n  from ", style="dim")
        text.append(memory_text(source))
    if hit.explanation is not None:
        text.append(f"\n  {hit.explanation}", style="dim")
    return text


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    return str(value)
