"""Settings and stores for tests: real engine, real embedder, real patterns."""

from __future__ import annotations

import atexit
import itertools
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from engram.embedding.embedder import make_embedder
from engram.extraction.extractor import Extractor
from engram.settings import Settings
from engram.storage.edge import EdgeRepository
from engram.writing.episodes import TurnStore


def worker_settings(**values: Any) -> Settings:
    """Settings with queues of their own, so that tests never meet."""
    unique = uuid4().hex[:8]
    return Settings.load(
        **{"store_queue": f"store-{unique}", "model_queue": f"model-{unique}", **values}
    )


# Making a store costs seconds, copying an empty one a fraction: made once per run.
_template: list[Path] = []


async def _load(path: Path, settings: Settings) -> EdgeRepository:
    embedder = make_embedder("wordllama")
    return await EdgeRepository.open(
        path,
        embedder_identity=embedder.identity,
        dimensions=await embedder.dimensions(),
        settings=settings,
    )


@asynccontextmanager
async def open_edge(path: Path, settings: Settings) -> AsyncIterator[EdgeRepository]:
    """A real store in a folder, as it is or fresh."""
    store = path / "store"
    if not store.exists():
        if not _template:
            made = Path(tempfile.mkdtemp(prefix="engram-empty-store-"))
            atexit.register(shutil.rmtree, made, ignore_errors=True)
            await (await _load(made / "store", settings)).close()
            _template.append(made / "store")
        # cp keeps the holes of the engine's preallocated files.
        subprocess.run(["cp", "-r", str(_template[0]), str(store)], check=True)  # noqa: ASYNC221 - a test's set-up
    repository = await _load(store, settings)
    try:
        yield repository
    finally:
        await repository.close()


def turn_store(repository: Any, settings: Settings) -> TurnStore:
    """The storing service over a repository."""
    counter = itertools.count()
    return TurnStore(
        repository,
        make_embedder("wordllama"),
        Extractor(settings),
        lambda: f"write-{next(counter)}-{uuid4()}",
    )
