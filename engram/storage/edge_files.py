"""The files of an in-process store: shard folders, copying them anew, swapping them in."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog

from engram.domain.memories import STORED_TYPES, MemoryType
from engram.errors import DataFolderInUse, SchemaMismatch, StorageError, StorageUnavailable
from engram.storage.edge_engine import engine, engine_errors
from engram.storage.payload import (
    DENSE,
    SPARSE,
    TENANT,
    FieldKind,
    check_identity,
    collection_names,
    identity_record,
    indexed_fields,
)
from engram.storage.points import EXACT_BELOW_KB, GRAPH_EFFORT, TENANT_GRAPH_EDGES
from engram.system import FileLock, sync_folder

_log = structlog.get_logger("engram.storage")

# --- putting a rebuilt folder in the place of another, whatever moment the process dies at
#
# Beside the folder ``x`` lie, for a while, ``x.rebuilt`` (its successor) and
# ``x.replaced`` (what it was). Steps: build the successor, make it durable,
# rename ``x`` to ``x.replaced``, rename ``x.rebuilt`` to ``x``, open it, remove
# ``x.replaced``. So a successor beside a folder that is there was not finished,
# and one without it was. One that could not be opened is moved to ``x.failed``
# before what it replaced comes back, so that it is not taken for one to go on with.


def rebuilt(folder: Path) -> Path:
    """Where the successor of a folder is built."""
    return folder.with_name(folder.name + ".rebuilt")


def replaced(folder: Path) -> Path:
    """Where a folder goes when its successor takes its place."""
    return folder.with_name(folder.name + ".replaced")


def failed(folder: Path) -> Path:
    """Where a successor goes that could not be opened."""
    return folder.with_name(folder.name + ".failed")


def settle(folder: Path) -> None:
    """Finish or undo a replacement that was interrupted.

    What was replaced stays until :func:`drop_replaced`, for when the successor cannot be opened.
    """
    if not folder.exists() and replaced(folder).exists():
        # The first rename happens only when the successor is whole.
        source = rebuilt(folder) if rebuilt(folder).exists() else replaced(folder)
        source.rename(folder)
        _try_to_sync(folder.parent)
    # Beside a folder that is there, it is a half, or lacks what was written since.
    drop_rebuilt(folder)
    _remove(failed(folder))


def replace(folder: Path) -> None:
    """Put the successor in the folder's place; :func:`undo` takes that back."""
    folder.rename(replaced(folder))
    _try_to_sync(folder.parent)
    rebuilt(folder).rename(folder)
    _try_to_sync(folder.parent)


def undo(folder: Path) -> None:
    """Put back what was replaced, wherever :func:`replace` got to."""
    if not replaced(folder).exists():
        return
    if folder.exists():
        folder.rename(failed(folder))
        _try_to_sync(folder.parent)
    replaced(folder).rename(folder)
    _try_to_sync(folder.parent)
    _remove(failed(folder))


def drop_rebuilt(folder: Path) -> None:
    """Remove an unfinished successor, if there is one."""
    _remove(rebuilt(folder))


def drop_replaced(folder: Path) -> None:
    """Remove what was replaced, if there is anything."""
    _remove(replaced(folder))


def log_of(folder: Path) -> Path:
    """Where a shard's folder keeps the log of its writes."""
    return folder / "wal"


def sync_files(folder: Path) -> None:
    """Have every file below on disk: after a power loss a rename must not lead to less."""
    for inside, _, _ in os.walk(folder):
        seen: set[str] = set()
        # The engine begins files in the background, and renames them when they are there: what
        # was gone when its turn came is there by another name.
        while names := set(_files_in(inside)) - seen:
            for name in names:
                with suppress(FileNotFoundError), (Path(inside) / name).open("rb") as file:
                    os.fsync(file.fileno())
            seen |= names
        _try_to_sync(Path(inside))


def _files_in(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.name for entry in entries if entry.is_file()]


def _try_to_sync(folder: Path) -> None:
    """Have a folder's entries on disk, where the system can: renames are atomic all the same."""
    with suppress(OSError):
        sync_folder(folder)


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
        _try_to_sync(folder.parent)


# --- room on the disk
#
# The engine's files are mapped into memory and sparse: where the disk has no room for a page
# that is written, the system ends the whole process (SIGBUS). So room is asked for before.

