"""The in-process store and its files: locks, crashes, missing parts."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import ref

import pytest

from engram.domain.memories import STORED_TYPES, MemoryType, next_revision
from engram.domain.scope import Scope
from engram.errors import DataFolderInUse, EmbeddedPartMissing, SchemaMismatch, StorageError
from engram.ports import Missing, Replacement
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from engram.storage.edge_files import sync_files
from engram.storage.ledger import ledger_id
from engram.storage.payload import indexed_fields
from engram.storage.points import Overwrite
from tests.support.clock import NOW
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
from tests.support.raw_files import copy_folder

EPISODIC = MemoryType.EPISODIC


async def test_a_folder_is_opened_once(folder: Path) -> None:
    """A second opening is refused while the first lives, and works after it was closed."""
    first = await open_engine_at(folder)
    with pytest.raises(DataFolderInUse):
        await open_engine_at(folder)
    await first.insert(ADA, [new(episode(ADA, "turn"))])
    await first.close()
    second = await open_engine_at(folder)
    assert await second.count(ADA, EPISODIC) == 1
    await second.close()


async def test_a_refused_opening_leaves_the_folder_free(folder: Path) -> None:
    """After a mismatch nothing is held: the right embedder can open it."""
    await (await open_engine_at(folder)).close()
    with pytest.raises(SchemaMismatch):
        await EdgeRepository.open(
            folder, embedder_identity="other", dimensions=DIMENSIONS, settings=Settings.load()
        )
    await (await open_engine_at(folder)).close()


async def test_a_crash_while_making_the_store_is_made_good(folder: Path) -> None:
    """A shard that was being made when the process died is made again."""
    await (await open_engine_at(folder)).close()
    _forget_what_was_made(folder)
    half_made = folder / "engram_semantic"
    for part in half_made.rglob("*.json"):
        part.write_text("")
    (folder / "engram_semantic.new").touch()
    repository = await open_engine_at(folder)
    assert await repository.count(ADA, MemoryType.SEMANTIC, (Missing("tags"),)) == 0
    await repository.close()
    assert not (folder / "engram_semantic.new").exists()


def _forget_what_was_made(folder: Path) -> None:
    """The record as it is until all folders are made."""
    record = folder / "engram.store.json"
    found = json.loads(record.read_text())
    del found["types"]
    record.write_text(json.dumps(found))


async def test_a_missing_folder_of_a_type_is_not_made_anew_without_a_word(folder: Path) -> None:
    """A part that was lost is named; put back, everything is there."""
    repository = await open_engine_at(folder)
    await repository.insert(ADA, [new(episode(ADA, "turn"))])
    await repository.close()
    (folder / "engram_episodic").rename(folder / "elsewhere")
    with pytest.raises(StorageError, match=r"engram_episodic .* missing"):
        await open_engine_at(folder)
    (folder / "elsewhere").rename(folder / "engram_episodic")
    repository = await open_engine_at(folder)
    assert await repository.count(ADA, EPISODIC) == 1
    await repository.close()


@pytest.mark.parametrize("recorded", [True, False])
async def test_a_stray_mark_of_making_removes_no_memories(folder: Path, recorded: bool) -> None:
    """A whole folder that is marked as half made is kept, whether the record lists it or not."""
    repository = await open_engine_at(folder)
    await repository.insert(ADA, [new(episode(ADA, "turn"))])
    await repository.close()
    (folder / "engram_episodic.new").touch()
    if not recorded:
        _forget_what_was_made(folder)
    repository = await open_engine_at(folder)
    assert await repository.count(ADA, EPISODIC) == 1
    await repository.close()
    assert not (folder / "engram_episodic.new").exists()


@pytest.mark.parametrize("content", [None, "", "[]", "{"])
async def test_a_store_without_a_readable_record_is_refused(
    folder: Path, content: str | None
) -> None:
    """Without the record nobody knows whose vectors these are: it is left alone."""
    await (await open_engine_at(folder)).close()
    record = folder / "engram.store.json"
    if content is None:
        record.unlink()
    else:
        record.write_text(content)
    with pytest.raises(SchemaMismatch, match="record"):
        await open_engine_at(folder)


async def test_a_damaged_shard_is_a_typed_error(folder: Path) -> None:
    """The engine's failure arrives as a StorageError, and the folder is free again."""
    await (await open_engine_at(folder)).close()
    config = folder / "engram_factual" / "edge_config.json"
    good = config.read_text()
    config.write_text("not json")
    with pytest.raises(StorageError, match="engram_factual"):
        await open_engine_at(folder)
    config.write_text(good)
    await (await open_engine_at(folder)).close()


