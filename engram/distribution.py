"""What Engram is installed as: its name, its version, and how what is missing is added."""

from __future__ import annotations

from typing import Final

DISTRIBUTION: Final = "engram-durable-memory"
"""What packages are listed under; ``engram`` is what is imported. Not "engram-memory": on PyPI
that is another project, with the same import name."""
VERSION: Final = "0.1.0"


def how_to_install(extra: str) -> str:
    """How the packages of an extra are added, for hints; no index has Engram yet.

    Args:
        extra: As ``pyproject.toml`` names it.
    """
    return f"pip install '.[{extra}]' in a checkout of Engram"
