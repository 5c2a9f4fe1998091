"""Damaged files of an in-process store: what they cost, and who is told."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from engram.domain.memories import Episode, MemoryType
from engram.errors import StorageError, StorageUnavailable
from engram.ports import SearchRequest
from engram.storage import edge_files
from engram.storage.edge import EdgeRepository
from engram.storage.edge_engine import engine
from engram.storage.ledger import ledger_id
from tests.support.clock import NOW
from tests.support.engines import ADA, BOB, episode, new, open_engine_at, vectors
from tests.support.raw_files import copy_folder

EPISODIC = MemoryType.EPISODIC


def cut_off(folder: Path, file: str, size: int) -> None:
    """End a file of the turns' payloads after so many bytes."""
    found = _payload_file(folder, file)
    assert found.stat().st_size > size
    os.truncate(found, size)


def overwrite(folder: Path, file: str, start: int) -> None:
    """Put noise in a file of the turns' payloads, from this byte on."""
    with _payload_file(folder, file).open("r+b") as opened:
        opened.seek(start)
        opened.write(b"\xff" * 20_000)


def _payload_file(folder: Path, file: str) -> Path:
    (found,) = folder.glob(f"engram_episodic/segments/*/payload_storage/{file}")
    return found


Damage = Callable[[Path, str, int], None]


