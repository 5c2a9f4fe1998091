"""Runs Temporal's development server and ends it when Engram's process ends.

A program of its own, started as ``python -I -S guard.py``: it imports nothing of
Engram and little of Python, so that it is there within milliseconds. Its standard
input is a pipe from Engram's process. When that says something, because Engram
asks for the end, or closes, because Engram died, even of SIGKILL, the guard ends
the server, first kindly, then for sure: sooner for the dead, since nobody waits.
When the server ends by itself, so does the guard.

It inherits the locked descriptor to the server: the lock is free again exactly
when neither of them lives, whatever happened to the guard.

Arguments: lock file, log file, seconds of grace, the server's name in process
listings, its executable, its arguments. Standard output: the server's pid, once.
Exit status: 0 after an asked end; 75 when another server holds the lock; else 1.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import sys
import time

LOCK_HELD = 75
MAX_LOG_BYTES = 8 * 1024 * 1024
TICK_SECONDS = 0.5
ORPHAN_GRACE_SECONDS = 1.5
ASKED = "asked"
ORPHANED = "orphaned"


def main(arguments: list[str]) -> int:
    """Start the server, wait for a reason to end, end it."""
    lock_path, log_path, grace, name, executable, *rest = arguments
    # Histories hold what was said: whatever the folder allows, the files are the user's alone.
    os.umask(0o077)
    parent = os.getppid()
    lock = os.open(lock_path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return LOCK_HELD
    os.set_inheritable(lock, True)
    wake = prepare_signals()
    log = os.open(log_path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        server = start_server(executable, [name, *rest], log)
    except OSError as error:
        os.write(log, f"cannot run {executable}: {error.strerror}\n".encode())
        return 1
    os.write(1, b"%d\n" % server)
    reason = watch(server, parent, wake, log, log_path)
    if isinstance(reason, int):
        return 0 if reason == 0 else 1
    end_server(server, wake, float(grace) if reason == ASKED else ORPHAN_GRACE_SECONDS)
    return 0


def prepare_signals() -> int:
    """Turn SIGTERM and a child's end into bytes on a pipe; returns its reading end."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    return reading


def start_server(executable: str, arguments: list[str], log: int) -> int:
    """Start it in its own process group, its output in the log; returns its pid."""
    return os.posix_spawn(
        executable,
        arguments,
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, log, 1),
            (os.POSIX_SPAWN_DUP2, log, 2),
        ],
        setpgroup=0,
        setsigmask=[],
        setsigdef=[signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD],
    )


def watch(server: int, parent: int, wake: int, log: int, log_path: str) -> int | str:
    """Wait until the server ends (its status) or has to be ended (why)."""
    while True:
        ready, _, _ = select.select([0, wake], [], [], TICK_SECONDS)
        status = reap(server)
        if status is not None:
            return status
        if 0 in ready:
            return ASKED if os.read(0, 1) else ORPHANED
        if wake in ready and signal.SIGTERM in os.read(wake, 1024):
            return ASKED
        # A process that Engram's forked may keep the pipe open beyond its death.
        if os.getppid() != parent:
            return ORPHANED
        if not ready:
            rotate(log, log_path)


def end_server(server: int, wake: int, grace: float) -> None:
    """Ask the server's group to end, and after ``grace`` seconds make it."""
    deadline = time.monotonic() + grace
    signal_group(server, signal.SIGTERM)
    status = reap(server)
    while status is None and (left := deadline - time.monotonic()) > 0:
        if select.select([wake], [], [], left)[0]:
            os.read(wake, 1024)
        status = reap(server)
    # Also after a kind end: whoever remains of the group goes with it.
    signal_group(server, signal.SIGKILL)
    if status is None:
        os.waitpid(server, 0)


def signal_group(server: int, number: signal.Signals) -> None:
    """Signal the server's group, which may be gone."""
    try:
        os.killpg(server, number)
    except (ProcessLookupError, PermissionError):
        # macOS answers "not permitted" for a group of which only remains are left.
        return


def reap(server: int) -> int | None:
    """The server's exit status, or None while it runs."""
    pid, status = os.waitpid(server, os.WNOHANG)
    return None if pid == 0 else os.waitstatus_to_exitcode(status)


def rotate(log: int, log_path: str) -> None:
    """Keep the log bounded: move what it holds aside and begin it anew."""
    if os.fstat(log).st_size <= MAX_LOG_BYTES:
        return
    with open(log_path, "rb") as full, open(log_path + ".1", "wb") as aside:  # noqa: PTH123 - pathlib costs start time
        while block := full.read(1 << 20):
            aside.write(block)
    # The server appends, so its next line goes to the new beginning.
    os.ftruncate(log, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
