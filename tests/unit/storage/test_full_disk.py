"""The in-process store on a disk that is full: typed errors, no death, nothing lost."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

from tests.support.small_disk import small_disk

# In a process of its own: without room the system would end it.
FULL = """
import asyncio, json, os, sys
from pathlib import Path
from engram.domain.memories import MemoryType
from engram.errors import StorageUnavailable
from engram.storage.edge_files import ROOM_TO_DELETE, ROOM_TO_WRITE, Disk
from tests.support.engines import ADA, episode, new, open_engine_at
from tests.support.small_disk import leave_free

disk, store = Path(sys.argv[1]), Path(sys.argv[1], "store")
MB = 2**20

def needed(room):
    # On a file system in memory holes need room as well.
    return Disk(store).needed(room) / MB

def free():
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize / MB

async def filled(repository, first):
    acknowledged = []
    for number in range(first, first + 1000):
        turns = [episode(ADA, f"{number} {part} " + "x" * 30_000) for part in range(32)]
        try:
            await repository.insert(ADA, map(new, turns))
        except StorageUnavailable as error:
            assert error.retryable
            assert "x" * 100 not in str(error)
            return acknowledged
        acknowledged += [turn.id for turn in turns]
    raise AssertionError("it never was full")

async def main():
    repository = await open_engine_at(store)
    # Enough for some writes, the first of which begins a file of 32 MB.
    leave_free(disk, needed(ROOM_TO_WRITE) + 40)
    kept = await filled(repository, 0)
    assert kept
    # The engine begins files in the background, too: what is left must last for them.
    assert free() - needed(ROOM_TO_DELETE) >= 32
    try:
        await repository.rebuild()
    except StorageUnavailable:
        pass
    else:
        raise AssertionError("there was no room for a copy")
    await repository.delete(ADA, MemoryType.EPISODIC, kept[:10])
    await repository.close()
    # As full as the store let it become: it opens, and has everything.
    repository = await open_engine_at(store)
    assert await repository.count(ADA, MemoryType.EPISODIC) == len(kept) - 10
    await repository.close()
    leave_free(disk, needed(ROOM_TO_DELETE) - 2)
    try:
        await open_engine_at(store)
    except StorageUnavailable:
        pass
    else:
        raise AssertionError("it was opened without room")
    (disk / "ballast").unlink()
    repository = await open_engine_at(store)
    turns = [episode(ADA, f"afterwards {part}") for part in range(10)]
    await repository.insert(ADA, map(new, turns))
    left = await repository.get(ADA, kept[10:])
    assert len(left) == len(kept) - 10
    await repository.close()
    print(json.dumps(len(kept)))

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "in_memory", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["ext4", "tmpfs"]
)
async def test_a_full_disk_is_a_typed_error_and_loses_nothing(*, in_memory: bool) -> None:
    """What was acknowledged is there, deleting goes on, and with room again so does writing."""
    with small_disk(1500 if in_memory else 160, in_memory=in_memory) as disk:
        command = [sys.executable, "-c", FULL, str(disk)]
        done = await asyncio.to_thread(subprocess.run, command, stdout=subprocess.PIPE, check=False)
    assert done.returncode == 0
    assert json.loads(done.stdout) > 0
