"""What importing Engram costs."""

from __future__ import annotations

import subprocess
import sys


def test_importing_engram_is_quick_and_starts_nothing() -> None:
    """Under 0.2 s, and no server, engine, event loop or model library is loaded."""
    code = (
        "import time, sys; began = time.perf_counter(); import engram; "
        "took = time.perf_counter() - began; "
        "heavy = {'temporalio', 'qdrant_client', 'qdrant_edge', 'pydantic_ai', 'asyncio'} "
        "& set(sys.modules); print(took, *heavy)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    took, *heavy = done.stdout.split()
    assert float(took) < 0.2
    assert heavy == []