async def test_what_was_acknowledged_survives_a_killed_process(folder: Path) -> None:
    """Inserted, replaced and deleted without a flush, then the process dies: all of it holds."""
    script = """
import asyncio, os, sys
from pathlib import Path
from engram.domain.memories import MemoryType
from engram.domain.memories import next_revision
from engram.ports import Replacement
from tests.support.engines import ADA, episode, new
from tests.support.engines import open_engine_at

async def main():
    repository = await open_engine_at(Path(sys.argv[1]))
    turns = [episode(ADA, f"turn {number}") for number in range(50)]
    await repository.insert(ADA, map(new, turns))
    after = next_revision(turns[0], turns[0], write_id="second")
    assert await repository.replace(ADA, [Replacement(after, 0)])
    await repository.delete(ADA, MemoryType.EPISODIC, [turns[1].id])
    os._exit(9)

asyncio.run(main())
"""
    died = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", script, str(folder)], check=False
    )
    assert died.returncode == 9
    repository = await open_engine_at(folder)
    assert await repository.count(ADA, EPISODIC) == 49
    first = episode(ADA, "turn 0").id
    assert (await repository.get(ADA, [first]))[first].write_id == "second"
    await repository.close()


async def test_a_synced_log_brings_back_what_no_flush_has_seen(folder: Path) -> None:
    """With the files of the last flush and the log of now, as a power loss leaves them."""
    repository = await open_engine_at(folder / "store")
    turns = [episode(ADA, f"turn {number}") for number in range(40)]
    await repository.insert(ADA, map(new, turns[:20]))
    await repository.flush()
    copy_folder(folder / "store", folder / "left")
    await repository.insert(ADA, map(new, [*turns[20:], *one_of_each(ADA)]))
    after = next_revision(turns[0], turns[0], write_id="second")
    assert await repository.replace(ADA, [Replacement(after, 0)])
    await repository.delete(ADA, EPISODIC, [turns[1].id])
    assert await repository.sync()
    assert not await repository.sync()
    for kind in STORED_TYPES:
        log = Path(f"engram_{kind.value}") / "wal"
        copy_folder(folder / "store" / log, folder / "left" / log)
    await repository.close()
    left = await open_engine_at(folder / "left")
    assert await left.count(ADA, EPISODIC) == 40
    assert (await left.get(ADA, [turns[0].id]))[turns[0].id] == after
    assert await left.get(ADA, [turns[1].id]) == {}
    for memory in one_of_each(ADA):
        assert (await left.get(ADA, [memory.id]))[memory.id] == memory
        assert [one.id for one in (await left.scroll(ADA, memory.type, limit=1000)).memories]
    await left.close()


