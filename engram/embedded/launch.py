"""Starting a development server under its guard, and ending whatever is left of one."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from engram.embedded import guard
from engram.embedded.folder import DataFolder, FileLock
from engram.embedded.processes import Process, find_by_marker, find_process, signal_group
from engram.embedded.records import ServerRecord
from engram.errors import EmbeddedPartMissing, EmbeddedStartFailed

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
        log.replace(log.with_name(log.name + ".1"))
    with log.open("ab") as output:
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
