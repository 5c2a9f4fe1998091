"""What the command line prints: tables for people, lines for pipes, JSON for programs.

On a terminal, tables with columns and colours. Anywhere else, a line for each row with
tabs between the cells: nothing is wrapped, cut or coloured, and ``cut`` and ``awk`` can
take it apart. What is no answer (errors, progress, questions) goes to standard error.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from engram.domain.sanitize import escaped, harmless, one_line

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import ConsoleOptions, RenderableType
    from rich.segment import Segment

    from engram.domain.memories import AnyMemory
    from engram.errors import EngramError
    from engram.recall.results import RecallHit


class PipeConsole(Console):
    """Wraps and cuts lines on a terminal only. NO_COLOR is rich's own.

    Whatever is printed is only shown: what somebody said, or called themselves, moves no
    cursor. That is seen to here, where everything passes, and not where each of it comes from.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """See :meth:`rich.console.Console.render`."""
        for segment in super().render(renderable, options):
            # Rich's own control codes, as of a progress bar, are segments of another kind.
            yield segment if segment.control else segment._replace(text=harmless(segment.text))

    def print(self, *objects: Any, soft_wrap: bool | None = None, **options: Any) -> None:
        """See :meth:`rich.console.Console.print`."""
        unwrapped = not self.is_terminal if soft_wrap is None else soft_wrap
        super().print(*objects, soft_wrap=unwrapped, **options)

    def on_broken_pipe(self) -> None:
        """Leave it to the command line to end as programs do whose reader went away."""
        raise BrokenPipeError


# Nothing that Engram says has emojis in it, and their names would be loaded to look for some.
console = PipeConsole(highlight=False, emoji=False)
errors = PipeConsole(stderr=True, highlight=False, emoji=False)


_LONE: Final = re.compile("[\ud800-\udfff]")


def print_json(value: Any) -> None:
    """One JSON document on standard output, never wrapped or coloured."""
    from pydantic_core import to_jsonable_python  # noqa: PLC0415 - slow; no help text needs it

    plain = to_jsonable_python(value)
    # Where the output cannot have every character, JSON has another way to write it.
    unicode = console.encoding.startswith("utf")
    print_document(json.dumps(plain, ensure_ascii=not unicode, indent=2))


def print_document(document: str) -> None:
    """JSON as it is; on a terminal, characters that would act there are escaped.

    What no text can hold, as in the name of a file that is no UTF-8, is escaped everywhere.
    """
    shown = escaped(document) if console.is_terminal else document
    console.file.write(_LONE.sub(lambda found: f"\\u{ord(found[0]):04x}", shown) + "\n")


def print_error(error: EngramError, *, as_json: bool = False) -> None:
    """An error: what was wrong, what is allowed, what to do.

    For people on standard error. For programs also as the one JSON document that they
    were promised on standard output: ``{"error": {"code": ..., "message": ...}}``.
    """
    told = Text.assemble(("error: ", "bold red"), error.message)
    if error.allowed:
        told.append(f"\nallowed: {error.allowed}")
    if error.hint:
        told.append(f"\nhint: {error.hint}", style="dim")
    if error.retryable:
        told.append("\nThe same command can succeed later.", style="dim")
    errors.print(told)
    if as_json:
        print_json({"error": error.as_dict()})


def warn(message: str) -> None:
    """A line on standard error about something that does not stop the command."""
    errors.print(Text.assemble(("warning: ", "bold yellow"), message))


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    *,
    empty: str | None = None,
    title: str | None = None,
    right: Sequence[str] = (),
    dim: Sequence[str] = (),
    ids: Sequence[str] = (),
) -> None:
    """Rows of cells.

    Args:
        columns: Their names, the first line of what is printed.
        rows: As many cells each as there are columns; in a pipe, perhaps more.
        empty: What is said instead of a table without rows; nothing if None.
        title: A line before the table, on terminals.
        right: Columns of numbers, by name.
        dim: Columns that matter less.
        ids: Columns of ids, none of them the last. A terminal has each on one line, to be copied:
            where they leave the rest too little room, they go below it.
    """
    if not rows:
        if empty is not None:
            errors.print(empty, style="dim")
        return
    if not console.is_terminal:
        for row in (columns, *rows):
            console.file.write("\t".join(_one_line(cell) for cell in row) + "\n")
        return
    # Before it is measured: what is replaced is wider than it was.
    cells = [[Text(harmless(x)) if isinstance(x, str) else x for x in row] for row in rows]
    if ids and _crowded(columns, cells):
        columns, cells = _with_ids_below(columns, cells, ids)
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in columns:
        table.add_column(
            name,
            justify="right" if name in right else "left",
            style="dim" if name in dim else None,
            overflow="fold",
            no_wrap=name in ids,
        )
    for row in cells:
        table.add_row(*row)
    console.print(table)


_READABLE: Final = 30
"""Columns of a terminal that sentences need at least."""


def _crowded(columns: Sequence[str], cells: Sequence[Sequence[Text]]) -> bool:
    """Whether the others leave the last column of a table less than can be read."""
    table: list[Sequence[Text]] = [[Text(name) for name in columns], *cells]
    *others, last = (
        max(line.cell_len for row in table for line in row[number].split())
        for number in range(len(columns))
    )
    # Two blanks stand between columns.
    return console.width - sum(others) - 2 * len(others) < min(last, _READABLE)


