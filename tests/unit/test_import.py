"""What importing Engram costs."""

from __future__ import annotations

import subprocess
import sys


def test_importing_engram_starts_nothing() -> None:
    """No server, engine, event loop or model library is loaded."""
    code = (
        "import sys; import engram; "
        "heavy = {'temporalio', 'qdrant_client', 'qdrant_edge', 'pydantic_ai', 'asyncio'} "
        "& set(sys.modules); print(*heavy)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
