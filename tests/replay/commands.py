"""Which lines of the workflows make commands, and which of them run in a replay."""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

WORKFLOWS = Path(__file__).parents[2] / "workflows"
# What runs beside workflows: workers, their sandbox, Nexus services, replays.
_BESIDE = frozenset({"__init__", "nexus", "replaying", "worker"})
MARKERS = frozenset({"patched", "deprecate_patch"})
_WITHOUT_WAITING = MARKERS | {"continue_as_new", "upsert_memo", "upsert_search_attributes"}
Line = tuple[str, int]
"""A file of the workflows, by its name, and a line of it."""


class Command(NamedTuple):
    """Where a workflow asks Temporal for something, or waits.

    Attributes:
        file: Of the workflows, by its name.
        first: Its first line.
        last: Its last line.
        text: As it is written, on one line.
    """

    file: str
    first: int
    last: int
    text: str

    def is_in(self, lines: set[Line]) -> bool:
        """Whether one of these lines is its own."""
        return any((self.file, number) in lines for number in range(self.first, self.last + 1))

    def __str__(self) -> str:
        """As an editor finds it."""
        return f"workflows/{self.file}:{self.first}: {self.text}"


def commands() -> list[Command]:
    """Every wait, and every command for which nobody waits."""
    return [
        Command(path.name, node.lineno, node.end_lineno or node.lineno, ast.unparse(node))
        for path, tree in _modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Await)
        or (isinstance(node, ast.Call) and _called(node) in _WITHOUT_WAITING)
    ]


def markers() -> set[str]:
    """The names of all patches."""
    found: set[str] = set()
    for _, tree in _modules():
        named = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _called(node) in MARKERS:
                (given,) = node.args
                value = named.get(given.id) if isinstance(given, ast.Name) else given
                assert isinstance(value, ast.Constant), ast.unparse(node)
                found.add(str(value.value))
    return found


@contextmanager
def lines_run() -> Iterator[set[Line]]:
    """The lines of workflows that threads run which begin meanwhile, as a replay's do."""
    seen: set[Line] = set()
    ours = {path.resolve(): path.name for path, _ in _modules()}
    names: dict[str, str | None] = {}

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code.co_filename
        if code not in names:
            names[code] = ours.get(Path(code).resolve())
        name = names[code]
        if name is None:
            return None
        if event == "line":
            seen.add((name, frame.f_lineno))
        return trace

    before = threading.gettrace()
    threading.settrace(trace)
    try:
        yield seen
    finally:
        threading.settrace(before)


def _modules() -> list[tuple[Path, ast.Module]]:
    return [
        (path, ast.parse(path.read_text("utf-8")))
        for path in sorted(WORKFLOWS.glob("*.py"))
        if path.stem not in _BESIDE
    ]


def _called(node: ast.Call) -> str | None:
    """The function of ``temporalio.workflow`` that is called, if one is."""
    match node.func:
        case ast.Attribute(value=ast.Name(id="workflow"), attr=name):
            return name
    return None