def _with_ids_below(
    columns: Sequence[str], cells: Sequence[Sequence[Text]], ids: Sequence[str]
) -> tuple[list[str], list[list[Text]]]:
    """The table without its columns of ids, which stand in lines of their own below the last."""
    left = [name for name in columns if name not in ids]
    rows = []
    for row in cells:
        named = dict(zip(columns, row, strict=True))
        below = [
            Text(f"{name} {named[name]}", style="dim") for name in ids if str(named[name]) != "-"
        ]
        *before, last = (named[name] for name in left)
        rows.append([*before, Text("\n  ").join([last, *below])])
    return left, rows


def print_fields(title: str, model: BaseModel, **more: str | None) -> None:
    """A model's fields and more, one a line; what is empty, zero or false is left out."""
    rows = [
        (name.replace("_", " "), plain(value))
        for name, value in {**model.model_dump(mode="json"), **more}.items()
        if value
    ]
    console.print(Text(title, style="italic"))
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        console.print(Text.assemble((f"  {name:<{width}}  ", "cyan"), value))


def print_hits(hits: Sequence[RecallHit], *, ids: bool = False) -> None:
    """Answers, best first; in a pipe, sources and explanations are further cells."""
    rows = []
    for hit in hits:
        words, *behind = _told(hit)
        row: list[str | Text] = [hit.memory.id] if ids else []
        row += [f"{hit.score:.2f}", str(hit.memory.type), f"{hit.memory.known_at:%Y-%m-%d}"]
        in_lines = Text("\n  ").join([words, *behind])
        rows.append([*row, in_lines] if console.is_terminal else [*row, words, *behind])
    print_table(
        (*(("id",) if ids else ()), "score", "type", "known", "memory"),
        rows,
        empty="Nothing that answers this is remembered.",
        right=("score",),
        dim=("id", "score", "known"),
        ids=("id",) if ids else (),
    )


def print_memories(memories: Iterable[AnyMemory], *, ids: bool = False) -> None:
    """Memories, one a line."""
    for memory in memories:
        text = memory_text(memory)
        console.print(
            Text.assemble(
                (f"{memory.id}  " if ids else "", "dim"),
                (f"{memory.known_at:%Y-%m-%d} ", "dim"),
                (f"{memory.type!s:<11}", "cyan"),
                text if console.is_terminal else _one_line(text),
            )
        )


def memory_text(memory: AnyMemory) -> Text:
    """The words of a memory, with who said them or what became of it."""
    from engram.domain.memories import (  # noqa: PLC0415 - slow; no help text needs it
        Episode,
        MemoryStatus,
    )
    from engram.lifecycle.policies import is_disputed, is_refuted  # noqa: PLC0415 - same

    if isinstance(memory, Episode):
        return Text(harmless(f"{one_line(memory.speaker or memory.role)}: {memory.content}"))
    text = Text(harmless(memory.content))
    if memory.status is not MemoryStatus.ACTIVE:
        text.append(f"  ({memory.status}", style="dim")
        text.append(f" until {memory.valid_to:%Y-%m-%d})" if memory.valid_to else ")", style="dim")
    if is_disputed(memory):
        text.append("  (refuted)" if is_refuted(memory) else "  (disputed)", style="yellow")
    return text


def _told(hit: RecallHit) -> list[Text]:
    """The words of an answer, and what is behind it."""
    words = memory_text(hit.memory)
    if hit.negated_by:
        words.append("  (denied later)", style="yellow")
    if hit.disputed and hit.memory.type == "episodic":
        words.append("  (disputed later)", style="yellow")
    told = [words]
    told += [Text.assemble(("from ", "dim"), memory_text(source)) for source in hit.sources]
    if hit.explanation is not None:
        told += [Text(line, style="dim") for line in str(hit.explanation).splitlines()]
    return told


def utc(when: datetime, *, seconds: bool = False) -> str:
    """A moment, to the minute or the second, with the Z that says that it is UTC."""
    return format(when.astimezone(UTC), f"%Y-%m-%d %H:%M{':%S' if seconds else ''}Z")


def _one_line(cell: str | Text) -> str:
    """A cell as it goes into a line; --json keeps every character."""
    return " ".join(harmless(str(cell)).split())


def plain(value: Any) -> str:
    """A value of a field in words."""
    if isinstance(value, list):
        nested = any(isinstance(item, dict) for item in value)
        return ("; " if nested else ", ").join(plain(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key} {plain(item)}" for key, item in value.items() if item)
    return str(value)


# --- how far something long is, for who watches and for who reads a log

SAY_SO: Final = 10.0
"""Seconds between two lines of progress where nobody watches."""


@contextmanager
def telling(doing: str) -> Iterator[Callable[[str], None]]:
    """Take how far something is, in words: a terminal shows it at once, a log now and then."""
    if errors.is_terminal:
        with errors.status(doing) as shown:
            yield lambda told: shown.update(f"{doing}: {told}")
        return
    said = time.monotonic()

    def say(told: str) -> None:
        nonlocal said
        if time.monotonic() - said >= SAY_SO:
            said = time.monotonic()
            errors.print(f"{doing}: {told}")

    yield say


@contextmanager
def advancing(doing: str) -> Iterator[Callable[[int, int], None]]:
    """Take how much of how much is done, to tell it."""
    with telling(doing) as tell:
        yield lambda done, total: tell(f"{done} of {total}")
