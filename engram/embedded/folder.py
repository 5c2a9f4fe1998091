"""The data folder of the embedded mode: its layout, its lock, and who works on it."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from engram.errors import (
    DataFolderInUse,
    DataFolderUnusable,
    PortInUse,
    StorageError,
    StorageUnavailable,
)
from engram.logging import get_logger
from engram.system import FileLock, private_draft

_log = get_logger("engram.embedded")

# --- small JSON files that say which processes work on a data folder


@dataclass(frozen=True, slots=True)
class ServerRecord:
    """A development server that was started on a folder.

    Attributes:
        pid: Its process id, which is its process group's too.
        started: When the process began, in the words of the operating system;
            tells it from a later process with the same id.
        marker: What its command line holds and no other program's does.
        guard_pid: The watcher that ends it.
        port: Of its gRPC service.
        ui_port: Of its web pages; None without.
        db: Its database.
    """

    pid: int
    started: str | None
    marker: str
    guard_pid: int
    port: int
    ui_port: int | None
    db: str

    @property
    def address(self) -> str:
        """host:port of its gRPC service."""
        return f"{LOOPBACK}:{self.port}"

    def write(self, path: Path) -> None:
        """Keep it; a reader sees the old record or this one, nothing between."""
        write_record(path, asdict(self))

    @classmethod
    def read(cls, path: Path) -> ServerRecord | None:
        """What was kept; None if there is nothing that can be read."""
        found = read_record(path)
        try:
            return None if found is None else cls(**found)
        except TypeError:
            return None


def write_record(path: Path, record: dict[str, Any], *, durable: bool = False) -> None:
    """Replace a small JSON file in one step; ``durable``: it outlasts a loss of power."""
    with private_draft(path, durable=durable) as draft:
        json.dump(record, draft)


def read_record(path: Path) -> dict[str, Any] | None:
    """A small JSON file's object; None when it is missing or is not one."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


# --- the data folder of the embedded mode: its layout, and the lock that gives it one owner

