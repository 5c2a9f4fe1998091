"""How soon an erased user is gone: nothing found and the key destroyed, then the files.

``uv run pytest -n 0 -m benchmark tests/benchmarks/test_erase_speed.py -s`` prints the figures.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import engram
from tests.benchmarks.import_speed import talk

OWN = 1_000
OTHERS = 5_000
"""Turns of the user who is erased, and of another in the same folder."""
SESSIONS = 20
GONE = 8.0
"""Seconds until the receipt says so."""

pytestmark = [pytest.mark.benchmark, pytest.mark.slow, pytest.mark.timeout(300)]


async def test_an_erased_user_is_gone_within_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With thousands of turns, conclusions and running sessions, beside another user."""
    async with engram.open(tmp_path / "data", user_id="ada") as ada:
        bob = ada.for_user("bob")
        for memory, turns in ((ada, OWN), (bob, OTHERS)):
            file = tmp_path / f"{memory.scope.user_id}.jsonl"
            file.write_text("".join(json.dumps(turn) + "\n" for turn in talk(turns)), "utf-8")
            await memory.import_file(file, consolidate=False)
        for number in range(SESSIONS):
            said = f"I live in Lisbon and own {number} cats."
            await ada.encode(said, session_id=f"s{number}")
        await ada.consolidate()
        began = time.perf_counter()
        receipt = await ada.erase()
        gone = time.perf_counter() - began
        assert await ada.count() == 0
        await ada.erased()
        scrubbed = time.perf_counter() - began
        assert await bob.count(memory_types="episodic") == OTHERS
    with capsys.disabled():
        print(  # noqa: T201 - the figures are what the test is run for
            f"\n{sum(receipt.memories.values())} memories gone after {gone:.1f} s, "
            f"files after {scrubbed:.1f} s"
        )
    assert gone <= GONE
