"""Wheels: made of a project, and installed into an environment of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path


def built(project: Path, into: Path) -> Path:
    """The wheel of a project, made without network, as the only one in a folder."""
    shutil.rmtree(into, ignore_errors=True)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)]
    subprocess.run(command, cwd=project, check=True, capture_output=True, timeout=400)
    (wheel,) = into.glob("*.whl")
    return wheel


def uv() -> str:
    """The command that runs the tests."""
    found = os.environ.get("UV") or shutil.which("uv")
    assert found is not None, "the tests run under uv"
    return found
