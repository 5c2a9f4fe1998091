"""Passes in one process while others recall: nothing is lost, nothing happens twice."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

import engram
from engram.client.memory import MemoryStore
from engram.domain.memories import MemoryStatus

OLD, USED, RECALLED, ROUNDS = 12, 6, 160, 2
_CLIENT = f"""
import asyncio, collections, json, pathlib, sys
import engram

async def main():
    recalled = collections.Counter()
    async with engram.open(sys.argv[1], user_id="ada") as memory:
        print("ready", flush=True)
        while recalled.total() < {RECALLED} or not pathlib.Path(sys.argv[2]).exists():
            hits = await memory.recall("the marimba lesson", include_test=True, limit=4)
            recalled.update(hit.memory.id for hit in hits)
    print(json.dumps(recalled))

asyncio.run(main())
"""


@pytest.mark.long
async def test_recalls_of_other_processes_and_passes_count_exactly(tmp_path: Path) -> None:
    """Two processes recall while passes run: every recall is counted, what is due leaves once."""
    folder, enough = tmp_path / "data", tmp_path / "enough"
    async with engram.open(folder, user_id="ada") as memory:
        old = [
            (await memory.create_test(f"A bassoon was heard, {n}.", age_days=200)).id
            for n in range(OLD)
        ]
        used = [
            (await memory.create_test(f"The marimba lesson number {n}.", age_days=40)).id
            for n in range(USED)
        ]
        clients = [
            await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                _CLIENT,
                str(folder),
                str(enough),
                stdout=asyncio.subprocess.PIPE,
            )
            for _ in range(2)
        ]
        # Passes while they start would meet nobody.
        for client in clients:
            assert client.stdout is not None
            assert await client.stdout.readline() == b"ready\n"
        talking = asyncio.gather(*(client.communicate() for client in clients))
        left = 0
        for _ in range(ROUNDS):
            left += await _both_passes_twice(memory)
        enough.touch()
        left += await _both_passes_twice(memory)
        answers = await talking
        assert [client.returncode for client in clients] == [0, 0]
    recalled = Counter[str]()
    for printed, _ in answers:
        recalled.update(json.loads(printed))
    assert recalled.total() >= 2 * RECALLED
    assert recalled.keys().isdisjoint(old)
    # Closing noted the last recalls.
    async with engram.open(folder, user_id="ada") as memory:
        page = await memory.list(limit=1000, include_test=True)
        found = {one.id: one for one in page.memories}
        assert {key: found[key].access_count for key in (*old, *used)} == {
            key: recalled[key] for key in (*old, *used)
        }
        assert {found[key].status for key in old} == {MemoryStatus.ARCHIVED}
        assert left == OLD
        assert {found[key].status for key in used} == {MemoryStatus.ACTIVE}


async def _both_passes_twice(memory: MemoryStore) -> int:
    """Passes of both kinds, asked for twice at once; how many memories left."""
    reports = await asyncio.gather(*(memory.decay(test_only=True) for _ in range(2)))
    await asyncio.gather(*(memory.promote(test_only=True) for _ in range(2)))
    return sum(report.count("retention") for report in reports)
