"""Putting a rebuilt folder in the place of another, whatever moment the process dies at.

Beside the folder ``x`` lie, for a while, ``x.rebuilt`` (its successor) and
``x.replaced`` (what it was). Steps: build the successor, make it durable,
rename ``x`` to ``x.replaced``, rename ``x.rebuilt`` to ``x``, open it, remove
``x.replaced``. So a successor beside a folder that is there was not finished,
or was given up, and one without it was.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path


def rebuilt(folder: Path) -> Path:
    """Where the successor of a folder is built."""
    return folder.with_name(folder.name + ".rebuilt")


def replaced(folder: Path) -> Path:
    """Where a folder goes when its successor takes its place."""
    return folder.with_name(folder.name + ".replaced")


def settle(folder: Path) -> None:
    """Finish or undo a replacement that was interrupted.

    What was replaced stays until :func:`drop_replaced`, for when the successor cannot be opened.
    """
    if not folder.exists() and replaced(folder).exists():
        # The first rename happens only when the successor is whole.
        source = rebuilt(folder) if rebuilt(folder).exists() else replaced(folder)
        source.rename(folder)
        sync_folder(folder.parent)
    # Beside a folder that is there, it is a half, or lacks what was written since.
    drop_rebuilt(folder)


def replace(folder: Path) -> None:
    """Put the successor in the folder's place; :func:`undo` takes that back."""
    folder.rename(replaced(folder))
    sync_folder(folder.parent)
    rebuilt(folder).rename(folder)
    sync_folder(folder.parent)


def undo(folder: Path) -> None:
    """Put back what was replaced, wherever :func:`replace` got to."""
    if not replaced(folder).exists():
        return
    if folder.exists():
        folder.rename(rebuilt(folder))
    replaced(folder).rename(folder)
    sync_folder(folder.parent)


def drop_rebuilt(folder: Path) -> None:
    """Remove an unfinished successor, if there is one."""
    _remove(rebuilt(folder))


def drop_replaced(folder: Path) -> None:
    """Remove what was replaced, if there is anything."""
    _remove(replaced(folder))


def sync_files(folder: Path) -> None:
    """Have every file below on disk: after a power loss a rename must not lead to less."""
    for inside, _, files in os.walk(folder):
        for name in files:
            with (Path(inside) / name).open("rb") as file:
                os.fsync(file.fileno())
        sync_folder(Path(inside))


def sync_folder(folder: Path) -> None:
    """Have a folder's entries on disk, where the system can: renames are atomic all the same."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
        sync_folder(folder.parent)