ROOM_TO_WRITE: Final = 64 * 2**20
"""Bytes that must be free before memories are added or changed."""
ROOM_TO_DELETE: Final = 16 * 2**20
"""Bytes that must be free before memories are deleted, which makes room, or a store is opened."""
_BEGUN_BY_A_WRITE: Final = 4 * 32 * 2**20
"""Bytes of the files that the engine may begin with a write, some of them a moment later: the next
part of its log, and a page each of payloads, dense and sparse vectors."""
_UNCOUNTED: Final = 2**30
"""Bytes by which holes may grow between two countings: six types get their indexes and pages."""


class Disk:
    """The disk of a store's folder, asked for room before it is written to.

    On a file system in memory even reading a hole takes a page, so there the room that the
    files' holes may come to take is kept free as well, those of files yet to begin included.

    Args:
        folder: That holds all of the store's files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._in_memory = _is_in_memory(folder)
        self._holes = _holes(folder) if self._in_memory else 0

    def require(self, wanted: int, doing: str) -> None:
        """Check that so many bytes are free.

        Takes microseconds; near the end of a file system in memory, where files are counted,
        milliseconds.

        Args:
            wanted: In bytes.
            doing: What needs them, in words, for the message.

        Raises:
            StorageUnavailable: they are not. Whatever was stored is untouched.
        """
        disk = os.statvfs(self._folder)
        free = disk.f_bavail * disk.f_frsize
        if self._in_memory and free < self.needed(wanted) + _UNCOUNTED:
            self._holes = _holes(self._folder)
        if free < (needed := self.needed(wanted)):
            raise StorageUnavailable(
                f"The disk of the store has {free // 2**20} MB left, too few for {doing}.",
                allowed=f"{needed // 2**20} MB or more",
                hint="Make room on the disk of the data folder; the same call can be made "
                "again. Nothing that was acknowledged is lost.",
                details={"free_bytes": free, "needed_bytes": needed},
            )

    def needed(self, wanted: int) -> int:
        """Bytes that must be free, by the last counting, for so many to be written."""
        if not self._in_memory:
            return wanted
        begun = _BEGUN_BY_A_WRITE if wanted >= ROOM_TO_WRITE else 0
        return wanted + begun + self._holes


def taken_by(folder: Path) -> int:
    """Bytes on disk that the files below a folder take; of sparse ones, what they hold."""
    return sum(_on_disk(found) for found in _files_below(folder))


def _holes(folder: Path) -> int:
    return sum(max(found.st_size - _on_disk(found), 0) for found in _files_below(folder))


def _files_below(folder: Path) -> Iterator[os.stat_result]:
    for inside, _, files in os.walk(folder):
        for name in files:
            # Another thread may remove one meanwhile.
            with suppress(FileNotFoundError):
                yield os.stat(f"{inside}/{name}")  # noqa: PTH116 - a store has a thousand files


def _on_disk(found: os.stat_result) -> int:
    # The system counts in blocks of this size, whatever those of the disk are.
    return found.st_blocks * 512


def _is_in_memory(folder: Path) -> bool:
    device = folder.stat().st_dev
    try:
        mounts = Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return False  # Not Linux: the file systems in memory that we know are.
    number = f"{os.major(device)}:{os.minor(device)}"
    return any(
        mount.split()[2] == number and mount.partition(" - ")[2].split()[0] in {"tmpfs", "ramfs"}
        for mount in mounts
    )


# --- the files of an in-process store: one shard folder per type, and a record of who wrote it

_RECORD_FILE: Final = "store.json"
_COUNTS_FILE: Final = "points.json"
_LOCK_FILE: Final = "store.lock"
_UNFINISHED: Final = ".new"
# Under this key the record lists the types whose folders were made.
_MADE: Final = "types"


class KnownCounts:
    """How many points each type has at least, so that it is noticed when some are gone.

    Damaged files are opened without a word as a store that has fewer. What is noted is never
    more than there is, whenever the process dies: it goes up when points are on disk, and to
    nothing before some are deleted, until they are on disk again. Without the file, nothing is
    known, and nothing missing: deleting it is how somebody goes on with what is left.

    Args:
        file: Where it is noted.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        found = _read_counts(file)
        self._least = _counts_in(found, "points")
        self._missing = _counts_in(found, "missing")
        # Whether the file says what is known.
        self._noted = self._least.keys() >= set(STORED_TYPES)

    @property
    def missing(self) -> Mapping[MemoryType, int]:
        """How many points of each type were found missing; without those that lack none."""
        return {kind: count for kind, count in self._missing.items() if count}

    def opened(self, counts: Mapping[MemoryType, int]) -> None:
        """Compare with what there is.

        Raises:
            StorageError: nothing is left of a type.
        """
        for kind, count in counts.items():
            least = self._least.setdefault(kind, count)
            if least and not count:
                raise self._all_gone(kind, least)
            if count < least:
                self._missing[kind] = self._missing.get(kind, 0) + least - count
                self.flushed(kind, count)
                _log.error(
                    "memories of the store are missing: restore a backup of the data folder",
                    memory_type=kind.value,
                    missing=least - count,
                    there=count,
                )
        self.note()

    def flushed(self, memory_type: MemoryType, count: int) -> None:
        """So many points of a type are on disk; :meth:`note` writes it down."""
        if self._least.get(memory_type) != count:
            self._least[memory_type] = count
            self._noted = False

    def note(self) -> None:
        """Write down what changed. What is not is less than there is, and does no harm."""
        if self._noted:
            return
        try:
            self._write(durable=False)
        except OSError as error:
            _log.warning("how many memories there are was not noted", reason=error.strerror)

    def deleting(self, memory_type: MemoryType) -> None:
        """Points of a type are about to be deleted.

        Raises:
            StorageUnavailable: the disk failed; none may be.
        """
        if not (least := self._least.get(memory_type)):
            return
        self._least[memory_type] = 0
        try:
            self._write(durable=True)
        except OSError as error:
            # So that the next attempt writes it down before it deletes.
            self._least[memory_type] = least
            raise StorageUnavailable(
                "The disk of the store failed before memories were deleted.",
                hint="Look at the disk of the data folder; the same call can be made again.",
            ) from error

    def _write(self, *, durable: bool) -> None:
        both = {"points": self._least, "missing": self._missing}
        content = {
            name: {kind.value: count for kind, count in counts.items()}
            for name, counts in both.items()
        }
        _write_record(self._file, content, durable=durable)
        self._noted = True

    def _all_gone(self, memory_type: MemoryType, least: int) -> StorageError:
        return StorageError(
            f"None of {least} memories of the type {memory_type.value} of the store at "
            f"{self._file.parent} is there any more.",
            hint="Restore a backup of the whole data folder: opened as empty it would hide the "
            f"loss. To go on with what is left, delete {self._file.name} in the store's folder.",
            details={"type": memory_type.value, "missing": least},
        )


