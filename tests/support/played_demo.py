"""The demo of the README, played in a folder of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def play(tmp_path: Path, *arguments: str) -> str:
    """Run the demo in a temporary directory of its own; what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "engram.cli", "demo", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "TMPDIR": str(tmp_path),
            "COLUMNS": "200",
        },
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
