"""``python -m engram.cli`` is ``engram``."""

from engram.cli import main

main()
