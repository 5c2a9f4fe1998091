"""Exports that another program changed are refused where they are wrong, in typed errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engram.domain.scope import Scope
from engram.errors import UnreadableSource
from engram.operations.trials import trial_turn
from engram.transfer.export import ExportedFile
from tests.support.clock import NOW
from tests.support.exports import export_lines

ADA = Scope.of("default", "ada")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"created_at": "2026-05-20T10:00:00"}, "has no time"),
        ({"timestamp": "yesterday"}, "has no time"),
        ({"sequence": "first"}, "has no number"),
        ({"sequence": None}, "has no number"),
        ({"content": 5}, r"cannot be read \(string type\)"),
        ({"content": "\ud800"}, r"cannot be read \(no text\)"),
        ({"of a newer version": 1}, r"cannot be read \(extra forbidden\)"),
        ({"type": "semantic", "identity": "x", "detail": ["x"]}, "lacks what its id"),
    ],
    ids=repr,
)
def test_a_memory_that_cannot_be_restored_is_named(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    """The line is told before anything is stored, so that it can be mended."""
    lines = export_lines(ADA, [trial_turn(ADA, words, NOW) for words in ("Tea.", "Milk.")])
    told = json.loads(lines[2])
    told["memory"] |= changed
    lines[2] = json.dumps(told)
    path = tmp_path / "export.jsonl"
    path.write_text("\n".join(lines), "utf-8")
    with pytest.raises(UnreadableSource, match=f"line 3 {said}"):
        ExportedFile(path, ADA)
