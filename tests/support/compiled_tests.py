"""Tests and what they import, compiled by two processes before many would do it side by side."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def compile_all_tests(folder: Path) -> None:
    """Let two processes collect half of the tests each: pytest keeps what it compiles.

    Whatever goes wrong is left to the run itself, which says it better.
    """
    inside = sorted(path for path in folder.iterdir() if path.is_dir())
    unit = [path for path in inside if path.name == "unit"]
    halves = unit, [path for path in inside if path not in unit]
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0"]
    begun = [
        subprocess.Popen(
            [*collect, *map(str, half)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for half in halves
    ]
    for process in begun:
        process.wait()