def _read_counts(file: Path) -> object:
    try:
        return json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        _log.warning("how many memories there were cannot be read", file=file.name)
        return {}


def _counts_in(found: object, name: str) -> dict[MemoryType, int]:
    counts = found.get(name) if isinstance(found, dict) else None
    given = counts if isinstance(counts, dict) else {}
    return {kind: n for kind in STORED_TYPES if isinstance(n := given.get(kind.value), int)}


@dataclass(frozen=True)
class OpenStore:
    """The shards of a store, where they are, and the lock that keeps other processes out."""

    shards: dict[MemoryType, engine.EdgeShard]
    folders: Mapping[MemoryType, Path]
    lock: FileLock
    config: engine.EdgeConfig
    known: KnownCounts

    def counts(self) -> dict[MemoryType, int]:
        """How many points of each type there are."""
        return {kind: shard.info().points_count for kind, shard in self.shards.items()}

    def create(self, memory_type: MemoryType, folder: Path) -> engine.EdgeShard:
        """A new, empty shard in a folder that is not there yet, with the indexes of this type's."""
        indexed = self._indexed(memory_type)
        return _ready_shard(folder, memory_type, self.config, making=True, indexed=indexed)

    def missing_indexes(self, memory_type: MemoryType) -> Iterator[Callable[[], None]]:
        """What makes the indexes that the type lacks, one by one; it has them with its memories.

        A type that never had memories has none, but for turns: they are what a store begins
        with. An index is ten files, and no question reaches a type that has none.
        """
        return _missing_indexes(self.shards[memory_type], memory_type)

    def take_over(self, memory_type: MemoryType) -> None:
        """Let the rebuilt folder of a type, closed and on disk, take the place of its shard.

        Raises:
            StorageError: it cannot be opened; the shard is in use as before.
            OSError: likewise, the folders cannot be renamed.
        """
        folder = self.folders[memory_type]
        # The first memory of a type may have come, and gone, after the copy was begun.
        indexed = self._indexed(memory_type)
        self.shards[memory_type].close()
        try:
            replace(folder)
            self.shards[memory_type] = self._load(memory_type, indexed=indexed)
        except BaseException:
            undo(folder)
            self.shards[memory_type] = self._load(memory_type, indexed=indexed)
            raise

    def _indexed(self, memory_type: MemoryType) -> bool:
        """Whether a type has its indexes: questions reach it from then on, also when it is empty.

        So what takes its place must have them, whatever is left in it.
        """
        return bool(self.shards[memory_type].info().payload_schema)

    def _load(self, memory_type: MemoryType, *, indexed: bool) -> engine.EdgeShard:
        folder = self.folders[memory_type]
        return _ready_shard(folder, memory_type, self.config, making=False, indexed=indexed)

    def close(self) -> None:
        """Let go of everything."""
        for shard in self.shards.values():
            shard.close()
        self.lock.release()