@pytest.mark.parametrize("meanwhile", [MemoryType.NEGATION, EPISODIC])
async def test_no_power_loss_leaves_a_turn_marked_whose_conclusion_is_gone(
    folder: Path, meanwhile: MemoryType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn is concluded from and marked while the log of that type goes to the disk."""
    repository = await open_engine_at(folder / "store")
    turn, semantic = episode(ADA, "I live in Oslo."), MemoryType.SEMANTIC
    concluded = next(one for one in one_of_each(ADA) if one.type is semantic)
    marked = next_revision(turn, turn.model_copy(update={"consolidated_at": NOW}), write_id="mark")
    others = [one for one in one_of_each(ADA) if one.type is not semantic]
    copy_folder(folder / "store", folder / "left")
    await repository.insert(ADA, map(new, [turn, *others]))
    loop, begun, written = asyncio.get_running_loop(), threading.Event(), threading.Event()
    concluding: list[Future[None]] = []

    async def conclude() -> None:
        await repository.insert(ADA, [new(concluded)])
        begun.set()
        assert await repository.replace(ADA, [Replacement(marked, 0)])
        written.set()

    def to_disk(log: Path) -> None:
        """As late as it may be that the disk takes what is in the file."""
        if log.parent.name.endswith(meanwhile.value) and not concluding:
            concluding.append(asyncio.run_coroutine_threadsafe(conclude(), loop))
            begun.wait(10)
            written.wait(0.5)  # For good, where turns are not marked meanwhile.
        copy_folder(log, folder / "left" / log.parent.name / log.name)

    monkeypatch.setattr("engram.storage.edge.sync_files", to_disk)
    await repository.sync()
    await asyncio.wrap_future(concluding[0])
    await repository.close()
    left = await open_engine_at(folder / "left")
    found = await left.get(ADA, [turn.id, concluded.id])
    assert found[turn.id] == turn or concluded.id in found
    await left.close()


async def test_a_rewritten_type_is_on_disk_after_what_was_concluded(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fresh copy of the turns holds their marks, and takes the place of the old at once."""
    repository = await open_engine_at(folder)
    await repository.insert(ADA, map(new, one_of_each(ADA)))
    synced: list[str] = []
    for module in ("edge", "edge_files"):
        monkeypatch.setattr(
            f"engram.storage.{module}.sync_files",
            lambda path: synced.append(f"{path.parent.name}/{path.name}"),
        )
    await repository.rebuild()
    turns = next(n for n, path in enumerate(synced) if "episodic.rebuilt" in path)
    before = {path for path in synced[:turns] if path.endswith("wal")}
    assert before == {f"engram_{kind.value}/wal" for kind in STORED_TYPES if kind is not EPISODIC}
    await repository.close()


class FlushedShard:
    """A shard that tells when it is flushed."""

    def __init__(self, shard: object, tell: Callable[[], None]) -> None:
        self.shard, self.tell = shard, tell

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shard, name)

    def flush(self) -> None:
        """See the engine."""
        self.tell()
        self.__getattr__("flush")()


async def test_flush_touches_only_what_changed(folder: Path) -> None:
    """After a flush nothing is left to do until the next write, and then for its type alone."""
    repository = await open_engine_at(folder)
    flushed: list[MemoryType] = []
    for kind, shard in repository.shards.items():
        watched: Any = FlushedShard(shard, partial(flushed.append, kind))
        repository.shards[kind] = watched
    await repository.insert(ADA, [new(episode(ADA, "turn"))])
    assert flushed == []
    await repository.flush()
    assert flushed == [EPISODIC]
    await repository.get(ADA, [episode(ADA, "turn").id])
    await repository.flush()
    assert flushed == [EPISODIC]
    await repository.close()


async def test_turns_are_flushed_after_what_was_concluded_from_them(folder: Path) -> None:
    """Power lost in between never leaves turns marked as read whose conclusions are gone."""
    repository = await open_engine_at(folder)
    flushed: list[MemoryType] = []
    for kind, shard in repository.shards.items():
        watched: Any = FlushedShard(shard, partial(flushed.append, kind))
        repository.shards[kind] = watched
    await repository.insert(ADA, map(new, one_of_each(ADA)))
    await repository.flush()
    assert len(flushed) == len(STORED_TYPES)
    assert flushed[-1] is EPISODIC
    await repository.close()


