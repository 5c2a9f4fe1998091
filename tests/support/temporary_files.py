"""Where tests keep their files: in memory where there is enough of it."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

_MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a file system, not a shared file name
_ENOUGH: Final = 6 * 2**30


def keep_temporary_files_in_memory() -> None:
    """Point temporary files of this process and its children to a file system in memory.

    A store syncs a thousand files when it is made, which takes seconds on a disk and
    shows nothing that tests look at: they kill processes, not machines. Says nothing
    where there is no such file system, or too little of it, or TMPDIR was chosen.
    """
    if "TMPDIR" in os.environ or not os.access(_MEMORY, os.W_OK):
        return
    if shutil.disk_usage(_MEMORY).free >= _ENOUGH:
        os.environ["TMPDIR"] = str(_MEMORY)
        tempfile.tempdir = None
