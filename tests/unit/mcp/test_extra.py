"""Without the SDK, the command says how to get it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_a_missing_sdk_names_its_extra(tmp_path: Path) -> None:
    """`engram mcp` exits 1 with the line to type, not with a traceback."""
    code = (
        "import sys; sys.modules['mcp'] = None; sys.argv = ['engram', 'mcp', '-u', 'ada']; "
        "from engram.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "COLUMNS": "200"},
    )
    assert done.returncode == 1
    assert "engram-memory[mcp]" in done.stderr
    assert "Traceback" not in done.stderr
