"""A small file system of its own, for what happens when it is full."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(megabytes: int, *, in_memory: bool) -> Iterator[Path]:
    """A file system that is mounted for the length of a block; skips where that is not permitted.

    Args:
        megabytes: Its size.
        in_memory: A tmpfs; ext4 in a file otherwise.
    """
    with tempfile.TemporaryDirectory() as made:
        image, folder = Path(made, "image"), Path(made, "disk")
        folder.mkdir()
        if in_memory:
            _run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder))
        else:
            with image.open("wb") as file:
                file.truncate(megabytes * 2**20)
            _run("mkfs.ext4", "-q", "-m", "0", str(image))
            _run("mount", "-o", "loop", str(image), str(folder))
        try:
            yield folder
        finally:
            _run("umount", "-l", str(folder))


def leave_free(disk: Path, megabytes: float) -> None:
    """Fill the disk with a file until so much is left; a file of before goes first."""
    ballast = disk / "ballast"
    ballast.unlink(missing_ok=True)
    found = os.statvfs(disk)
    size = found.f_bavail * found.f_frsize - int(megabytes * 2**20)
    with ballast.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(size, 1))


def _run(*command: str) -> None:
    program = shutil.which(command[0])
    if program is None:
        pytest.skip(f"{command[0]} is not installed: no small file system")
    done = subprocess.run([program, *command[1:]], capture_output=True, check=False)
    if done.returncode:
        pytest.skip(f"{command[0]} is not permitted: {done.stderr.decode().strip()}")
