"""Temporal's development server as a part of this process: it starts and ends with it."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog
from temporalio.client import Client
from temporalio.service import RPCError

from engram.embedded.folder import (
    LOOPBACK,
    DataFolder,
    held,
    port_in_use,
)
from engram.embedded.program import (
    POLL_SECONDS,
    PORT_SETTINGS,
    GuardedServer,
    Ports,
    tail,
    wait_until,
)
from engram.errors import DataFolderUnusable, EmbeddedStartFailed, EngramError, TemporalUnavailable
from engram.ports import KeyStore
from engram.settings import Settings
from engram.temporal.connection import connect_client, prepare_namespace, quiet_runtime

# --- Temporal's development server as a part of this process: it starts and ends with it

_log = structlog.get_logger("engram.embedded")

_ATTEMPTS = 5
# How long the first try to reach it may hang: somebody else may listen there and say nothing.
_PATIENCE_SECONDS = 1.0
# Should another version of the program say it in other words: one without its port is gone by then.
_SAYS_SO_SECONDS = 2.0
# What SQLite says of a file that it cannot read, or that is empty or lacks a part.
_DAMAGED = ("database disk image is malformed", "file is not a database", "no such table")
# How soon its unasked end is noticed.
_WATCH_SECONDS = 0.1
# Between two tries to start it again, and between two lines that say that it does not.
_LONGEST_PAUSE_SECONDS = 30.0
_MOST_DOUBLINGS = 10
_SAID_EVERY_SECONDS = 60.0
_SERVES = "Temporal Server:"


class _PortLost(Exception):
    """Somebody else took a port between choosing and using it."""


class TemporalDevServer:
    """A development server that keeps its data in a folder.

    If it ends without being asked to, it is started again at the same address;
    clients and workers that are connected go on by themselves.

    Get one from :meth:`start`. One per folder: the folder's lock, and a lock
    that the server itself holds, see to it.
    """

    def __init__(self, folder: DataFolder, settings: Settings, binary: Path | None) -> None:
        self._folder = folder
        self._settings = settings
        self._binary = binary
        self._ports = Ports(0, None)
        self._server: GuardedServer | None = None
        self._watching: asyncio.Task[None] | None = None
        self._stopped = False

    @classmethod
    async def start(
        cls,
        folder: DataFolder,
        settings: Settings,
        *,
        binary: Path | None = None,
        launched: GuardedServer | None = None,
    ) -> TemporalDevServer:
        """Start it and wait until it answers; a server left behind is ended first.

        Args:
            folder: Locked by this process.
            settings: Ports, web pages, retention, time to start.
            binary: The ``temporal`` program; the installed one if None.
            launched: One that was started in the folder already; it is ended if it fails.

        Raises:
            EmbeddedPartMissing: the program is not installed.
            PortInUse: a port that settings ask for is taken.
            EmbeddedStartFailed: it does not start, or not in time; says why.
            RuntimeError: the folder is not locked by this process.
        """
        if not folder.locked:
            raise RuntimeError("lock the data folder before starting its server")
        server = cls(folder, settings, binary)
        try:
            await server._launch(launched)
        except BaseException:
            await server.stop()
            raise
        server._begin_watching()
        return server

    @property
    def address(self) -> str:
        """host:port of its gRPC service."""
        return f"{LOOPBACK}:{self._ports.grpc}"

    @property
    def temporal_ui_url(self) -> str | None:
        """Where its web pages are; None without."""
        return f"http://{LOOPBACK}:{self._ports.ui}" if self._ports.ui else None

    @property
    def pid(self) -> int:
        """The server's process id.

        Raises:
            TemporalUnavailable: it was stopped.
        """
        return self._running().pid

    async def connect(self, keys: KeyStore | None = None) -> Client:
        """A client that speaks pydantic.

        Args:
            keys: Its payloads are encrypted with; None leaves them readable.

        Raises:
            TemporalUnavailable: the server was stopped or does not answer.
        """
        self._running()
        try:
            return await self._client(keys)
        except (RPCError, RuntimeError, OSError) as error:
            raise TemporalUnavailable(
                f"Temporal's development server does not answer at {self.address}."
            ) from error

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """End it, and start it again at the same address when the block is left.

        Clients and workers wait meanwhile, as when it ends by itself. One caller at a time.
        """
        try:
            await self._stop_watching()
            await self._end()
            with held(self._ports.grpc, self._ports.ui):
                yield
        finally:
            if not self._stopped:
                await self._resume()

    async def _resume(self) -> None:
        try:
            # Again, for when the pause was interrupted before the server's end.
            await self._end()
            await self._launch_again()
        except (EngramError, OSError, _PortLost) as error:
            # The watch tries again.
            _log.warning("it did not start after a pause", reason=type(error).__name__)
        finally:
            self._begin_watching()

    async def stop(self) -> None:
        """End it and wait until nothing of it is left. Idempotent."""
        self._stopped = True
        await self._stop_watching()
        await self._end()

    def _begin_watching(self) -> None:
        self._watching = asyncio.create_task(self._watch(), name="temporal-dev-server")

    async def _stop_watching(self) -> None:
        watching, self._watching = self._watching, None
        if watching is not None:
            watching.cancel()
            # Its errors were logged where they happened.
            await asyncio.gather(watching, return_exceptions=True)

    async def _end(self) -> None:
        server = self._server
        if server is not None:
            await server.stop()
            # Only now: whoever was interrupted before this line leaves it to the next to end it.
            self._server = None

    def _running(self) -> GuardedServer:
        if self._server is None or not self._server.running:
            raise TemporalUnavailable("Temporal's development server does not run.")
        return self._server

    async def _client(self, keys: KeyStore | None = None) -> Client:
        return await connect_client(
            self.address, self._settings.temporal_namespace, keys, runtime=quiet_runtime()
        )

    async def _launch(self, launched: GuardedServer | None) -> None:
        for _ in range(_ATTEMPTS):
            self._server = launched or await GuardedServer.launch(
                self._folder, self._settings, binary=self._binary
            )
            launched, self._ports = None, self._server.ports
            try:
                await self._until_ready(self._server)
            except _PortLost:
                await self._end()
            else:
                return
        raise EmbeddedStartFailed(
            f"Temporal's development server lost its ports {_ATTEMPTS} times to other programs."
        )

    async def _watch(self) -> None:
        """Start it again, at the same address, whenever it ends without being asked to.

        However long that takes: whatever is in the way may pass, and nobody else would try.
        """
        failures, said_at = 0, -math.inf
        while True:
            if self._server is not None and self._server.running:
                await asyncio.sleep(_WATCH_SECONDS)
                continue
            if not failures:
                _log.warning("Temporal's development server ended by itself; starting it again")
            try:
                await self._end()
                await self._launch_again()
            except Exception as error:  # noqa: BLE001 - logged, and tried again: nobody else would
                failures += 1
                if time.monotonic() - said_at >= _SAID_EVERY_SECONDS:
                    said_at = time.monotonic()
                    _log.error(
                        "Temporal's development server does not start; it is tried again",
                        reason=type(error).__name__,
                        failures=failures,
                        log=str(self._folder.server_log),
                    )
                pause = _WATCH_SECONDS * 2 ** min(failures, _MOST_DOUBLINGS)
                await asyncio.sleep(min(pause, _LONGEST_PAUSE_SECONDS))
            else:
                failures, said_at = 0, -math.inf
                _log.warning("Temporal's development server runs again", address=self.address)

    async def _launch_again(self) -> None:
        self._server = await GuardedServer.launch(
            self._folder, self._settings, binary=self._binary, ports=self._ports
        )
        await self._until_ready(self._server)

    async def _until_ready(self, server: GuardedServer) -> None:
        within = self._settings.start_timeout.total_seconds()
        deadline = time.monotonic() + within
        try:
            async with asyncio.timeout(within):
                client = await self._answering(server, deadline)
                await self._ours(server)
                await prepare_namespace(client, self._settings.temporal_retention)
        except TimeoutError as error:
            raise self._late() from error
        except RPCError as error:
            raise self._died() from error

    async def _answering(self, server: GuardedServer, deadline: float) -> Client:
        """Ask until somebody answers; early on it refuses connections, then calls."""
        patience = _PATIENCE_SECONDS
        while server.running and time.monotonic() < deadline:
            try:
                # Only when something listens: the client takes its time over a closed port.
                _, writer = await asyncio.open_connection(LOOPBACK, self._ports.grpc)
                writer.close()
                async with asyncio.timeout(patience):
                    return await self._client()
            except TimeoutError:
                patience *= 2
            except (RPCError, RuntimeError, OSError):
                await asyncio.sleep(POLL_SECONDS)
        raise self._late() if server.running else self._died()

    async def _ours(self, server: GuardedServer) -> None:
        """Make sure that the server that answers is this one, not one that took the port first.

        One that cannot have its port ends; one that has it says so in its log.
        """
        log = self._folder.server_log
        await wait_until(lambda: not server.running or _SERVES in tail(log), _SAYS_SO_SECONDS)
        if not server.running:
            raise self._died()

    def _died(self) -> Exception:
        said = tail(self._folder.server_log)
        if "address already in use" in said:
            asked = (self._settings.temporal_port, self._settings.temporal_ui_port)
            for port, setting in zip(asked, PORT_SETTINGS, strict=True):
                if port is not None and str(port) in said:
                    return port_in_use(port, setting)
            return _PortLost()
        if any(words in said for words in _DAMAGED):
            return DataFolderUnusable(
                f"The database of Temporal's development server, {self._folder.temporal_db}, is "
                "damaged.",
                hint="Restore the whole folder from a backup. Without one, move temporal.sqlite "
                "and what begins with its name aside, and start again: memories stay, and turns "
                "that wait are consolidated; working memory, reviews that wait, and how far "
                "imports have come are lost.",
                details={"log": str(self._folder.server_log)},
            )
        return EmbeddedStartFailed(
            "Temporal's development server ended while starting.",
            hint=said,
            details={"log": str(self._folder.server_log)},
        )

    def _late(self) -> EmbeddedStartFailed:
        waited = self._settings.start_timeout.total_seconds()
        return EmbeddedStartFailed(
            f"Temporal's development server did not answer within {waited:g} seconds.",
            hint=f"Raise ENGRAM_START_TIMEOUT. {tail(self._folder.server_log)}",
        )


@asynccontextmanager
async def ui_pages(settings: Settings) -> AsyncIterator[str]:
    """The pages of Temporal's UI, while the block runs: the base URL of a server without data.

    The program gives out its pages only beside a server of its own. So the server that holds
    the histories need not have any.

    Raises:
        EmbeddedPartMissing: the program is not installed.
        EmbeddedStartFailed: it does not start, or not in time; says why.
    """
    own = {"temporal_ui": True, "temporal_port": None, "temporal_ui_port": None}
    with TemporaryDirectory(prefix="engram-ui-") as place:
        folder = DataFolder(place)
        if not folder.try_lock():
            raise folder.in_use()
        server = await TemporalDevServer.start(folder, settings.model_copy(update=own))
        assert server.temporal_ui_url is not None  # noqa: S101 - asked for above
        try:
            yield server.temporal_ui_url
        finally:
            await server.stop()
            folder.release()