# The kernel's limit for the path of a Unix socket is 104 bytes on macOS, 108 on Linux,
# the closing NUL included.
_SOCKET_PATH_BYTES = 100
ENCRYPTION: Final = "encryption"
"""The subfolder of the keys that Temporal payloads are encrypted with."""
AUDIT: Final = "audit"
"""The subfolder of the audit trail."""
_SOCKET = "engram.sock"
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
"""That the disk is full, or what this user may take of it."""


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
        StorageUnavailable: its disk has no room left.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.path = self.path.expanduser().absolute()
        except (OSError, RuntimeError) as error:
            # The current folder was removed, or nobody knows where this user's home is.
            raise self._unusable("cannot be found from here") from error
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise self._unusable("is, or lies under, a file") from error
        except (OSError, ValueError) as error:
            raise self._refused("cannot be created", error) from error
        self.path = self.path.resolve()
        self._lock = FileLock(self.path / "lock")
        self._socket: Path | None = None
        self._private: Path | None = None

    @property
    def store(self) -> Path:
        """Where the memory store keeps its files."""
        return self.path / "store"

    def store_record(self, prefix: str) -> Path:
        """What a store with this collection prefix says of itself; it has it from the first."""
        return self.store / f"{prefix}.store.json"

    def has_lost_store(self, prefix: str) -> bool:
        """Whether there was a store with this collection prefix, and is none any more."""
        return prefix in self._stores_made() and not self.store_record(prefix).exists()

    def require_store(self, prefix: str) -> None:
        """See to it that no empty store is made in the place of one that was lost.

        Raises:
            StorageError: there was one with this collection prefix, and is none any more.
        """
        if self.has_lost_store(prefix):
            raise StorageError(
                f"The store at {self.store}, with the collection prefix {prefix}, is missing.",
                hint="Restore it from a backup of the whole data folder, or start a new store "
                "(ENGRAM_DATA_DIR): one made empty in its place would hide the loss.",
            )

    def note_store(self, prefix: str) -> None:
        """There is a store with this collection prefix: if it is missing later, it was lost."""
        made = self._stores_made()
        if prefix not in made:
            write_record(self._stores_record, {"made": sorted({*made, prefix})}, durable=True)

    @property
    def _stores_record(self) -> Path:
        return self.path / "stores.json"

    def _stores_made(self) -> list[str]:
        made = (read_record(self._stores_record) or {}).get("made")
        return [*map(str, made)] if isinstance(made, list) else []

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
    def encryption(self) -> Path:
        """The keys that Temporal payloads are encrypted with, unless settings name others."""
        return self.path / ENCRYPTION

    @property
    def encryption_record(self) -> Path:
        """Which keys they are: without them what the database holds is noise."""
        return self.path / "encryption.json"

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
            DataFolderUnusable: the folder cannot be written to, or is another user's.
            StorageUnavailable: its disk has no room left.
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
            raise self._refused("cannot be written to", error) from error
        except DataFolderUnusable:
            self._lock.release()
            raise
        return True

    def has_owner(self) -> bool:
        """Whether anybody, this object included, owns the folder now.

        Raises:
            DataFolderUnusable: the folder cannot be written to.
            StorageUnavailable: its disk has no room left.
            EmbeddedPartMissing: this platform has no such locks.
        """
        if self.locked:
            return True
        probe = FileLock(self.path / "lock")
        try:
            free = probe.try_acquire()
        except OSError as error:
            raise self._refused("cannot be written to", error) from error
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
        whether it lives. A record that was copied with the folder names the owner of the
        original, and is none of this one.
        """
        found = read_record(self._owner_record)
        # One that runs an earlier version wrote no lock down.
        if found is None or found.get("lock") not in (None, self._lock_identity()):
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
        self._make_private()
        self._forget_dead_owner()
        self.store.mkdir(mode=0o700, exist_ok=True)
        wanted = self.path / _SOCKET
        if len(os.fsencode(wanted)) > _SOCKET_PATH_BYTES:
            self._private = Path(tempfile.mkdtemp(prefix="engram-"))
            wanted = self._private / _SOCKET
        self._socket = wanted
        owner = {"pid": os.getpid(), "socket": str(wanted), "lock": self._lock_identity()}
        write_record(self._owner_record, owner)

    def _lock_identity(self) -> str | None:
        """Tells this folder's lock from that of a copy of the folder; None if there is none."""
        try:
            found = (self.path / "lock").stat()
        except OSError:
            return None
        return f"{found.st_dev}:{found.st_ino}"

    def _forget_dead_owner(self) -> None:
        owner = self.owner()
        if owner is None:
            return
        if self._is_own_socket(owner.socket):
            owner.socket.unlink(missing_ok=True)
        if owner.socket.parent.name.startswith("engram-") and owner.socket.parent != self.path:
            # Its private folder for the socket; rmdir takes nothing that is not empty.
            try:
                owner.socket.parent.rmdir()
            except OSError:
                return

    def _is_own_socket(self, path: Path) -> bool:
        """Whether a socket of ours lies where owners make theirs; records can be forged."""
        beside = path.parent == self.path or path.parent.name.startswith("engram-")
        try:
            found = path.lstat()
        except OSError:
            return False
        ours = stat.S_ISSOCK(found.st_mode) and found.st_uid == os.geteuid()
        return ours and beside and path.name == _SOCKET

    def _make_private(self) -> None:
        """See to it that only this user looks into the folder: some of its files say more.

        Raises:
            DataFolderUnusable: it belongs to another user, who could change all that is in it.
            OSError: the rights cannot be read.
        """
        found = self.path.stat()
        if os.geteuid() not in (0, found.st_uid) and found.st_uid != 0:
            raise self._unusable("belongs to another user")
        if not found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            return
        try:
            self.path.chmod(stat.S_IRWXU)
        except OSError as error:
            # Of a mounted volume, say: whoever mounts it decides.
            _log.warning("other users may look into the data folder", reason=error.strerror)
        else:
            _log.info("other users could look into the data folder; that was taken from them")

    @contextmanager
    def refusals_typed(self) -> Iterator[None]:
        """Say of what the system refuses in the block which file of the folder it is about.

        Raises:
            DataFolderUnusable: a file in it cannot be used.
            StorageUnavailable: its disk has no room left.
        """
        try:
            yield
        except OSError as error:
            if not isinstance(error.filename, str | bytes):
                raise
            file = Path(os.fsdecode(error.filename))
            if not file.is_relative_to(self.path):
                raise
            if error.errno in _NO_ROOM:
                raise self._refused("cannot be written to", error) from error
            raise _unusable_file(file, error.strerror) from error

    def _refused(
        self, what: str, error: OSError | ValueError
    ) -> DataFolderUnusable | StorageUnavailable:
        """The error for what the system refused: where room would do, no other folder is advised.

        In another folder the memory would be empty.
        """
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            return StorageUnavailable(
                f"The disk of the data folder {self.path} has no room left.",
                hint="Make room on it; the same call can be made again. Nothing that was "
                "acknowledged is lost.",
                details={"path": str(self.path)},
            )
        return self._unusable(f"{what} ({getattr(error, 'strerror', None) or error})")

    def _unusable(self, why: str) -> DataFolderUnusable:
        return DataFolderUnusable(
            f"The data folder {self.path} {why}.",
            allowed="a folder that this user can create and write to",
            hint="Pass another path, or set ENGRAM_DATA_DIR.",
            details={"path": str(self.path)},
        )


