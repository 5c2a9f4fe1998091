"""Copying what is left of a shard into fresh files: deleting alone leaves words in the old ones.

The engine keeps deleted points in its log, and in its segments until they are
optimised; indexes and storage keep the bytes even then. Reads and writes go on
while points are copied. What was written meanwhile is copied again at the end,
when writes wait for as long as that and the change of folders take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from engram.domain.memories import MemoryType
from engram.errors import StorageError
from engram.storage import edge_swap
from engram.storage.edge_engine import engine, engine_errors
from engram.storage.edge_shards import OpenStore

# Some milliseconds each.
_AT_ONCE: Final = 64
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
    store: OpenStore, memory_type: MemoryType, writes: Writes, check_open: Callable[[], None]
) -> int:
    """Put a fresh copy in the place of a shard.

    Args:
        store: Whose shard; it holds the fresh one afterwards.
        memory_type: Which one.
        writes: Through which every write to it goes.
        check_open: Raises once the store was closed.

    Returns:
        How many points there are.

    Raises:
        StorageError: the engine failed. The old shard is in use as before.
        OSError: the disk failed or is full. Likewise.
    """
    folder = store.folders[memory_type]
    edge_swap.drop_rebuilt(folder)
    fresh = store.create(memory_type, edge_swap.rebuilt(folder))
    writes.changed = set()
    try:
        copying = _Copying(store.shards[memory_type], fresh, check_open)
        await copying.everything()
        async with writes.lock:
            await copying.these(writes.changed)
            copying.flush()
            await asyncio.to_thread(edge_swap.sync_files, edge_swap.rebuilt(folder))
            check_open()
            points = fresh.info().points_count
            fresh.close()
            # No await from here on: nobody may see the shard that is closed.
            store.take_over(memory_type)
    finally:
        writes.changed = None
        fresh.close()
        await _surely(asyncio.to_thread(edge_swap.drop_rebuilt, folder))
    await _surely(asyncio.to_thread(edge_swap.drop_replaced, folder))
    return points


class _Copying:
    def __init__(
        self, old: engine.EdgeShard, fresh: engine.EdgeShard, check_open: Callable[[], None]
    ) -> None:
        self._old = old
        self._fresh = fresh
        self._check_open = check_open
        self._unflushed = 0

    async def everything(self) -> None:
        at: engine.PointId | None = None
        while True:
            self._check_open()
            request = engine.ScrollRequest(
                offset=at, limit=_AT_ONCE, with_payload=True, with_vector=True
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
        for start in range(0, len(wanted), _AT_ONCE):
            self._check_open()
            part: list[engine.PointId] = [*wanted[start : start + _AT_ONCE]]
            with engine_errors("copying"):
                self._fresh.update(engine.UpdateOperation.delete_points(part))
                self._put(self._old.retrieve(part, True, True))
            await asyncio.sleep(0)

    def _put(self, records: Sequence[engine.Record]) -> None:
        if records:
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
