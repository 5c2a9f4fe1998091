"""A process that owns a data folder and its development server, and what is left of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from engram.embedded.folder import DataFolder, find_by_marker
from engram.embedded.program import marker
from engram.settings import Settings
from engram.system import FileLock

QUIET = Settings.load(temporal_ui=False)


OWNER = """
import asyncio, sys
from engram.embedded.folder import DataFolder
from engram.embedded.server import TemporalDevServer
from engram.settings import Settings

async def main():
    folder = DataFolder(sys.argv[1])
    assert folder.try_lock()
    server = await TemporalDevServer.start(folder, Settings.load(temporal_ui=False))
    print(server.pid, flush=True)
    if sys.argv[2] == "stay":
        await asyncio.sleep(600)
    if sys.argv[2] == "leave":
        # Not at once: an SDK thread that still returns from the last call would
        # meet a Python that is being taken down.
        await asyncio.sleep(0.2)
        raise SystemExit(0)
    await server.stop()

asyncio.run(main())
"""


def start_owner(path: Path, then: str) -> tuple[subprocess.Popen[bytes], int]:
    """A process that owns the folder and its server; and the server's pid."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(path), then], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    process.stdout.close()
    return process, pid


def nothing_left(data: DataFolder) -> bool:
    """Neither server nor guard of this folder lives: by its lock, and by looking for it."""
    lock = FileLock(data.server_lock)
    free = lock.try_acquire()
    lock.release()
    return free and not find_by_marker(marker(data))
