"""The files of an in-process store: one shard folder per type, and a record of who wrote it."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from engram.domain.memories import STORED_TYPES, MemoryType
from engram.errors import DataFolderInUse, SchemaMismatch
from engram.storage import edge_swap
from engram.storage.edge_engine import engine, engine_errors
from engram.storage.schema import (
    DENSE,
    SPARSE,
    TENANT,
    FieldKind,
    check_identity,
    collection_names,
    identity_record,
    indexed_fields,
)

_RECORD_FILE: Final = "store.json"
_LOCK_FILE: Final = "store.lock"
_UNFINISHED: Final = ".new"
# A user's memories are searched exactly up to this many KB of vectors (20,000 at
# 256 dimensions), by a graph of that user's own memories beyond. There is no
# graph over everybody: no search ever spans users.
_EXACT_BELOW_KB: Final = 20_000
_TENANT_GRAPH_EDGES: Final = 16
_GRAPH_EFFORT: Final = 128


@dataclass(frozen=True)
class OpenStore:
    """The shards of a store, where they are, and the lock that keeps other processes out."""

    shards: dict[MemoryType, engine.EdgeShard]
    folders: Mapping[MemoryType, Path]
    lock: IO[bytes]
    config: engine.EdgeConfig

    def counts(self) -> dict[MemoryType, int]:
        """How many points of each type there are."""
        return {kind: shard.info().points_count for kind, shard in self.shards.items()}

    def create(self, memory_type: MemoryType, folder: Path) -> engine.EdgeShard:
        """A new, empty shard of the type in a folder that is not there yet."""
        return _ready_shard(folder, memory_type, self.config, making=True)

    def take_over(self, memory_type: MemoryType) -> None:
        """Let the rebuilt folder of a type, closed and on disk, take the place of its shard.

        Raises:
            StorageError: it cannot be opened; the shard is in use as before.
            OSError: likewise, the folders cannot be renamed.
        """
        folder = self.folders[memory_type]
        self.shards[memory_type].close()
        try:
            edge_swap.replace(folder)
            self.shards[memory_type] = self._load(memory_type)
        except BaseException:
            edge_swap.undo(folder)
            self.shards[memory_type] = self._load(memory_type)
            raise

    def _load(self, memory_type: MemoryType) -> engine.EdgeShard:
        folder = self.folders[memory_type]
        return _ready_shard(folder, memory_type, self.config, making=False)

    def close(self) -> None:
        """Let go of everything."""
        for shard in self.shards.values():
            shard.close()
        self.lock.close()


def open_store(path: Path, *, prefix: str, embedder: str, dimensions: int) -> OpenStore:
    """Load the store in this folder, or make it.

    Raises:
        SchemaMismatch: another schema version or another embedder wrote it.
        DataFolderInUse: another process, or another part of this one, has it open.
    """
    path.mkdir(parents=True, exist_ok=True)
    names = collection_names(prefix)
    folders = {memory_type: path / names[memory_type] for memory_type in STORED_TYPES}
    lock = _take_lock(path / f"{prefix}.{_LOCK_FILE}")
    store = OpenStore({}, folders, lock, _config(dimensions))
    try:
        _check_record(path, prefix, names, embedder=embedder, dimensions=dimensions)
        for memory_type, folder in folders.items():
            store.shards[memory_type] = _open_shard(folder, memory_type, store.config)
    except BaseException:
        store.close()
        raise
    return store


def _take_lock(file: Path) -> IO[bytes]:
    lock = file.open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.close()
        raise DataFolderInUse(
            f"The store at {file.parent} is open already.",
            hint="Close the process that has it open, or use another data folder "
            "(ENGRAM_DATA_DIR).",
        ) from error
    return lock


def _check_record(
    path: Path,
    prefix: str,
    names: Mapping[MemoryType, str],
    *,
    embedder: str,
    dimensions: int,
) -> None:
    record = path / f"{prefix}.{_RECORD_FILE}"
    if record.exists():
        check_identity(_read_record(record), embedder=embedder, dimensions=dimensions)
        return
    if any((path / name).exists() for name in names.values()):
        raise _unreadable(record)
    # Before the shards: what holds memories always has a record.
    _write_record(record, identity_record(embedder=embedder, dimensions=dimensions))


def _open_shard(
    folder: Path, memory_type: MemoryType, config: engine.EdgeConfig
) -> engine.EdgeShard:
    edge_swap.settle(folder)
    # Beside the folder while it is being made: what a crash leaves is made again.
    unfinished = folder.with_name(folder.name + _UNFINISHED)
    if unfinished.exists():
        shutil.rmtree(folder, ignore_errors=True)
    making = not folder.exists()
    if making:
        unfinished.touch()
    shard = _ready_shard(folder, memory_type, config, making=making)
    unfinished.unlink(missing_ok=True)
    # What was replaced goes when its successor is known to be readable.
    edge_swap.drop_replaced(folder)
    return shard


def _ready_shard(
    folder: Path, memory_type: MemoryType, config: engine.EdgeConfig, *, making: bool
) -> engine.EdgeShard:
    with engine_errors(f"opening {folder.name}"):
        open_shard = engine.EdgeShard.create if making else engine.EdgeShard.load
        shard = open_shard(str(folder), config)
        try:
            _make_indexes(shard, memory_type)
            if making:
                shard.flush()
        except BaseException:
            shard.close()
            raise
    return shard


def _config(dimensions: int) -> engine.EdgeConfig:
    return engine.EdgeConfig(
        vectors={DENSE: engine.EdgeVectorParams(size=dimensions, distance=engine.Distance.Cosine)},
        sparse_vectors={SPARSE: engine.EdgeSparseVectorParams(modifier=engine.Modifier.Idf)},
        hnsw_config=engine.HnswIndexConfig(
            m=0,
            payload_m=_TENANT_GRAPH_EDGES,
            ef_construct=_GRAPH_EFFORT,
            full_scan_threshold=_EXACT_BELOW_KB,
        ),
    )


def _make_indexes(shard: engine.EdgeShard, memory_type: MemoryType) -> None:
    there = shard.info().payload_schema
    wanted = {TENANT: engine.KeywordIndexParams(is_tenant=True)} | {
        name: _index(kind) for name, kind in indexed_fields(memory_type).items()
    }
    for name, params in wanted.items():
        if name not in there:
            shard.update(engine.UpdateOperation.create_field_index(name, params))


def _index(kind: FieldKind) -> engine.PayloadSchemaParams:
    # Only the tenant gets a graph; one for every field would be built and never used.
    match kind:
        case FieldKind.KEYWORD:
            return engine.KeywordIndexParams(enable_hnsw=False)
        case FieldKind.INTEGER | FieldKind.BOOL:
            return engine.IntegerIndexParams(lookup=True, range=True, enable_hnsw=False)
        case FieldKind.FLOAT:
            return engine.FloatIndexParams(enable_hnsw=False)
        case FieldKind.DATETIME:
            return engine.DatetimeIndexParams(enable_hnsw=False)


def _read_record(record: Path) -> Mapping[str, object]:
    try:
        stored = json.loads(record.read_text("utf-8"))
    except ValueError:
        raise _unreadable(record) from None
    if not isinstance(stored, dict):
        raise _unreadable(record)
    return stored


def _unreadable(record: Path) -> SchemaMismatch:
    return SchemaMismatch(
        f"The record of the store, {record}, is missing or cannot be read.",
        hint="Restore it from a backup of the folder, or start a new store.",
    )


def _write_record(record: Path, content: Mapping[str, Any]) -> None:
    aside = record.with_name(record.name + _UNFINISHED)
    with aside.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(record)
    edge_swap.sync_folder(record.parent)