def open_store(path: Path, *, prefix: str, embedder: str, dimensions: int) -> OpenStore:
    """Load the store in this folder, or make it.

    Raises:
        SchemaMismatch: another schema version or another embedder wrote it.
        DataFolderInUse: another process, or another part of this one, has it open.
        StorageUnavailable: the disk is full.
        StorageError: a part of it, or all memories of a type, are missing, or cannot be read.
    """
    path.mkdir(parents=True, exist_ok=True)
    names = collection_names(prefix)
    folders = {memory_type: path / names[memory_type] for memory_type in STORED_TYPES}
    disk = Disk(path)
    disk.require(ROOM_TO_DELETE, "opening it")
    lock = _take_lock(path / f"{prefix}.{_LOCK_FILE}")
    known = KnownCounts(path / f"{prefix}.{_COUNTS_FILE}")
    store = OpenStore({}, folders, lock, _config(dimensions), known)
    record = path / f"{prefix}.{_RECORD_FILE}"
    try:
        made = _check_record(record, names, embedder=embedder, dimensions=dimensions)
        for memory_type, folder in folders.items():
            store.shards[memory_type] = _open_shard(
                folder, memory_type, store.config, disk, made=memory_type in made
            )
        if len(made) < len(folders):
            # From now on a folder that is missing was lost.
            identity = identity_record(embedder=embedder, dimensions=dimensions)
            _write_record(record, identity | {_MADE: [kind.value for kind in folders]})
        known.opened(store.counts())
    except BaseException:
        store.close()
        raise
    return store


def _take_lock(file: Path) -> FileLock:
    lock = FileLock(file, guarded=file.parent)
    if not lock.try_acquire():
        raise DataFolderInUse(
            f"The store at {file.parent} is open already.",
            hint="Close the process that has it open, or use another data folder "
            "(ENGRAM_DATA_DIR).",
        )
    return lock


def _check_record(
    record: Path,
    names: Mapping[MemoryType, str],
    *,
    embedder: str,
    dimensions: int,
) -> frozenset[str]:
    """Which types the store has held since it was first opened; none if it is new."""
    if record.exists():
        found = _read_record(record)
        check_identity(found, embedder=embedder, dimensions=dimensions)
        made = found.get(_MADE)
        return frozenset(map(str, made)) if isinstance(made, list) else frozenset()
    if any((record.parent / name).exists() for name in names.values()):
        raise _unreadable(record)
    # Before the shards: what holds memories always has a record.
    _write_record(record, identity_record(embedder=embedder, dimensions=dimensions))
    return frozenset()