async def test_what_adds_up_is_flushed_before_more_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the engine holds of what it did not flush is bounded, turns behind their conclusions."""
    monkeypatch.setattr("engram.storage.edge._UNFLUSHED_AT_MOST", 40)
    repository = await open_engine_at(folder)
    flushed: list[MemoryType] = []
    for kind, shard in repository.shards.items():
        watched: Any = FlushedShard(shard, partial(flushed.append, kind))
        repository.shards[kind] = watched
    turns = [episode(ADA, f"turn {number}") for number in range(64)]
    semantic = next(one for one in one_of_each(ADA) if one.type is MemoryType.SEMANTIC)
    await repository.insert(ADA, [new(semantic), *map(new, turns)])
    assert flushed == []
    marked = [next_revision(turn, turn, write_id="marked") for turn in turns]
    assert len(await repository.replace(ADA, [Replacement(one, 0) for one in marked])) == 64
    assert flushed[:2] == [MemoryType.SEMANTIC, EPISODIC]
    flushed.clear()
    await repository.delete(ADA, EPISODIC, [turn.id for turn in turns])
    assert EPISODIC in flushed
    await repository.close()


async def test_optimising_loses_nothing(folder: Path) -> None:
    """The same memories are there after segments were merged."""
    repository = await open_engine_at(folder)
    turns = [episode(ADA, f"turn {number}") for number in range(200)]
    await repository.insert(ADA, map(new, turns))
    await repository.delete(ADA, EPISODIC, [turn.id for turn in turns[:150]])
    repository.optimize()
    page = await repository.scroll(ADA, EPISODIC, limit=500)
    assert {memory.id for memory in page.memories} == {turn.id for turn in turns[150:]}
    await repository.close()


async def test_a_store_made_before_an_index_existed_gets_it(folder: Path) -> None:
    """Opening creates the indexes that are missing, so that new fields need no new store."""
    first = await open_engine_at(folder)
    shard = first.shards[EPISODIC]
    from qdrant_edge import UpdateOperation  # noqa: PLC0415  # used by this test alone

    shard.update(UpdateOperation.delete_field_index("session_id"))
    assert "session_id" not in shard.info().payload_schema
    await first.close()
    second = await open_engine_at(folder)
    assert "session_id" in second.shards[EPISODIC].info().payload_schema
    await second.close()


def files_below(folder: Path) -> int:
    """How many there are."""
    return sum(file.is_file() for file in folder.rglob("*"))


async def test_a_type_gets_its_indexes_with_its_first_memory(folder: Path) -> None:
    """An empty store is a third of the files; empty types answer every question all the same."""
    first = await open_engine_at(folder)
    kinds = [kind for kind in STORED_TYPES if kind is not EPISODIC]
    assert not any(first.shards[kind].info().payload_schema for kind in kinds)
    for kind in kinds:
        assert await first.count(ADA, kind, (Missing("tags"),)) == 0
        assert await first.values(kind, "session_id") == set()
        assert not (await first.scroll(ADA, kind)).memories
        await first.delete(ADA, kind, [episode(ADA, "turn").id])
    assert await first.rebuild() == 0
    assert files_below(folder) < 450
    await first.insert(ADA, map(new, one_of_each(ADA)))
    for _ in range(2):
        for kind in kinds:
            there = first.shards[kind].info().payload_schema
            assert indexed_fields(kind).keys() <= there.keys(), kind
            assert await first.count(ADA, kind, (Missing("tags"),)) == 0
            assert len((await first.scroll(ADA, kind)).memories) == 1
        await first.close()
        first = await open_engine_at(folder)
    await first.close()


class WatchedStore(EdgeRepository):
    """A store that notes what it asks of the engine; once, something happens after a read."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.reads: list[list[str]] = []
        self.written: list[set[str]] = []
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    async def _retrieve(
        self, memory_type: MemoryType, ids: list[str], *, fresh: bool = False
    ) -> list[dict[str, Any]]:
        found = await super()._retrieve(memory_type, ids, fresh=fresh)
        self.reads.append(ids)
        happens, self.meanwhile = self.meanwhile, None
        if happens is not None:
            await happens()
        return found

    async def _write_ids(
        self, scope: Scope, memory_type: MemoryType, ids: Sequence[str]
    ) -> dict[str, str | None]:
        self.reads.append([*ids])
        return await super()._write_ids(scope, memory_type, ids)

    def _changed(self, change: Overwrite[Any]) -> dict[str, Any] | None:
        few = super()._changed(change)
        self.written.append(set(few or change.payload))
        return few


