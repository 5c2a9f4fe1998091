"""Folders for stores."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def quick_folder() -> Iterator[Path]:
    """A folder for one store, in memory where there is one: making a store syncs a lot."""
    memory = Path("/dev/shm")  # noqa: S108  # a fast disk, not a shared name
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as made:
        yield Path(made)