def _open_shard(
    folder: Path,
    memory_type: MemoryType,
    config: engine.EdgeConfig,
    disk: Disk,
    *,
    made: bool,
) -> engine.EdgeShard:
    settle(folder)
    # Beside the folder while it is being made: what a crash leaves is made again.
    unfinished = folder.with_name(folder.name + _UNFINISHED)
    if unfinished.exists() and not made and not _holds_memories(folder, config):
        shutil.rmtree(folder, ignore_errors=True)
    making = not folder.exists()
    if making and made:
        raise StorageError(
            f"The folder {folder.name} of the store at {folder.parent} is missing.",
            hint="Restore it from a backup of the whole data folder, or start a new store "
            "(ENGRAM_DATA_DIR): one made empty in its place would hide the loss.",
        )
    if making:
        disk.require(ROOM_TO_WRITE, "making it")
        unfinished.touch()
    shard = _ready_shard(folder, memory_type, config, making=making)
    if unfinished.exists():
        unfinished.unlink()
        _try_to_sync(folder.parent)
    # What was replaced goes when its successor is known to be readable.
    drop_replaced(folder)
    return shard


def _holds_memories(folder: Path, config: engine.EdgeConfig) -> bool:
    """Whether a folder that is marked as half made is a whole one with memories all the same."""
    if not folder.exists():
        return False
    try:
        with engine_errors(f"looking into {folder.name}"):
            shard = engine.EdgeShard.load(str(folder), config)
    except StorageError:
        return False
    count = shard.info().points_count
    shard.close()
    return bool(count)


def _ready_shard(
    folder: Path,
    memory_type: MemoryType,
    config: engine.EdgeConfig,
    *,
    making: bool,
    indexed: bool = False,
) -> engine.EdgeShard:
    restore = "Restore a backup of the whole data folder."
    with _naming_refused(folder), engine_errors(f"opening {folder.name}", restore):
        open_shard = engine.EdgeShard.create if making else engine.EdgeShard.load
        shard = open_shard(str(folder), config)
        try:
            if indexed or memory_type is MemoryType.EPISODIC or shard.info().points_count:
                for make in _missing_indexes(shard, memory_type):
                    make()
            if making:
                shard.flush()
        except BaseException:
            shard.close()
            raise
    return shard


@contextmanager
def _naming_refused(folder: Path) -> Iterator[None]:
    """Where the engine fails over a file that this user may not use, say which: it is no damage."""
    try:
        yield
    except StorageError as error:
        inside = (
            Path(place, name)
            for place, folders, files in os.walk(folder)
            for name in (*folders, *files)
        )
        refused = next((one for one in inside if not os.access(one, os.R_OK | os.W_OK)), None)
        if refused is None:
            raise
        raise StorageError(
            f"{refused}, of the store, cannot be used: this user may not read and write it.",
            allowed="files that this user can read and write",
            hint="No memory is lost by that. What another user made there, root say, is this "
            "user's again with `chown -R`.",
            details={"path": str(refused)},
        ) from error


def _config(dimensions: int) -> engine.EdgeConfig:
    return engine.EdgeConfig(
        vectors={DENSE: engine.EdgeVectorParams(size=dimensions, distance=engine.Distance.Cosine)},
        sparse_vectors={SPARSE: engine.EdgeSparseVectorParams(modifier=engine.Modifier.Idf)},
        hnsw_config=engine.HnswIndexConfig(
            m=0,
            payload_m=TENANT_GRAPH_EDGES,
            ef_construct=GRAPH_EFFORT,
            full_scan_threshold=EXACT_BELOW_KB,
        ),
        # Then a search runs where it was asked for. Handing it to a thread and waiting takes
        # longer than searching some thousand memories, and each type would keep its own threads.
        max_search_threads=1,
    )


def _missing_indexes(
    shard: engine.EdgeShard, memory_type: MemoryType
) -> Iterator[Callable[[], None]]:
    there = shard.info().payload_schema
    wanted = {TENANT: engine.KeywordIndexParams(is_tenant=True)} | {
        name: _index(kind) for name, kind in indexed_fields(memory_type).items()
    }
    for name, params in wanted.items():
        if name not in there:
            yield partial(shard.update, engine.UpdateOperation.create_field_index(name, params))


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


def _write_record(record: Path, content: Mapping[str, Any], *, durable: bool = True) -> None:
    aside = record.with_name(record.name + _UNFINISHED)
    with aside.open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=2)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    aside.replace(record)
    if durable:
        _try_to_sync(record.parent)


# --- copying what is left of a shard into fresh files: deleting alone leaves words in the old
# ones
#
# The engine keeps deleted points in its log, and in its segments until they are
# optimised; indexes and storage keep the bytes even then. Reads and writes go on
# while points are copied. What was written meanwhile is copied again at the end,
# when writes wait for as long as that and the change of folders take.

