"""``python -m engram.cli`` is ``engram``."""

from __future__ import annotations

from engram.cli import main

main()
