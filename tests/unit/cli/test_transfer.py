"""`engram migrate`: what it reads, and what it says of it."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from engram.cli import exits, transfer
from tests.support.cli import engram

MOVED = {"content": "I moved to Zürich.", "timestamp": "2026-01-01T00:00:00Z"}


def test_standard_input_is_utf8_whatever_the_locale_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memories that come through a pipe have the characters that were written into it."""
    piped = io.BytesIO(json.dumps(MOVED, ensure_ascii=False).encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(piped, encoding="cp1252"))
    (item,) = transfer._read(Path("-"))  # noqa: SLF001 - what the command hands on
    assert item.content == MOVED["content"]


def test_a_pipe_that_holds_no_text_is_refused() -> None:
    """Bytes that are no UTF-8 are told apart from a file that cannot be read."""
    done = engram("migrate", "-", "-u", "ada", "--dry-run", stdin=b"\xff\xfe\xfa")
    assert done.code == exits.FAILED
    assert done.stderr.startswith("error: Standard input cannot be read.\nallowed: UTF-8")


def test_a_dry_run_is_told_to_programs_too(tmp_path: Path) -> None:
    """One JSON document with how many can be read, and a sentence for people."""
    file = tmp_path / "old.jsonl"
    file.write_text(json.dumps(MOVED) + "\n")
    asked = ("migrate", str(file), "-u", "ada", "--dry-run")
    assert json.loads(engram(*asked, "--json").stdout) == {"readable": 1, "dry_run": True}
    assert engram(*asked).stdout == "1 memories can be read; nothing was stored.\n"
