"""The parts of a score, in the code and in what is written down of them."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable, Iterator

import pytest

from engram.recall.results import ScorePart
from tests.support.sources import MODULES, nodes_of, place_of

# Sources are parsed once, in one process.
pytestmark = pytest.mark.xdist_group("sources")


def _parts_made() -> Iterator[str]:
    """The names of all parts that the code of recall makes."""
    for path in MODULES:
        if not place_of(path).startswith("engram/recall/"):
            continue
        for node in nodes_of(path):
            match node:
                case ast.Call(func=ast.Attribute(attr="moved_to" | "behind" | "times"), args=args):
                    yield from _texts(args)
                case ast.FunctionDef(name="_scored" | "_factors"):
                    tuples = [one for one in ast.walk(node) if isinstance(one, ast.Tuple)]
                    yield from _texts(item for one in tuples for item in one.elts[:1])


def _texts(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_every_part_of_a_score_is_written_down() -> None:
    """Those that the code makes are those that the description of a part names."""
    told = inspect.getdoc(ScorePart)
    assert told is not None
    assert sorted(set(_parts_made())) == sorted(re.findall(r"`(\w+)`", told))