async def watched_at(folder: Path) -> WatchedStore:
    """The store in this folder, watched."""
    opened = await WatchedStore.open(
        folder, embedder_identity=EMBEDDER, dimensions=DIMENSIONS, settings=Settings.load()
    )
    assert isinstance(opened, WatchedStore)
    return opened


async def test_what_was_read_is_read_again_only_after_a_write(folder: Path) -> None:
    """Nobody else writes here, so a memory stands until it is written; other users never see it."""
    repository = await watched_at(folder)
    turn, other = episode(ADA, "turn"), episode(ADA, "other")
    await repository.insert(ADA, [new(turn), new(other)])
    reads = repository.reads
    del reads[:]
    ids = [turn.id, other.id]
    for _ in range(3):
        assert await repository.get(ADA, ids, (EPISODIC,)) == {turn.id: turn, other.id: other}
    assert reads == [ids]
    assert await repository.get(BOB, ids, (EPISODIC,)) == {}
    assert await repository.get(ADA, ids, (MemoryType.SEMANTIC,)) == {}
    del reads[:]
    after = next_revision(turn, turn.model_copy(update={"content": "more"}), write_id="second")
    assert await repository.replace(ADA, [Replacement(after, 0)])
    assert (await repository.get(ADA, ids, (EPISODIC,)))[turn.id] == after
    assert reads == [[turn.id]]  # To see who won; what it is now is what was written.
    await repository.delete(ADA, EPISODIC, [other.id])
    assert await repository.get(ADA, [other.id]) == {}
    await repository.close()


async def test_what_a_user_had_forgotten_is_looked_up_again_only_after_it_changed(
    folder: Path,
) -> None:
    """Each write looks twice; what is forgotten between two of them is refused in the second."""
    repository = await watched_at(folder)
    turns = [episode(ADA, f"turn {number}") for number in range(4)]
    record = [ledger_id(ADA)]
    for turn in turns[:2]:
        assert await repository.insert(ADA, [new(turn)]) == frozenset()
    assert repository.reads.count(record) == 1
    await repository.bury(ADA, {turns[2].id}, drawn={}, key=uuid4().hex)
    assert await repository.insert(ADA, [new(turns[2]), new(turns[3])]) == {turns[2].id}
    assert await repository.epoch(ADA) == 0
    await repository.raise_epoch(ADA, "erasure", key=uuid4().hex)
    assert await repository.epoch(ADA) == 1
    await repository.close()


