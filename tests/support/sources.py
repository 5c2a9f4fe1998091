"""Sources of this project, parsed once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import engram

PACKAGE: Final = Path(engram.__file__).parent
"""Where the package lies: in the checkout, or where the wheel was installed."""
# In a checkout these are links, which a walk does not follow.
_LINKED: Final = ("workflows", "activities")
MODULES: Final = sorted(
    {*PACKAGE.rglob("*.py"), *(path for room in _LINKED for path in (PACKAGE / room).glob("*.py"))}
)


def place_of(path: Path) -> str:
    """A module's path, as the package names it: ``engram/domain/turns.py``."""
    return path.relative_to(PACKAGE.parent).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    """A module, parsed."""
    return ast.parse(path.read_text("utf-8"))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Everything in a module."""
    return tuple(ast.walk(tree_of(path)))


def imported(path: Path) -> Iterator[str]:
    """The modules that a module names in its imports."""
    for node in nodes_of(path):
        match node:
            case ast.ImportFrom(module=str(module), names=names):
                yield module
                # The name may be a module's.
                yield from (f"{module}.{one.name}" for one in names)
            case ast.Import(names=names):
                yield from (one.name for one in names)
