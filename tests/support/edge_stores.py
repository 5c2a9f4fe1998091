"""Real stores for tests: made once in a process, empty for each test that borrows one.

Making a store syncs a thousand files, which takes seconds on a disk. Tests of the
files themselves make their own (``EdgeRepository.open``).
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from qdrant_edge import Filter, UpdateOperation

from engram.embedding.choice import make_embedder
from engram.ports import Stamp, unstamped
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from engram.storage.edge_files import OpenStore, open_store


@dataclass(frozen=True)
class _Borrowed(OpenStore):
    """A store that is emptied and goes back where it came from when it is closed."""

    idle: list[OpenStore]
    owned: OpenStore

    def close(self) -> None:
        for shard in self.owned.shards.values():
            shard.update(UpdateOperation.delete_points_by_filter(Filter()))
        self.idle.append(self.owned)


@dataclass
class _Shelf:
    """The stores of this process that nobody has borrowed."""

    idle: dict[tuple[str, int], list[OpenStore]] = field(default_factory=dict)

    def borrow(self, embedder: str, dimensions: int) -> _Borrowed:
        idle = self.idle.setdefault((embedder, dimensions), [])
        store = idle.pop() if idle else self._make(embedder, dimensions)
        return _Borrowed(
            store.shards,
            store.folders,
            store.lock,
            store.config,
            store.known,
            idle=idle,
            owned=store,
        )

    def _make(self, embedder: str, dimensions: int) -> OpenStore:
        folder = Path(tempfile.mkdtemp(prefix="engram-store-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        prefix = Settings.load().collection_prefix
        made = open_store(folder / "store", prefix=prefix, embedder=embedder, dimensions=dimensions)
        atexit.register(made.close)
        return made


_shelf = _Shelf()


def borrow(embedder: str, dimensions: int, stamp: Stamp = unstamped) -> EdgeRepository:
    """An empty store on the real engine, which goes back when it is closed."""
    store = _shelf.borrow(embedder, dimensions)
    # The repository is new each time: its locks belong to the loop that they first wait on.
    return EdgeRepository(
        store,
        path=next(iter(store.folders.values())).parent,
        embedder_identity=embedder,
        dimensions=dimensions,
        stamp=stamp,
    )


@asynccontextmanager
async def borrowed_store(stamp: Stamp = unstamped) -> AsyncIterator[EdgeRepository]:
    """An empty store with the offline embedder's dimensions, for the length of a block."""
    embedder = make_embedder("wordllama")
    repository = borrow(embedder.identity, await embedder.dimensions(), stamp)
    try:
        yield repository
    finally:
        await repository.close()