def _unusable_file(file: Path, reason: str | None) -> DataFolderUnusable:
    """The error for a file of a data folder that the system refuses."""
    return DataFolderUnusable(
        f"{file}, of the data folder, cannot be used ({reason}).",
        allowed="files that this user can read and write",
        hint="No memory is lost by that. What another user made there, root say, is this user's "
        "again with `chown -R`; a disk that is mounted read-only has to be writable.",
        details={"path": str(file)},
    )


# --- free ports on the loopback interface

LOOPBACK = "127.0.0.1"


def free_ports(count: int) -> tuple[int, ...]:
    """So many different ports that were free a moment ago.

    Nothing keeps them free: whoever uses them must be ready to lose one and ask again.
    """
    with ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind((LOOPBACK, 0))
        return tuple(int(each.getsockname()[1]) for each in sockets)


@contextmanager
def held(*ports: int | None) -> Iterator[None]:
    """Keep ports from others while nobody listens on them; connecting is refused.

    Without it the system may give one to whoever connects somewhere meanwhile.
    """
    with ExitStack() as stack:
        for port in ports:
            # One that somebody has already cannot be kept; starting there says so.
            with suppress(OSError):
                holding = stack.enter_context(socket.socket())
                holding.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                holding.bind((LOOPBACK, port or 0))
        yield


def require_free(port: int, setting: str) -> None:
    """Check that nobody listens on a port that settings ask for.

    Args:
        port: 1 to 65535.
        setting: The setting it comes from, to name in the error.

    Raises:
        PortInUse: somebody does, or this user may not listen there.
    """
    with socket.socket() as probe:
        # As the server does: connections that linger after a restart are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
            probe.listen(1)
        except OSError as error:
            raise port_in_use(port, setting) from error


def port_in_use(port: int, setting: str) -> PortInUse:
    """The error for a port that cannot be had."""
    return PortInUse(
        f"Port {port}, which {setting} asks for, cannot be used on {LOOPBACK}.",
        allowed="a port that no other program listens on",
        hint=f"Stop the program that has it, or leave {setting} unset to get a free port.",
        details={"port": port, "setting": setting},
    )


# --- looking at processes that are not our children, and ending them for sure

# On Linux; other systems are asked through ps.
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A running process.

    Attributes:
        pid: Its id.
        started: When it began, as the system counts; comparable for equality only.
        command: Its command line.
    """

    pid: int
    started: str
    command: str


def find_process(pid: int) -> Process | None:
    """The process with this id; None when there is none, or only its remains."""
    if PROC.is_dir():
        return _from_proc(pid)
    return next(iter(_from_ps("-p", str(pid))), None)


def find_by_marker(marker: str) -> list[Process]:
    """Every process of ours whose command line begins with ``marker``."""
    if PROC.is_dir():
        ids = (int(each.name) for each in PROC.iterdir() if each.name.isdigit())
        found = [process for pid in ids if (process := _from_proc(pid)) is not None]
    else:
        found = _from_ps("-U", str(os.getuid()))
    return [process for process in found if process.command.startswith(marker)]


def signal_group(pid: int, number: signal.Signals) -> None:
    """Signal the group that ``pid`` leads, or itself if it leads none; gone is fine."""
    try:
        if os.getpgid(pid) == pid:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        # Not there any more, or the id already belongs to somebody else.
        return


def _from_proc(pid: int) -> Process | None:
    folder = PROC / str(pid)
    try:
        # The second field, the name, may hold spaces and brackets; the rest follows the last ")".
        fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
        command = (folder / "cmdline").read_bytes()
    except OSError:
        return None
    if fields[0] in ("Z", "X") or not command:
        return None
    return Process(pid, fields[19], os.fsdecode(command.replace(b"\0", b" ")).strip())


def _from_ps(*which: str) -> list[Process]:
    answer = subprocess.run(  # noqa: S603 - fixed command, no shell, own arguments
        ["/bin/ps", "-ww", *which, "-o", "pid=,stat=,lstart=,command="],
        capture_output=True,
        check=False,
        env={"LC_ALL": "C"},
    )
    found = []
    for line in os.fsdecode(answer.stdout).splitlines():
        # lstart is five words: weekday, month, day, time, year.
        parts = line.split(None, 7)
        if len(parts) == 8 and not parts[1].startswith("Z"):  # noqa: PLR2004 - pid, stat, 5, command
            found.append(Process(int(parts[0]), " ".join(parts[2:7]), parts[7]))
    return found
