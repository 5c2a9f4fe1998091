"""Rebuilding a store: what was deleted leaves the files, what is there stays, whenever it dies."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from engram.domain.memories import STORED_TYPES, AnyMemory, MemoryType, next_revision
from engram.errors import MemoryClosed, StorageError
from engram.ports import Replacement
from engram.storage import edge_files
from engram.storage.edge import EdgeRepository
from engram.storage.payload import indexed_fields
from engram.storage.updates import every_page
from tests.support.engines import (
    ADA,
    BOB,
    DIMENSIONS,
    EMBEDDER,
    episode,
    new,
    one_of_each,
    open_engine_at,
)
from tests.support.raw_files import holders

EPISODIC, SEMANTIC = MemoryType.EPISODIC, MemoryType.SEMANTIC
GONE = "quixotrophy"
STAYS = "zymolattice"


def beside(path: Path) -> list[str]:
    """What a rebuild that is not over has beside its shards."""
    endings = ("rebuilt", "replaced", "failed")
    return [one.name for ending in endings for one in path.glob(f"*.{ending}")]


async def erased(path: Path) -> EdgeRepository:
    """An open store of which one of two users was erased."""
    repository = await open_engine_at(path)
    await repository.insert(ADA, [new(episode(ADA, f"{GONE} {number}")) for number in range(100)])
    await repository.insert(BOB, [new(episode(BOB, f"{STAYS} {number}")) for number in range(150)])
    await repository.flush()
    await repository.erase(ADA)
    await repository.flush()
    return repository


async def everything(repository: EdgeRepository) -> list[AnyMemory]:
    """All that the second user has."""
    return [memory async for page in every_page(repository, BOB, EPISODIC) for memory in page]


async def test_rebuilt_files_hold_nothing_of_what_was_deleted(folder: Path) -> None:
    """Erasing alone leaves the words in several files; rebuilding leaves them in none."""
    repository = await erased(folder)
    before = await everything(repository)
    assert len(holders(folder, [GONE])) >= 2
    assert await repository.rebuild() == 150
    assert holders(folder, [GONE]) == {}
    assert await everything(repository) == before
    assert holders(folder, [STAYS]) != {}
    await repository.insert(ADA, [new(episode(ADA, "again"))])
    await repository.close()
    again = await open_engine_at(folder)
    assert await everything(again) == before
    assert await again.count(ADA, EPISODIC) == 1
    assert beside(folder) == []
    await again.close()


async def test_what_is_written_while_copying_is_there_afterwards(folder: Path) -> None:
    """Inserts, replacements and deletions during a rebuild hold, and reads answer all the time."""
    repository = await erased(folder)
    turns = {memory.id: memory for memory in await everything(repository)}
    later: dict[str, AnyMemory] = {}
    gone: set[str] = set()
    rebuilding = asyncio.create_task(repository.rebuild())
    number = 0
    while not rebuilding.done():
        memory = episode(BOB, f"later {number}")
        await repository.insert(BOB, [new(memory)])
        later[memory.id] = memory
        changing = list(turns.values())[number % 100]
        after = next_revision(changing, changing, write_id=f"write {number}")
        assert await repository.replace(BOB, [Replacement(after, changing.revision)])
        turns[changing.id] = after
        going = list(turns)[100 + number % 50]
        await repository.delete(BOB, EPISODIC, [going])
        gone.add(going)
        assert await repository.count(BOB, EPISODIC) == 150 + len(later) - len(gone)
        number += 1
        await asyncio.sleep(0)
    await rebuilding
    assert number > 2
    expected = {key: memory for key, memory in (turns | later).items() if key not in gone}
    assert {memory.id: memory for memory in await everything(repository)} == expected
    await repository.close()
    again = await open_engine_at(folder)
    assert {memory.id: memory for memory in await everything(again)} == expected
    await again.close()


async def test_what_cannot_be_opened_does_not_take_the_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy that the engine refuses is dropped; the old shard goes on taking writes."""
    repository = await erased(folder)
    before = await everything(repository)
    replace, damaged = edge_files.replace, iter([True])

    def damaging(path: Path) -> None:
        replace(path)
        if next(damaged, False):
            (path / "edge_config.json").write_text("not json")

    monkeypatch.setattr(edge_files, "replace", damaging)
    with pytest.raises(StorageError, match="engram_episodic"):
        await repository.rebuild()
    await repository.insert(ADA, [new(episode(ADA, "still"))])
    assert await everything(repository) == before
    assert beside(folder) == []
    assert await repository.rebuild() == 151
    await repository.close()


@pytest.mark.parametrize("stopping", ["close", "cancel"])
async def test_an_interrupted_rebuild_leaves_the_store_as_it_was(
    folder: Path, stopping: str
) -> None:
    """Closing and cancelling end it between two batches, without a half-built folder."""
    repository = await erased(folder)
    before = await everything(repository)
    rebuilding = asyncio.create_task(repository.rebuild())
    # The copy of the first type has begun, and waits for its next turn.
    await asyncio.sleep(0)
    assert beside(folder) == ["engram_episodic.rebuilt"]
    if stopping == "close":
        await repository.close()
        with pytest.raises(MemoryClosed):
            await rebuilding
    else:
        rebuilding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await rebuilding
        await repository.close()
    assert beside(folder) == []
    again = await open_engine_at(folder)
    assert await everything(again) == before
    await again.close()


