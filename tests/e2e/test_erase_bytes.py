"""After erasing, no file of the data folder holds a word of the user, whatever dies meanwhile."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import engram
from engram import MemoryStore
from engram.contracts.removal import FOLDER_MAY_KEEP
from engram.domain.memories import STORED_TYPES, AnyMemory, MemoryType
from tests.support import killed_erasure
from tests.support.killed_erasure import ERASED, OTHER
from tests.support.programs import module, started, until
from tests.support.raw_files import copy_folder, holders

# A machine may be busy, and a server takes its time to delete histories.
PATIENCE = 240.0
pytestmark = [pytest.mark.chaos, pytest.mark.timeout(2 * PATIENCE)]
QUIET = {"ENGRAM_TEMPORAL_UI": "false", "ENGRAM_LOG_LEVEL": "error", "ENGRAM_SCHEDULES": "false"}


async def killed(folder: Path, what: str, step: str) -> None:
    """Run the program until it has killed itself at the step."""
    command = module("tests.support.killed_erasure", folder, what, step)
    with started(command, folder.with_suffix(".log"), QUIET) as program:
        assert await until(lambda: not program.alive(), PATIENCE), program.said()
        assert program.process.returncode == -signal.SIGKILL, program.said()


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose owner was killed when the user's memories and histories were deleted."""
    folder = tmp_path_factory.mktemp("erase") / "data"
    asyncio.run(killed(folder, "erase", "begun"))
    return folder


@pytest.fixture
def folder(interrupted: Path, tmp_path: Path) -> Path:
    """A copy of it to go on with."""
    return copy_folder(interrupted, tmp_path / "data")


@asynccontextmanager
async def opened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[MemoryStore]:
    """The other user's memory, by the quiet settings."""
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    async with engram.open(folder, user_id=OTHER) as memory:
        yield memory


async def scrubbed(folder: Path) -> None:
    """Wait until nothing is due any more."""
    done = await until(lambda: not (folder / "scrub.json").exists(), PATIENCE)
    assert done, "it was not finished"


async def all_of(memory: MemoryStore) -> dict[str, AnyMemory]:
    """Everything that a user has."""
    found: dict[str, AnyMemory] = {}
    for kind in STORED_TYPES:
        page = await memory.list(memory_types=[kind], limit=1000)
        assert page.cursor is None
        found |= {one.id: one for one in page.memories}
    return found


async def recalled(memory: MemoryStore) -> dict[str, float]:
    """What a question brings up, and how surely."""
    hits = await memory.recall("Where do I live, and where does my sister work?")
    return {hit.memory.id: hit.score for hit in hits}


def assert_no_word(folder: Path) -> None:
    """Nothing of the erased user is in any file; the other user's words are."""
    assert holders(folder, killed_erasure.words(ERASED)) == {}
    kept = holders(folder, killed_erasure.words(OTHER))
    assert set().union(*kept.values()) == set(killed_erasure.words(OTHER))


def test_deleting_alone_leaves_every_word(interrupted: Path) -> None:
    """Before the files are rewritten the search finds all words: in both databases."""
    found = holders(interrupted, killed_erasure.words(ERASED))
    assert set().union(*found.values()) == set(killed_erasure.words(ERASED))
    assert any(name.startswith("store") for name in found)
    assert (interrupted / "scrub.json").exists()


@pytest.mark.slow
async def test_files_are_rewritten_while_others_go_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was interrupted is finished at the next start; who encodes all the time loses nothing.

    A further erasure, and compacting by hand, meanwhile do no harm.
    """
    async with opened(folder, monkeypatch) as memory:
        stop = asyncio.Event()
        acknowledged: list[str] = []

        async def encode() -> None:
            number = 0
            while not stop.is_set():
                receipt = await memory.encode(f"Turn number {number}.", session_id=f"s{number % 3}")
                acknowledged.extend(receipt.episode_ids)
                number += 1

        encoding = asyncio.create_task(encode())
        nobody = memory.for_user("nobody")
        await nobody.erase()
        receipt = await nobody.erased()
        await scrubbed(folder)
        stop.set()
        await encoding
        assert receipt is not None
        assert receipt.complete
        assert receipt.rewritten == ("store", "temporal")
        assert receipt.may_remain == FOLDER_MAY_KEEP
        assert len(acknowledged) > 20
        assert set(acknowledged) <= (await all_of(memory)).keys()
        assert (await memory.for_user(ERASED).stats()).counts == dict.fromkeys(STORED_TYPES, 0)
        before = len(await all_of(memory))
    assert_no_word(folder)
    async with opened(folder, monkeypatch) as memory:
        assert len(await all_of(memory)) >= before
        assert (await memory.stats()).counts[MemoryType.EPISODIC] == len(acknowledged) + 6


@pytest.mark.slow
async def test_killed_at_one_step_after_another_it_is_finished_in_the_end(
    interrupted: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process takes up what the one before left; none of it costs the other user anything."""
    untouched = copy_folder(interrupted, tmp_path / "untouched")
    (untouched / "scrub.json").unlink()
    async with opened(untouched, monkeypatch) as memory:
        before, found = await all_of(memory), await recalled(memory)
        assert found
    for step in killed_erasure.STEPS:
        if step != "begun":
            await killed(folder, "open", step)
            assert (folder / "scrub.json").exists(), step
    async with opened(folder, monkeypatch) as memory:
        await scrubbed(folder)
        assert await all_of(memory) == before
        # A little later everything is a little older.
        assert await recalled(memory) == pytest.approx(found, abs=0.01)
    assert_no_word(folder)