async def test_a_listing_that_began_before_a_write_leaves_nothing_outdated(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It decodes what it read then, in the middle of somebody's look at what is stored now."""
    monkeypatch.setattr("engram.giving_way._LONGEST_STEP", -1.0)
    repository = await watched_at(folder)
    turns = sorted((episode(ADA, f"turn {number}") for number in range(20)), key=lambda one: one.id)
    await repository.insert(ADA, [new(turn) for turn in turns])
    listing = asyncio.create_task(repository.scroll(ADA, EPISODIC))
    await asyncio.sleep(0)
    last = turns[-1]
    after = next_revision(last, last.model_copy(update={"content": "more"}), write_id="second")
    assert await repository.replace(ADA, [Replacement(after, 0)])
    await repository.get(ADA, [last.id, *(turn.id for turn in turns)])
    assert last in (await listing).memories
    assert await repository.get(ADA, [last.id], fresh=True) == {last.id: after}
    await repository.close()


async def test_what_is_stored_anew_is_not_taken_for_what_was_deleted(folder: Path) -> None:
    """It begins at the same revision; nor is what was deleted kept in memory."""
    repository = await watched_at(folder)
    turn = episode(ADA, "turn", summary="first")
    await repository.insert(ADA, [new(turn)])
    kept = ref((await repository.get(ADA, [turn.id]))[turn.id])
    assert kept() == turn
    await repository.delete(ADA, EPISODIC, [turn.id])
    assert kept() is None
    anew = turn.model_copy(update={"summary": "second", "tags": ("other",)})
    await repository.insert(ADA, [new(anew)])
    # So long a page is read past what is kept.
    (read,) = (await repository.scroll(ADA, EPISODIC, limit=1000)).memories
    after = next_revision(read, read.model_copy(update={"summary": "first"}), write_id="second")
    assert await repository.replace(ADA, [Replacement(after, 0)])
    assert await repository.get(ADA, [turn.id]) == {turn.id: after}
    await repository.close()


async def test_what_is_written_while_it_is_read_is_read_again(folder: Path) -> None:
    """A write between the engine's answer and its use leaves nothing outdated behind."""
    repository = await watched_at(folder)
    turn = episode(ADA, "turn")
    await repository.insert(ADA, [new(turn)])
    after = next_revision(turn, turn, write_id="second")
    repository.meanwhile = partial(repository.replace, ADA, [Replacement(after, 0)])
    assert (await repository.get(ADA, [turn.id], (EPISODIC,)))[turn.id] == turn
    assert (await repository.get(ADA, [turn.id]))[turn.id] == after
    await repository.close()


async def test_a_change_of_what_was_read_writes_only_what_differs(folder: Path) -> None:
    """Noting one thing about a memory does not write its text again."""
    repository = await watched_at(folder)
    turn = episode(ADA, "turn", content="words " * 400)
    await repository.insert(ADA, [new(turn)])
    for number in range(2):
        await repository.get(ADA, [turn.id])
        noted = turn.model_copy(update={"access_count": number + 1})
        after = next_revision(turn, noted, write_id=f"w{number}")
        assert await repository.replace(ADA, [Replacement(after, number)])
        turn = after
    assert repository.written == [{"access_count", "revision", "write_id"}] * 2
    await repository.close()


async def test_the_record_can_be_read_by_people(folder: Path) -> None:
    """It says which schema and which embedder, in JSON."""
    await (await open_engine_at(folder)).close()
    assert json.loads((folder / "engram.store.json").read_text()) == {
        "schema_version": 1,
        "embedder": EMBEDDER,
        "dimensions": DIMENSIONS,
        "types": [kind.value for kind in STORED_TYPES],
    }


def test_a_missing_engine_names_the_extra_and_the_other_mode(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where qdrant-edge-py is not installed, the error says what to install or use instead."""
    monkeypatch.setitem(sys.modules, "qdrant_edge", None)
    monkeypatch.delitem(sys.modules, "engram.storage.edge_engine")
    with pytest.raises(EmbeddedPartMissing, match=r"\[embedded\].*connected mode"):
        importlib.import_module("engram.storage.edge_engine")


def test_a_file_that_gets_its_name_meanwhile_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine renames what it began in the background: nothing fails or is left out."""
    for name in ("closed-1", "open-1", "tmp-open-2"):
        (tmp_path / name).write_bytes(name.encode())
    synced: set[int] = set()

    def fsync(descriptor: int) -> None:
        if not synced:
            (tmp_path / "tmp-open-2").rename(tmp_path / "open-2")
        synced.add(os.fstat(descriptor).st_ino)

    monkeypatch.setattr("engram.storage.edge_files.os.fsync", fsync)
    sync_files(tmp_path)
    assert synced == {path.stat().st_ino for path in (tmp_path, *tmp_path.iterdir())}