# Some milliseconds each.
_WRITES_AT_ONCE: Final = 64
# Flushing blocks for as long as there is to flush.
_BETWEEN_FLUSHES: Final = 16


@dataclass
class Writes:
    """The writes to one shard.

    Attributes:
        lock: Held by whoever writes, and while one shard takes another's place.
        changed: Ids written since a copy was begun; None when nobody copies.
    """

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    changed: set[str] | None = None

    def note(self, ids: Iterable[str]) -> None:
        """These are about to be written."""
        if self.changed is not None:
            self.changed.update(ids)


async def rebuild(
    store: OpenStore,
    memory_type: MemoryType,
    writes: Writes,
    *,
    check_open: Callable[[], None],
    first: Callable[[], Awaitable[None]],
) -> int:
    """Put a fresh copy in the place of a shard.

    Args:
        store: Whose shard; it holds the fresh one afterwards.
        memory_type: Which one.
        writes: Through which every write to it goes.
        check_open: Raises once the store was closed.
        first: Puts on disk what must be there before the copy is; nobody writes meanwhile.

    Returns:
        How many points there are.

    Raises:
        StorageUnavailable: the disk has no room for the copy. The old shard is in use as before.
        StorageError: the engine failed. Likewise.
        OSError: the disk failed. Likewise.
    """
    folder = store.folders[memory_type]
    drop_rebuilt(folder)
    disk = Disk(folder.parent)
    disk.require(taken_by(folder) + ROOM_TO_WRITE, "rewriting its files")
    fresh = store.create(memory_type, rebuilt(folder))
    writes.changed = set()
    try:
        copying = _Copying(store.shards[memory_type], fresh, check_open, disk)
        await copying.everything()
        async with writes.lock:
            await copying.these(writes.changed)
            copying.flush()
            await first()
            await asyncio.to_thread(sync_files, rebuilt(folder))
            check_open()
            points = fresh.info().points_count
            fresh.close()
            # No await from here on: nobody may see the shard that is closed.
            store.take_over(memory_type)
    finally:
        writes.changed = None
        fresh.close()
        await _surely(asyncio.to_thread(drop_rebuilt, folder))
    await _surely(asyncio.to_thread(drop_replaced, folder))
    return points


class _Copying:
    def __init__(
        self,
        old: engine.EdgeShard,
        fresh: engine.EdgeShard,
        check_open: Callable[[], None],
        disk: Disk,
    ) -> None:
        self._disk = disk
        self._old = old
        self._fresh = fresh
        self._check_open = check_open
        self._unflushed = 0

    async def everything(self) -> None:
        at: engine.PointId | None = None
        while True:
            self._check_open()
            request = engine.ScrollRequest(
                offset=at, limit=_WRITES_AT_ONCE, with_payload=True, with_vector=True
            )
            with engine_errors("copying"):
                records, at = self._old.scroll(request)
                self._put(records)
            await asyncio.sleep(0)
            if at is None:
                return

    async def these(self, ids: Iterable[str]) -> None:
        """As they are now, or not at all."""
        wanted = sorted(ids)
        for start in range(0, len(wanted), _WRITES_AT_ONCE):
            self._check_open()
            part: list[engine.PointId] = [*wanted[start : start + _WRITES_AT_ONCE]]
            with engine_errors("copying"):
                self._fresh.update(engine.UpdateOperation.delete_points(part))
                self._put(self._old.retrieve(part, True, True))
            await asyncio.sleep(0)

    def _put(self, records: Sequence[engine.Record]) -> None:
        if records:
            # Others write to the disk as well.
            self._disk.require(ROOM_TO_DELETE, "copying")
            points = [_copied(record) for record in records]
            self._fresh.update(engine.UpdateOperation.upsert_points(points))
        self._unflushed += 1
        if self._unflushed >= _BETWEEN_FLUSHES:
            self.flush()

    def flush(self) -> None:
        with engine_errors("flushing a copy"):
            self._fresh.flush()
        self._unflushed = 0


def _copied(record: engine.Record) -> engine.Point:
    if record.vector is None:
        raise StorageError("A point of the in-process store came back without its vectors.")
    return engine.Point(record.id, record.vector, record.payload)


async def _surely(work: Awaitable[None]) -> None:
    """Do it even if the caller is cancelled meanwhile; the cancellation comes after it."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        raise
