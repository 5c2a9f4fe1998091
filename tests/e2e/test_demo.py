"""The first command of the README, played twice: as it comes, and with other people."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.played_demo import play
from tests.support.sources import PACKAGE

DATA = Path(__file__).parent.parent / "data"
OTHER = DATA / "demo_other.json"


def section(printed: str, headline: str) -> list[str]:
    """The lines under a headline."""
    lines = printed.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(headline)) + 1
    end = next((n for n in range(start, len(lines)) if not lines[n].strip()), len(lines))
    return lines[start:end]


@pytest.mark.long
def test_the_demo_shows_what_it_promises(tmp_path: Path) -> None:
    """Facts, conclusions, a link, a negation, as-of answers, a source, and where the run is."""
    printed = play(tmp_path)
    facts = "\n".join(section(printed, "Facts that patterns found at once"))
    for value in ("mara.lindqvist@example.org", "2026-01-23", "+351912345678", "EUR 1249.00"):
        assert value in facts
    assert any("Lisbon" in line for line in section(printed, "A link"))
    assert "Gothenburg" in section(printed, "Where does Mara live? Asked as of 01 April")[1]
    assert "Lisbon" in section(printed, "Where does Mara live? Asked as of 01 June")[1]
    assert "Tejo Robotics" in section(printed, "Where does Mara work?")[1]
    # The UI is on only with --keep: else it would be gone when somebody reads this.
    workflow, how_to_see_it = section(printed, "The workflow that concluded this")
    assert workflow.startswith("consolidation/")
    assert "--keep" in how_to_see_it
    assert list(tmp_path.glob("engram-demo-*")) == []


@pytest.mark.slow
def test_the_demo_reads_back_what_it_was_told(tmp_path: Path) -> None:
    """With other names, cities and wording the answers are the others': nothing is canned."""
    script = json.loads(OTHER.read_text("utf-8"))
    own = json.loads((PACKAGE / "cli" / "conversation.json").read_text("utf-8"))
    words = {turn["text"] for session in own["sessions"] for turn in session["turns"]}
    assert not words & {t["text"] for session in script["sessions"] for t in session["turns"]}
    printed = play(tmp_path, "--conversation", str(OTHER))
    facts = "\n".join(section(printed, "Facts that patterns found at once"))
    for value in ("tariq@mwangi.example", "+4722123456", "USD 2400.00"):
        assert value in facts
    negation = section(printed, "A negation at work: Does Tariq use Jenkins?")
    assert any("not use Jenkins" in line or "no longer uses" in line for line in negation)
    assert not any("Tariq uses Jenkins." in line for line in negation)
    assert "Nairobi" in section(printed, "Where does Tariq live? Asked as of 01 May")[1]
    assert "Oslo" in section(printed, "Where does Tariq live? Asked as of 01 August")[1]
    source = section(printed, "With its source: What is Ines allergic to?")
    assert any("from Ines: I'm allergic to shellfish" in line for line in source)
    for name in ("Mara", "Jonas", "Lisbon", "MongoDB"):
        assert name not in printed


@pytest.mark.parametrize("content", [b"{}", b"", b"\xff\xfe\x00"])
def test_a_demo_file_of_another_form_is_refused(tmp_path: Path, content: bytes) -> None:
    """A wrong file is a typed error and exit code 1, not a traceback."""
    wrong = tmp_path / "wrong.json"
    wrong.write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-m", "engram.cli", "demo", "--conversation", str(wrong)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert "demo conversation cannot be read" in done.stderr
    assert "Traceback" not in done.stderr
    assert tempfile.gettempdir() not in done.stdout
