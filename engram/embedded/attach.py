"""One process owns a data folder; whoever comes later attaches to it, or takes over."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from engram.client.attached import AttachedEngine
from engram.embedded.folder import DataFolder
from engram.errors import OwnerUnavailable
from engram.settings import Settings


@asynccontextmanager
async def own_or_attach(
    folder: DataFolder, settings: Settings
) -> AsyncIterator[AttachedEngine | None]:
    """Become the owner of the folder (None), or attach to the one there is.

    An owner that is starting is waited for; one that ends while it is waited
    for leaves the folder to this process. The folder is released at the end.

    Raises:
        DataFolderInUse: the owner did not answer within ``settings.attach_timeout``.
        DataFolderUnusable: the folder cannot be written to.
    """
    while not folder.try_lock():
        attaching = AttachedEngine.connect(folder, settings)
        try:
            engine = await attaching.__aenter__()
        except OwnerUnavailable:
            continue
        try:
            yield engine
        finally:
            await engine.close()
        return
    try:
        yield None
    finally:
        folder.release()