async def damaged(
    folder: Path, damage: Damage, file: str, where: int
) -> tuple[EdgeRepository, list[Episode]]:
    """An open store in which the payloads of the last turns of a user are lost, and all of them.

    Two at a time became known at the same moment; another user has one turn, stored first.
    """
    repository = await open_engine_at(folder)
    await repository.insert(BOB, [new(episode(BOB, "first", known_at=NOW + timedelta(days=9)))])
    turns = [
        episode(ADA, f"turn {number}", known_at=NOW + timedelta(days=number // 2))
        for number in range(10)
    ]
    for turn in turns:
        await repository.insert(ADA, [new(turn)])
    await repository.close()
    # The engine takes its journals into its files when it opens them.
    await (await open_engine_at(folder)).close()
    damage(folder, file, where)
    return await open_engine_at(folder), turns


async def pages(repository: EdgeRepository, size: int) -> tuple[list[str], list[str]]:
    """The ids that a walk through all turns of the user gives: read, and not readable."""
    read: list[str] = []
    unreadable: list[str] = []
    cursor: str | None = None
    while True:
        page = await repository.scroll(ADA, EPISODIC, limit=size, cursor=cursor)
        read += [memory.id for memory in page.memories]
        unreadable += page.unreadable
        if (cursor := page.cursor) is None:
            return read, unreadable


@pytest.mark.parametrize(
    ("damage", "file", "where"),
    [
        (cut_off, "page_0.dat", 4_000),
        (overwrite, "page_0.dat", 4_000),
        (cut_off, "tracker.dat", 110),
    ],
)
async def test_a_damaged_payload_costs_no_other(
    folder: Path, damage: Damage, file: str, where: int
) -> None:
    """It is left out and named, whether the engine fails or knows nothing of it any more."""
    repository, turns = await damaged(folder, damage, file, where)
    for at_once in (1, 2, 3, 100):
        read, lost = await pages(repository, at_once)
        assert 0 < len(read) < 10
        assert len(read) + len(lost) == 10
        assert {*read, *lost} == {turn.id for turn in turns}
    assert set(await repository.get(ADA, [turn.id for turn in turns])) == set(read)
    request = SearchRequest(vectors=vectors(), types=(EPISODIC,), limit=20)
    assert {one.memory.id for one in await repository.search(ADA, request)} == set(read)
    assert (await repository.info()).details["unreadable"] == len(lost)
    with pytest.raises(StorageError, match="cannot be read"):
        await repository.get(ADA, lost[:1], fresh=True)
    await repository.close()


async def test_a_file_that_may_not_be_used_is_no_damage(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named, and nobody is sent for a backup; what is damaged is told as that."""
    await (await open_engine_at(folder)).close()
    config = folder / "engram_episodic" / "edge_config.json"
    os.truncate(config, 1)
    with pytest.raises(StorageError, match=r"opening engram_episodic\. Restore a backup"):
        await open_engine_at(folder)
    monkeypatch.setattr(os, "access", lambda path, _: Path(path).name != config.name)
    with pytest.raises(StorageError, match=r"edge_config\.json.*`chown -R`") as caught:
        await open_engine_at(folder)
    assert "backup" not in str(caught.value)


async def test_users_are_found_beside_damaged_memories(folder: Path) -> None:
    """Passes that walk over everybody's memories end, and miss nobody whose can be read."""
    repository, turns = await damaged(folder, cut_off, "tracker.dat", 30)
    read, lost = await pages(repository, 100)
    assert (read, {*lost}) == ([], {turn.id for turn in turns})
    for limit in (1, 100):
        found = await repository.scopes(EPISODIC, (), order_by="known_at", limit=limit)
        assert found == (BOB,)
    await repository.close()


async def test_a_failure_of_the_engine_names_the_type_and_what_to_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of its own text: it can quote a payload."""
    repository = await open_engine_at(folder)
    await repository.insert(ADA, [new(episode(ADA, "turn"))])

    class FailingShard:
        def count(self, request: object) -> int:
            raise RuntimeError("this is turn")

    monkeypatch.setitem(repository.shards, EPISODIC, FailingShard())
    with pytest.raises(StorageError, match="counting in engram_episodic") as failed:
        await repository.count(ADA, EPISODIC)
    assert "backup" in (failed.value.hint or "")
    assert "this is turn" not in str(failed.value)
    monkeypatch.undo()
    await repository.close()


async def test_nothing_is_written_beside_a_damaged_record_of_what_was_forgotten(
    folder: Path,
) -> None:
    """It could be what was forgotten; the error says what is damaged, and others go on."""
    repository = await open_engine_at(folder)
    turn = episode(ADA, "turn")
    await repository.bury(ADA, [turn.id], drawn={}, key="key")
    repository.shards[EPISODIC].update(engine.UpdateOperation.clear_payload([ledger_id(ADA)]))
    await repository.close()
    repository = await open_engine_at(folder)
    with pytest.raises(StorageError, match="forgotten cannot be read"):
        await repository.insert(ADA, [new(turn)])
    assert not await repository.insert(BOB, [new(episode(BOB, "turn"))])
    await repository.close()


async def with_turns(folder: Path, count: int) -> list[Episode]:
    """The turns of a closed store: so many, and no more than their last flush knows of."""
    repository = await open_engine_at(folder)
    turns = [episode(ADA, f"turn {number}") for number in range(count)]
    await repository.insert(ADA, map(new, turns))
    await repository.close()
    return turns


def lose(folder: Path, kept: int) -> None:
    """Damage what says which turns there are: the first ones are left, and the log has none."""
    (ids,) = folder.glob("engram_episodic/segments/*/mutable_id_tracker.mappings")
    # An operation, the position and the id of each.
    os.truncate(ids, kept * (ids.stat().st_size // 10))
    shutil.rmtree(folder / "engram_episodic" / "wal")


async def test_missing_memories_are_told_until_a_backup_is_back(
    folder: Path, tmp_path: Path
) -> None:
    """Files that were cut off open as a store with fewer: that is logged once, and remembered."""
    await with_turns(folder, 10)
    backup = copy_folder(folder, tmp_path / "backup")
    lose(folder, 4)
    with capture_logs() as said:
        repository = await open_engine_at(folder)
    left = await repository.count(ADA, EPISODIC)
    assert 0 < left < 10
    (line,) = [one for one in said if one["log_level"] == "error"]
    assert (line["memory_type"], line["missing"], line["there"]) == ("episodic", 10 - left, left)
    # What comes, goes and is rewritten since changes nothing about it.
    await repository.insert(ADA, [new(episode(ADA, "later"))])
    await repository.flush()
    await repository.delete(ADA, EPISODIC, [episode(ADA, "later").id])
    await repository.rebuild()
    await repository.close()
    with capture_logs() as said:
        repository = await open_engine_at(folder)
    assert not said
    assert (await repository.info()).details["missing"] == 10 - left
    await repository.close()
    repository = await open_engine_at(backup)
    assert (await repository.info()).details["missing"] == 0
    await repository.close()


async def test_a_type_of_which_nothing_is_left_is_not_opened_as_empty(folder: Path) -> None:
    """As with a missing folder; who goes on without it deletes the note of what there was."""
    await with_turns(folder, 10)
    lose(folder, 0)
    with pytest.raises(StorageError, match="None of 10 memories of the type episodic"):
        await open_engine_at(folder)
    (folder / "engram.points.json").unlink()
    repository = await open_engine_at(folder)
    assert await repository.count(ADA, EPISODIC) == 0
    assert (await repository.info()).details["missing"] == 0
    await repository.close()


async def test_what_is_lost_is_noticed_in_a_store_that_was_made_before_any_was_noted(
    folder: Path,
) -> None:
    """It opens as ever; from then on it is known how many memories it has."""
    await with_turns(folder, 10)
    (folder / "engram.points.json").unlink()
    repository = await open_engine_at(folder)
    assert (await repository.info()).details["missing"] == 0
    await repository.close()
    lose(folder, 4)
    repository = await open_engine_at(folder)
    assert (await repository.info()).details["missing"] == 10 - await repository.count(
        ADA, EPISODIC
    )
    assert (await repository.info()).details["missing"]
    await repository.close()


async def test_what_is_deleted_after_a_failure_of_the_disk_is_not_missed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is deleted while it cannot be noted; tried again, it is noted first."""
    turns = await with_turns(folder, 5)
    repository = await open_engine_at(folder)

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "staged")

    with monkeypatch.context() as broken:
        broken.setattr(edge_files, "_write_record", fail)
        with pytest.raises(StorageUnavailable, match="before memories were deleted"):
            await repository.delete(ADA, EPISODIC, [turn.id for turn in turns])
    assert await repository.count(ADA, EPISODIC) == 5
    await repository.delete(ADA, EPISODIC, [turn.id for turn in turns])
    await repository.close()
    repository = await open_engine_at(folder)
    assert (await repository.info()).details["missing"] == 0
    await repository.close()


@pytest.mark.parametrize("flushed", [True, False])
async def test_what_was_deleted_is_never_missed(
    folder: Path, tmp_path: Path, flushed: bool
) -> None:
    """Killed between any two steps of an erasure, a store opens and misses nothing."""
    turns = await with_turns(folder, 600)
    repository = await open_engine_at(folder)
    await repository.delete(ADA, EPISODIC, [turn.id for turn in turns[:50]])
    if flushed:
        await repository.flush()
    assert await missing_in_copy(folder, tmp_path / "deleted") == 0
    await repository.insert(BOB, [new(episode(BOB, "turn"))])
    await repository.flush()
    steps, left = 0, 0
    erasing = asyncio.create_task(repository.erase(ADA))
    while not erasing.done():
        await asyncio.sleep(0)
        before, left = left, repository.shards[EPISODIC].info().points_count
        if left != before:
            steps += 1
            assert await missing_in_copy(folder, tmp_path / str(steps)) == 0
    await repository.close()
    assert steps > 2
    assert await missing_in_copy(folder, tmp_path / "erased") == 0


async def missing_in_copy(folder: Path, copy: Path) -> int:
    """How many memories a store lacks that is opened as the files of another are now."""
    repository = await open_engine_at(copy_folder(folder, copy))
    missing = (await repository.info()).details["missing"]
    await repository.close()
    shutil.rmtree(copy)
    return int(missing)