def test_going_back_is_finished_when_it_was_killed_between_its_renames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be opened is not taken for the successor once more."""
    folder = tmp_path / "x"
    for path, content in ((folder, "broken"), (edge_files.replaced(folder), "good")):
        path.mkdir()
        (path / "what").write_text(content)
    rename, left = Path.rename, iter([True])

    def killed(path: Path, target: Path) -> Path:
        if next(left, False):
            return rename(path, target)
        raise SystemExit

    with monkeypatch.context() as dying:
        dying.setattr(Path, "rename", killed)
        with pytest.raises(SystemExit):
            edge_files.undo(folder)
    edge_files.settle(folder)
    assert (folder / "what").read_text() == "good"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from engram.storage import edge_files
from tests.support.engines import open_engine_at

folder, step = Path(sys.argv[1]), sys.argv[2]

def dying(function, when):
    def call(*args, **named):
        if when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        function(*args, **named)
        os.kill(os.getpid(), signal.SIGKILL)
    return call

name, when = step.split(":")
if name == "rename":
    renames = iter(range(100))
    rename = Path.rename
    def counted(self, target):
        if next(renames) == int(when):
            os.kill(os.getpid(), signal.SIGKILL)
        return rename(self, target)
    Path.rename = counted
else:
    place = edge_files._Copying if name == "flush" else edge_files
    setattr(place, name, dying(getattr(place, name), when))

async def main():
    await (await open_engine_at(folder)).rebuild()

asyncio.run(main())
"""


@pytest.mark.parametrize(
    "step",
    [
        "rename:0",
        *(
            pytest.param(step, marks=pytest.mark.slow)
            for step in ("flush:before", "sync_files:before", "rename:1", "drop_replaced:before")
        ),
    ],
)
async def test_a_rebuild_killed_at_any_step_is_finished_or_undone(folder: Path, step: str) -> None:
    """After kill -9 at each step everything is there, and the next rebuild leaves no word."""
    repository = await erased(folder)
    before = await everything(repository)
    await repository.close()
    assert await _killed(folder, step) == -signal.SIGKILL
    again = await open_engine_at(folder)
    assert await everything(again) == before
    assert beside(folder) == []
    await again.rebuild()
    assert await everything(again) == before
    await again.close()
    assert holders(folder, [GONE]) == {}


async def _killed(path: Path, step: str) -> int:
    command = [sys.executable, "-c", KILLED, str(path), step]
    return (await asyncio.to_thread(subprocess.run, command, check=False)).returncode


class ReadShard:
    """A shard that notes how much is read of it at once."""

    def __init__(self, shard: object, sizes: list[int]) -> None:
        self.shard, self.sizes = shard, sizes

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shard, name)

    def scroll(self, request: object) -> tuple[list[object], object]:
        """See the engine."""
        records, after = self.__getattr__("scroll")(request)
        self.sizes.append(len(records))
        return records, after


async def test_a_copy_is_made_in_steps(folder: Path) -> None:
    """No step of the engine takes more than a batch, so that others get their turn."""
    repository = await erased(folder)
    sizes: list[int] = []
    watched: Any = ReadShard(repository.shards[EPISODIC], sizes)
    repository.shards[EPISODIC] = watched
    await repository.rebuild()
    assert sizes == [64, 64, 22]
    await repository.close()


async def test_a_type_that_was_emptied_is_read_and_written_as_before(folder: Path) -> None:
    """The last memory of a type goes, and its files are rewritten: what comes is found as before.

    Whoever it belonged to: the others' listings go by indexes that the rewritten files must have.
    """
    repository = await open_engine_at(folder)
    mine = one_of_each(ADA)
    await repository.insert(ADA, map(new, mine))
    await repository.erase(ADA)
    assert await repository.rebuild() == 0
    for _ in range(2):
        for kind in STORED_TYPES:
            assert not (await repository.scroll(BOB, kind)).memories
            assert await repository.values(kind, "status") == set()
        theirs = one_of_each(BOB)
        await repository.insert(BOB, map(new, theirs))
        for memory in theirs:
            assert (await repository.scroll(BOB, memory.type)).memories == (memory,)
        await repository.erase(BOB)
        await repository.close()
        repository = await open_engine_at(folder)
    await repository.close()


async def test_indexes_that_came_while_copying_are_there_afterwards(folder: Path) -> None:
    """The first memory of a type comes, and goes, during a rewrite: its indexes stay."""
    store = edge_files.open_store(folder, prefix="engram", embedder=EMBEDDER, dimensions=DIMENSIONS)

    def meanwhile() -> None:
        for make in store.missing_indexes(SEMANTIC):
            make()

    async def nothing() -> None:
        return

    assert not store.shards[SEMANTIC].info().payload_schema
    writes = edge_files.Writes()
    await edge_files.rebuild(store, SEMANTIC, writes, check_open=meanwhile, first=nothing)
    assert indexed_fields(SEMANTIC).keys() <= store.shards[SEMANTIC].info().payload_schema.keys()
    store.close()
