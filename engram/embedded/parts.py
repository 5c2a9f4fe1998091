"""The parts of the embedded mode, started and ended in order."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from engram.agents.asking import thinker
from engram.client.engine import MemoryEngine
from engram.client.local import EmbedderSpec, direct_engine
from engram.embedded.erase import FolderScrubber
from engram.embedded.folder import DataFolder, read_record
from engram.embedded.keys import audit_folder, own_keys, record_keys
from engram.embedded.program import GuardedServer
from engram.embedded.server import TemporalDevServer
from engram.embedding.choice import make_embedder
from engram.embedding.offline import OfflineEmbedder
from engram.errors import DataFolderUnusable
from engram.lifecycle.due import review_stamp
from engram.ports import Clock, Embedder, MemoryRepository
from engram.server.listening import answering_when_asked
from engram.settings import Settings
from engram.storage.payload import check_identity
from engram.storage.trail import keeping_trail
from engram.system import new_id, new_secret, system_clock
from engram.temporal.schedules import keeping_schedules
from engram.workflows.nexus import answering_nexus
from engram.workflows.worker import running_workers

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from engram.storage.edge import EdgeRepository

_log = structlog.get_logger("engram.embedded")


@dataclass(frozen=True)
class Parts:
    """What runs: the engine over it all, and where Temporal is."""

    engine: MemoryEngine
    ui_url: str | None
    address: str


async def start_parts(
    stack: AsyncExitStack,
    folder: DataFolder,
    settings: Settings,
    launched: GuardedServer,
    *,
    plain_runs: bool,
    embedder: EmbedderSpec | None,
    model: str | Model | None,
    clock: Clock | None,
) -> Parts:
    """Start the parts; the stack ends them in order: doors, worker, flush, store, server.

    Temporal's server is launched already; ``plain_runs`` says whether it had a database before.
    What reads and embeds is loaded with the first turn.
    """
    vectors = make_embedder(embedder or settings.embedder)
    asked = thinker(model or settings.model)
    keys = own_keys(folder, settings, system_clock, plain_runs=plain_runs)
    starting = asyncio.create_task(TemporalDevServer.start(folder, settings, launched=launched))
    repository = await _store_beside(starting, folder, settings, vectors)
    server = await _kept(starting, stack, repository)
    stack.push_async_callback(repository.close)
    now = clock or system_clock
    trail = await stack.enter_async_context(
        keeping_trail(audit_folder(folder, settings), keys, settings, now, new_secret)
    )
    record_keys(folder, keys)
    client = await server.connect(keys)
    await stack.enter_async_context(_flushing(repository, settings))
    await stack.enter_async_context(
        running_workers(
            client,
            repository,
            vectors,
            asked,
            settings,
            new_write_id=new_id,
            keys=keys,
            trail=trail,
            clock=clock,
        )
    )
    await stack.enter_async_context(keeping_schedules(client, settings))
    scrubber = _resumed(stack, FolderScrubber(folder, repository, server, client))
    engine = direct_engine(
        client,
        repository,
        vectors,
        settings,
        now,
        ui_url=server.temporal_ui_url,
        scrubber=scrubber,
        trail=trail,
        ready=vectors.load if isinstance(vectors, OfflineEmbedder) else None,
    )
    stack.push_async_callback(engine.close)
    await stack.enter_async_context(answering_nexus(client, engine, settings, own_server=True))
    await stack.enter_async_context(serve_on_socket(engine, folder.socket, settings=settings))
    return Parts(engine, server.temporal_ui_url, server.address)


def _resumed(stack: AsyncExitStack, scrubber: FolderScrubber) -> FolderScrubber:
    stack.push_async_callback(scrubber.close)
    scrubber.resume()
    return scrubber


async def _store_beside(
    starting: asyncio.Task[TemporalDevServer],
    folder: DataFolder,
    settings: Settings,
    embedder: Embedder,
) -> EdgeRepository:
    try:
        return await _open_store(folder, settings, embedder)
    except BaseException:
        starting.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await (await starting).stop()
        raise


async def _kept(
    starting: asyncio.Task[TemporalDevServer],
    stack: AsyncExitStack,
    repository: MemoryRepository,
) -> TemporalDevServer:
    try:
        server = await starting
    except BaseException:
        await repository.close()
        raise
    stack.push_async_callback(server.stop)
    return server


async def _open_store(folder: DataFolder, settings: Settings, embedder: Embedder) -> EdgeRepository:
    from engram.storage.edge import EdgeRepository  # noqa: PLC0415 - an optional part

    folder.require_store(settings.collection_prefix)
    if stored := read_record(folder.store_record(settings.collection_prefix)):
        # Before it is asked for its size, over a network perhaps.
        check_identity(stored, embedder=embedder.identity)
    repository = await EdgeRepository.open(
        folder.store,
        embedder_identity=embedder.identity,
        dimensions=await embedder.dimensions(),
        settings=settings,
        stamp=review_stamp(settings.lifecycle_rules),
    )
    try:
        folder.note_store(settings.collection_prefix)
    except BaseException:
        await repository.close()
        raise
    return repository


# So many intervals in which something was written may pass before the engine is flushed.
_BUSY_AT_MOST = 12


@asynccontextmanager
async def _flushing(repository: EdgeRepository, settings: Settings) -> AsyncIterator[None]:
    """Sync every few seconds: what a power loss can take is bounded by the interval.

    The engine itself is flushed when nobody writes, and else now and then: meanwhile nobody
    is answered.
    """

    async def flush_regularly() -> None:
        busy = 0
        while True:
            await asyncio.sleep(settings.flush_interval.total_seconds())
            try:
                busy = busy + 1 if await repository.sync() else _BUSY_AT_MOST
                if busy >= _BUSY_AT_MOST:
                    await repository.flush()
                    busy = 0
            except Exception:  # noqa: BLE001 - one failed flush must not end flushing; it is logged
                _log.exception("flushing the store failed; trying again")

    flushing = asyncio.create_task(flush_regularly())
    try:
        yield
    finally:
        flushing.cancel()
        with suppress(asyncio.CancelledError):
            await flushing


# --- answering processes that attach

_WAITING = 128


@asynccontextmanager
async def serve_on_socket(
    engine: MemoryEngine, path: Path, *, settings: Settings | None = None
) -> AsyncIterator[None]:
    """Answer other processes of this user while the block runs.

    The caller owns the data folder, so a socket that lies there is a dead one's. Requests
    that still run at the end get a few seconds.

    Args:
        engine: What answers.
        path: The socket, mode 0600.
        settings: Limits on what is accepted; from the environment when absent.

    Raises:
        DataFolderUnusable: the socket cannot be made: its path is too long, say.
        EmbeddedPartMissing: a package of the extra ``embedded`` is missing.
    """
    with _listening(path) as listener:
        async with answering_when_asked(
            listener,
            lambda run: run.serve_owner(engine, listener, settings=settings),
            extra="embedded",
            lost="other processes can no longer attach",
        ):
            yield


@contextmanager
def _listening(path: Path) -> Iterator[socket.socket]:
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            listener.bind(str(path))
        except OSError as error:
            raise DataFolderUnusable(
                f"Other processes cannot be answered at {path} ({error.strerror or error}).",
                allowed="a path of at most 100 bytes, in a folder that can be written to",
                hint="Use a data folder with a shorter path, or set TMPDIR to a shorter one.",
                details={"path": str(path)},
            ) from error
        try:
            # Before anybody listens: until then a connection is refused.
            path.chmod(0o600)
            listener.listen(_WAITING)
            listener.setblocking(False)
            yield listener
        finally:
            path.unlink(missing_ok=True)
