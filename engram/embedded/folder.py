"""The data folder of the embedded mode: its layout, and the lock that gives it one owner.

The lock is the kernel's (``flock``): it ends with the process that holds it,
however that process ends, so a folder is never locked by the dead.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from engram.embedded.records import read_record, write_record
from engram.errors import DataFolderInUse, DataFolderUnusable, EmbeddedPartMissing

if sys.platform != "win32":
    import fcntl

# The kernel's limit for the path of a Unix socket is 104 bytes on macOS, 108 on Linux,
# the closing NUL included.
_SOCKET_PATH_BYTES = 100


class FileLock:
    """An exclusive lock on a file, held by an open descriptor."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor is not None

    def try_acquire(self) -> bool:
        """Take the lock if nobody has it; also True when this object has it already.

        Raises:
            EmbeddedPartMissing: this platform has no such locks.
            OSError: the file cannot be opened.
        """
        if sys.platform == "win32":
            raise EmbeddedPartMissing(
                "The embedded mode does not run on Windows.",
                allowed="Linux and macOS",
                hint="Use engram.connect() with a Temporal and a Qdrant server.",
            )
        if self._descriptor is not None:
            return True
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        except OSError:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Let go of it; nothing happens when it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a data folder.

    Attributes:
        pid: Its process id.
        socket: Where it answers other processes.
    """

    pid: int
    socket: Path


class DataFolder:
    """A folder that one process at a time works in.

    Construction creates the folder, readable by its user only, and touches
    nothing inside it. Everything but the lock belongs to the owner alone.

    Args:
        path: The folder; ``~`` is expanded.

    Raises:
        DataFolderUnusable: it is a file, or cannot be created or written to.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser().absolute()
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise self._unusable("is, or lies under, a file") from error
        except (OSError, ValueError) as error:
            raise self._unusable("cannot be created") from error
        self.path = self.path.resolve()
        self._lock = FileLock(self.path / "lock")
        self._socket: Path | None = None
        self._private: Path | None = None

    @property
    def store(self) -> Path:
        """Where the memory store keeps its files."""
        return self.path / "store"

    @property
    def temporal_db(self) -> Path:
        """The database of Temporal's development server."""
        return self.path / "temporal.sqlite"

    @property
    def server_record(self) -> Path:
        """What is known about the development server that runs on this folder."""
        return self.path / "server.json"

    @property
    def server_lock(self) -> Path:
        """Locked as long as a development server, or its guard, lives."""
        return self.path / "server.lock"

    @property
    def server_log(self) -> Path:
        """The output of the development server."""
        return self.path / "temporal.log"

    def drop_server_logs(self) -> None:
        """Remove what the development server said; only while none runs."""
        self.server_log.unlink(missing_ok=True)
        self.server_log.with_name(self.server_log.name + ".1").unlink(missing_ok=True)

    @property
    def scrub_record(self) -> Path:
        """Which erasures are not followed yet by rewriting files."""
        return self.path / "scrub.json"

    @property
    def _owner_record(self) -> Path:
        return self.path / "owner.json"

    @property
    def locked(self) -> bool:
        """Whether this object owns the folder."""
        return self._lock.held

    def try_lock(self) -> bool:
        """Become the owner if there is none, and leave word of it; True on success.

        Raises:
            DataFolderUnusable: the folder cannot be written to.
            EmbeddedPartMissing: this platform has no such locks.
        """
        if self.locked:
            return True
        try:
            if not self._lock.try_acquire():
                return False
            self._take_over()
        except OSError as error:
            self._lock.release()
            raise self._unusable("cannot be written to") from error
        return True

    def has_owner(self) -> bool:
        """Whether anybody, this object included, owns the folder now.

        Raises:
            DataFolderUnusable: the folder cannot be written to.
            EmbeddedPartMissing: this platform has no such locks.
        """
        if self.locked:
            return True
        probe = FileLock(self.path / "lock")
        try:
            free = probe.try_acquire()
        except OSError as error:
            raise self._unusable("cannot be written to") from error
        probe.release()
        return not free

    @property
    def socket(self) -> Path:
        """Where this process, as the owner, answers others.

        Raises:
            RuntimeError: this object does not own the folder.
        """
        if self._socket is None:
            raise RuntimeError("the folder is not locked by this object")
        return self._socket

    def owner(self) -> Owner | None:
        """Who wrote that it owns the folder; None if nobody did or it cannot be read.

        The record of an owner that was killed stays behind: only the lock tells
        whether it lives.
        """
        found = read_record(self._owner_record)
        if found is None:
            return None
        try:
            return Owner(pid=int(found["pid"]), socket=Path(str(found["socket"])))
        except (KeyError, TypeError, ValueError):
            return None

    def in_use(self) -> DataFolderInUse:
        """The error for a folder that another process owns."""
        owner = self.owner()
        whom = f"process {owner.pid}" if owner else "another process"
        return DataFolderInUse(
            f"The data folder {self.path} is in use by {whom}.",
            hint="Wait for it to end, end it, or use another folder.",
            details={"path": str(self.path), "pid": owner.pid if owner else None},
        )

    def release(self) -> None:
        """Remove what says that this process owns the folder, then unlock it. Idempotent."""
        if not self.locked:
            return
        if self._socket is not None:
            self._socket.unlink(missing_ok=True)
        self._owner_record.unlink(missing_ok=True)
        if self._private is not None:
            shutil.rmtree(self._private, ignore_errors=True)
        self._socket = self._private = None
        self._lock.release()

    def _take_over(self) -> None:
        self._forget_dead_owner()
        self.store.mkdir(mode=0o700, exist_ok=True)
        wanted = self.path / "engram.sock"
        if len(os.fsencode(wanted)) > _SOCKET_PATH_BYTES:
            self._private = Path(tempfile.mkdtemp(prefix="engram-"))
            wanted = self._private / "engram.sock"
        self._socket = wanted
        write_record(self._owner_record, {"pid": os.getpid(), "socket": str(wanted)})

    def _forget_dead_owner(self) -> None:
        owner = self.owner()
        if owner is None:
            return
        owner.socket.unlink(missing_ok=True)
        if owner.socket.parent.name.startswith("engram-") and owner.socket.parent != self.path:
            # Its private folder for the socket; rmdir takes nothing that is not empty.
            try:
                owner.socket.parent.rmdir()
            except OSError:
                return

    def _unusable(self, why: str) -> DataFolderUnusable:
        return DataFolderUnusable(
            f"The data folder {self.path} {why}.",
            allowed="a folder that this user can create and write to",
            hint="Pass another path, or set ENGRAM_DATA_DIR.",
            details={"path": str(self.path)},
        )
