"""The commands that import and export, beside a running `engram up`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.running_up import Up

# What runs is started once, in one process (tests/e2e/conftest.py).
pytestmark = pytest.mark.xdist_group("up")


@pytest.fixture(scope="module")
def up(up: Up) -> Up:
    """For a user of this file's own."""
    return replace(up, user="importing")


def test_the_commands(up: Up, tmp_path: Path) -> None:
    """Import, look, export and restore through another process, as people do it."""
    file = tmp_path / "talk.md"
    file.write_text("**User:** I live in Porto.\n\n**Assistant:** Nice!\n\n**System:** x\n")
    dry = up.engram("import", str(file), "--dry-run")
    assert dry.code == 0, dry.stderr
    assert "transcript: 2 turns in 1 conversations" in dry.stdout
    assert "1 left out: role system (line 5)" in dry.stdout
    assert "Nothing was stored" in dry.stdout
    told = up.json("import", str(file))
    assert isinstance(told, dict)
    assert told["tally"]["stored"] == 2
    piped = up.engram("import", "-", stdin='{"content": "I like tea.", "session_id": "s"}\n')
    assert "1 stored" in piped.stdout, piped.stderr
    exported = tmp_path / "ada.jsonl"
    done = up.engram("export", str(exported))
    assert done.code == 0, done.stderr
    assert "memories exported" in done.stderr
    restored = up.engram("import", str(exported), "-u", "restoring")
    assert restored.code == 0, restored.stderr
    out = up.engram("export", "-", "-u", "restoring")
    assert len(out.stdout.splitlines()) == len(exported.read_text().splitlines())
    assert json.loads(out.stdout.splitlines()[0])["user_id"] == "restoring"


def test_a_broken_file_is_refused_before_anything_is_stored(up: Up, tmp_path: Path) -> None:
    """By command the whole file is looked at first; the error names the line, not its words."""
    file = tmp_path / "broken.jsonl"
    file.write_text('{"content": "fine"}\n{"content": "a secret"\n')
    refused = up.engram("import", str(file), "-u", "carol")
    assert refused.code != 0
    assert "line 2" in refused.stderr.lower()
    assert "secret" not in refused.stderr + refused.stdout
    listed = up.json("list", "-u", "carol")
    assert "fine" not in str(listed)
    missing = up.engram("import", str(tmp_path / "none.json"), "-u", "carol")
    assert missing.code != 0
    assert "cannot be read" in missing.stderr
